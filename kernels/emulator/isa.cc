#include "isa.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace zyfa::emulator {
namespace {

constexpr std::pair<std::string_view, Field> kFields[] = {
    {"vdst", Field::vdst},   {"sdst", Field::sdst},   {"sdata", Field::sdata}, {"vdata", Field::vdata},
    {"addr", Field::addr},   {"vaddr", Field::vaddr}, {"data", Field::data},   {"data0", Field::data0},
    {"data1", Field::data1}, {"sbase", Field::sbase}, {"srsrc", Field::srsrc}, {"soffset", Field::soffset},
    {"saddr", Field::saddr}, {"ssrc0", Field::ssrc0}, {"ssrc1", Field::ssrc1}, {"src0", Field::src0},
    {"src1", Field::src1},   {"vsrc1", Field::vsrc1}, {"src2", Field::src2},   {"simm16", Field::simm16},
};

constexpr std::pair<std::string_view, Accepts> kAccepts[] = {
    {"v", Accepts::vgpr},
    {"va", Accepts::any_vgpr},
    {"vac", Accepts::any_vgpr_or_constant},
    {"a", Accepts::agpr},
    {"src", Accepts::source},
    {"s", Accepts::sgpr},
    {"ssrc", Accepts::scalar_source},
    {"soff", Accepts::smem_offset},
    {"imm", Accepts::immediate},
    {"label", Accepts::label},
    {"hwreg", Accepts::hwreg},
    {"wait", Accepts::wait},
    {"msg", Accepts::message},
};

template <typename Table>
auto look_up(const Table& table, std::string_view word) {
  for (const auto& [name, value] : table)
    if (name == word) return value;
  throw std::logic_error("unknown word in an instruction table: " + std::string(word));
}

template <typename Table, typename Value>
const char* name_in(const Table& table, Value value) {
  for (const auto& [name, entry] : table)
    if (entry == value) return name.data();  // literals: they end in zero
  return "?";
}

std::string_view take(std::string_view& rest, char end) {
  const size_t at = rest.find(end);
  const std::string_view word = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return word;
}

// "f32", "b128", "bf16x2", "fp8x4": kind, bits per element, elements.
void read_type(std::string_view word, OperandSpec& spec) {
  std::string_view type = take(word, 'x');
  spec.elements = word.empty() ? 1 : static_cast<uint8_t>(std::atoi(std::string(word).c_str()));
  const size_t digits = type.find_first_of("0123456789");
  const std::string_view letters = type.substr(0, digits);
  spec.element_bits = 0;
  const int bits = std::atoi(std::string(type.substr(digits)).c_str());
  spec.kind = letters == "b"   ? Kind::bits
              : letters == "u" ? Kind::unsigned_int
              : letters == "i" ? Kind::signed_int
                               : Kind::real;
  spec.brain = letters == "bf" && bits == 16;
  spec.element_bits = static_cast<uint8_t>(bits <= 128 ? bits : 32);
  spec.bits = static_cast<uint16_t>(bits * spec.elements);
}

OpInfo read_row(Op op, Format format, unsigned opcode, const char* name, std::string_view operands) {
  OpInfo row{op, format, static_cast<uint16_t>(opcode), name, 0, {}};
  while (!operands.empty()) {
    std::string_view word = take(operands, ' ');
    OperandSpec& spec = row.operands[row.operand_count++];
    spec.field = look_up(kFields, take(word, ':'));
    spec.accepts = look_up(kAccepts, take(word, ':'));
    read_type(word, spec);
  }
  return row;
}

struct Tables {
  std::array<OpInfo, static_cast<size_t>(Op::count)> rows;
  std::map<std::pair<Format, unsigned>, const OpInfo*> by_opcode;
  std::map<std::string_view, const OpInfo*> by_name;

  Tables() {
    size_t at = 0;
#define ZYFA_OP(format, opcode, name, operands) \
  rows[at++] = read_row(Op::name, Format::format, opcode, #name, operands);
#include "isa/all.def"
#undef ZYFA_OP
    for (const OpInfo& row : rows) {
      if (!by_opcode.emplace(std::pair(row.format, row.opcode), &row).second)
        throw std::logic_error(std::string("opcode twice in the instruction tables: ") + row.name);
      by_name.emplace(row.name, &row);
    }
  }
};

const Tables& tables() {
  static const Tables once;
  return once;
}

}  // namespace

const char* field_name(Field field) { return name_in(kFields, field); }
const char* accepts_name(Accepts accepts) { return name_in(kAccepts, accepts); }

const OpInfo& info(Op op) { return tables().rows[static_cast<size_t>(op)]; }

const OpInfo* find_op(Format format, unsigned opcode) {
  const auto found = tables().by_opcode.find({format, opcode});
  return found == tables().by_opcode.end() ? nullptr : found->second;
}

const char* format_name(Format format) {
  constexpr const char* kNames[] = {"SOP1", "SOP2", "SOPC",   "SOPK",    "SOPP",   "SMEM",
                                    "VOP1", "VOP2", "VOPC",   "VOP3",    "VOP3SD", "VOP3P",
                                    "DS",   "FLAT", "GLOBAL", "SCRATCH", "MUBUF",  "MTBUF"};
  return kNames[static_cast<int>(format)];
}

bool is_matrix(const OpInfo& row) {
  const std::string_view name = row.name;
  return row.operand_count > 0 && (name.substr(0, 6) == "v_mfma" || name.substr(0, 8) == "v_smfmac");
}

const OpInfo* find_op(const char* name) {
  const auto found = tables().by_name.find(name);
  return found == tables().by_name.end() ? nullptr : found->second;
}

}  // namespace zyfa::emulator
