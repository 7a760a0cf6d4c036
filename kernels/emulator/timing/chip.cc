#include "timing/chip.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <queue>

#include "errors.hpp"

namespace zyfa::emulator::timing {
namespace {

uint32_t whole(double value) { return static_cast<uint32_t>(std::clamp(value, 0.0, 1e9)); }

uint32_t granules(uint32_t amount, uint32_t granule) { return (amount + granule - 1) / granule * granule; }

double work_of(const std::vector<uint64_t>& set, const std::vector<double>& work) {
  double sum = 0;
  for (const uint64_t group : set) sum += work.empty() ? static_cast<double>(group) : work[group];
  return sum;
}

}  // namespace

Occupancy occupancy_of(const Kernel& kernel, uint32_t waves, uint32_t lds_bytes, const Constants& c) {
  const uint32_t vgprs = granules(std::max(kernel.vgprs, 1u), std::max(whole(c.vgpr_granule), 1u));
  const uint32_t slots = whole(c.waves_per_simd);
  const uint32_t by_registers = std::min(slots, whole(c.vgprs_per_simd) / vgprs);
  const uint32_t lds = granules(lds_bytes, std::max(whole(c.lds_granule), 1u));
  Occupancy made;
  made.by_waves = kSimds * slots / waves;
  made.by_vgprs = kSimds * by_registers / waves;
  made.by_lds = lds == 0 ? made.by_waves : whole(c.lds_bytes) / lds;
  made.groups = std::min({made.by_waves, made.by_vgprs, made.by_lds});
  if (made.groups == 0)
    throw LaunchError(
        format("timing: no workgroup of '%s' fits a compute unit: %u waves of %u VGPRs and %u bytes of LDS",
               kernel.name.c_str(), waves, vgprs, lds_bytes));
  made.waves_per_simd = (made.groups * waves + kSimds - 1) / kSimds;
  return made;
}

std::vector<std::vector<uint64_t>> groups_together(uint64_t groups, uint32_t per_unit, const Constants& c) {
  const uint64_t units = uint64_t{whole(c.xcds)} * whole(c.cus_per_xcd), filling = units * per_unit;
  std::vector<std::vector<uint64_t>> sets;
  for (uint64_t first = 0; first < groups; first += filling)
    for (uint64_t unit = 0; unit < units && first + unit < groups; ++unit) {
      sets.emplace_back();
      for (uint64_t g = first + unit; g < std::min(groups, first + filling); g += units)
        sets.back().push_back(g);
    }
  return sets;
}

std::vector<size_t> chosen_sets(const std::vector<std::vector<uint64_t>>& sets,
                                const std::vector<double>& work, size_t limit) {
  std::vector<size_t> order(sets.size());
  std::iota(order.begin(), order.end(), 0);
  limit = std::max<size_t>(limit, 1);
  if (sets.size() <= limit) return order;
  std::vector<double> amount;
  for (const auto& set : sets) amount.push_back(work_of(set, work));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return amount[a] < amount[b]; });
  std::vector<size_t> chosen;
  for (size_t i = 0; i < limit; ++i)
    chosen.push_back(order[limit == 1 ? sets.size() / 2 : i * (sets.size() - 1) / (limit - 1)]);
  return chosen;
}

std::vector<double> all_durations(uint64_t groups, const std::vector<TimedRun>& runs,
                                  const std::vector<double>& work) {
  const auto key = [&](uint64_t group) { return work.empty() ? static_cast<double>(group) : work[group]; };
  std::map<double, std::pair<double, double>> points;  // work -> sum of cycles, how many
  std::vector<double> made(groups, -1);
  for (const TimedRun& run : runs)
    for (size_t i = 0; i < run.groups.size(); ++i) {
      const auto cycles = static_cast<double>(run.cycles[i]);
      made[run.groups[i]] = cycles;
      auto& [sum, count] = points[key(run.groups[i])];
      sum += cycles, count += 1;
    }
  const auto mean = [](const auto& point) { return point->second.first / point->second.second; };
  for (uint64_t group = 0; group < groups; ++group) {
    if (made[group] >= 0) continue;
    const auto above = points.lower_bound(key(group));
    if (above == points.end()) {
      made[group] = mean(std::prev(above));
    } else if (above == points.begin() || above->first == key(group)) {
      made[group] = mean(above);
    } else {
      const auto below = std::prev(above);
      const double part = (key(group) - below->first) / (above->first - below->first);
      made[group] = mean(below) + part * (mean(above) - mean(below));
    }
  }
  return made;
}

Chip schedule(const std::vector<double>& durations, uint32_t per_unit, double flops, const Constants& c) {
  const uint64_t dies = std::max(whole(c.xcds), 1u),
                 places = uint64_t{std::max(whole(c.cus_per_xcd), 1u)} * per_unit;
  using Free = std::priority_queue<double, std::vector<double>, std::greater<>>;
  std::vector<Free> free(dies);
  uint64_t used = 0;
  double end = 0, total = 0;
  for (size_t i = 0; i < durations.size(); ++i) {
    Free& die = free[i % dies];
    double start = 0;
    if (die.size() < places) {
      ++used;
    } else {
      start = die.top();
      die.pop();
    }
    die.push(start + durations[i]);
    end = std::max(end, start + durations[i]);
    total += durations[i];
  }
  Chip chip;
  chip.cycles = static_cast<uint64_t>(std::llround(end));
  chip.places = dies * places;
  chip.mean_cycles = used == 0 ? 0 : total / static_cast<double>(used);
  chip.microseconds = end / (c.clock_ghz * 1e3);
  if (end == 0) return chip;
  const double unit_peak = kSimds * c.flops_per_cycle;
  chip.tflops = flops / chip.microseconds / 1e6;
  chip.useful_matrix =
      flops / (end * static_cast<double>(dies) * std::max(whole(c.cus_per_xcd), 1u) * unit_peak);
  chip.useful_matrix_occupied = flops * per_unit / (total * unit_peak);
  return chip;
}

}  // namespace zyfa::emulator::timing
