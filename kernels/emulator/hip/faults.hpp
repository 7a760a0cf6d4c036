// Failures planted by the environment variable ZYFA_EMULATED_FAULT, to test what a program does when HIP says
// no.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "abi.hpp"

namespace zyfa::emulator::hip {

// Where a failure can be planted, its name in the variable and the code it gives.
enum class FaultPoint : uint8_t {
#define ZYFA_FAULT(name, code, text) name,
#include "faults.def"
#undef ZYFA_FAULT
  count
};

class Faults {
 public:
  // "malloc:3" fails the third call, "malloc:3+" all from there on, "malloc" the first; several are separated
  // by commas.
  explicit Faults(const char* specification);

  // The planted code when this call of the point is to fail, else hipSuccess.
  hipError_t reach(FaultPoint point);
  // Not empty when the specification was not understood: one line.
  const std::string& mistake() const { return mistake_; }

 private:
  struct Entry {
    uint64_t first = 0, last = 0;  // numbers of the calls that fail, from 1; 0: none
    std::atomic<uint64_t> calls{0};
  };
  bool plant(const std::string& one);
  Entry entries_[static_cast<int>(FaultPoint::count)];
  std::string mistake_;
};

Faults& faults();

}  // namespace zyfa::emulator::hip
