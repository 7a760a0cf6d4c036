// Python's view of the emulator: devices, modules, launches, and the decoder. zyfa_ort.kernels.emulator wraps it.
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
  for (const KernelArgument& a : k.arguments) arguments.append(nb::make_tuple(a.name, a.value_kind, a.offset, a.size));
  made["arguments"] = arguments;
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
  uint64_t borrow_read_only(nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> array, const std::string& name) {
    return memory_.borrow(const_cast<void*>(static_cast<const void*>(array.data())), array.nbytes(), name, false);
  }
  void free(uint64_t address) { memory_.free(address); }

  nb::dict launch(size_t module, const std::string& kernel, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                  const nb::bytes& kernarg, uint32_t dynamic_lds, bool check, uint64_t order_seed,
                  uint64_t max_instructions, unsigned threads, const std::string& accumulation, const std::string& byte_rounding,
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
  // (size, text) of the instruction at the beginning of the bytes.
  m.def("decode", [](const nb::bytes& code, uint64_t address) {
    const Instruction one = decode(reinterpret_cast<const uint8_t*>(code.c_str()), code.size(), address);
    return nb::make_tuple(one.bytes, disassemble(one));
  }, "code"_a, "address"_a = 0);

  bind_effects(m);
  // Findings of the wait-state rules over straight-line code, without running it.
  m.def("hazards_of", [](const nb::bytes& code) {
    nb::list made;
    for (const Finding& f : lint(reinterpret_cast<const uint8_t*>(code.c_str()), code.size())) made.append(to_dict(f));
    return made;
  }, "code"_a);

  nb::class_<Device>(m, "Device")
      .def(nb::init<>())
      .def("load", &Device::load)
      .def("borrow", &Device::borrow)
      .def("borrow_read_only", &Device::borrow_read_only)
      .def("free", &Device::free)
      .def("launch", &Device::launch, "module"_a, "kernel"_a, "grid"_a, "block"_a, "kernarg"_a, "dynamic_lds"_a = 0,
           "check"_a = true, "order_seed"_a = 0, "max_instructions"_a = 200'000'000, "threads"_a = 1,
           "accumulation"_a = "exact", "byte_rounding"_a = "nearest_even", "timing"_a = nb::none());
  bind_timing(m);
}
