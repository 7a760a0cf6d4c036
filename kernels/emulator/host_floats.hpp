// Puts this thread's floating-point environment into the state that the emulator computes in: round to
// nearest, denormals kept. Threads started meanwhile inherit it. Hosts change it (ONNX Runtime's
// session.set_denormal_as_zero does), and results of a kernel must not depend on that.
#pragma once

#include <cfenv>

namespace zyfa::emulator {

class HostFloats {
 public:
  HostFloats() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~HostFloats() { std::fesetenv(&before_); }
  HostFloats(const HostFloats&) = delete;

 private:
  std::fenv_t before_;
};

}  // namespace zyfa::emulator
