// One compute unit: four SIMDs, visited in turn, that run the waves of the workgroups placed on it. It
// executes every instruction through step(), so a timed launch computes the same results and finds the same
// faults as a functional one.
#pragma once

#include <memory>

#include "machine.hpp"
#include "timing/report.hpp"

namespace zyfa::emulator::timing {

// The program with costs and statistics, by address.
class Code {
 public:
  struct Place {
    const Step* step = nullptr;
    Cost cost;
    PlaceStats stats;
    std::unique_ptr<LdsPattern> lds;  // of LDS instructions
  };
  Code(const Program& program, uint64_t begin, uint64_t bytes, const Constants& constants)
      : program_(program), constants_(constants), begin_(begin), places_((bytes + 3) / 4) {}
  Place& at(uint64_t address) {
    const uint64_t slot = (address - begin_) / 4;
    if (slot < places_.size() && places_[slot] && places_[slot]->step->instruction.address == address)
      return *places_[slot];
    return fetch(address);
  }
  const std::vector<std::unique_ptr<Place>>& places() const { return places_; }

 private:
  Place& fetch(uint64_t address);
  const Program& program_;
  const Constants& constants_;
  uint64_t begin_;
  std::vector<std::unique_ptr<Place>> places_;
};

class ComputeUnit {
 public:
  ComputeUnit(Code& code, const Constants& constants, Stats& stats, Trace& trace);
  // Runs the workgroups, which start together, to their end; returns when each of them ended. Throws
  // LaunchError.
  std::vector<uint64_t> run(const std::vector<Workgroup*>& groups);

 private:
  struct Slot {
    Wave* wave = nullptr;
    Code::Place* head = nullptr;     // next instruction
    Code::Place* barrier = nullptr;  // the one it waits at
    uint64_t ready = 0;              // the wave's own earliest next issue
    uint64_t since = 0;              // start of the time not yet booked
    Cause cause = Cause::count;      // what that time is booked as
    uint8_t simd = 0;
    uint16_t track = 0;
    uint16_t group = 0;
    bool over = false;
    Outstanding<64> vm;
    Outstanding<16> ds;
    Outstanding<16> smem;
    WaveStats* stats = nullptr;
  };
  struct Simd {
    std::vector<Slot*> slots;  // oldest first
    uint64_t next = 0;         // visit
    uint64_t valu_free = 0, matrix_free = 0;
  };

  void place_waves(const std::vector<Workgroup*>& groups);
  void visit(int simd, uint64_t now);
  uint64_t earliest(Slot& slot, Simd& simd, uint64_t now, Cause& cause) const;
  uint64_t waited(Slot& slot, const Cost& cost, Cause& cause) const;
  void book(Slot& slot, uint64_t now);
  void issue(Slot& slot, uint64_t now);
  void issue_vector(Slot& slot, const Code::Place& place, uint64_t now);
  void issue_memory(Slot& slot, Code::Place& place, uint64_t now);
  void meet_barrier(uint16_t group, uint64_t now);
  void step_checked(Slot& slot);

  Code& code_;
  const Constants& constants_;
  Stats& stats_;
  Trace& trace_;
  LdsPipe lds_;
  MemoryPipe memory_;
  Simd simds_[kSimds];
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Workgroup*> groups_;
  std::vector<uint32_t> at_barrier_, running_;  // waves per workgroup
  std::vector<uint64_t> ended_;
};

}  // namespace zyfa::emulator::timing
