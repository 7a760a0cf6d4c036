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
  vector_memory_.flats = lds_.flats = 0;
  for (Landing& landing : landings_) landing.width = 0;
  for (Late& late : late_) std::fill(std::begin(late.pending), std::end(late.pending), 0);
  std::fill(std::begin(flat_vector_memory_), std::end(flat_vector_memory_), 0);
  std::fill(std::begin(flat_lds_), std::end(flat_lds_), 0);
  std::fill(std::begin(sgpr_pending_), std::end(sgpr_pending_), 0);
  std::fill(std::begin(sgpr_half_waited_), std::end(sgpr_half_waited_), 0);
}

template <unsigned kMax>
void Counters::retire(Wave& wave, InOrder<kMax>& queue, Queue name, unsigned still_out) {
  Late& late = late_[static_cast<int>(name)];
  while (queue.issued - queue.done > still_out) {
    const uint32_t number = ++queue.done;
    const Destination destination = queue.out[number % InOrder<kMax>::kSlots];
    queue.flats -= destination.flat;
    for (unsigned reg = destination.first; reg < unsigned{destination.first} + destination.count; ++reg)
      if (late.number[reg] == number) clear(late.pending, reg);
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
  queue.flats += destination.flat;
  queue.out[queue.issued % InOrder<kMax>::kSlots] = destination;
}

void Counters::wait(Wave& wave, const Instruction&, unsigned vmcnt, unsigned lgkmcnt) {
  retire(wave, vector_memory_, Queue::vector_memory, vector_memory_.still_out(vmcnt));
  retire(wave, lds_, Queue::lds, lds_.still_out(lgkmcnt));
  uint64_t* const flat = late_[static_cast<int>(Queue::flat)].pending;
  for (unsigned word = 0; word < std::size(flat_lds_); ++word) {
    if (vmcnt == 0) flat_vector_memory_[word] = 0;
    if (lgkmcnt == 0) flat_lds_[word] = 0;
    flat[word] = flat_vector_memory_[word] | flat_lds_[word];
  }
  if (lgkmcnt == 0) {
    for (uint64_t& word : sgpr_pending_) word = 0;
    for (uint64_t& word : sgpr_half_waited_) word = 0;
  } else if (lgkmcnt < 15) {
    for (unsigned word = 0; word < std::size(sgpr_pending_); ++word)
      sgpr_half_waited_[word] = sgpr_pending_[word];
  }
}

void Counters::issue(Wave& wave, const Instruction& instruction, Queue queue, unsigned first, unsigned count,
                     uint64_t lanes) {
  const bool flat = instruction.info->format == Format::flat;
  const Destination destination{static_cast<uint16_t>(first), static_cast<uint16_t>(count), flat};
  uint32_t number = 0;
  if (queue == Queue::vector_memory) {
    enter(wave, vector_memory_, queue, destination);
    number = vector_memory_.issued;
  } else if (queue == Queue::lds) {
    enter(wave, lds_, queue, destination);
    number = lds_.issued;
  } else {
    enter(wave, vector_memory_, Queue::vector_memory, {0, 0, flat});
    enter(wave, lds_, Queue::lds, {0, 0, flat});
  }
  Late& late = late_[static_cast<int>(queue)];
  for (unsigned reg = first; reg < first + count; ++reg) {
    late.lanes[reg] = vgpr_pending(reg, queue) | lanes;
    late.number[reg] = number;
    late.address[reg] = instruction.address;
    set(late.pending, reg);
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
