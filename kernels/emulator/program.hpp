// The decoded instructions of a loaded code object: decoded when first reached, kept for all waves.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "code_object.hpp"
#include "execute.hpp"

namespace zyfa::emulator {

struct Step {
  Instruction instruction;
  Effects effects;
  Handler handler = nullptr;
};

class Program {
 public:
  // `load_address` is added to every ELF address of the code object.
  Program(const CodeObject& object, const Memory& memory, uint64_t load_address);
  ~Program();

  // Throws LaunchError: outside the code, undecodable bytes (address, dword, nearest symbol), not
  // implemented.
  const Step& at(uint64_t address) const;

 private:
  const Step& decode_at(uint64_t address) const;
  const CodeObject& object_;
  uint64_t load_address_, begin_ = 0, end_ = 0;
  const uint8_t* text_ = nullptr;
  mutable std::vector<std::atomic<const Step*>> steps_;
  mutable std::mutex mutex_;
};

}  // namespace zyfa::emulator
