#include "program.hpp"

#include <cstring>

#include "decode.hpp"
#include "errors.hpp"

namespace zyfa::emulator {

Program::Program(const CodeObject& object, const Memory& memory, uint64_t load_address)
    : object_(object), load_address_(load_address) {
  for (const Segment& segment : object.segments) {
    if (!segment.executable || segment.file_bytes == 0) continue;
    if (text_ != nullptr) throw CodeObjectError("code object: more than one executable segment");
    begin_ = load_address + segment.address;
    end_ = begin_ + segment.file_bytes;
    text_ = memory.at(begin_, segment.file_bytes, false, "load of code");
  }
  steps_ = std::vector<std::atomic<const Step*>>((end_ - begin_) / 4);
}

Program::~Program() {
  for (auto& step : steps_) delete step.load();
}

const Step& Program::at(uint64_t address) const {
  const uint64_t slot = (address - begin_) / 4;
  if (address < begin_ || slot >= steps_.size() || address % 4 != 0)
    throw LaunchError(format("pc 0x%llx is outside the code (0x%llx..0x%llx) or not a multiple of 4",
                             static_cast<unsigned long long>(address),
                             static_cast<unsigned long long>(begin_), static_cast<unsigned long long>(end_)));
  if (const Step* step = steps_[slot].load(std::memory_order_acquire)) return *step;
  return decode_at(address);
}

const Step& Program::decode_at(uint64_t address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::atomic<const Step*>& slot = steps_[(address - begin_) / 4];
  if (const Step* step = slot.load(std::memory_order_acquire)) return *step;
  const uint8_t* bytes = text_ + (address - begin_);
  auto made = std::make_unique<Step>();
  const std::string place = object_.nearest_symbol(address - load_address_);
  try {
    made->instruction = decode(bytes, end_ - address, address);
  } catch (const DecodeError& error) {
    uint32_t dword;
    std::memcpy(&dword, bytes, 4);
    throw LaunchError(
        format("%s: dword 0x%08x is no gfx950 instruction: %s", place.c_str(), dword, error.what()));
  }
  made->effects = effects_of(made->instruction);
  for (const auto find : {scalar_handler, vector_handler, matrix_handler, memory_handler})
    if (made->handler == nullptr) made->handler = find(made->instruction);
  if (made->handler == nullptr)
    throw LaunchError(format("%s: the emulator does not implement '%s'", place.c_str(),
                             disassemble(made->instruction).c_str()));
  slot.store(made.get(), std::memory_order_release);
  return *made.release();
}

}  // namespace zyfa::emulator
