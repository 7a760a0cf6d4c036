// A device in use, and streams on it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "pool.hpp"
#include "runtime.hpp"

namespace zyfa::hip {

struct KernelRow;

// Makes a device current in this thread, and what was current before when it ends.
class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

class Device {
 public:
  // How many there are. Throws Error without HIP or when HIP fails; no device is 0.
  static int count();
  // Opened once per process and never closed. Throws Error for a number that does not exist.
  static Device& of(int ordinal);

  const int ordinal;
  std::string name, architecture;  // as HIP has them: "gfx950:sramecc+:xnack-"
  Pool pool;

  // From its code object, which is loaded at the first use. Safe in any thread; the device is current.
  FunctionHandle function(const KernelRow& kernel);

  // A word of host memory that the device can write: the `status` of launches on the stream. A stream of
  // somebody else has one from its first launch on, for good: nobody says when it ends.
  int* status_of(StreamHandle stream);
  // Throws Error when a launch whose work is done has set the stream's status; clears it.
  void check_status(StreamHandle stream);
  bool knows(StreamHandle stream);
  void add_stream(StreamHandle stream);
  // True when a status is left that nobody has asked for.
  bool remove_stream(StreamHandle stream) noexcept;
  // Says on standard error what is left on streams of somebody else, whose work is done.
  void report_foreign_streams() noexcept;

 private:
  explicit Device(int ordinal);
  int* take_word();

  std::mutex mutex_;  // of everything below
  std::unordered_map<const KernelRow*, FunctionHandle> functions_;
  std::map<std::string, ModuleHandle> modules_;
  std::unordered_map<StreamHandle, int*> status_, foreign_;
  std::vector<int*> words_;
};

// A stream of ours that stands apart from the null stream. Whoever waits for it learns what its launches
// found.
class Stream {
 public:
  explicit Stream(Device& device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Throws Error when work on it has failed, or a launch has set its status.
  void synchronize();

  Device& device;
  StreamHandle handle = nullptr;
};

}  // namespace zyfa::hip
