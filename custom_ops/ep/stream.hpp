// Streams that ONNX Runtime makes, one for each run that needs one, and the notifications between them.
#pragma once

#include "../hip/device.hpp"
#include "names.hpp"

namespace zyfa::ep {

class SyncStream : public OrtSyncStreamImpl {
 public:
  explicit SyncStream(hip::Device& device);

 private:
  hip::Stream stream_;
};

}  // namespace zyfa::ep
