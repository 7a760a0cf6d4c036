// Allocations. Device memory is address space that faults when the host touches it; its bytes are kept
// elsewhere.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "device.hpp"
#include "errors.hpp"

namespace zyfa::emulator::hip {
namespace {

constexpr uint64_t kDeviceBytes = uint64_t{288} << 30;
// On both sides of an allocation: a kernel that runs past one lands in no other.
constexpr uint64_t kGuard = 1 << 20;
constexpr int kFill = 0xCD;

uint64_t number(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

uint64_t host_bytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

uint64_t Device::bytes_total() const { return std::min(kDeviceBytes, host_bytes()); }
uint64_t Device::bytes_free() const { return bytes_total() - std::min(bytes_total(), used_); }

void* Device::allocate(size_t bytes) {
  if (bytes > bytes_free())
    throw HipError(hipErrorOutOfMemory, format("hipMalloc: %zu bytes, %llu are free", bytes,
                                               static_cast<unsigned long long>(bytes_free())));
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  Block block;
  block.bytes = bytes;
  block.reserved_bytes = (bytes + page - 1) / page * page + 2 * kGuard;
  void* space =
      mmap(nullptr, block.reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED)
    throw HipError(hipErrorOutOfMemory, format("hipMalloc: no address space for %zu bytes", bytes));
  block.reserved = space;
  const uint64_t address = number(space) + kGuard;
  try {
    memory.allocate_at(address, bytes, format("hipMalloc 0x%llx", static_cast<unsigned long long>(address)));
    blocks_[address] = std::move(block);
  } catch (...) {
    munmap(space, block.reserved_bytes);
    throw;
  }
  used_ += bytes;
  return reinterpret_cast<void*>(address);
}

void Device::release(void* pointer) {
  const auto found = blocks_.find(number(pointer));
  if (found == blocks_.end() || !found->second.device())
    throw HipError(hipErrorInvalidValue, "hipFree: expected a pointer of hipMalloc that is not freed");
  memory.free(found->first);
  munmap(found->second.reserved, found->second.reserved_bytes);
  used_ -= found->second.bytes;
  blocks_.erase(found);
}

void* Device::allocate_host(size_t bytes) {
  constexpr size_t kAlignment = 4096;
  Block block;
  block.bytes = bytes;
  block.host = std::make_unique<uint8_t[]>(bytes + kAlignment);
  std::memset(block.host.get(), kFill, bytes + kAlignment);
  const uint64_t address = (number(block.host.get()) + kAlignment - 1) / kAlignment * kAlignment;
  auto* const pointer = reinterpret_cast<void*>(address);
  memory.borrow_at(pointer, bytes, format("hipHostMalloc 0x%llx", static_cast<unsigned long long>(address)));
  blocks_[address] = std::move(block);
  return pointer;
}

void Device::register_host(void* pointer, size_t bytes) {
  if (const auto* block = block_at(pointer); block != nullptr)
    throw HipError(hipErrorHostMemoryAlreadyRegistered, "hipHostRegister: the memory is registered already");
  memory.borrow_at(pointer, bytes,
                   format("hipHostRegister 0x%llx", static_cast<unsigned long long>(number(pointer))));
  Block block;
  block.bytes = bytes;
  block.registered = true;
  blocks_[number(pointer)] = std::move(block);
}

void Device::release_host(void* pointer, bool registered) {
  const auto found = blocks_.find(number(pointer));
  if (found == blocks_.end() || found->second.device() || found->second.registered != registered)
    throw registered
        ? HipError(hipErrorHostMemoryNotRegistered, "hipHostUnregister: the memory is not registered")
        : HipError(hipErrorInvalidValue,
                   "hipHostFree: expected a pointer of hipHostMalloc that is not freed");
  memory.free(found->first);
  blocks_.erase(found);
}

const std::pair<const uint64_t, Block>* Device::block_at(const void* pointer) const {
  const auto after = blocks_.upper_bound(number(pointer));
  if (after == blocks_.begin()) return nullptr;
  const auto& before = *std::prev(after);
  return number(pointer) - before.first < before.second.bytes ? &before : nullptr;
}

}  // namespace zyfa::emulator::hip
