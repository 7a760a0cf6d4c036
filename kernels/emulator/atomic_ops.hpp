// Read-modify-write operations on 32- and 64-bit memory.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace zyfa::emulator {

enum class AtomicOp : uint8_t {
  none,
  swap,
  compare_swap,
  add,
  sub,
  reverse_sub,
  min_signed,
  min_unsigned,
  max_signed,
  max_unsigned,
  bit_and,
  bit_or,
  bit_xor,
  mask_or,
  increment,
  decrement,
  wrap,
  compare_swap_float,
  add_float,
  min_float,
  max_float,
  add_half_pair,
  add_brain_pair
};

struct AtomicRow {
  AtomicOp op = AtomicOp::none;
  uint8_t bytes = 0;
};

// What the instruction does; op none when it is no atomic that is implemented.
AtomicRow atomic_row(Op op);

// The value to write. `data` is the comparand of compare_swap, `data1` what it writes; mask_or clears `data`
// and sets `data1`; wrap subtracts `data` or adds `data1`. `flush`: float32 denormals count as zero.
uint64_t apply(AtomicRow row, uint64_t memory, uint64_t data, uint64_t data1, bool flush);

}  // namespace zyfa::emulator
