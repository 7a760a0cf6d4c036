// The one emulated device of a process: its memory, streams, events and modules, and what handles stand for.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "abi.hpp"
#include "machine.hpp"
#include "stream.hpp"

namespace zyfa::emulator::hip {

// Captured work in the order it was given, which is an order that its dependencies allow.
struct Graph {
  std::vector<Work> nodes;
};

// A capture in progress, shared by the stream that began it and those that joined through events.
struct Capture {
  struct Branch {
    uint64_t nodes = 0;   // added by this stream
    bool joined = false;  // the origin waits for all of them
  };
  uint64_t number = 0;  // counted from 1
  hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
  std::thread::id thread;
  const Stream* origin = nullptr;
  bool invalidated = false;
  std::string invalidated_by;  // the first such call
  std::map<Stream*, Branch> branches;
  Graph graph;

  void invalidate(const std::string& call) {
    if (!invalidated) invalidated_by = call;
    invalidated = true;
  }
};

struct Event {
  explicit Event(unsigned event_flags) : flags(event_flags) {}
  struct Record {
    std::chrono::steady_clock::time_point time;
  };
  const unsigned flags;
  Stream::Point point;  // of the latest record; no stream: never recorded
  std::shared_ptr<Record> record;
  std::shared_ptr<Capture> capture;  // recorded in a capture: the branch and its length then
  Stream* branch = nullptr;
  uint64_t branch_nodes = 0;
};

struct Function {
  std::shared_ptr<LoadedModule> module;
  const Kernel* kernel = nullptr;
};

// An allocation as the host sees it.
struct Block {
  uint64_t bytes = 0;
  void* reserved = nullptr;  // of device memory: address space that faults, guards included
  uint64_t reserved_bytes = 0;
  std::unique_ptr<uint8_t[]> host;  // of hipHostMalloc
  bool registered = false;          // host memory of the caller
  bool device() const { return reserved != nullptr; }
};

class Device {
 public:
  // Guards what handles stand for and the order of work across streams. Never held while waiting for a
  // stream.
  std::mutex lock;
  Memory memory;
  // Held shared by work that touches device memory, alone by what frees it.
  std::shared_mutex in_use;

  // --- memory (blocks.cc); all need the lock
  void* allocate(size_t bytes);
  void release(void* pointer);
  void* allocate_host(size_t bytes);
  void register_host(void* pointer, size_t bytes);
  void release_host(void* pointer, bool registered);
  // The block that holds the address, with its start; nullptr when there is none.
  const std::pair<const uint64_t, Block>* block_at(const void* pointer) const;
  uint64_t bytes_total() const, bytes_free() const;

  // --- streams (device.cc); all but synchronize need the lock
  // Stream of a handle; throws hipErrorInvalidHandle. nullptr and hipStreamLegacy are the null stream.
  std::shared_ptr<Stream> stream(hipStream_t handle);
  hipStream_t create_stream(unsigned flags);
  // Adds work in the stream's order, or to the capture that the stream is in. Returns the point after it.
  Stream::Point submit(const std::shared_ptr<Stream>& target, Work work,
                       std::vector<Stream::Point> after = {});
  // Waits for all work given so far; the first failure.
  hipError_t synchronize();

  // --- captures (capture.cc); all need the lock
  void begin_capture(const std::shared_ptr<Stream>& target, hipStreamCaptureMode mode);
  std::shared_ptr<Graph> end_capture(Stream& target);
  // The stream waits for an event that was recorded in a capture: it joins that capture.
  void join_capture(Stream& target, const Event& event);
  // Throws hipErrorStreamCaptureUnsupported while a capture forbids calls that wait, allocate or free.
  void refuse_in_capture(const char* what) const;
  // Throws when the null stream would have to order itself against a stream in capture.
  void refuse_null_stream_in_capture() const;

  // Handles that are alive.
  std::map<hipStream_t, std::shared_ptr<Stream>> streams;
  std::map<hipEvent_t, std::shared_ptr<Event>> events;
  std::map<hipModule_t, std::shared_ptr<LoadedModule>> modules;
  std::map<hipFunction_t, std::shared_ptr<Function>> functions;
  std::map<hipGraph_t, std::shared_ptr<Graph>> graphs;
  std::map<hipGraphExec_t, std::shared_ptr<const Graph>> executables;

 private:
  const std::shared_ptr<Stream>& null_stream();
  std::map<uint64_t, Block> blocks_;
  uint64_t used_ = 0;
  std::shared_ptr<Stream> null_stream_;
  std::set<std::shared_ptr<Capture>> captures_;
  uint64_t captures_begun_ = 0;
};

Device& device();

}  // namespace zyfa::emulator::hip
