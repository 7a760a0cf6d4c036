#include "lds.hpp"

#include <algorithm>
#include <cstring>

#include "errors.hpp"
#include "state.hpp"

namespace zyfa::emulator {
namespace {

using State = uint64_t;
using Readers = uint64_t;

// State: number of the operation in its queue (31:0; of split dwords the index of their bytes), wave (35:32),
// flags, address of the instruction (63:40).
constexpr State kDma = State{1} << 36, kAtomic = State{1} << 37, kUndefined = State{1} << 38,
                kSplit = State{1} << 39;
// Readers: waves (15:0), address of the last one's instruction (39:16), epoch (63:40).
constexpr unsigned kEpochShift = 40;
constexpr uint32_t kEpochs = 1 << 24;
// Bits 25:2 of an instruction's address; the others are those of the instruction that runs.
constexpr uint64_t kPlaceMask = (1 << 24) - 1;

// The same wave's earlier operation of the same queue: in order, whatever it was.
bool in_one_queue(State state, State mine) {
  constexpr State kSame = State{15} << 32 | kDma | kUndefined | kSplit;
  return ((state ^ mine) & kSame) == 0;
}

uint64_t place_of(uint64_t address) { return address >> 2 & kPlaceMask; }
uint32_t number_of(State state) { return static_cast<uint32_t>(state); }
int wave_of(State state) { return static_cast<int>(state >> 32 & 15); }

// The code offset of a noted instruction, in words: the nearest address to `here` with these bits.
std::string offset_text(const Wave& wave, uint64_t place, uint64_t here) {
  const uint64_t distance = (place - (here >> 2)) & kPlaceMask;
  const uint64_t back = distance > kPlaceMask / 2 ? kPlaceMask + 1 - distance : 0;
  const uint64_t address = back != 0 ? here - 4 * back : here + 4 * distance;
  return wave.group->launch->offset_text(address);
}

// Calls f(dword, mask of its bytes) for the dwords that the bytes at `at` touch.
template <class F>
inline void each_dword(uint32_t at, unsigned bytes, F f) {
  for (const uint32_t end = at + bytes; at < end;) {
    const uint32_t dword = at / 4, stop = std::min(end, 4 * dword + 4);
    f(dword, ((1u << (stop - at)) - 1) << (at & 3));
    at = stop;
  }
}

}  // namespace

void Lds::reset(uint32_t bytes, bool check) {
  data_.assign(bytes, 0xCD);
  enabled_ = check;
  if (!check) return;
  const size_t dwords = bytes / 4 + 4;
  epoch_ = 0;
  state_.assign(dwords, kUndefined);
  readers_.assign(dwords, ~Readers{0} << kEpochShift);
  split_.clear();
  free_.clear();
  records_.resize(size_t{kWaves} * kRecords);
  std::fill(std::begin(recorded_), std::end(recorded_), 0);
  double_writes_.clear();
  for (unsigned wave = 0; wave < kWaves; ++wave)
    returned_[wave][0] = returned_[wave][1] = issued_[wave][0] = issued_[wave][1] = 0;
}

Lds::State Lds::stamp(const Wave& wave, const Instruction& instruction, LdsAccess access) const {
  const bool dma = access == LdsAccess::dma;
  const auto queue = dma ? Counters::Queue::vector_memory : Counters::Queue::lds;
  return State{wave.counters.issued(queue) + 1} | State(wave.index) << 32 | (dma ? kDma : 0) |
         (access == LdsAccess::atomic ? kAtomic : 0) | place_of(instruction.address) << 40;
}

Lds::Readers Lds::reader(int wave, uint64_t address) const {
  return Readers{1} << wave | place_of(address) << 16 | Readers{epoch_} << kEpochShift;
}

bool Lds::is_settled(State state) const {
  return number_of(state) <= returned_[wave_of(state)][(state & kDma) != 0];
}

Lds::Bytes& Lds::split(uint32_t dword) {
  State& state = state_[dword];
  if (state & kSplit) return split_[number_of(state)];
  if (free_.empty()) free_.push_back(static_cast<uint32_t>(split_.size())), split_.emplace_back();
  Bytes& made = split_[free_.back()];
  std::fill(std::begin(made.state), std::end(made.state), state);
  std::fill(std::begin(made.readers), std::end(made.readers), readers_[dword]);
  state = kSplit | free_.back();
  free_.pop_back();
  return made;
}

void Lds::join(uint32_t dword, Bytes& bytes) {
  for (int i = 1; i < 4; ++i)
    if (bytes.state[i] != bytes.state[0] || bytes.readers[i] != bytes.readers[0]) return;
  free_.push_back(number_of(state_[dword]));
  state_[dword] = bytes.state[0];
  readers_[dword] = bytes.readers[0];
}

// ---- one access ------------------------------------------------------------------------------------------

void Lds::check(Wave& wave, const Instruction& instruction, LdsAccess access, uint64_t lanes,
                const uint32_t* at, unsigned bytes) {
  if (!enabled_ || lanes == 0) return;
  reported_ = 0;
  uint32_t low_bits = bytes;
  each_lane(lanes, [&](int lane) { low_bits |= at[lane]; });
  const bool reads = access == LdsAccess::read;
  if ((low_bits & 3) != 0) {
    each_lane(lanes, [&](int lane) {
      each_dword(at[lane], bytes,
                 [&](uint32_t dword, unsigned mask) { check_bytes(wave, instruction, access, dword, mask); });
    });
  } else {
    switch (bytes / 4) {
      case 1:
        reads ? check_reads<1>(wave, instruction, lanes, at)
              : check_writes<1>(wave, instruction, access, lanes, at);
        break;
      case 2:
        reads ? check_reads<2>(wave, instruction, lanes, at)
              : check_writes<2>(wave, instruction, access, lanes, at);
        break;
      case 3:
        reads ? check_reads<3>(wave, instruction, lanes, at)
              : check_writes<3>(wave, instruction, access, lanes, at);
        break;
      default:
        reads ? check_reads<4>(wave, instruction, lanes, at)
              : check_writes<4>(wave, instruction, access, lanes, at);
    }
  }
  if (access == LdsAccess::read || access == LdsAccess::atomic)
    note(wave, instruction, access, lanes, at, bytes);
}

template <unsigned kDwords>
void Lds::check_reads(Wave& wave, const Instruction& instruction, uint64_t lanes, const uint32_t* at) {
  const Readers mine = reader(wave.index, instruction.address);
  State any = 0;
  each_lane(lanes, [&](int lane) {
    const uint32_t first = at[lane] / 4;
    for (unsigned i = 0; i < kDwords; ++i) {
      any |= state_[first + i];
      const Readers before = readers_[first + i];
      readers_[first + i] = ((before ^ mine) >> kEpochShift == 0 ? before & 0xffff : 0) | mine;
    }
  });
  if (any == 0) return;
  each_lane(lanes, [&](int lane) {
    const uint32_t first = at[lane] / 4;
    for (unsigned i = 0; i < kDwords; ++i) {
      State& state = state_[first + i];
      if (state == 0) continue;
      if (state & kSplit)
        check_bytes(wave, instruction, LdsAccess::read, first + i, 15);
      else
        check_read(wave, instruction, state, first + i);
    }
  });
}

template <unsigned kDwords>
void Lds::check_writes(Wave& wave, const Instruction& instruction, LdsAccess access, uint64_t lanes,
                       const uint32_t* at) {
  const State mine = stamp(wave, instruction, access);
  // LDS-DMA does not queue behind the reads that its own wave has out.
  const bool own_reads = access == LdsAccess::dma && has_reads_out(wave);
  const Readers relevant = own_reads ? 0xffff : 0xffff & ~(Readers{1} << wave.index);
  State* const states = state_.data();
  Readers* const all_readers = readers_.data();
  const auto suspicious = [&](uint32_t dword) {
    const State state = states[dword];
    const Readers readers = all_readers[dword];
    const bool other_write = ((state & ~kUndefined) != 0) & !in_one_queue(state, mine);
    const bool read_now = (readers >> kEpochShift == epoch_) & ((readers & relevant) != 0);
    return other_write | read_now;
  };
  bool any = false;
  each_lane(lanes, [&](int lane) {
    const uint32_t first = at[lane] / 4;
    for (unsigned i = 0; i < kDwords; ++i) any |= suspicious(first + i);
  });
  if (any) {
    each_lane(lanes, [&](int lane) {
      for (uint32_t dword = at[lane] / 4, end = dword + kDwords; dword < end; ++dword) {
        if (states[dword] & kSplit)
          check_bytes(wave, instruction, access, dword, 15);
        else if (suspicious(dword))
          check_write(wave, instruction, access, states[dword], all_readers[dword], dword);
      }
    });
  }
  each_lane(lanes, [&](int lane) {
    const uint32_t first = at[lane] / 4;
    for (unsigned i = 0; i < kDwords; ++i) {
      states[first + i] = mine;
      all_readers[first + i] = ~Readers{0} << kEpochShift;
    }
  });
}

void Lds::check_bytes(Wave& wave, const Instruction& instruction, LdsAccess access, uint32_t dword,
                      unsigned mask) {
  Bytes& bytes = split(dword);
  const Readers mine = reader(wave.index, instruction.address);
  const State written = stamp(wave, instruction, access);
  for (int i = 0; i < 4; ++i) {
    if ((mask >> i & 1) == 0) continue;
    State& state = bytes.state[i];
    Readers& readers = bytes.readers[i];
    if (access == LdsAccess::read) {
      if (state != 0) check_read(wave, instruction, state, dword);
      readers = ((readers ^ mine) >> kEpochShift == 0 ? readers & 0xffff : 0) | mine;
    } else {
      if (!in_one_queue(state, written) || readers >> kEpochShift == epoch_)
        check_write(wave, instruction, access, state, readers, dword);
      state = written;
      readers = ~Readers{0} << kEpochShift;
    }
  }
  join(dword, bytes);
}

void Lds::check_read(Wave& wave, const Instruction& instruction, State& state, uint32_t dword) {
  if (state & kUndefined) {
    report(wave, Rule::undefined_lds, instruction, dword, "was never written");
  } else if (is_settled(state)) {
    state = 0;
  } else if (wave_of(state) != wave.index ||
             ((state & kDma) && number_of(state) > wave.counters.done(Counters::Queue::vector_memory))) {
    report_unordered(wave, instruction, LdsAccess::read, state, dword);
  }
}

void Lds::check_write(Wave& wave, const Instruction& instruction, LdsAccess access, State state,
                      Readers readers, uint32_t dword) {
  const bool dma = access == LdsAccess::dma;
  if (readers >> kEpochShift == epoch_) {
    const unsigned others = readers & 0xffff & ~(1u << wave.index);
    if (dma && (readers >> wave.index & 1) != 0 && reads_out(wave, dword))
      report(wave, Rule::lds_dma_overwrite, instruction, dword,
             format("is overwritten although a read of it at %s is out: no s_waitcnt lgkmcnt covers it",
                    offset_text(wave, readers >> 16 & kPlaceMask, instruction.address).c_str()));
    if (others != 0)
      report(wave, dma ? Rule::lds_dma_overwrite : Rule::lds_race, instruction, dword,
             format("is overwritten by wave %d although wave %d reads it (last read at %s): no barrier after "
                    "the reader's "
                    "s_waitcnt lgkmcnt",
                    wave.index, __builtin_ctz(others),
                    offset_text(wave, readers >> 16 & kPlaceMask, instruction.address).c_str()));
  }
  if (state == 0 || (state & kUndefined) || is_settled(state)) return;
  const int writer = wave_of(state);
  if (writer == wave.index) {
    const bool was_dma = state & kDma;
    if (was_dma == dma) return;  // one queue, in order
    const auto queue = was_dma ? Counters::Queue::vector_memory : Counters::Queue::lds;
    if (number_of(state) > wave.counters.done(queue))
      report_unordered(wave, instruction, access, state, dword);
  } else if ((state & kAtomic) != 0 || access == LdsAccess::atomic) {
    if ((state & kAtomic) == 0 || access != LdsAccess::atomic)
      report_unordered(wave, instruction, access, state, dword);
  } else if (dma) {
    report_unordered(wave, instruction, access, state, dword);
  } else {
    uint32_t before = 0;
    std::memcpy(&before, &data_[4 * size_t{dword}], std::min<size_t>(4, data_.size() - 4 * size_t{dword}));
    double_writes_.push_back({dword, before, state});
  }
}

// ---- barriers --------------------------------------------------------------------------------------------

void Lds::note(const Wave& wave, const Instruction& instruction, LdsAccess access, uint64_t lanes,
               const uint32_t* at, unsigned bytes) {
  Record& record = records_[size_t(wave.index) * kRecords + recorded_[wave.index]++ % kRecords];
  record.number = wave.counters.issued(Counters::Queue::lds) + 1;
  record.access = access;
  record.bytes = static_cast<uint8_t>(bytes);
  record.lanes = lanes;
  record.address = instruction.address;
  std::memcpy(record.at, at, sizeof record.at);
}

bool Lds::has_reads_out(const Wave& wave) const {
  return wave.counters.issued(Counters::Queue::lds) > wave.counters.done(Counters::Queue::lds);
}

bool Lds::reads_out(const Wave& wave, uint32_t dword) const {
  const uint32_t count = std::min<uint32_t>(recorded_[wave.index], kRecords);
  for (uint32_t i = 1; i <= count; ++i) {
    const Record& record = records_[size_t(wave.index) * kRecords + (recorded_[wave.index] - i) % kRecords];
    if (record.number <= wave.counters.done(Counters::Queue::lds)) break;
    bool touched = false;
    each_lane(record.lanes, [&](int lane) {
      touched |= record.at[lane] < 4 * dword + 4 && 4 * dword < record.at[lane] + record.bytes;
    });
    if (touched) return true;
  }
  return false;
}

void Lds::barrier(const Workgroup& group) {
  if (!enabled_) return;
  epoch_ = static_cast<uint32_t>(group.epoch % kEpochs);
  if (epoch_ == 0) {
    std::fill(readers_.begin(), readers_.end(), ~Readers{0} << kEpochShift);
    for (Bytes& bytes : split_) std::fill(std::begin(bytes.readers), std::end(bytes.readers), readers_[0]);
  }
  for (const auto& wave : group.waves) {
    const int index = wave->index;
    const Counters& counters = wave->counters;
    for (int q = 0; q < 2; ++q) {
      const auto queue = q != 0 ? Counters::Queue::vector_memory : Counters::Queue::lds;
      returned_[index][q] = counters.done(queue);
      issued_[index][q] = counters.issued(queue);
    }
    // What has not returned yet happens, for all the others know, after the barrier.
    const uint32_t count = std::min<uint32_t>(recorded_[index], kRecords);
    for (uint32_t i = 1; i <= count; ++i) {
      const Record& record = records_[size_t(index) * kRecords + (recorded_[index] - i) % kRecords];
      if (record.number <= returned_[index][0]) break;
      happens_again(record, index);
    }
  }
}

void Lds::happens_again(const Record& record, int wave) {
  const Readers mine = reader(wave, record.address);
  const State stamp = State{record.number} | State(wave) << 32 | kAtomic | place_of(record.address) << 40;
  const auto again = [&](State& state, Readers& readers) {
    if (record.access == LdsAccess::read) {
      readers = ((readers ^ mine) >> kEpochShift == 0 ? readers & 0xffff : 0) | mine;
    } else if (state == 0 || is_settled(state) || wave_of(state) != wave) {
      state = stamp;
    }
  };
  each_lane(record.lanes, [&](int lane) {
    each_dword(record.at[lane], record.bytes, [&](uint32_t dword, unsigned mask) {
      if (mask == 15 && (state_[dword] & kSplit) == 0) return again(state_[dword], readers_[dword]);
      Bytes& bytes = split(dword);
      for (int i = 0; i < 4; ++i)
        if (mask >> i & 1) again(bytes.state[i], bytes.readers[i]);
    });
  });
}

// ---- findings --------------------------------------------------------------------------------------------

void Lds::report(Wave& wave, Rule rule, const Instruction& instruction, uint32_t dword,
                 const std::string& message) {
  const uint32_t bit = rule == Rule::undefined_lds ? 1
                       : rule == Rule::G18         ? 2
                       : rule == Rule::lds_race    ? 4
                                                   : 8;
  if (reported_ & bit) return;
  reported_ |= bit;
  wave.report(rule, instruction, format("LDS 0x%x %s", 4 * dword, message.c_str()));
}

void Lds::report_unordered(Wave& wave, const Instruction& instruction, LdsAccess access, State state,
                           uint32_t dword) {
  const int writer = wave_of(state);
  const bool dma = state & kDma;
  const bool returned = number_of(state) <= wave.group->waves[static_cast<size_t>(writer)]->counters.done(
                                                dma ? Counters::Queue::vector_memory : Counters::Queue::lds);
  const bool passed_barrier = number_of(state) <= issued_[writer][dma];
  const char* missing = passed_barrier ? "no s_waitcnt of the writer before the barrier between them"
                        : returned     ? "no barrier between them"
                        : dma          ? "no s_waitcnt vmcnt of the writer covers it"
                                       : "no s_waitcnt and barrier between them";
  // Shipped kernels leave a fetch that nobody needs unwaited for and fetch there again phases later.
  const bool fetched_again = dma && access == LdsAccess::dma && passed_barrier;
  const Rule rule = fetched_again                      ? Rule::lds_dma_overwrite
                    : dma && access == LdsAccess::read ? Rule::G18
                                                       : Rule::lds_race;
  report(wave, rule, instruction, dword,
         format("is %s by wave %d; wave %d wrote it by %s at %s: %s",
                access == LdsAccess::read ? "read" : "written", wave.index, writer,
                dma               ? "LDS-DMA"
                : state & kAtomic ? "an atomic"
                                  : "a store",
                offset_text(wave, state >> 40, instruction.address).c_str(), missing));
}

void Lds::report_double_writes(Wave& wave, const Instruction& instruction) {
  const DoubleWrite* clash = nullptr;
  for (const DoubleWrite& one : double_writes_) {
    uint32_t now = 0;
    std::memcpy(&now, &data_[4 * size_t{one.dword}],
                std::min<size_t>(4, data_.size() - 4 * size_t{one.dword}));
    if (now != one.before) clash = clash ? clash : &one;
  }
  if (clash != nullptr) {
    report_unordered(wave, instruction, LdsAccess::write, clash->other, clash->dword);
  } else {
    const DoubleWrite& one = double_writes_.front();
    wave.report(Rule::lds_double_write, instruction,
                format("LDS 0x%x is written by wave %d and, with the same value, by wave %d at %s: no "
                       "barrier between them",
                       4 * one.dword, wave.index, wave_of(one.other),
                       offset_text(wave, one.other >> 40, instruction.address).c_str()));
  }
  double_writes_.clear();
}

}  // namespace zyfa::emulator
