#include "lint.hpp"

#include <deque>

#include "decode.hpp"
#include "errors.hpp"
#include "hazards.hpp"

namespace zyfa::emulator {
namespace {

struct Line {
  Instruction instruction;
  Effects effects;
};

bool ends_path(Op op) {
  switch (op) {
    case Op::s_endpgm:
    case Op::s_branch:
    case Op::s_setpc_b64:
      return true;
    default:
      return false;
  }
}

Instruction decode_line(const uint8_t* code, size_t size, size_t at) {
  try {
    return decode(code + at, size - at, at);
  } catch (const DecodeError& error) {
    throw DecodeError(format("+0x%zx: %s", at, error.what()));
  }
}

}  // namespace

std::vector<Finding> lint(const uint8_t* code, size_t size) {
  std::deque<Line> lines;
  std::vector<Finding> findings;
  Hazards hazards;
  for (size_t at = 0; at < size;) {
    lines.push_back({decode_line(code, size, at), {}});
    Line& line = lines.back();
    line.effects = effects_of(line.instruction);
    Breaches found;
    if (hazards.may_break(line.effects)) hazards.find(line.instruction, line.effects, found);
    for (const Breach& breach : found)
      findings.push_back({breach.rule,
                          breach.severity,
                          "",
                          {0, 0, 0},
                          0,
                          at,
                          disassemble(line.instruction),
                          describe(breach, 0),
                          breach.missing,
                          1});
    hazards.record(line.instruction, line.effects);
    if (ends_path(line.instruction.op)) hazards.reset();
    at += line.instruction.bytes;
  }
  return findings;
}

}  // namespace zyfa::emulator
