// What an instruction reads and writes, and which unit runs it: the common ground of the late-memory check, the
// hazard rules and the timing model.
#pragma once

#include <cstdint>

#include "instruction.hpp"

namespace zyfa::emulator {

enum class Unit : uint8_t { salu, valu, trans, matrix, smem, vmem, lds, flat, branch, control };

// Why a register is touched.
enum class Role : uint8_t {
  source, dpp_source, matrix_a, matrix_b, matrix_c, matrix_scale, matrix_index, address, store_data, resource /* V#, SGPR
  base or offset */, mask /* SGPR or VCC read lane by lane: v_cndmask, carry in */, lane_select, exec, m0, merge /* old
  contents kept by a partial write */, result, partial_result
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
  void add(uint16_t first, uint8_t count, Role role) { items[size++] = {first, count, role}; }
  const Use* begin() const { return items; }
  const Use* end() const { return items + size; }
};

struct Effects {
  Unit unit = Unit::salu;
  uint8_t passes = 0;              // of matrix instructions (1 pass = 4 cycles)
  bool all_lanes = false;          // reads and writes every lane whatever EXEC says
  bool reads_scc = false, writes_scc = false;
  bool reads_exec = false, writes_exec = false;
  bool is_load = false, is_store = false, is_atomic = false, lds_dma = false;
  Uses<8> vgpr_reads;
  Uses<3> vgpr_writes;
  Uses<8> sgpr_reads;              // VCC, M0 and EXEC are SGPRs 106, 124, 126
  Uses<3> sgpr_writes;
};

Effects effects_of(const Instruction& instruction);

}  // namespace zyfa::emulator
