// The wave's memory counters. A load's destination stays "on its way" until the s_waitcnt that covers it:
// reading or overwriting it earlier is a finding, although the value is already there.
//
// vmcnt counts vector memory (loads, stores, atomics, LDS-DMA) and lgkmcnt LDS operations; both return in
// order. Scalar loads share lgkmcnt but return in any order, so only lgkmcnt(0) covers them: of n operations
// that may still be out after s_waitcnt lgkmcnt(n), all could be the newest LDS operations or all scalar
// loads. Flat accesses that touch LDS need both counters at zero, and any flat access may return before what
// was issued ahead of it: a count above zero says nothing about it.
#pragma once

#include <cstdint>
#include <vector>

#include "effects.hpp"

namespace zyfa::emulator {

struct Wave;

class Counters {
 public:
  enum class Queue : uint8_t { vector_memory, lds, flat };

  void reset();
  // s_waitcnt: at most `vmcnt` and `lgkmcnt` operations are still out.
  void wait(Wave& wave, const Instruction& instruction, unsigned vmcnt, unsigned lgkmcnt);

  // An operation is issued; `count` VGPRs from `first` (0: none) are on their way in `lanes`.
  void issue(Wave& wave, const Instruction& instruction, Queue queue, unsigned first, unsigned count,
             uint64_t lanes);
  // The LDS-DMA that is issued next: `width` bytes per lane, which reach LDS when it has returned and not
  // before. The caller fills the lanes' bytes (lane-major).
  uint8_t* land_later(uint32_t lds_address, uint64_t lanes, unsigned width);
  // Lets the oldest vector memory operation return when the counter is full.
  void make_room(Wave& wave);
  // The wave ends: all that is out returns.
  void finish(Wave& wave);
  void issue_scalar(Wave& wave, const Instruction& instruction, unsigned first, unsigned count);

  // Lanes of the register that are on their way, through this queue or any.
  uint64_t vgpr_pending(unsigned reg, Queue queue) const {
    const Late& late = late_[static_cast<int>(queue)];
    return (late.pending[reg >> 6] >> (reg & 63) & 1) != 0 ? late.lanes[reg] : 0;
  }
  uint64_t vgpr_pending(unsigned reg) const {
    return vgpr_pending(reg, Queue::vector_memory) | vgpr_pending(reg, Queue::lds) |
           vgpr_pending(reg, Queue::flat);
  }
  // Address of the newest of these loads.
  uint64_t vgpr_load(unsigned reg, Queue queue) const { return late_[static_cast<int>(queue)].address[reg]; }
  bool sgpr_pending(unsigned reg) const { return sgpr_pending_[reg >> 6] >> (reg & 63) & 1; }
  // A non-zero lgkmcnt was waited for in vain while this scalar load was out.
  bool sgpr_half_waited(unsigned reg) const { return sgpr_half_waited_[reg >> 6] >> (reg & 63) & 1; }
  uint64_t sgpr_load(unsigned reg) const { return sgpr_address_[reg]; }

  // Operations are numbered from 1 per queue; all up to done() have returned.
  uint32_t issued(Queue queue) const { return queue == Queue::lds ? lds_.issued : vector_memory_.issued; }
  uint32_t done(Queue queue) const { return queue == Queue::lds ? lds_.done : vector_memory_.done; }

 private:
  struct Destination {
    uint16_t first;
    uint16_t count : 15;
    uint16_t flat : 1;
  };
  // Operations done+1 .. issued are out. When the counter is full, hardware stalls the issue.
  template <unsigned kMax>
  struct InOrder {
    static constexpr unsigned kSlots = kMax + 1;
    uint32_t issued = 0, done = 0;
    unsigned flats = 0;  // of those that are out
    Destination out[kSlots];
    // How many may still be out, by what was waited for.
    unsigned still_out(unsigned count) const { return count == 0 ? 0 : count + flats; }
  };
  // VGPRs on their way through one queue; of pending ones only: lanes, number and address of the newest load.
  struct Late {
    uint64_t pending[kVgprs / 64];
    uint64_t lanes[kVgprs];
    uint32_t number[kVgprs];
    uint64_t address[kVgprs];
  };
  // Data of an LDS-DMA on its way.
  struct Landing {
    uint32_t lds_address = 0;
    unsigned width = 0;  // 0: nothing
    uint64_t lanes = 0;
    uint8_t bytes[64 * 16];
  };
  template <unsigned kMax>
  void retire(Wave& wave, InOrder<kMax>& queue, Queue name, unsigned still_out);
  template <unsigned kMax>
  void enter(Wave& wave, InOrder<kMax>& queue, Queue name, Destination destination);
  void land(Wave& wave, uint32_t number);

  InOrder<63> vector_memory_;
  InOrder<15> lds_;
  std::vector<Landing> landings_;  // by slot of vector_memory_; made by the first LDS-DMA
  Late late_[3];                   // by Queue
  uint64_t flat_vector_memory_[kVgprs / 64], flat_lds_[kVgprs / 64];
  uint64_t sgpr_pending_[kSgprs / 64], sgpr_half_waited_[kSgprs / 64];
  uint64_t sgpr_address_[kSgprs];  // of pending ones only
};

}  // namespace zyfa::emulator
