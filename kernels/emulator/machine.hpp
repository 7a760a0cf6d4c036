// Loads code objects and launches kernels: the functional scheduler. (The timed one is timing/.)
#pragma once

#include <random>

#include "errors.hpp"
#include "host_floats.hpp"
#include "program.hpp"

namespace zyfa::emulator {

struct LoadedModule {
  CodeObject object;
  uint64_t load_address = 0;
  std::unique_ptr<Program> program;
};

// Copies the segments into device memory and applies the relocations.
std::unique_ptr<LoadedModule> load(CodeObject object, Memory& memory);
void unload(LoadedModule& module, Memory& memory);

struct LaunchRequest {
  std::string kernel;
  uint32_t grid[3] = {1, 1, 1};   // workgroups
  uint32_t block[3] = {1, 1, 1};  // work-items
  uint32_t last[3] = {0, 0, 0};   // work-items of the last workgroup along an axis, 0: as many as `block`
  std::vector<uint8_t> kernarg;   // explicit arguments; hidden ones are filled in
  uint32_t dynamic_lds = 0;
  Options options;
};

struct LaunchSummary {
  std::vector<Finding> findings;
  uint64_t instructions = 0;  // executed by all waves
  uint64_t workgroups = 0;
};

// Throws LaunchError; an error inside a wave names kernel, workgroup, wave, offset and instruction.
LaunchSummary launch(LoadedModule& module, Memory& memory, const LaunchRequest& request);

// --- pieces shared with the timed scheduler ---

// Everything a launch needs, checked and placed in device memory; freed by the destructor.
class PreparedLaunch {
 public:
  PreparedLaunch(LoadedModule& module, Memory& memory, const LaunchRequest& request);
  ~PreparedLaunch();
  Launch shared;
  Findings findings;
  const Kernel* kernel = nullptr;
  uint32_t waves_per_group = 1, lds_bytes = 0;
  uint64_t kernarg_address = 0;
  uint64_t group_count() const;

  // Puts the workgroup with this linear number (x fastest) into its initial state.
  void start(Workgroup& group, uint64_t number);

 private:
  HostFloats floats_;
  Memory& memory_;
  uint64_t packet_address_ = 0;
};

// Executes one instruction of a running wave: checks, effects, bookkeeping.
void step(Wave& wave, const Step& step);
// Runs all waves to their end, each in turn; `shuffle` changes the order.
void run_group(Workgroup& group, std::mt19937_64* shuffle);
// The error of an instruction (nullptr: not known) with kernel, workgroup, wave and offset before it.
LaunchError located(const Wave& wave, uint64_t pc, const Instruction* instruction, const std::string& what);
// Lets all waves pass when every wave that has not ended is at the barrier. True when they were released.
bool release_barrier(Workgroup& group);

}  // namespace zyfa::emulator
