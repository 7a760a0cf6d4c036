#include "timing.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errors.hpp"

namespace nb = nanobind;
using namespace zyfa::emulator;
using namespace zyfa::emulator::timing;

namespace {

nb::dict to_dict(const CauseCycles& stalls) {
  nb::dict made;
  for (int i = 0; i < kCauses; ++i)
    if (stalls[i] != 0) made[cause_name(static_cast<Cause>(i))] = stalls[i];
  return made;
}

nb::dict to_dict(const SimdStats& simd) {
  nb::dict made;
  made["waves"] = simd.waves;
  made["matrix"] = simd.matrix;
  made["valu"] = simd.valu;
  made["matrix_issue"] = simd.matrix_issue;
  made["overlapped"] = simd.overlapped;
  made["doubtful_overlap"] = simd.doubtful_overlap;
  return made;
}

nb::dict to_dict(const WaveStats& wave) {
  nb::dict made, issued;
  for (int i = 0; i < kClasses; ++i)
    if (wave.issued[i] != 0) issued[class_name(static_cast<Class>(i))] = wave.issued[i];
  made["issued"] = issued;
  made["stalls"] = to_dict(wave.stalls);
  return made;
}

nb::dict to_dict(const Place& place) {
  nb::dict made;
  made["offset"] = place.offset;
  made["instruction"] = place.text;
  made["kind"] = class_name(place.kind);
  made["executed"] = place.stats.executed;
  made["stalled"] = place.stats.stalled;
  made["conflict_cycles"] = place.stats.conflict_cycles;
  made["stalls"] = to_dict(place.stats.stalls);
  return made;
}

nb::dict to_dict(const Chip& chip) {
  nb::dict made;
  made["cycles"] = chip.cycles;
  made["mean_cycles"] = chip.mean_cycles;
  made["microseconds"] = chip.microseconds;
  made["tflops"] = chip.tflops;
  made["useful_matrix"] = chip.useful_matrix;
  made["useful_matrix_occupied"] = chip.useful_matrix_occupied;
  made["places"] = chip.places;
  made["sampled"] = chip.sampled;
  made["durations"] = chip.durations;
  return made;
}

nb::dict to_dict(const Occupancy& occupancy) {
  nb::dict made;
  made["groups"] = occupancy.groups;
  made["waves_per_simd"] = occupancy.waves_per_simd;
  made["by_vgprs"] = occupancy.by_vgprs;
  made["by_lds"] = occupancy.by_lds;
  made["by_waves"] = occupancy.by_waves;
  return made;
}

template <typename T>
nb::list list_of(const T& items) {
  nb::list made;
  for (const auto& item : items) made.append(to_dict(item));
  return made;
}

}  // namespace

timing::Request timing_request(const nb::dict& options) {
  timing::Request request;
  for (const auto [key, value] : options) {
    const auto name = nb::cast<std::string>(key);
    if (name == "constants")
      request.constants = nb::cast<std::map<std::string, double>>(value);
    else if (name == "flops")
      request.flops = nb::cast<double>(value);
    else if (name == "work")
      request.work = nb::cast<std::vector<double>>(value);
    else if (name == "max_runs")
      request.max_runs = nb::cast<size_t>(value);
    else if (name == "run_rest")
      request.run_rest = nb::cast<bool>(value);
    else if (name == "trace_begin")
      request.trace_begin = nb::cast<uint64_t>(value);
    else if (name == "trace_end")
      request.trace_end = nb::cast<uint64_t>(value);
    else if (name == "trace_events")
      request.trace_events = nb::cast<size_t>(value);
    else
      throw LaunchError(
          format("timing: no option is called '%s'; there are constants, flops, work, max_runs, run_rest, "
                 "trace_begin, trace_end, trace_events",
                 name.c_str()));
  }
  return request;
}

nb::dict timing_report(const Report& report) {
  nb::dict made, constants;
  const Stats& stats = report.stats;
  made["cycles"] = stats.cycles;
  made["instructions"] = stats.instructions;
  made["lds_busy"] = stats.lds_busy;
  made["lds_bytes"] = stats.lds_bytes;
  made["conflict_cycles"] = stats.conflict_cycles;
  made["memory_busy"] = stats.memory_busy;
  made["memory_bytes"] = stats.memory_bytes;
  made["simds"] = list_of(stats.simds);
  made["waves"] = list_of(stats.waves);
  made["places"] = list_of(report.places);
  made["occupancy"] = to_dict(report.occupancy);
  made["chip"] = to_dict(report.chip);
  nb::list runs;
  for (const TimedRun& run : report.runs)
    runs.append(nb::make_tuple(nb::cast(run.groups), nb::cast(run.cycles)));
  made["runs"] = runs;
#define ZYFA_CONSTANT(name, value, unit, source, confidence, text) constants[#name] = report.constants.name;
#include "timing/constants.def"
#undef ZYFA_CONSTANT
  made["constants"] = constants;
  made["trace"] = report.trace;
  made["trace_dropped"] = report.trace_dropped;
  return made;
}

void bind_timing(nb::module_& m) {
  // (name, value, unit, source, confidence, text) of every number of the model.
  m.def("timing_constants", [] {
    nb::list made;
    for (const ConstantInfo& c : constant_table())
      made.append(nb::make_tuple(c.name, c.value, c.unit, c.source, c.confidence, c.text));
    return made;
  });
}
