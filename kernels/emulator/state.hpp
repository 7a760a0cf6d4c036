// Registers of a wave and what a workgroup shares.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "counters.hpp"
#include "findings.hpp"
#include "hazards.hpp"
#include "instruction.hpp"
#include "lds.hpp"
#include "memory.hpp"

namespace zyfa::emulator {

constexpr int kLanes = 64;

template <class F>
inline void each_lane(uint64_t lanes, F f) {
  if (lanes == ~uint64_t{0})
    for (int lane = 0; lane < kLanes; ++lane) f(lane);
  else
    for (; lanes != 0; lanes &= lanes - 1) f(__builtin_ctzll(lanes));
}

// Where flat addresses reach LDS and private memory: 4 GB each, above every allocation (which lie below
// 2^48). What src_shared_base and src_private_base read as.
constexpr uint64_t kSharedAperture = uint64_t{1} << 48, kPrivateAperture = uint64_t{2} << 48;

enum class WaveStatus : uint8_t { running, at_barrier, ended };

// MODE register: bits 3:0 rounding (32-bit, then 16/64-bit), 7:4 denormals, 8 DX10_CLAMP, 9 IEEE, 23
// FP16_OVFL, 28 VSKIP.
struct Mode {
  uint32_t bits = 0;
  unsigned round32() const { return bits & 3; }
  unsigned round16_64() const { return bits >> 2 & 3; }
  bool denormal32_in() const { return bits >> 4 & 1; }
  bool denormal32_out() const { return bits >> 5 & 1; }
  bool denormal16_64_in() const { return bits >> 6 & 1; }
  bool denormal16_64_out() const { return bits >> 7 & 1; }
  bool dx10_clamp() const { return bits >> 8 & 1; }
  bool ieee() const { return bits >> 9 & 1; }
  bool fp16_overflow() const { return bits >> 23 & 1; }
  bool skips_vectors() const { return bits >> 28 & 1; }
};

// How a matrix instruction adds up. The chip's order is not documented.
enum class Accumulation : uint8_t {
  exact,       // exact dot product, one rounding (default)
  sequential,  // one fused multiply-add per k in float32, ascending
  pairwise,    // float32 tree over k, then C
};

// How v_cvt_pk_u8_f32 rounds. Not documented.
enum class ByteRounding : uint8_t { nearest_even, truncate };

struct Options {
  bool check = true;                        // late data, races, hazards, undefined registers
  uint64_t order_seed = 0;                  // 0: natural order of waves and workgroups; else shuffled by it
  uint64_t max_instructions = 200'000'000;  // per wave
  unsigned threads = 1;                     // workgroups run on this many threads
  Accumulation accumulation = Accumulation::exact;
  ByteRounding byte_rounding = ByteRounding::nearest_even;
};

// The addresses of the memory instruction just executed, for the timing model.
struct Access {
  uint64_t lanes = 0;        // lanes that took part
  uint8_t bytes = 0;         // per lane
  uint64_t address[kLanes];  // device addresses, or LDS byte addresses of DS instructions
  bool two = false;          // a second access of the same width: ds_read2, ds_write2 and their kin
  uint32_t second[kLanes];
  uint32_t lds = 0;  // of LDS-DMA: the LDS byte address of lane 0
};

struct Workgroup;

struct Wave {
  alignas(64) uint32_t vgpr[kVgprs][kLanes];
  alignas(64) uint32_t sgpr[kSgprs];
  uint64_t vgpr_defined[kVgprs];  // lane masks: ever written
  uint8_t sgpr_defined[kSgprs];
  // A bit per register (and one word more): set where check_registers must look closer, because the register
  // is not wholly defined, may be on its way, or lies beyond the kernel's allocation.
  uint64_t vgpr_look[kVgprs / 64 + 1];
  uint64_t sgpr_look[kSgprs / 64 + 1];
  bool scc = false, scc_defined = false;
  Mode mode;
  uint64_t pc = 0;  // next instruction while one executes
  WaveStatus status = WaveStatus::running;
  uint8_t priority = 0;   // s_setprio
  int index = 0;          // in the workgroup
  uint64_t executed = 0;  // instructions
  uint64_t barriers = 0;  // passed or waiting at
  uint64_t started = 0;   // reading of the clock for s_memtime, instructions
  Workgroup* group = nullptr;
  Counters counters;
  Hazards hazards;
  Access access;
  std::vector<uint8_t> scratch;  // private memory: private_bytes per lane, lane-major
  uint32_t scratch_bytes = 0;    // per lane

  uint64_t sgpr64(unsigned reg) const {
    uint64_t value;
    std::memcpy(&value, &sgpr[reg], 8);
    return value;
  }
  void set_sgpr64(unsigned reg, uint64_t value) { std::memcpy(&sgpr[reg], &value, 8); }
  uint64_t exec() const { return sgpr64(kExec); }
  uint64_t vcc() const { return sgpr64(kVcc); }

  void reset();
  // Adds a finding about the instruction that executes now. `missing` counts wait states.
  void report(Rule rule, const Instruction& instruction, const std::string& message, int missing = 0);
  void report(Rule rule, Severity severity, const Instruction& instruction, const std::string& message,
              int missing = 0);
  // The two halves of report(): make the message only the first time.
  bool first_time(Rule rule, Severity severity, const Instruction& instruction);
  void add_finding(Rule rule, Severity severity, const Instruction& instruction, const std::string& message,
                   int missing);
};

class Program;

// What all workgroups of a launch share.
struct Launch {
  Memory* memory = nullptr;
  const Program* program = nullptr;
  Findings* findings = nullptr;
  std::string kernel;
  uint64_t entry = 0;  // device address of the kernel's first instruction
  uint32_t vgprs = 512, accum_offset = 256;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, last[3] = {0, 0, 0};
  Options options;

  // "+0x40": where an instruction stands, from the kernel's entry.
  std::string offset_text(uint64_t address) const;
};

struct Workgroup {
  Launch* launch = nullptr;
  uint32_t id[3] = {0, 0, 0};
  Lds lds;
  uint64_t epoch = 0;  // barriers that all waves have passed
  std::vector<std::unique_ptr<Wave>> waves;
};

}  // namespace zyfa::emulator
