// Local data share of one workgroup with its shadow: which bytes were ever written, by whom and when, and
// which are still on their way.
//
// The order between waves comes from barriers alone: an access of one wave is before an access of another
// when it had returned (s_waitcnt of its own wave) when a barrier was passed that the other one had passed
// too. Every operation has its number in its wave's queue (Counters); at each barrier the shadow notes how
// far each queue had come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "findings.hpp"
#include "instruction.hpp"

namespace zyfa::emulator {

struct Wave;
struct Workgroup;

enum class LdsAccess : uint8_t { read, write, atomic, dma };

class Lds {
 public:
  void reset(uint32_t bytes, bool check = true);  // contents 0xCD, nothing defined
  uint32_t bytes() const { return static_cast<uint32_t>(data_.size()); }
  uint8_t* data() { return data_.data(); }

  // Call before the bytes change, with the addresses (all inside) of the lanes that take part. The operation
  // is the next one that the wave issues.
  void check(Wave& wave, const Instruction& instruction, LdsAccess access, uint64_t lanes,
             const uint32_t* addresses, unsigned bytes);
  // Call when the bytes are written: tells double writes of one value from clashes.
  void written(Wave& wave, const Instruction& instruction) {
    if (!double_writes_.empty()) report_double_writes(wave, instruction);
  }
  // All waves pass a barrier; group.epoch is already the new one.
  void barrier(const Workgroup& group);

 private:
  static constexpr unsigned kWaves = 16, kRecords = 64;

  // Last write of a dword or byte. 0: defined, and before everything that any wave does from now on.
  using State = uint64_t;
  // Waves that read it in the epoch named, and the last reading instruction.
  using Readers = uint64_t;
  struct Bytes {
    State state[4];
    Readers readers[4];
  };
  // An LDS operation that may still be out when a barrier is passed.
  struct Record {
    uint32_t number;
    LdsAccess access;
    uint8_t bytes;
    uint64_t lanes, address;
    uint32_t at[64];
  };
  struct DoubleWrite {
    uint32_t dword;
    uint32_t before;
    State other;
  };

  template <unsigned kDwords>
  void check_reads(Wave& wave, const Instruction& instruction, uint64_t lanes, const uint32_t* at);
  template <unsigned kDwords>
  void check_writes(Wave& wave, const Instruction& instruction, LdsAccess access, uint64_t lanes,
                    const uint32_t* at);
  void check_bytes(Wave& wave, const Instruction& instruction, LdsAccess access, uint32_t dword,
                   unsigned mask);
  void check_read(Wave& wave, const Instruction& instruction, State& state, uint32_t dword);
  void check_write(Wave& wave, const Instruction& instruction, LdsAccess access, State state, Readers readers,
                   uint32_t dword);
  // Whether the wave has LDS operations out at all, and reads of this dword.
  bool has_reads_out(const Wave& wave) const;
  bool reads_out(const Wave& wave, uint32_t dword) const;
  State stamp(const Wave& wave, const Instruction& instruction, LdsAccess access) const;
  Readers reader(int wave, uint64_t address) const;
  bool is_settled(State state) const;
  Bytes& split(uint32_t dword);
  void join(uint32_t dword, Bytes& bytes);
  void note(const Wave& wave, const Instruction& instruction, LdsAccess access, uint64_t lanes,
            const uint32_t* at, unsigned bytes);
  void happens_again(const Record& record, int wave);
  void report(Wave& wave, Rule rule, const Instruction& instruction, uint32_t dword,
              const std::string& message);
  void report_unordered(Wave& wave, const Instruction& instruction, LdsAccess access, State state,
                        uint32_t dword);
  void report_double_writes(Wave& wave, const Instruction& instruction);

  std::vector<uint8_t> data_;
  bool enabled_ = true;
  uint32_t epoch_ = 0;
  std::vector<State> state_;
  std::vector<Readers> readers_;
  std::vector<Bytes> split_;
  std::vector<uint32_t> free_;
  std::vector<Record> records_;  // kRecords per wave
  uint32_t recorded_[kWaves];
  std::vector<DoubleWrite> double_writes_;
  uint32_t reported_ = 0;  // rules, by the check that runs: one finding of a kind says enough
  // At the last barrier: how far the LDS and the vector memory queue of each wave had returned, and been
  // issued.
  uint32_t returned_[kWaves][2], issued_[kWaves][2];
};

}  // namespace zyfa::emulator
