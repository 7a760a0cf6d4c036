// Device memory that is kept between uses. A block goes to another stream only when the work that used it is
// done; to the same stream at once, since work on a stream is in order. What was used in a capture goes to
// nobody but later work of that stream in that capture: the graph uses it whenever it is launched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime.hpp"

namespace zyfa::hip {

class Pool {
 public:
  // Memory of the device that is current when `allocate` is called. At least `bytes`, aligned to 256. Without
  // a stream it may be used on any. Throws Error when the device has no memory left, even after what is
  // unused was given back. `capture` is the number of the capture that the stream is in, 0 for none.
  void* allocate(size_t bytes, std::optional<StreamHandle> stream, uint64_t capture = 0);
  void release(void* pointer) noexcept;

  // Work was put on a stream; all of a stream's work is done.
  void touch(StreamHandle stream);
  void finished(StreamHandle stream) noexcept;

  // Gives unused memory back to the device. Throws Error.
  void trim();

 private:
  struct Block {
    void* pointer;
    size_t bytes;
    std::optional<StreamHandle> stream;
    std::set<StreamHandle> pending;  // streams whose work may still use it
    uint64_t capture = 0;
  };
  void trim_locked();
  std::optional<Block> taken(size_t bytes, std::optional<StreamHandle> stream, uint64_t capture);
  void* fresh(size_t bytes);

  std::mutex mutex_;
  std::unordered_map<void*, Block> live_;
  std::map<size_t, std::vector<Block>> free_;
  std::map<std::pair<uint64_t, StreamHandle>, std::vector<Block>> captured_;
  std::set<StreamHandle> active_;
};

}  // namespace zyfa::hip
