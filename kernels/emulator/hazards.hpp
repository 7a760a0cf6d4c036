// The wait states that gfx950 does not insert by itself. One history per wave, asked before every
// instruction.
#pragma once

#include <cstdint>
#include <string>

#include "effects.hpp"
#include "findings.hpp"

namespace zyfa::emulator {

struct Wave;

// A rule that an instruction breaks, and the earlier instruction it clashes with.
struct Breach {
  Rule rule;
  Severity severity;
  int missing;  // wait states
  const Instruction* producer;
  const char* verb;  // what the producer did with the registers
  Use registers;
  enum Bank : uint8_t { vgpr, sgpr, hardware } bank;
};

// "v[4:19] written by 'v_mfma…' at +0x40"; offsets count from `base`.
std::string describe(const Breach& breach, uint64_t base);

// At most one per rule: the one with most wait states missing.
class Breaches {
 public:
  void add(const Breach& breach);
  const Breach* begin() const { return items_; }
  const Breach* end() const { return items_ + size_; }

 private:
  Breach items_[16];
  int size_ = 0;
};

class Hazards {
 public:
  void reset() { *this = Hazards(); }
  // Reports through the wave's findings; call before the instruction runs.
  void check(Wave& wave, const Instruction& instruction, const Effects& effects);
  // Enters the instruction into the history; call after check(). Both arguments must outlive the history.
  void record(const Wave&, const Instruction& instruction, const Effects& effects) {
    record(instruction, effects);
  }
  void record(const Instruction& instruction, const Effects& effects);
  // The breaches themselves.
  void find(const Instruction& instruction, const Effects& effects, Breaches& found) const;
  // False: nothing in the history can matter to this instruction.
  bool may_break(const Effects& effects) const { return clock_ < pending_until_ || asks_recent(effects); }

 private:
  struct Past {
    uint64_t clock;
    const Instruction* instruction;
    const Effects* effects;
  };
  // The last N, newest first.
  template <unsigned N>
  struct Ring {
    Past items[N];
    unsigned next = 0, size = 0;
    void push(const Past& past) {
      items[next] = past;
      next = (next + 1) % N;
      if (size < N) ++size;
    }
    const Past& operator[](unsigned age) const { return items[(next + N - 1 - age) % N]; }
  };

  // Plain results of the last instructions matter to these.
  static bool asks_recent(const Effects& effects) {
    constexpr uint16_t kAsks = kDpp | kPermlaneSwap | kLaneRead | kUsesM0 | kSetreg | kGetreg;
    return (effects.traits & kAsks) != 0 || effects.unit == Unit::matrix;
  }
  int between(const Past& past) const { return static_cast<int>(clock_ - past.clock) - 1; }
  void record_matrix(const Past& past, const Effects& effects);
  bool touches_running(const Effects& effects) const;
  void find_matrix(const Effects& effects, Breaches& found) const;
  void find_after_matrix(const Past& past, const Effects& effects, bool c_replaced, Breaches& found) const;
  void find_overwritten_operands(const Effects& effects, Breaches& found) const;
  void find_scalar(const Effects& effects, Breaches& found) const;
  void find_recent(const Instruction& instruction, const Effects& effects, Breaches& found) const;

  uint64_t clock_ = 1;          // wait states so far
  uint64_t pending_until_ = 0;  // from then on no producer below matters to plain instructions
  uint64_t matrix_until_ = 0, scalar_until_ = 0, recent_until_ = 0;
  uint64_t running_[kVgprs] =
      {};            // until when a register is the result or C of a matrix instruction in its window
  Ring<32> matrix_;  // matrix instructions
  Ring<8> scalar_;   // vector instructions that write SGPRs or EXEC
  Ring<4> recent_;   // all instructions
};

}  // namespace zyfa::emulator
