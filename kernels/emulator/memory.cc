#include "memory.hpp"

#include <cstring>

#include "errors.hpp"

namespace zyfa::emulator {
namespace {

constexpr uint64_t kAlignment = 256;
// Wider than any tile row: a kernel that runs past one allocation lands in no other.
constexpr uint64_t kGuard = 1 << 20;
constexpr uint64_t kAddressLimit = uint64_t{1} << 48;
// What unwritten device memory reads as; as float, bf16 and fp8 it is a large wrong number.
constexpr int kFill = 0xCD;

uint64_t round_up(uint64_t value) { return (value + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void Memory::changed() {
  static std::atomic<uint64_t> last{0};
  version_.store(++last, std::memory_order_release);
}

uint64_t Memory::place(uint64_t bytes) {
  const uint64_t address = next_;
  if (bytes > kAddressLimit || address + bytes + kGuard > kAddressLimit)
    throw LaunchError(
        format("device memory: %llu bytes do not fit below 2^48", static_cast<unsigned long long>(bytes)));
  next_ = round_up(address + bytes + kGuard);
  return address;
}

void Memory::insert(Allocation allocation) {
  const auto after = allocations_.lower_bound(allocation.address);
  const bool overlaps_after =
      after != allocations_.end() && after->first < allocation.address + allocation.bytes;
  const bool overlaps_before = after != allocations_.begin() &&
                               std::prev(after)->first + std::prev(after)->second.bytes > allocation.address;
  if (overlaps_after || overlaps_before)
    throw LaunchError(format("device memory: '%s' at 0x%llx overlaps another allocation",
                             allocation.name.c_str(), static_cast<unsigned long long>(allocation.address)));
  const uint64_t address = allocation.address;
  allocations_[address] = std::move(allocation);
  changed();
}

uint64_t Memory::allocate(uint64_t bytes, std::string name) {
  const std::unique_lock lock(mutex_);
  Allocation made;
  made.address = place(bytes);
  made.bytes = bytes;
  made.name = std::move(name);
  made.owned = std::make_unique<uint8_t[]>(bytes);
  made.host = made.owned.get();
  std::memset(made.host, kFill, bytes);
  const uint64_t address = made.address;
  insert(std::move(made));
  return address;
}

uint64_t Memory::borrow(void* host, uint64_t bytes, std::string name, bool writable) {
  const std::unique_lock lock(mutex_);
  Allocation made;
  made.address = place(bytes);
  made.bytes = bytes;
  made.name = std::move(name);
  made.host = static_cast<uint8_t*>(host);
  made.writable = writable;
  const uint64_t address = made.address;
  insert(std::move(made));
  return address;
}

void Memory::allocate_at(uint64_t address, uint64_t bytes, std::string name) {
  const std::unique_lock lock(mutex_);
  Allocation made;
  made.address = address;
  made.bytes = bytes;
  made.name = std::move(name);
  made.owned = std::make_unique<uint8_t[]>(bytes);
  made.host = made.owned.get();
  std::memset(made.host, kFill, bytes);
  insert(std::move(made));
}

void Memory::borrow_at(void* host, uint64_t bytes, std::string name) {
  const std::unique_lock lock(mutex_);
  Allocation made;
  made.address = reinterpret_cast<uintptr_t>(host);
  made.bytes = bytes;
  made.name = std::move(name);
  made.host = static_cast<uint8_t*>(host);
  insert(std::move(made));
}

void Memory::free(uint64_t address) {
  const std::unique_lock lock(mutex_);
  if (allocations_.erase(address) == 0)
    throw LaunchError(format("device memory: free of 0x%llx, which is no allocation",
                             static_cast<unsigned long long>(address)));
  changed();
}

Span Memory::span(uint64_t address, uint64_t bytes) const {
  // A tile loop alternates between few buffers; the slot of a buffer is chosen by its 64-kilobyte page.
  constexpr unsigned kSlots = 16;
  struct Cache {
    uint64_t version = ~uint64_t{0};
    Span slots[kSlots];
  };
  thread_local Cache cache;
  const uint64_t version = version_.load(std::memory_order_acquire);
  if (cache.version != version) cache = Cache{version, {}};
  Span& slot = cache.slots[(address >> 16 ^ address >> 20) % kSlots];
  if (slot.holds(address, bytes)) return slot;
  const std::shared_lock lock(mutex_);
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return {};
  const Allocation& before = std::prev(after)->second;
  if (!before.holds(address, bytes)) return {};
  slot = {before.address, before.address + before.bytes, before.host, before.writable};
  return slot;
}

const Allocation* Memory::find(uint64_t address, uint64_t bytes) const {
  const std::shared_lock lock(mutex_);
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return nullptr;
  const Allocation& before = std::prev(after)->second;
  return before.holds(address, bytes) ? &before : nullptr;
}

uint8_t* Memory::at(uint64_t address, uint64_t bytes, bool write, const char* what) const {
  const Allocation* found = find(address, bytes);
  if (found == nullptr)
    throw LaunchError(format("%s of %llu bytes at %s", what, static_cast<unsigned long long>(bytes),
                             describe(address).c_str()));
  if (write && !found->writable)
    throw LaunchError(format("%s of %llu bytes into '%s', which is read-only", what,
                             static_cast<unsigned long long>(bytes), found->name.c_str()));
  return found->host + (address - found->address);
}

std::string Memory::describe(uint64_t address) const {
  const std::shared_lock lock(mutex_);
  const auto at = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  const auto after = allocations_.upper_bound(address);
  const Allocation* before = after == allocations_.begin() ? nullptr : &std::prev(after)->second;
  const Allocation* behind = after == allocations_.end() ? nullptr : &after->second;
  const auto place = [&](const Allocation& a) {
    return format("'%s' (0x%llx, %llu bytes)", a.name.c_str(), at(a.address), at(a.bytes));
  };
  if (before && address < before->address + before->bytes)
    return format("0x%llx, %llu bytes into %s", at(address), at(address - before->address),
                  place(*before).c_str());
  const uint64_t past = before ? address - (before->address + before->bytes) : ~uint64_t{0};
  const uint64_t ahead = behind ? behind->address - address : ~uint64_t{0};
  if (before && past <= ahead)
    return format("0x%llx, %llu bytes past the end of %s", at(address), at(past), place(*before).c_str());
  if (behind) return format("0x%llx, %llu bytes before %s", at(address), at(ahead), place(*behind).c_str());
  return format("0x%llx; nothing is allocated", at(address));
}

}  // namespace zyfa::emulator
