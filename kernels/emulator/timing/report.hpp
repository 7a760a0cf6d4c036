// What a timed launch measured. Cycles of the model, never of a chip.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "timing/costs.hpp"
#include "timing/pipes.hpp"

namespace zyfa::emulator::timing {

using CauseCycles = std::array<uint64_t, kCauses>;

// One instruction of the program, over all waves that were timed.
struct PlaceStats {
  uint64_t executed = 0, stalled = 0, conflict_cycles = 0;
  CauseCycles stalls{};
};

// One SIMD of the compute unit.
struct SimdStats {
  uint32_t waves = 0;
  uint64_t matrix = 0;            // cycles the matrix pipe was busy
  uint64_t valu = 0;              // cycles of vector instructions, matrix issue not counted
  uint64_t matrix_issue = 0;      // cycles of the vector slot taken by matrix instructions
  uint64_t overlapped = 0;        // vector cycles begun while a matrix instruction ran
  uint64_t doubtful_overlap = 0;  // of them of classes that some sources say cannot overlap
};

struct WaveStats {
  std::array<uint64_t, kClasses> issued{};
  CauseCycles stalls{};
};

struct Stats {
  uint64_t cycles = 0;  // that the timed compute units ran, one after the other
  std::array<SimdStats, kSimds> simds{};
  uint64_t lds_busy = 0, lds_bytes = 0, conflict_cycles = 0, memory_busy = 0, memory_bytes = 0;
  uint64_t instructions = 0;
  std::vector<WaveStats> waves;  // by index in the workgroup
};

struct TraceEvent {
  const Step* step = nullptr;
  uint64_t begin = 0;
  uint32_t cycles = 0;
  uint16_t track = 0;  // pipes: Pipe * 4 + SIMD; waves: kWaveTracks + slot
};

enum class Pipe : uint8_t { matrix, valu, lds, memory };
constexpr uint16_t kWaveTracks = 16;

struct Trace {
  bool enabled = false;
  uint64_t begin = 0, end = 0;  // window of cycles
  size_t max_events = 0;
  std::vector<TraceEvent> events;
  uint64_t dropped = 0;  // events of the window beyond max_events
  std::vector<std::string> wave_names;

  void add(const Step& step, uint64_t at, uint64_t cycles, uint16_t track) {
    if (!enabled || at >= end || at + cycles <= begin) return;
    if (events.size() < max_events)
      events.push_back({&step, at, static_cast<uint32_t>(cycles), track});
    else
      ++dropped;
  }
};

// The events as the JSON that chrome://tracing and ui.perfetto.dev read; one cycle is shown as one
// microsecond.
std::string trace_json(const Trace& trace, uint64_t entry);

struct Place {
  uint64_t offset = 0;  // bytes from the kernel's entry
  std::string text;
  Class kind = Class::plain;
  PlaceStats stats;
};

struct TimedRun {  // one compute unit with the workgroups it held together
  std::vector<uint64_t> groups;
  std::vector<uint64_t> cycles;  // until each of them ended
};

struct Occupancy {
  uint32_t groups = 0, waves_per_simd = 0;
  uint32_t by_vgprs = 0, by_lds = 0, by_waves = 0;  // workgroups per compute unit if only this counted
};

struct Chip {
  uint64_t cycles = 0;     // until the last workgroup ended
  double mean_cycles = 0;  // that an occupied place of a compute unit was at work
  double microseconds = 0, tflops = 0;
  double useful_matrix = 0;           // useful FLOP / peak of the whole chip in this time
  double useful_matrix_occupied = 0;  // the same over the time and compute units that had work
  uint64_t places = 0;                // workgroups that can run at once
  bool sampled = false;               // not every workgroup was timed
  std::string durations;              // how those not timed got theirs
};

struct Report {
  Stats stats;
  std::vector<TimedRun> runs;
  std::vector<Place> places;  // most stalled first
  Occupancy occupancy;
  Chip chip;
  Constants constants;
  std::string trace;  // JSON, empty without a trace
  uint64_t trace_dropped = 0;
};

}  // namespace zyfa::emulator::timing
