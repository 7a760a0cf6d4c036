// Entry points: streams, events, captures and graphs.
#include <utility>

#include "entry.hpp"

using namespace zyfa::emulator::hip;

namespace {

hipError_t create_stream(const char* name, hipStream_t* stream, unsigned flags) {
  return enter(name, [&] {
    expect(stream != nullptr, "expected a place for the handle, got a null pointer");
    expect(flags == hipStreamDefault || flags == hipStreamNonBlocking,
           "flags: expected 0 or 1 (non-blocking)");
    reach(FaultPoint::stream);
    const std::lock_guard guard(device().lock);
    *stream = device().create_stream(flags);
    return hipSuccess;
  });
}

// The end of what a stream has been given; calls that ask for it are refused while the stream is in a
// capture.
Stream::Point end_of(hipStream_t handle, const char* name) {
  const std::lock_guard guard(device().lock);
  auto stream = device().stream(handle);
  if (stream->capture != nullptr) {
    stream->capture->invalidate(name);
    refuse(hipErrorStreamCaptureUnsupported, std::string(name) + ": not allowed on a stream in capture");
  }
  if (handle == nullptr) device().refuse_null_stream_in_capture();
  const uint64_t number = stream->added();
  return {std::move(stream), number};
}

// Needs the lock.
std::shared_ptr<Event> event_of(hipEvent_t handle) {
  const auto found = device().events.find(handle);
  expect(found != device().events.end(), "event: expected a handle of hipEventCreate that is not destroyed",
         hipErrorInvalidHandle);
  return found->second;
}

hipError_t create_event(const char* name, hipEvent_t* event, unsigned flags) {
  return enter(name, [&] {
    expect(event != nullptr, "expected a place for the handle, got a null pointer");
    // Interprocess events need another process's device; the release flags order caches that are not
    // emulated.
    expect((flags & ~0xE0000003u) == 0,
           "flags: expected a mixture of blocking sync (1), no timing (2) and release scopes");
    reach(FaultPoint::event);
    const std::lock_guard guard(device().lock);
    auto made = std::make_shared<Event>(flags);
    *event = reinterpret_cast<hipEvent_t>(made.get());
    device().events[*event] = std::move(made);
    return hipSuccess;
  });
}

// Where the event was last recorded; no stream when it never was.
Stream::Point point_of(hipEvent_t handle) {
  const std::lock_guard guard(device().lock);
  const auto event = event_of(handle);
  expect(event->capture == nullptr, "event: recorded in a capture, it never happens", hipErrorCapturedEvent);
  return event->point;
}

template <typename Map, typename Handle>
auto take(Map& map, Handle handle, const char* what) {
  const auto found = map.find(handle);
  expect(found != map.end(), std::string(what) + ": expected a handle that is alive", hipErrorInvalidHandle);
  auto taken = found->second;
  map.erase(found);
  return taken;
}

}  // namespace

// ---- streams ---------------------------------------------------------------------------------------------

ZYFA_HIP_EXPORT hipError_t hipStreamCreate(hipStream_t* stream) {
  return create_stream("hipStreamCreate", stream, hipStreamDefault);
}
ZYFA_HIP_EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) {
  return create_stream("hipStreamCreateWithFlags", stream, flags);
}
ZYFA_HIP_EXPORT hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int priority) {
  (void)priority;
  return create_stream("hipStreamCreateWithPriority", stream, flags);
}

// Waits for the stream's work. HIP may return earlier, and then finishes the work too.
ZYFA_HIP_EXPORT hipError_t hipStreamDestroy(hipStream_t handle) {
  return enter("hipStreamDestroy", [&] {
    std::shared_ptr<Stream> stream;
    {
      const std::lock_guard guard(device().lock);
      stream = take(device().streams, handle, "stream");
      if (stream->capture != nullptr) stream->capture->invalidate("hipStreamDestroy");
      stream->capture = nullptr;
    }
    stream->stop();
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipStreamSynchronize(hipStream_t handle) {
  return enter("hipStreamSynchronize", [&] {
    const Stream::Point point = end_of(handle, "hipStreamSynchronize");
    return point.stream->wait(point.number);
  });
}

ZYFA_HIP_EXPORT hipError_t hipStreamQuery(hipStream_t handle) {
  return enter("hipStreamQuery", [&] {
    const Stream::Point point = end_of(handle, "hipStreamQuery");
    return point.stream->query(point.number);
  });
}

ZYFA_HIP_EXPORT hipError_t hipStreamGetFlags(hipStream_t handle, unsigned* flags) {
  return enter("hipStreamGetFlags", [&] {
    expect(flags != nullptr, "expected a place for the answer, got a null pointer");
    const std::lock_guard guard(device().lock);
    *flags = device().stream(handle)->flags;
    return hipSuccess;
  });
}

// -1 for a stream that is none.
ZYFA_HIP_EXPORT int hipGetStreamDeviceId(hipStream_t handle) {
  int ordinal = -1;
  enter("hipGetStreamDeviceId", [&] {
    const std::lock_guard guard(device().lock);
    device().stream(handle);
    ordinal = 0;
    return hipSuccess;
  });
  return ordinal;
}

// The function may not call the device.
ZYFA_HIP_EXPORT hipError_t hipLaunchHostFunc(hipStream_t stream, void (*function)(void*), void* argument) {
  return enter("hipLaunchHostFunc", [&] {
    expect(function != nullptr, "expected a function, got a null pointer");
    const std::lock_guard guard(device().lock);
    device().submit(device().stream(stream), [function, argument] { function(argument); });
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t handle, unsigned flags) {
  return enter("hipStreamWaitEvent", [&] {
    expect(flags == 0, "flags: expected 0");
    const std::lock_guard guard(device().lock);
    const auto target = device().stream(stream);
    const auto event = event_of(handle);
    if (event->capture != nullptr) {
      device().join_capture(*target, *event);
      return hipSuccess;
    }
    expect(target->capture == nullptr, "the stream is in a capture, the event was recorded outside of it",
           hipErrorStreamCaptureIsolation);
    if (event->point.stream != nullptr) device().submit(target, [] {}, {event->point});
    return hipSuccess;
  });
}

// ---- events ----------------------------------------------------------------------------------------------

ZYFA_HIP_EXPORT hipError_t hipEventCreate(hipEvent_t* event) {
  return create_event("hipEventCreate", event, 0);
}
ZYFA_HIP_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  return create_event("hipEventCreateWithFlags", event, flags);
}

ZYFA_HIP_EXPORT hipError_t hipEventDestroy(hipEvent_t handle) {
  return enter("hipEventDestroy", [&] {
    const std::lock_guard guard(device().lock);
    take(device().events, handle, "event");
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipEventRecord(hipEvent_t handle, hipStream_t stream) {
  return enter("hipEventRecord", [&] {
    const std::lock_guard guard(device().lock);
    const auto target = device().stream(stream);
    const auto event = event_of(handle);
    if (target->capture != nullptr) {
      event->capture = target->capture;
      event->branch = target.get();
      event->branch_nodes = target->capture->branches[target.get()].nodes;
      return hipSuccess;
    }
    auto record = std::make_shared<Event::Record>();
    event->point = device().submit(target, [record] { record->time = std::chrono::steady_clock::now(); });
    event->record = std::move(record);
    event->capture = nullptr;
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipEventQuery(hipEvent_t handle) {
  return enter("hipEventQuery", [&] {
    const Stream::Point point = point_of(handle);
    return point.stream != nullptr ? point.stream->query(point.number) : hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipEventSynchronize(hipEvent_t handle) {
  return enter("hipEventSynchronize", [&] {
    const Stream::Point point = point_of(handle);
    return point.stream != nullptr ? point.stream->wait(point.number) : hipSuccess;
  });
}

// Time of this machine between the two records: how long the emulation took, nothing about the chip.
ZYFA_HIP_EXPORT hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  return enter("hipEventElapsedTime", [&] {
    expect(milliseconds != nullptr, "expected a place for the answer, got a null pointer");
    const std::lock_guard guard(device().lock);
    const auto first = event_of(start), last = event_of(stop);
    for (const auto& event : {first, last}) {
      expect((event->flags & hipEventDisableTiming) == 0, "event: created without timing",
             hipErrorInvalidHandle);
      expect(event->point.stream != nullptr, "event: never recorded", hipErrorInvalidHandle);
      if (const hipError_t code = event->point.stream->query(event->point.number); code != hipSuccess)
        return code;
    }
    *milliseconds =
        std::chrono::duration<float, std::milli>(last->record->time - first->record->time).count();
    return hipSuccess;
  });
}

// ---- capture ---------------------------------------------------------------------------------------------

ZYFA_HIP_EXPORT hipError_t hipStreamBeginCapture(hipStream_t handle, hipStreamCaptureMode mode) {
  return enter("hipStreamBeginCapture", [&] {
    expect(mode >= hipStreamCaptureModeGlobal && mode <= hipStreamCaptureModeRelaxed,
           "mode: expected 0, 1 or 2");
    const std::lock_guard guard(device().lock);
    device().begin_capture(device().stream(handle), mode);
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipStreamEndCapture(hipStream_t handle, hipGraph_t* graph) {
  return enter("hipStreamEndCapture", [&] {
    expect(graph != nullptr, "expected a place for the graph, got a null pointer");
    *graph = nullptr;
    const std::lock_guard guard(device().lock);
    auto made = device().end_capture(*device().stream(handle));
    *graph = reinterpret_cast<hipGraph_t>(made.get());
    device().graphs[*graph] = std::move(made);
    return hipSuccess;
  });
}

namespace {

// `number` may be null.
hipError_t capture_info(const char* name, hipStream_t handle, hipStreamCaptureStatus* status,
                        unsigned long long* number) {
  return enter(name, [&] {
    expect(status != nullptr, "expected a place for the answer, got a null pointer");
    const std::lock_guard guard(device().lock);
    const auto stream = device().stream(handle);
    *status = stream->capture == nullptr     ? hipStreamCaptureStatusNone
              : stream->capture->invalidated ? hipStreamCaptureStatusInvalidated
                                             : hipStreamCaptureStatusActive;
    if (number != nullptr && stream->capture != nullptr) *number = stream->capture->number;
    return hipSuccess;
  });
}

}  // namespace

ZYFA_HIP_EXPORT hipError_t hipStreamIsCapturing(hipStream_t handle, hipStreamCaptureStatus* status) {
  return capture_info("hipStreamIsCapturing", handle, status, nullptr);
}

ZYFA_HIP_EXPORT hipError_t hipStreamGetCaptureInfo(hipStream_t handle, hipStreamCaptureStatus* status,
                                                   unsigned long long* number) {
  return capture_info("hipStreamGetCaptureInfo", handle, status, number);
}

namespace {

hipError_t instantiate(const char* name, hipGraphExec_t* executable, hipGraph_t handle) {
  return enter(name, [&] {
    expect(executable != nullptr, "expected a place for the handle, got a null pointer");
    const std::lock_guard guard(device().lock);
    const auto found = device().graphs.find(handle);
    expect(found != device().graphs.end(), "graph: expected a handle that is alive", hipErrorInvalidHandle);
    auto made = std::make_shared<Graph>(*found->second);
    *executable = reinterpret_cast<hipGraphExec_t>(made.get());
    device().executables[*executable] = std::move(made);
    return hipSuccess;
  });
}

}  // namespace

ZYFA_HIP_EXPORT hipError_t hipGraphInstantiate(hipGraphExec_t* executable, hipGraph_t graph,
                                               hipGraphNode_t* error_node, char* log, size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes > 0) log[0] = '\0';
  return instantiate("hipGraphInstantiate", executable, graph);
}

ZYFA_HIP_EXPORT hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* executable, hipGraph_t graph,
                                                        unsigned long long flags) {
  (void)flags;  // they choose when and where work is placed, never what it computes
  return instantiate("hipGraphInstantiateWithFlags", executable, graph);
}

ZYFA_HIP_EXPORT hipError_t hipGraphLaunch(hipGraphExec_t handle, hipStream_t stream) {
  return enter("hipGraphLaunch", [&] {
    const std::lock_guard guard(device().lock);
    const auto found = device().executables.find(handle);
    expect(found != device().executables.end(), "graph: expected a handle that is alive",
           hipErrorInvalidHandle);
    device().submit(device().stream(stream), [graph = found->second] {
      for (const Work& node : graph->nodes) node();
    });
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipGraphDestroy(hipGraph_t handle) {
  return enter("hipGraphDestroy", [&] {
    const std::lock_guard guard(device().lock);
    take(device().graphs, handle, "graph");
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipGraphExecDestroy(hipGraphExec_t handle) {
  return enter("hipGraphExecDestroy", [&] {
    const std::lock_guard guard(device().lock);
    take(device().executables, handle, "graph");
    return hipSuccess;
  });
}
