// What an instruction reads and writes, and which unit runs it: the common ground of the late-memory check,
// the hazard rules and the timing model.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "instruction.hpp"

namespace zyfa::emulator {

enum class Unit : uint8_t { salu, valu, trans, matrix, smem, vmem, lds, flat, branch, control };

// Why a register is touched.
enum class Role : uint8_t {
  source,
  dpp_source,
  matrix_a,
  matrix_b,
  matrix_c,
  matrix_scale,
  matrix_index,
  address,
  store_data,
  resource /* V#, SGPR
base or offset */
  ,
  mask /* SGPR or VCC read lane by lane: v_cndmask, carry in */,
  lane_select,
  exec,
  m0,
  merge /* old
contents kept by a partial write */
  ,
  unselected /* half of a register pair that op_sel passes over */,
  passed_on /* reaches nothing but the last register of the result, which is undefined where this is */,
  result,
  partial_result
};

struct Use {
  uint16_t first;
  uint8_t count;
  Role role;
};

template <int N>
struct Uses {
  Use items[N];
  uint8_t size = 0;
  void add(uint16_t first, uint8_t count, Role role) {
    if (size == N) throw std::length_error("Uses: more registers than an instruction can have");
    items[size++] = {first, count, role};
  }
  const Use* begin() const { return items; }
  const Use* end() const { return items + size; }
};

// Groups of matrix instructions with wait states of their own: all with inputs below 32 bits, f32, f64.
enum class MatrixGroup : uint8_t { xdl, f32, f64 };

// What the hazard rules ask about an instruction beyond its registers. A vector instruction is one of units
// valu, trans.
enum Trait : uint16_t {
  kDpp = 1 << 0,
  kPermlaneSwap = 1 << 1,
  kLaneRead = 1 << 2,    // v_readlane, v_readfirstlane
  kLaneAccess = 1 << 3,  // these and v_writelane
  kDivFmas = 1 << 4,     // reads VCC late
  kUsesM0 = 1 << 5,      // LDS-DMA, messages, add-TID: M0 is read without an interlock
  kSetreg = 1 << 6,
  kGetreg = 1 << 7,
  kWritesExec = 1 << 8,  // vector instruction that writes EXEC
  kCmpx = 1 << 9,
  kWideStore = 1 << 10,      // more than 64 bits of data, no SGPR offset: data is fetched late
  kShiftedResult = 1 << 11,  // result placed by dst_sel or op_sel: not forwarded
  kScaledPart = 1 << 12,     // scaled conversion into the low part
  kDot = 1 << 13,
  kVectorSgpr = 1 << 14,  // vector instruction that writes SGPRs (VCC, M0 included)
  kPassesOn = 1 << 15,    // has a source of role passed_on
};

struct Effects {
  Unit unit = Unit::salu;
  uint8_t passes = 0;  // of matrix instructions (1 pass = 4 cycles)
  MatrixGroup group = MatrixGroup::xdl;
  uint16_t traits = 0;
  bool all_lanes = false;  // reads and writes every lane whatever EXEC says
  bool reads_scc = false, writes_scc = false;
  bool reads_exec = false, writes_exec = false;
  bool is_load = false, is_store = false, is_atomic = false, lds_dma = false;
  Uses<8> vgpr_reads;
  Uses<3> vgpr_writes;
  Uses<8> sgpr_reads;  // VCC, M0 and EXEC are SGPRs 106, 124, 126
  Uses<3> sgpr_writes;

  bool is_vector() const { return unit == Unit::valu || unit == Unit::trans; }
  bool is_matrix() const { return unit == Unit::matrix; }
  // Reads VGPRs for the memory pipeline.
  bool is_memory() const { return unit == Unit::vmem || unit == Unit::lds || unit == Unit::flat; }
};

// Implicit EXEC of vector and memory instructions is reads_exec alone; sgpr_reads has it where it is an
// operand.
Effects effects_of(const Instruction& instruction);

}  // namespace zyfa::emulator
