// From the cycles of some workgroups to the time of the whole grid: how many fit a compute unit, which are
// timed, and in what order the dies hand them out.
#pragma once

#include "timing/report.hpp"

namespace zyfa::emulator::timing {

// Throws LaunchError when not even one workgroup fits.
Occupancy occupancy_of(const Kernel& kernel, uint32_t waves, uint32_t lds_bytes, const Constants& constants);

// The workgroups that a compute unit holds at the same time, for every compute unit and every filling of it.
// Workgroup i goes to die i % xcds; a die fills all its compute units once before it gives one a second
// workgroup.
std::vector<std::vector<uint64_t>> groups_together(uint64_t groups, uint32_t per_unit,
                                                   const Constants& constants);

// Which of these sets to time: all, or `limit` spread evenly over their work (ends included).
std::vector<size_t> chosen_sets(const std::vector<std::vector<uint64_t>>& sets,
                                const std::vector<double>& work, size_t limit);

// Cycles of every workgroup; those not timed by straight lines between timed ones of less and of more work.
// `work` is empty (the workgroup's number stands for it) or has one entry per workgroup.
std::vector<double> all_durations(uint64_t groups, const std::vector<TimedRun>& runs,
                                  const std::vector<double>& work);

// Hands the workgroups out in order, each to the first place of its die that gets free.
Chip schedule(const std::vector<double>& durations, uint32_t per_unit, double flops,
              const Constants& constants);

}  // namespace zyfa::emulator::timing
