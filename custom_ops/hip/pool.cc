#include "pool.hpp"

#include <algorithm>

#include "../error.hpp"

namespace zyfa::hip {
namespace {

constexpr size_t kSmallest = 256;
// A size is rounded up by at most an eighth, so that lengths that grow by a token find the same blocks.
constexpr size_t kSteps = 8;
constexpr int kOutOfMemory = 2;  // hipErrorOutOfMemory

size_t rounded(size_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  size_t power = kSmallest;
  while (power <= bytes / 2) power *= 2;
  const size_t step = std::max(power / kSteps, kSmallest);
  return (bytes + step - 1) / step * step;
}

bool free_for(const std::set<StreamHandle>& pending, std::optional<StreamHandle> stream) {
  return pending.empty() || (stream && pending.size() == 1 && *pending.begin() == *stream);
}

}  // namespace

void* Pool::fresh(size_t bytes) {
  const Runtime& hip = Runtime::get();
  void* pointer = nullptr;
  const std::string what = std::to_string(bytes) + " bytes";
  int code = hip.Malloc(&pointer, bytes);
  if (code == kOutOfMemory) {
    trim_locked();
    code = hip.Malloc(&pointer, bytes);
  }
  if (code == kOutOfMemory) {
    size_t free = 0, total = 0;
    if (hip.MemGetInfo(&free, &total) == 0)
      hip.check(code, "hipMalloc",
                what + " with " + std::to_string(free) + " of " + std::to_string(total) + " free");
  }
  hip.check(code, "hipMalloc", what);
  return pointer;
}

// A block that may be used now. Needs the lock.
std::optional<Pool::Block> Pool::taken(size_t bytes, std::optional<StreamHandle> stream, uint64_t capture) {
  const auto from = [](std::vector<Block>& blocks, const auto& fits) -> std::optional<Block> {
    const auto found = std::find_if(blocks.rbegin(), blocks.rend(), fits);
    if (found == blocks.rend()) return std::nullopt;
    Block block = std::move(*found);
    blocks.erase(std::next(found).base());
    return block;
  };
  if (capture != 0) {
    std::vector<Block>& used = captured_[{capture, *stream}];
    if (auto block = from(used, [&](const Block& one) { return one.bytes == bytes; })) return block;
  }
  return from(free_[bytes], [&](const Block& one) { return free_for(one.pending, stream); });
}

void* Pool::allocate(size_t bytes, std::optional<StreamHandle> stream, uint64_t capture) {
  const size_t size = rounded(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stream) active_.insert(*stream);
  const std::optional<Block> found = taken(size, stream, capture);
  void* pointer = found ? found->pointer : fresh(size);
  live_[pointer] = {pointer, size, stream, {}, capture};
  return pointer;
}

void Pool::release(void* pointer) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = live_.find(pointer);
  if (found == live_.end()) return;
  Block block = std::move(found->second);
  live_.erase(found);
  if (block.capture != 0) {
    captured_[{block.capture, *block.stream}].push_back(std::move(block));
    return;
  }
  if (block.stream)
    block.pending = {*block.stream};
  else
    block.pending = active_;
  free_[block.bytes].push_back(std::move(block));
}

void Pool::touch(StreamHandle stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  active_.insert(stream);
}

void Pool::finished(StreamHandle stream) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  active_.erase(stream);
  for (auto& [bytes, blocks] : free_)
    for (Block& block : blocks) block.pending.erase(stream);
}

void Pool::trim() {
  const std::lock_guard<std::mutex> lock(mutex_);
  trim_locked();
}

// hipFree waits for all work of the device, so that blocks with work pending may go too.
void Pool::trim_locked() {
  const Runtime& hip = Runtime::get();
  for (auto& [bytes, blocks] : free_) {
    while (!blocks.empty()) {
      hip.check(hip.Free(blocks.back().pointer), "hipFree");
      blocks.pop_back();
    }
  }
}

}  // namespace zyfa::hip
