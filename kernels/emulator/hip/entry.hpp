// The wall between C callers and the device: planted faults, exceptions to codes, the thread's last error.
#pragma once

#include <new>
#include <string>

#include "abi.hpp"
#include "device.hpp"
#include "doubts.hpp"
#include "errors.hpp"
#include "faults.hpp"
#include "report.hpp"

namespace zyfa::emulator::hip {

inline thread_local hipError_t last_error = hipSuccess;

inline hipError_t settle(const char* name, hipError_t code, const std::string& text) {
  if (code == hipErrorNotReady) return code;
  last_error = code;
  report().refuse(text.compare(0, 3, "hip") == 0 ? text : std::string(name) + ": " + text);
  return code;
}

[[noreturn]] inline void refuse(hipError_t code, const std::string& text) { throw HipError(code, text); }

inline void expect(bool holds, const std::string& text, hipError_t code = hipErrorInvalidValue) {
  if (!holds) refuse(code, text);
}

// Throws the code of a fault planted at this point.
inline void reach(FaultPoint point) {
  if (const hipError_t code = faults().reach(point); code != hipSuccess)
    refuse(code, "failed on purpose: ZYFA_EMULATED_FAULT");
}

// Runs the body of an entry point; what it throws, and a code that it returns, become the result.
template <typename Body>
hipError_t enter(const char* name, Body&& body) noexcept {
  try {
    try {
      expect(faults().mistake().empty(), faults().mistake());
      expect(doubts().mistake.empty(), doubts().mistake);
      reach(FaultPoint::lost);
      const hipError_t code = body();
      if (code != hipSuccess && code != hipErrorNotReady) last_error = code;
      return code;
    } catch (const HipError& error) {
      return settle(name, error.code, error.what());
    } catch (const CodeObjectError& error) {
      return settle(name, hipErrorInvalidImage, error.what());
    } catch (const std::bad_alloc&) {
      return settle(name, hipErrorOutOfMemory, "the host has no memory left");
    } catch (const std::exception& error) {
      return settle(name, hipErrorUnknown, error.what());
    }
  } catch (...) {
    last_error = hipErrorUnknown;
    return hipErrorUnknown;
  }
}

}  // namespace zyfa::emulator::hip
