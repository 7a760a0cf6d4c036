// What the timing model knows about one instruction: its class, the port it issues through, how long it holds
// a pipe.
#pragma once

#include "program.hpp"
#include "timing/constants.hpp"

namespace zyfa::emulator::timing {

// clang-format off
#define ZYFA_CLASSES(X) \
  X(plain) X(packed_f32) X(trans) X(convert) X(convert_fp8) X(convert_packed) X(permlane) X(quarter_rate) \
  X(wide_integer) X(dot) X(lane_read) X(matrix) X(salu) X(smem) X(vmem) X(lds) X(branch) X(barrier) \
  X(waitcnt) X(nop) X(control)
// clang-format on

enum class Class : uint8_t {
#define X(name) name,
  ZYFA_CLASSES(X)
#undef X
      count
};
const char* class_name(Class c);

// On its visit a SIMD issues at most one instruction through each port, each of a different wave.
// Instructions of port none (s_nop, s_waitcnt, s_setprio, s_sleep) are done in the wave's own instruction
// buffer. A matrix instruction issues through the vector port, or, if its issue is taken to cost no vector
// cycles, a port of its own.
enum class Port : uint8_t { valu, matrix, salu, vmem, lds, branch, none, count };

// Why a wave did not issue although its previous instruction had.
// clang-format off
#define ZYFA_CAUSES(X) \
  X(wait_vm) X(wait_lgkm) X(barrier) X(matrix_pipe) X(valu_busy) X(coexec) X(arbitration) X(lds_queue) \
  X(vmem_issue) X(counter_full) X(wait_states) X(sleep) X(branch)
// clang-format on

enum class Cause : uint8_t {
#define X(name) name,
  ZYFA_CAUSES(X)
#undef X
      count
};
const char* cause_name(Cause c);

constexpr int kClasses = static_cast<int>(Class::count), kCauses = static_cast<int>(Cause::count);

struct Cost {
  Class kind = Class::plain;
  Port port = Port::valu;
  bool coexec = true;                      // may run beside a matrix instruction
  bool doubtful = false;                   // sources disagree about coexec
  uint16_t valu = 0;                       // cycles of the vector slot
  uint16_t matrix = 0;                     // cycles of the matrix pipe
  uint32_t hold = 4;                       // cycles until the wave's next instruction
  Cause held = Cause::count;               // what hold - 4 is booked as
  uint8_t vm_limit = 63, lgkm_limit = 15;  // of s_waitcnt
  bool counts_vm = false, counts_ds = false, counts_smem = false;
  // LDS: by which data path. Exchanges (permutes, swizzles) move lanes without touching the banks.
  bool write = false, transpose = false, exchange = false;
};

Cost cost_of(const Step& step, const Constants& constants);

}  // namespace zyfa::emulator::timing
