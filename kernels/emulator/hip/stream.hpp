// A stream: work in the order it was given, on a thread of its own, behind points of other streams.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "abi.hpp"

namespace zyfa::emulator::hip {

// Leaves an entry point, or fails a stream, with this code; the sentence goes into the report.
struct HipError : std::runtime_error {
  HipError(hipError_t status, const std::string& text) : std::runtime_error(text), code(status) {}
  hipError_t code;
};

using Work = std::function<void()>;
struct Capture;

class Stream {
 public:
  // A place in a stream's order: reached when as many pieces of work as its number are done.
  struct Point {
    std::shared_ptr<Stream> stream;
    uint64_t number = 0;
  };

  explicit Stream(unsigned stream_flags);
  ~Stream();
  Stream(const Stream&) = delete;

  // Adds work that starts when all points are reached. Returns its number.
  uint64_t add(std::vector<Point> after, Work work);
  uint64_t added() const;
  // Waits until the number is reached. hipSuccess, or the code with which the stream has failed.
  hipError_t wait(uint64_t number) const;
  // The same without waiting: hipErrorNotReady when it is not reached.
  hipError_t query(uint64_t number) const;
  // The code with which the stream has failed; nothing that was added later runs.
  hipError_t failure() const;
  // Ends the thread when all work is done.
  void stop();

  const unsigned flags;
  std::shared_ptr<Capture> capture;  // guarded by the device's lock

 private:
  struct Item {
    std::vector<Point> after;
    Work work;
  };
  void run();
  hipError_t run_one(const Item& item) const;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Item> queue_;
  uint64_t added_ = 0, done_ = 0;
  hipError_t failure_ = hipSuccess;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace zyfa::emulator::hip
