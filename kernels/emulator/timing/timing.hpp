// Timed launches: the same results and findings as a functional launch, and a report of modelled cycles.
#pragma once

#include "machine.hpp"
#include "timing/report.hpp"

namespace zyfa::emulator::timing {

struct Request {
  std::map<std::string, double> constants;  // by name, instead of those of constants.def
  double flops = 0;                         // useful work of the whole launch, for TFLOP/s
  std::vector<double> work;  // of each workgroup, in any unit: what durations are interpolated over
  size_t max_runs = 16;      // compute units timed; workgroups beyond them run untimed
  bool run_rest = true;      // run the workgroups that are not timed, for their results
  uint64_t trace_begin = 0, trace_end = 0;  // cycles of the first timed compute unit; empty: no trace
  size_t trace_events = 200'000;
};

struct TimedLaunch {
  LaunchSummary summary;
  Report report;
};

// Throws LaunchError as launch() does, and for constants or work that make no sense.
TimedLaunch launch_timed(LoadedModule& module, Memory& memory, const LaunchRequest& request,
                         const Request& timing);

}  // namespace zyfa::emulator::timing
