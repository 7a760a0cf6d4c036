#include "device.hpp"

#include <utility>

namespace zyfa::emulator::hip {
namespace {

// hipStreamLegacy of the headers: the null stream by another name.
const auto kLegacyStream = reinterpret_cast<hipStream_t>(uintptr_t{1});

}  // namespace

Device& device() {
  // Never destroyed: streams may still run while the process ends.
  static auto* const made = new Device;
  return *made;
}

const std::shared_ptr<Stream>& Device::null_stream() {
  if (null_stream_ == nullptr) null_stream_ = std::make_shared<Stream>(hipStreamDefault);
  return null_stream_;
}

std::shared_ptr<Stream> Device::stream(hipStream_t handle) {
  if (handle == nullptr || handle == kLegacyStream) return null_stream();
  const auto found = streams.find(handle);
  if (found == streams.end())
    throw HipError(hipErrorInvalidHandle,
                   "stream: expected a handle of hipStreamCreate that is not destroyed");
  return found->second;
}

hipStream_t Device::create_stream(unsigned flags) {
  auto made = std::make_shared<Stream>(flags);
  const auto handle = reinterpret_cast<hipStream_t>(made.get());
  streams[handle] = std::move(made);
  return handle;
}

Stream::Point Device::submit(const std::shared_ptr<Stream>& target, Work work,
                             std::vector<Stream::Point> after) {
  if (const std::shared_ptr<Capture>& capture = target->capture; capture != nullptr) {
    if (capture->invalidated)
      throw HipError(hipErrorStreamCaptureInvalidated,
                     "stream in capture: an earlier call has invalidated the capture");
    capture->graph.nodes.push_back(std::move(work));
    Capture::Branch& branch = capture->branches[target.get()];
    ++branch.nodes;
    branch.joined = false;
    return {};
  }
  if (const hipError_t code = target->failure(); code != hipSuccess)
    throw HipError(code, "stream: work given to it earlier has failed");
  // Legacy null stream: behind everything in blocking streams, and they behind it.
  if (target == null_stream_) {
    refuse_null_stream_in_capture();
    for (const auto& [handle, other] : streams)
      if ((other->flags & hipStreamNonBlocking) == 0) after.push_back({other, other->added()});
  } else if ((target->flags & hipStreamNonBlocking) == 0 && null_stream_ != nullptr) {
    after.push_back({null_stream_, null_stream_->added()});
  }
  return {target, target->add(std::move(after), std::move(work))};
}

hipError_t Device::synchronize() {
  std::vector<Stream::Point> points;
  {
    const std::lock_guard guard(lock);
    if (null_stream_ != nullptr) points.push_back({null_stream_, null_stream_->added()});
    for (const auto& [handle, one] : streams) points.push_back({one, one->added()});
  }
  hipError_t first = hipSuccess;
  for (const Stream::Point& point : points)
    if (const hipError_t code = point.stream->wait(point.number); first == hipSuccess) first = code;
  return first;
}

}  // namespace zyfa::emulator::hip
