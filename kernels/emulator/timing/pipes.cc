#include "timing/pipes.hpp"

#include <algorithm>
#include <cmath>

namespace zyfa::emulator::timing {
namespace {

uint64_t rounded(double cycles) { return static_cast<uint64_t>(std::llround(std::ceil(cycles))); }

}  // namespace

// ---- LDS -------------------------------------------------------------------------------------------------

LdsPipe::LdsPipe(const Constants& constants) : constants_(constants) {
  const auto places = static_cast<size_t>(std::clamp(constants.lds_queue, 1.0, 1024.0));
  for (Queue& queue : queues_) queue.leaves.assign(places, 0);
}

uint64_t LdsPipe::place_at(int simd) const {
  const Queue& queue = queues_[simd / 2];
  return queue.leaves[queue.next];
}

void LdsPipe::serve_arrived(uint64_t now) {
  const auto later = [](const Late& a, const Late& b) { return a.arrival > b.arrival; };
  while (!late_.empty() && late_.front().arrival <= now) {
    free_ = std::max(free_, late_.front().arrival) + late_.front().cycles;
    std::pop_heap(late_.begin(), late_.end(), later);
    late_.pop_back();
  }
}

uint64_t LdsPipe::request(int simd, uint64_t now, const LdsWork& work) {
  serve_arrived(now);
  const uint64_t start = std::max(free_, now);
  free_ = start + work.cycles;
  busy_ += work.cycles;
  Queue& queue = queues_[simd / 2];
  queue.leaves[queue.next] = start;
  queue.next = (queue.next + 1) % queue.leaves.size();
  return free_ + rounded(constants_.lds_latency);
}

uint64_t LdsPipe::write_later(uint64_t arrival, uint32_t bytes) {
  const auto cycles = static_cast<uint32_t>(rounded(bytes / constants_.lds_write_bytes_per_clock));
  late_.push_back({arrival, cycles});
  std::push_heap(late_.begin(), late_.end(),
                 [](const Late& a, const Late& b) { return a.arrival > b.arrival; });
  busy_ += cycles;
  return arrival + cycles;
}

// ---- vector and scalar memory ----------------------------------------------------------------------------

MemoryWork memory_work(const Access& access) {
  // Distinct sectors: few lanes differ from their neighbour's, so a short list and the last hit are enough.
  uint64_t sectors[2 * kLanes];
  int count = 0;
  for (uint64_t rest = access.lanes; rest != 0; rest &= rest - 1) {
    const uint64_t address = access.address[__builtin_ctzll(rest)];
    const uint64_t bytes = std::max<uint64_t>(access.bytes, 1);
    for (uint64_t sector = address / 64; sector <= (address + bytes - 1) / 64; ++sector) {
      if (count > 0 && sectors[count - 1] == sector) continue;
      if (std::find(sectors, sectors + count, sector) == sectors + count && count < 2 * kLanes)
        sectors[count++] = sector;
    }
  }
  return {static_cast<uint32_t>(count * 64)};
}

MemoryPipe::MemoryPipe(const Constants& c) : constants_(c) {
  const double l1_miss = 1 - c.l1_hit_rate, l2_miss = 1 - c.l2_hit_rate, mall_miss = 1 - c.mall_hit_rate;
  latency_ = c.l1_hit_rate * c.l1_latency +
             l1_miss * (c.l2_hit_rate * c.l2_latency +
                        l2_miss * (c.mall_hit_rate * c.mall_latency + mall_miss * c.hbm_latency));
  misses_ = l1_miss * l2_miss;
}

uint64_t MemoryPipe::request(int simd, uint64_t now, const MemoryWork& work) {
  issue_[simd] = now + std::max<uint64_t>(4, rounded(work.bytes / constants_.vmem_bytes_per_clock_simd));
  const double transfer = work.bytes / constants_.vmem_bytes_per_clock_cu;
  const double start = std::max(l1_free_, static_cast<double>(now));
  l1_free_ = start + transfer;
  busy_ += transfer;
  double done = l1_free_;
  if (misses_ > 0) {
    miss_free_ = std::max(miss_free_, start) + misses_ * work.bytes / constants_.miss_bytes_per_clock_cu;
    done = std::max(done, miss_free_);
  }
  return rounded(done + latency_);
}

uint64_t MemoryPipe::scalar_request(uint64_t now, const void* place) {
  const bool again = !seen_.insert(place).second;
  return now + rounded(again ? constants_.smem_hit_latency : constants_.smem_miss_latency);
}

}  // namespace zyfa::emulator::timing
