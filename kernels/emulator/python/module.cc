// Python's view of the emulator: devices, modules, launches, and the decoder. zyfa_ort.kernels.emulator wraps
// it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "decode.hpp"
#include "errors.hpp"
#include "lint.hpp"
#include "listing.hpp"
#include "machine.hpp"
#include "timing.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace zyfa::emulator;

void bind_effects(nb::module_& m);

namespace {

std::vector<uint8_t> to_vector(const nb::bytes& data) {
  const auto* begin = reinterpret_cast<const uint8_t*>(data.c_str());
  return {begin, begin + data.size()};
}

nb::dict to_dict(const Finding& f) {
  nb::dict made;
  made["rule"] = rule_name(f.rule);
  made["severity"] = f.severity == Severity::error ? "error" : "warning";
  made["meaning"] = rule_text(f.rule);
  made["kernel"] = f.kernel;
  made["workgroup"] = nb::make_tuple(f.workgroup[0], f.workgroup[1], f.workgroup[2]);
  made["wave"] = f.wave;
  made["offset"] = f.offset;
  made["instruction"] = f.instruction;
  made["message"] = f.message;
  made["missing"] = f.missing;
  made["times"] = f.times;
  return made;
}

nb::dict to_dict(const Kernel& k) {
  nb::dict made;
  made["name"] = k.name;
  made["lds_bytes"] = k.lds_bytes;
  made["private_bytes"] = k.private_bytes;
  made["kernarg_bytes"] = k.kernarg_bytes;
  made["max_workgroup"] = k.max_workgroup;
  made["vgprs"] = k.vgprs;
  made["accum_offset"] = k.accum_offset;
  made["entry"] = k.entry;
  nb::list arguments;
  for (const KernelArgument& a : k.arguments)
    arguments.append(nb::make_tuple(a.name, a.value_kind, a.offset, a.size));
  made["arguments"] = arguments;
  return made;
}

// A row of the instruction tables: format, opcode, name, operands as (field, what it accepts, bits).
nb::tuple to_tuple(const OpInfo& row) {
  nb::list operands;
  for (int n = 0; n < row.operand_count; ++n) {
    const OperandSpec& spec = row.operands[n];
    operands.append(nb::make_tuple(field_name(spec.field), accepts_name(spec.accepts), spec.bits));
  }
  return nb::make_tuple(format_name(row.format), row.opcode, row.name, operands);
}

nb::object to_object(const Operand& operand) {
  if (!operand) return nb::none();
  constexpr const char* kKinds[] = {"none", "sgpr", "vgpr", "constant", "special"};
  nb::dict made;
  made["kind"] = kKinds[static_cast<int>(operand.kind)];
  made["reg"] = operand.reg;
  made["dwords"] = operand.dwords;
  made["value"] = operand.value;
  made["literal"] = operand.literal;
  made["implicit"] = operand.implicit;
  made["neg"] = operand.neg;
  made["abs"] = operand.abs;
  made["sext"] = operand.sext;
  made["sel"] = operand.sel;
  return made;
}

nb::dict to_dict(const Instruction& i) {
  constexpr const char* kEncodings[] = {"plain", "vop3", "sdwa", "dpp"};
  nb::dict made;
  made["name"] = i.info->name;
  made["bytes"] = i.bytes;
  made["encoding"] = kEncodings[static_cast<int>(i.encoding)];
  made["dst"] = to_object(i.dst);
  made["sdst"] = to_object(i.sdst);
  made["src"] = nb::make_tuple(to_object(i.src[0]), to_object(i.src[1]), to_object(i.src[2]));
  made["scale"] = nb::make_tuple(to_object(i.scale[0]), to_object(i.scale[1]));
  made["mask"] = to_object(i.mask);
  made["addr"] = to_object(i.addr);
  made["data"] = to_object(i.data);
  made["data1"] = to_object(i.data1);
  made["base"] = to_object(i.base);
  made["soffset"] = to_object(i.soffset);
  made["offset"] = i.offset;
  made["offset0"] = i.offset0;
  made["offset1"] = i.offset1;
  made["imm"] = i.imm;
  made["sc0"] = i.sc0;
  made["sc1"] = i.sc1;
  made["nt"] = i.nt;
  made["lds"] = i.lds;
  made["clamp"] = i.clamp;
  made["omod"] = i.omod;
  made["op_sel"] = i.op_sel;
  made["op_sel_hi"] = i.op_sel_hi;
  made["cbsz"] = i.cbsz;
  made["abid"] = i.abid;
  made["blgp"] = i.blgp;
  made["dpp_ctrl"] = i.dpp_ctrl;
  made["row_mask"] = i.row_mask;
  made["bank_mask"] = i.bank_mask;
  made["bound_ctrl"] = i.bound_ctrl;
  made["dst_sel"] = i.dst_sel;
  made["dst_unused"] = i.dst_unused;
  return made;
}

Accumulation accumulation_named(const std::string& name) {
  if (name == "exact") return Accumulation::exact;
  if (name == "sequential") return Accumulation::sequential;
  if (name == "pairwise") return Accumulation::pairwise;
  throw nb::value_error(("accumulation: expected exact, sequential or pairwise, got '" + name + "'").c_str());
}

ByteRounding byte_rounding_named(const std::string& name) {
  if (name == "nearest_even") return ByteRounding::nearest_even;
  if (name == "truncate") return ByteRounding::truncate;
  throw nb::value_error(("byte_rounding: expected nearest_even or truncate, got '" + name + "'").c_str());
}

// One device: its memory and the modules loaded into it.
class Device {
 public:
  std::vector<std::string> load(const nb::bytes& file) {
    modules_.push_back(zyfa::emulator::load(CodeObject::parse(to_vector(file)), memory_));
    std::vector<std::string> names;
    for (const Kernel& k : modules_.back()->object.kernels) names.push_back(k.name);
    return names;
  }

  uint64_t borrow(nb::ndarray<nb::c_contig, nb::device::cpu> array, const std::string& name) {
    return memory_.borrow(array.data(), array.nbytes(), name);
  }
  uint64_t borrow_read_only(nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> array,
                            const std::string& name) {
    return memory_.borrow(const_cast<void*>(static_cast<const void*>(array.data())), array.nbytes(), name,
                          false);
  }
  void free(uint64_t address) { memory_.free(address); }

  nb::dict launch(size_t module, const std::string& kernel, std::array<uint32_t, 3> grid,
                  std::array<uint32_t, 3> block, const nb::bytes& kernarg, uint32_t dynamic_lds, bool check,
                  uint64_t order_seed, uint64_t max_instructions, unsigned threads,
                  const std::string& accumulation, const std::string& byte_rounding,
                  std::optional<nb::dict> timing) {
    LaunchRequest request;
    request.kernel = kernel;
    std::copy(grid.begin(), grid.end(), request.grid);
    std::copy(block.begin(), block.end(), request.block);
    request.kernarg = to_vector(kernarg);
    request.dynamic_lds = dynamic_lds;
    request.options.check = check;
    request.options.order_seed = order_seed;
    request.options.max_instructions = max_instructions;
    request.options.threads = threads;
    request.options.accumulation = accumulation_named(accumulation);
    request.options.byte_rounding = byte_rounding_named(byte_rounding);
    timing::TimedLaunch timed;
    LaunchSummary& summary = timed.summary;
    const timing::Request timing_options = timing ? timing_request(*timing) : timing::Request();
    {
      nb::gil_scoped_release release;
      if (timing)
        timed = timing::launch_timed(*modules_.at(module), memory_, request, timing_options);
      else
        summary = zyfa::emulator::launch(*modules_.at(module), memory_, request);
    }
    nb::dict made;
    if (timing) made["timing"] = timing_report(timed.report);
    nb::list findings;
    for (const Finding& f : summary.findings) findings.append(to_dict(f));
    made["findings"] = findings;
    made["instructions"] = summary.instructions;
    made["workgroups"] = summary.workgroups;
    return made;
  }

 private:
  Memory memory_;
  std::vector<std::unique_ptr<LoadedModule>> modules_;
};

}  // namespace

NB_MODULE(_native, m) {
  auto error = nb::exception<Error>(m, "EmulatorError", PyExc_RuntimeError);
  nb::exception<CodeObjectError>(m, "CodeObjectError", error);
  nb::exception<DecodeError>(m, "DecodeError", error);
  nb::exception<LaunchError>(m, "LaunchError", error);

  m.def("kernels", [](const nb::bytes& file) {
    nb::list made;
    for (const Kernel& k : CodeObject::parse(to_vector(file)).kernels) made.append(to_dict(k));
    return made;
  });
  // The machine code of a code object: its executable segment.
  m.def(
      "code_of",
      [](const nb::bytes& file) {
        const CodeObject object = CodeObject::parse(to_vector(file));
        nb::list made;
        for (const Segment& s : object.segments)
          if (s.executable && s.file_bytes > 0)
            made.append(nb::bytes(object.file.data() + s.file_offset, s.file_bytes));
        return made;
      },
      "file"_a);
  // (size, text) of the instruction at the beginning of the bytes.
  m.def(
      "decode",
      [](const nb::bytes& code, uint64_t address) {
        const Instruction one = decode(reinterpret_cast<const uint8_t*>(code.c_str()), code.size(), address);
        return nb::make_tuple(one.bytes, disassemble(one));
      },
      "code"_a, "address"_a = 0);

  bind_effects(m);
  // Findings of the wait-state rules over straight-line code, without running it.
  m.def(
      "hazards_of",
      [](const nb::bytes& code) {
        nb::list made;
        for (const Finding& f : lint(reinterpret_cast<const uint8_t*>(code.c_str()), code.size()))
          made.append(to_dict(f));
        return made;
      },
      "code"_a);
  // The same instruction, field by field.
  m.def(
      "fields",
      [](const nb::bytes& code, uint64_t address) {
        return to_dict(decode(reinterpret_cast<const uint8_t*>(code.c_str()), code.size(), address));
      },
      "code"_a, "address"_a = 0);
  m.def("instructions", [] {
    nb::list made;
    for (int op = 0; op < static_cast<int>(Op::count); ++op) made.append(to_tuple(info(static_cast<Op>(op))));
    return made;
  });

  // Names in the tables that no handler runs.
  m.def("unimplemented", [] {
    nb::list made;
    for (int op = 0; op < static_cast<int>(Op::count); ++op) {
      Instruction one;
      one.op = static_cast<Op>(op);
      one.info = &info(one.op);
      bool found = false;
      for (const auto find : {scalar_handler, vector_handler, matrix_handler, memory_handler})
        found |= find(one) != nullptr;
      if (!found) made.append(one.info->name);
    }
    return made;
  });

  nb::class_<Device>(m, "Device")
      .def(nb::init<>())
      .def("load", &Device::load)
      .def("borrow", &Device::borrow)
      .def("borrow_read_only", &Device::borrow_read_only)
      .def("free", &Device::free)
      .def("launch", &Device::launch, "module"_a, "kernel"_a, "grid"_a, "block"_a, "kernarg"_a,
           "dynamic_lds"_a = 0, "check"_a = true, "order_seed"_a = 0, "max_instructions"_a = 200'000'000,
           "threads"_a = 1, "accumulation"_a = "exact", "byte_rounding"_a = "nearest_even",
           "timing"_a = nb::none());
  bind_listing(m);
  bind_timing(m);
}
