// The one exception type of the library. It is thrown inside, and becomes an OrtStatus at the wall
// (ops/api.hpp).
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace zyfa {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What a device, its runtime or this installation cannot do, whatever the caller asks for.
struct DeviceError : Error {
  using Error::Error;
};

// Throws Error with all parts streamed into one line.
template <typename Thrown = Error, typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream line;
  (line << ... << parts);
  throw Thrown(line.str());
}

}  // namespace zyfa
