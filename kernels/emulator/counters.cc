#include "counters.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "state.hpp"

namespace zyfa::emulator {
namespace {

void set(uint64_t* bits, unsigned reg) { bits[reg >> 6] |= uint64_t{1} << (reg & 63); }
void clear(uint64_t* bits, unsigned reg) { bits[reg >> 6] &= ~(uint64_t{1} << (reg & 63)); }

}  // namespace

void Counters::reset() {
  vector_memory_.issued = vector_memory_.done = lds_.issued = lds_.done = 0;
  for (Landing& landing : landings_) landing.width = 0;
  std::fill(std::begin(vgpr_pending_), std::end(vgpr_pending_), 0);
  std::fill(std::begin(flat_vector_memory_), std::end(flat_vector_memory_), 0);
  std::fill(std::begin(flat_lds_), std::end(flat_lds_), 0);
  std::fill(std::begin(sgpr_pending_), std::end(sgpr_pending_), 0);
  std::fill(std::begin(sgpr_half_waited_), std::end(sgpr_half_waited_), 0);
}

template <unsigned kMax>
void Counters::retire(Wave& wave, InOrder<kMax>& queue, Queue name, unsigned still_out) {
  while (queue.issued - queue.done > still_out) {
    const uint32_t number = ++queue.done;
    const Destination destination = queue.out[number % InOrder<kMax>::kSlots];
    const uint32_t token = number << 2 | static_cast<uint32_t>(name);
    for (unsigned reg = destination.first; reg < unsigned{destination.first} + destination.count; ++reg)
      if (owner_[reg] == token) clear(vgpr_pending_, reg);
    if (name == Queue::vector_memory && !landings_.empty()) land(wave, number);
  }
}

void Counters::land(Wave& wave, uint32_t number) {
  Landing& landing = landings_[number % InOrder<63>::kSlots];
  if (landing.width == 0) return;
  uint8_t* lds = wave.group->lds.data() + landing.lds_address;
  if (landing.lanes == ~uint64_t{0}) {
    std::memcpy(lds, landing.bytes, size_t{kLanes} * landing.width);
  } else {
    for (uint64_t lanes = landing.lanes; lanes != 0; lanes &= lanes - 1) {
      const size_t at = static_cast<size_t>(__builtin_ctzll(lanes)) * landing.width;
      std::memcpy(lds + at, landing.bytes + at, landing.width);
    }
  }
  landing.width = 0;
}

uint8_t* Counters::land_later(uint32_t lds_address, uint64_t lanes, unsigned width) {
  if (landings_.empty()) landings_.resize(InOrder<63>::kSlots);
  Landing& landing = landings_[(vector_memory_.issued + 1) % InOrder<63>::kSlots];
  landing.lds_address = lds_address;
  landing.lanes = lanes;
  landing.width = width;
  return landing.bytes;
}

void Counters::make_room(Wave& wave) { retire(wave, vector_memory_, Queue::vector_memory, 62); }

void Counters::finish(Wave& wave) {
  retire(wave, vector_memory_, Queue::vector_memory, 0);
  retire(wave, lds_, Queue::lds, 0);
}

template <unsigned kMax>
void Counters::enter(Wave& wave, InOrder<kMax>& queue, Queue name, Destination destination) {
  retire(wave, queue, name, kMax - 1);
  ++queue.issued;
  queue.out[queue.issued % InOrder<kMax>::kSlots] = destination;
}

void Counters::clear_flat() {
  for (unsigned word = 0; word < std::size(vgpr_pending_); ++word) {
    uint64_t rest = vgpr_pending_[word] & ~flat_vector_memory_[word] & ~flat_lds_[word];
    for (; rest != 0; rest &= rest - 1) {
      const unsigned reg = word * 64 + static_cast<unsigned>(__builtin_ctzll(rest));
      if (vgpr_queue(reg) == Queue::flat) clear(vgpr_pending_, reg);
    }
  }
}

void Counters::wait(Wave& wave, const Instruction&, unsigned vmcnt, unsigned lgkmcnt) {
  retire(wave, vector_memory_, Queue::vector_memory, vmcnt);
  retire(wave, lds_, Queue::lds, lgkmcnt);
  bool flat = false;
  if (vmcnt == 0) {
    for (uint64_t& word : flat_vector_memory_) flat |= word != 0, word = 0;
  }
  if (lgkmcnt == 0) {
    for (uint64_t& word : flat_lds_) flat |= word != 0, word = 0;
    for (uint64_t& word : sgpr_pending_) word = 0;
    for (uint64_t& word : sgpr_half_waited_) word = 0;
  } else if (lgkmcnt < 15) {
    for (unsigned word = 0; word < std::size(sgpr_pending_); ++word)
      sgpr_half_waited_[word] = sgpr_pending_[word];
  }
  if (flat) clear_flat();
}

void Counters::issue(Wave& wave, const Instruction& instruction, Queue queue, unsigned first, unsigned count,
                     uint64_t lanes) {
  const Destination destination{static_cast<uint16_t>(first), static_cast<uint16_t>(count)};
  uint32_t number = 0;
  if (queue == Queue::vector_memory) {
    enter(wave, vector_memory_, queue, destination);
    number = vector_memory_.issued;
  } else if (queue == Queue::lds) {
    enter(wave, lds_, queue, destination);
    number = lds_.issued;
  } else {
    enter(wave, vector_memory_, Queue::vector_memory, {});
    enter(wave, lds_, Queue::lds, {});
  }
  const uint32_t token = number << 2 | static_cast<uint32_t>(queue);
  for (unsigned reg = first; reg < first + count; ++reg) {
    const uint64_t before = vgpr_pending(reg);
    lanes_[reg] = before != 0 && vgpr_queue(reg) == queue ? before | lanes : lanes;
    owner_[reg] = token;
    vgpr_address_[reg] = instruction.address;
    set(vgpr_pending_, reg);
    set(wave.vgpr_look, reg);
    if (queue == Queue::flat) set(flat_vector_memory_, reg), set(flat_lds_, reg);
  }
}

void Counters::issue_scalar(Wave& wave, const Instruction& instruction, unsigned first, unsigned count) {
  for (unsigned reg = first; reg < first + count; ++reg) {
    set(sgpr_pending_, reg);
    clear(sgpr_half_waited_, reg);
    set(wave.sgpr_look, reg);
    sgpr_address_[reg] = instruction.address;
  }
}

}  // namespace zyfa::emulator
