// Streams that ONNX Runtime makes, one for each run that needs one, and the notifications between them.
#pragma once

#include "../hip/device.hpp"
#include "names.hpp"

namespace zyfa::ep {

// Whether the run of this thread waits for its work at its end. A run starts and ends in one thread.
extern thread_local bool this_run_waits;

class SyncStream : public OrtSyncStreamImpl {
 public:
  explicit SyncStream(hip::Device& device);

 private:
  hip::Stream stream_;
};

}  // namespace zyfa::ep
