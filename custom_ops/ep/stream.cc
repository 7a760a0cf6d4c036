#include "stream.hpp"

namespace zyfa::ep {
namespace {

class Notification : public OrtSyncNotificationImpl {
 public:
  explicit Notification(hip::Stream& producer) : OrtSyncNotificationImpl{}, producer_(producer) {
    ort_version_supported = ops::api_version;
    Release = [](OrtSyncNotificationImpl* self) noexcept { delete static_cast<Notification*>(self); };
    Activate = [](OrtSyncNotificationImpl* self) noexcept {
      return ops::guarded(kProviderName, [&] { static_cast<Notification*>(self)->activate(); });
    };
    WaitOnDevice = [](OrtSyncNotificationImpl* self, OrtSyncStream* consumer) noexcept {
      return ops::guarded(kProviderName, [&] { static_cast<Notification*>(self)->wait_on_device(consumer); });
    };
    WaitOnHost = [](OrtSyncNotificationImpl* self) noexcept {
      return ops::guarded(kProviderName, [&] { static_cast<Notification*>(self)->wait_on_host(); });
    };
    const hip::Runtime& hip = hip::Runtime::get();
    const hip::CurrentDevice current(producer_.device.ordinal);
    hip.check(hip.EventCreateWithFlags(&event_, hip::kEventDisableTiming), "hipEventCreateWithFlags");
  }
  ~Notification() { hip::Runtime::get().EventDestroy(event_); }

 private:
  void activate() {
    const hip::Runtime& hip = hip::Runtime::get();
    hip.check(hip.EventRecord(event_, producer_.handle), "hipEventRecord");
  }
  void wait_on_device(OrtSyncStream* consumer) {
    const hip::Runtime& hip = hip::Runtime::get();
    hip.check(hip.StreamWaitEvent(ops::api->SyncStream_GetHandle(consumer), event_, 0), "hipStreamWaitEvent");
  }
  void wait_on_host() {
    const hip::Runtime& hip = hip::Runtime::get();
    hip.check(hip.EventSynchronize(event_), "hipEventSynchronize");
  }

  hip::Stream& producer_;
  hip::EventHandle event_ = nullptr;
};

}  // namespace

thread_local bool this_run_waits = true;

SyncStream::SyncStream(hip::Device& device) : OrtSyncStreamImpl{}, stream_(device) {
  ort_version_supported = ops::api_version;
  Release = [](OrtSyncStreamImpl* self) noexcept { delete static_cast<SyncStream*>(self); };
  GetHandle = [](OrtSyncStreamImpl* self) noexcept -> void* {
    return static_cast<SyncStream*>(self)->stream_.handle;
  };
  CreateNotification = [](OrtSyncStreamImpl* self, OrtSyncNotificationImpl** notification) noexcept {
    return ops::guarded(kProviderName,
                        [&] { *notification = new Notification(static_cast<SyncStream*>(self)->stream_); });
  };
  Flush = [](OrtSyncStreamImpl* self) noexcept {
    return ops::guarded(kProviderName, [&] { static_cast<SyncStream*>(self)->stream_.synchronize(); });
  };
  // What Flush returns is not told to anybody (1.32), what this does is an error of the run.
  OnSessionRunEnd = [](OrtSyncStreamImpl* self) noexcept -> OrtStatus* {
    if (!this_run_waits) return nullptr;
    return ops::guarded(kProviderName, [&] { static_cast<SyncStream*>(self)->stream_.synchronize(); });
  };
}

}  // namespace zyfa::ep
