// Device memory: a registry of allocations below 2^48. Every access is looked up; one outside all allocations
// is an error that names the nearest. The bytes live in host memory that an allocation owns or borrows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

namespace zyfa::emulator {

struct Allocation {
  uint64_t address = 0, bytes = 0;
  std::string name;
  uint8_t* host = nullptr;
  bool writable = true;
  std::unique_ptr<uint8_t[]> owned;

  bool holds(uint64_t at, uint64_t size) const {
    return at >= address && size <= bytes && at - address <= bytes - size;
  }
};

// The bytes of one allocation, as a kernel's accesses see them.
struct Span {
  uint64_t begin = 1, end = 0;
  uint8_t* host = nullptr;
  bool writable = false;

  bool holds(uint64_t at, uint64_t size) const { return at >= begin && at <= end && size <= end - at; }
};

class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;

  // At an address of the registry's choice (256-byte aligned, guard gaps around it), filled with 0xCD.
  uint64_t allocate(uint64_t bytes, std::string name);
  // The same over memory that the caller keeps alive.
  uint64_t borrow(void* host, uint64_t bytes, std::string name, bool writable = true);
  // At an address of the caller's choice. Throws LaunchError when it overlaps another.
  void allocate_at(uint64_t address, uint64_t bytes, std::string name);
  // Host memory that the caller keeps alive, at its own address. Throws LaunchError when it overlaps another.
  void borrow_at(void* host, uint64_t bytes, std::string name);
  void free(uint64_t address);

  // The allocation that holds all of [address, address + bytes), or nullptr.
  const Allocation* find(uint64_t address, uint64_t bytes) const;
  // The same for kernels, without a lock as long as allocations do not change. `begin > end` when there is
  // none.
  Span span(uint64_t address, uint64_t bytes) const;
  // Host pointer for an access of the whole range. Throws LaunchError naming the nearest allocation.
  uint8_t* at(uint64_t address, uint64_t bytes, bool write, const char* what) const;
  // "0x1200 is 512 bytes past the end of 'key' (0x1000, 512 bytes)"
  std::string describe(uint64_t address) const;

 private:
  uint64_t place(uint64_t bytes);
  void insert(Allocation allocation);
  void changed();
  std::map<uint64_t, Allocation> allocations_;
  uint64_t next_ = 0x100000000;
  // Changes with every allocation and free, to a number that no other registry ever had.
  std::atomic<uint64_t> version_{0};
  mutable std::shared_mutex mutex_;
};

}  // namespace zyfa::emulator
