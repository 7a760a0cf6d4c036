// The wave's memory counters. A load's destination stays "on its way" until the s_waitcnt that covers it:
// reading or overwriting it earlier is a finding, although the value is already there.
//
// vmcnt counts vector memory (loads, stores, atomics, LDS-DMA) and lgkmcnt LDS operations; both return in
// order. Scalar loads share lgkmcnt but return in any order, so only lgkmcnt(0) covers them: of n operations
// that may still be out after s_waitcnt lgkmcnt(n), all could be the newest LDS operations or all scalar
// loads. Flat accesses that touch LDS need both counters at zero.
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

  // Lanes of the register that are on their way.
  uint64_t vgpr_pending(unsigned reg) const {
    return (vgpr_pending_[reg >> 6] >> (reg & 63) & 1) != 0 ? lanes_[reg] : 0;
  }
  Queue vgpr_queue(unsigned reg) const { return static_cast<Queue>(owner_[reg] & 3); }
  uint64_t vgpr_load(unsigned reg) const { return vgpr_address_[reg]; }  // address of the load instruction
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
    uint16_t count;
  };
  // Operations done+1 .. issued are out. When the counter is full, hardware stalls the issue.
  template <unsigned kMax>
  struct InOrder {
    static constexpr unsigned kSlots = kMax + 1;
    uint32_t issued = 0, done = 0;
    Destination out[kSlots];
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
  void clear_flat();

  InOrder<63> vector_memory_;
  InOrder<15> lds_;
  std::vector<Landing> landings_;  // by slot of vector_memory_; made by the first LDS-DMA
  uint64_t vgpr_pending_[kVgprs / 64];
  uint64_t flat_vector_memory_[kVgprs / 64], flat_lds_[kVgprs / 64];
  uint64_t sgpr_pending_[kSgprs / 64], sgpr_half_waited_[kSgprs / 64];
  // Of pending registers only.
  uint32_t owner_[kVgprs];  // number of the operation << 2 | queue
  uint64_t lanes_[kVgprs];
  uint64_t vgpr_address_[kVgprs];
  uint64_t sgpr_address_[kSgprs];
};

}  // namespace zyfa::emulator
