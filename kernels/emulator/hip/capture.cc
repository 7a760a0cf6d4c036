#include <utility>

#include "device.hpp"

namespace zyfa::emulator::hip {

void Device::begin_capture(const std::shared_ptr<Stream>& target, hipStreamCaptureMode mode) {
  if (target == null_stream_)
    throw HipError(hipErrorStreamCaptureUnsupported,
                   "hipStreamBeginCapture: the null stream cannot be captured");
  if (target->capture != nullptr)
    throw HipError(hipErrorIllegalState, "hipStreamBeginCapture: the stream is in a capture already");
  auto capture = std::make_shared<Capture>();
  capture->number = ++captures_begun_;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = target.get();
  capture->branches[target.get()] = {};
  captures_.insert(capture);
  target->capture = std::move(capture);
}

std::shared_ptr<Graph> Device::end_capture(Stream& target) {
  const std::shared_ptr<Capture> capture = target.capture;
  if (capture == nullptr)
    throw HipError(hipErrorIllegalState,
                   "hipStreamEndCapture: expected a stream in capture, got one that is not");
  if (capture->origin != &target)
    throw HipError(hipErrorStreamCaptureUnmatched,
                   "hipStreamEndCapture: the capture began on another stream");
  if (capture->mode != hipStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    throw HipError(hipErrorStreamCaptureWrongThread,
                   "hipStreamEndCapture: the capture began on another thread");
  bool joined = true;
  for (const auto& [branch, state] : capture->branches)
    joined = joined && (branch == &target || state.joined || state.nodes == 0);
  captures_.erase(capture);
  for (const auto& [handle, one] : streams)
    if (one->capture == capture) one->capture = nullptr;
  if (capture->invalidated)
    throw HipError(
        hipErrorStreamCaptureInvalidated,
        "hipStreamEndCapture: an earlier call has invalidated the capture: " + capture->invalidated_by);
  if (!joined)
    throw HipError(
        hipErrorStreamCaptureUnjoined,
        "hipStreamEndCapture: work forked to another stream is not joined by an event of its last work");
  return std::make_shared<Graph>(std::move(capture->graph));
}

void Device::join_capture(Stream& target, const Event& event) {
  if (captures_.count(event.capture) == 0)
    throw HipError(hipErrorCapturedEvent,
                   "hipStreamWaitEvent: the event was recorded in a capture that has ended");
  if (&target == null_stream_.get())
    throw HipError(hipErrorStreamCaptureImplicit,
                   "hipStreamWaitEvent: the null stream cannot join a capture");
  if (target.capture != nullptr && target.capture != event.capture)
    throw HipError(hipErrorStreamCaptureMerge,
                   "hipStreamWaitEvent: the stream and the event are in different captures");
  Capture& capture = *event.capture;
  target.capture = event.capture;
  Capture::Branch& waiting = capture.branches[&target];
  if (&target != event.branch) {
    Capture::Branch& forked = capture.branches[event.branch];
    if (forked.nodes == event.branch_nodes) forked.joined = true;
    if (&target != capture.origin) ++waiting.nodes, waiting.joined = false;
  }
}

void Device::refuse_in_capture(const char* what) const {
  for (const std::shared_ptr<Capture>& capture : captures_) {
    const bool concerned =
        capture->mode == hipStreamCaptureModeGlobal ||
        (capture->mode == hipStreamCaptureModeThreadLocal && capture->thread == std::this_thread::get_id());
    if (!concerned) continue;
    capture->invalidate(what);
    throw HipError(hipErrorStreamCaptureUnsupported,
                   std::string(what) + ": not allowed while a stream is captured");
  }
}

void Device::refuse_null_stream_in_capture() const {
  for (const std::shared_ptr<Capture>& capture : captures_)
    for (const auto& [branch, state] : capture->branches)
      if ((branch->flags & hipStreamNonBlocking) == 0) {
        capture->invalidate("work on the null stream");
        throw HipError(hipErrorStreamCaptureImplicit,
                       "null stream: would have to wait for a stream in capture; use another stream");
      }
}

}  // namespace zyfa::emulator::hip
