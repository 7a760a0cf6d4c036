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

// Throws Error with all parts streamed into one line.
template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream line;
  (line << ... << parts);
  throw Error(line.str());
}

}  // namespace zyfa
