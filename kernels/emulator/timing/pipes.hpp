// Memory of one compute unit: when a request is done, given those before it. Everything is known when a
// request issues, so there are no events to wait for.
#pragma once

#include <unordered_set>
#include <vector>

#include "timing/lds_banks.hpp"

namespace zyfa::emulator::timing {

constexpr int kSimds = 4;

// Completion times of one wave's outstanding requests of one counter, in order.
template <int N>
class Outstanding {
 public:
  void clear() { first_ = count_ = 0; }
  void push(uint64_t done) { times_[(first_ + count_++) % N] = done; }
  void retire(uint64_t now) {
    while (count_ > 0 && times_[first_] <= now) first_ = (first_ + 1) % N, --count_;
  }
  int count() const { return count_; }
  bool full() const { return count_ == N; }
  uint64_t newest() const { return count_ == 0 ? 0 : times_[(first_ + count_ - 1) % N]; }
  // When no more than `limit` are left.
  uint64_t until(int limit) const { return count_ <= limit ? 0 : times_[(first_ + count_ - 1 - limit) % N]; }

 private:
  uint64_t times_[N];
  int first_ = 0, count_ = 0;
};

class LdsPipe {
 public:
  explicit LdsPipe(const Constants& constants);
  // When the queue of this SIMD's pair has a free place.
  uint64_t place_at(int simd) const;
  // A request issued now; returns when its data is there.
  uint64_t request(int simd, uint64_t now, const LdsWork& work);
  // Data of an LDS-DMA that arrives later; returns when it is written.
  uint64_t write_later(uint64_t arrival, uint32_t bytes);
  uint64_t busy() const { return busy_; }

 private:
  struct Queue {
    std::vector<uint64_t> leaves;
    size_t next = 0;
  };
  struct Late {
    uint64_t arrival;
    uint32_t cycles;
  };
  void serve_arrived(uint64_t now);
  const Constants& constants_;
  Queue queues_[kSimds / 2];
  std::vector<Late> late_;  // a heap, earliest arrival first
  uint64_t free_ = 0, busy_ = 0;
};

struct MemoryWork {
  uint32_t bytes = 0;  // that the L1 moves, in sectors of 64 bytes
};
MemoryWork memory_work(const Access& access);

class MemoryPipe {
 public:
  explicit MemoryPipe(const Constants& constants);
  uint64_t issue_at(int simd) const { return issue_[simd]; }
  // Returns when the request is done.
  uint64_t request(int simd, uint64_t now, const MemoryWork& work);
  // A scalar load of this instruction.
  uint64_t scalar_request(uint64_t now, const void* place);
  uint64_t busy() const { return static_cast<uint64_t>(busy_); }

 private:
  const Constants& constants_;
  double latency_, misses_;
  uint64_t issue_[kSimds] = {};
  double l1_free_ = 0, miss_free_ = 0, busy_ = 0;
  std::unordered_set<const void*> seen_;
};

}  // namespace zyfa::emulator::timing
