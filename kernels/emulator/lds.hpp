// Local data share of one workgroup with its shadow: which bytes were ever written, by whom and when, and which are still
// on their way.
#pragma once

#include <cstdint>
#include <vector>

namespace zyfa::emulator {

class Lds {
 public:
  void reset(uint32_t bytes);   // contents 0xCD, nothing defined
  uint32_t bytes() const { return static_cast<uint32_t>(data_.size()); }
  uint8_t* data() { return data_.data(); }

 private:
  std::vector<uint8_t> data_;
};

}  // namespace zyfa::emulator
