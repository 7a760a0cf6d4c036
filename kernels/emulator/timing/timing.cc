#include "timing/timing.hpp"

#include <algorithm>

#include "decode.hpp"
#include "errors.hpp"
#include "timing/chip.hpp"
#include "timing/compute_unit.hpp"

namespace zyfa::emulator::timing {
namespace {

constexpr uint64_t kMaxTimed = 1 << 24;  // the model keeps a duration of each workgroup

std::vector<Place> most_stalled(const Code& code, uint64_t entry) {
  std::vector<Place> made;
  for (const auto& place : code.places())
    if (place && place->stats.executed > 0)
      made.push_back({place->step->instruction.address - entry, disassemble(place->step->instruction),
                      place->cost.kind, place->stats});
  std::stable_sort(made.begin(), made.end(),
                   [](const Place& a, const Place& b) { return a.stats.stalled > b.stats.stalled; });
  return made;
}

// The workgroups that were not timed run one after the other; returns their instructions.
uint64_t run_untimed(PreparedLaunch& prepared, const std::vector<TimedRun>& runs) {
  std::vector<bool> timed(prepared.group_count());
  for (const TimedRun& run : runs)
    for (const uint64_t group : run.groups) timed[group] = true;
  Workgroup group;
  uint64_t instructions = 0;
  for (uint64_t number = 0; number < timed.size(); ++number) {
    if (timed[number]) continue;
    prepared.start(group, number);
    run_group(group, nullptr);
    for (const auto& wave : group.waves) instructions += wave->executed;
  }
  return instructions;
}

}  // namespace

TimedLaunch launch_timed(LoadedModule& module, Memory& memory, const LaunchRequest& request,
                         const Request& timing) {
  TimedLaunch made;
  Report& report = made.report;
  report.constants.set(timing.constants);
  const Constants& constants = report.constants;
  PreparedLaunch prepared(module, memory, request);
  const uint64_t groups = prepared.group_count();
  if (groups > kMaxTimed)
    throw LaunchError(format("timing: %llu workgroups, the limit is %llu",
                             static_cast<unsigned long long>(groups),
                             static_cast<unsigned long long>(kMaxTimed)));
  if (!timing.work.empty() && timing.work.size() != groups)
    throw LaunchError(format("timing: work has %zu entries, the grid has %llu workgroups", timing.work.size(),
                             static_cast<unsigned long long>(groups)));
  report.occupancy = occupancy_of(*prepared.kernel, prepared.waves_per_group, prepared.lds_bytes, constants);

  const auto sets = groups_together(groups, report.occupancy.groups, constants);
  const std::vector<size_t> chosen = chosen_sets(sets, timing.work, timing.max_runs);
  Code code(*module.program, module.load_address, module.object.image_bytes, constants);
  Trace trace;
  trace.begin = timing.trace_begin;
  trace.end = timing.trace_end;
  trace.max_events = timing.trace_events;
  std::vector<Workgroup> resident(report.occupancy.groups);
  for (size_t i = 0; i < chosen.size(); ++i) {
    const std::vector<uint64_t>& set = sets[chosen[i]];
    std::vector<Workgroup*> together;
    for (size_t g = 0; g < set.size(); ++g) {
      prepared.start(resident[g], set[g]);
      together.push_back(&resident[g]);
    }
    trace.enabled = i == 0 && trace.end > trace.begin;
    ComputeUnit unit(code, constants, report.stats, trace);
    report.runs.push_back({set, unit.run(together)});
  }
  const bool sampled = chosen.size() < sets.size();
  const uint64_t rest = sampled && timing.run_rest ? run_untimed(prepared, report.runs) : 0;

  report.chip = schedule(all_durations(groups, report.runs, timing.work), report.occupancy.groups,
                         timing.flops, constants);
  report.chip.sampled = sampled;
  report.chip.durations = !sampled              ? "every workgroup timed"
                          : timing.work.empty() ? "interpolated over the workgroup number"
                                                : "interpolated over the given work";
  report.places = most_stalled(code, prepared.shared.entry);
  if (timing.trace_end > timing.trace_begin) report.trace = trace_json(trace, prepared.shared.entry);
  report.trace_dropped = trace.dropped;
  made.summary = {prepared.findings.all(), report.stats.instructions + rest, groups};
  return made;
}

}  // namespace zyfa::emulator::timing
