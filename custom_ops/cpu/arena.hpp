// Scratch memory of one thread, kept between calls, so that the per-tile code never allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace zyfa::cpu {

class Arena {
 public:
  static Arena& of_this_thread() {
    static thread_local Arena arena;
    return arena;
  }

  // Invalidates everything taken before; at least `bytes` can be taken afterwards.
  void reset(size_t bytes) {
    if (bytes > size_) {
      memory_.reset();
      size_ = 0;
      memory_.reset(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kAlignment})));
      size_ = bytes;
    }
    used_ = 0;
  }

  template <typename T>
  T* take(int64_t count) {
    T* taken = reinterpret_cast<T*>(memory_.get() + used_);
    used_ += bytes_for<T>(count);
    return taken;
  }

  template <typename T>
  static constexpr size_t bytes_for(int64_t count) {
    return (static_cast<size_t>(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  size_t size_ = 0;
  size_t used_ = 0;
};

}  // namespace zyfa::cpu
