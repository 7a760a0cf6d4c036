#include "machine.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <random>
#include <thread>

#include "decode.hpp"
#include "errors.hpp"
#include "registers.hpp"

namespace zyfa::emulator {
namespace {

// Instructions a wave runs before the next one has its turn. In the natural order the waves keep step, as on
// the chip; shuffled orders let one wave run ahead of the others as far as barriers allow.
constexpr int kStep = 8, kLongTurn = 2048;
constexpr uint32_t kMaxGrid = 0x7fffffff;
constexpr uint64_t kMaxGroups = uint64_t{1} << 48;
// Workgroups that order_seed shuffles together.
constexpr uint64_t kShuffled = 1 << 16;

enum Property : uint16_t {  // kernel_code_properties of the descriptor
  kPrivateSegmentBuffer = 1,
  kDispatchPointer = 2,
  kQueuePointer = 4,
  kKernargPointer = 8,
  kDispatchId = 16,
  kFlatScratchInit = 32,
  kPrivateSegmentSize = 64
};

void put(std::vector<uint8_t>& bytes, uint32_t at, uint32_t size, uint64_t value) {
  std::memcpy(bytes.data() + at, &value, std::min(size, 8u));
}

uint64_t work_items(const LaunchRequest& request, int axis) {
  const uint64_t whole = uint64_t{request.grid[axis]} * request.block[axis];
  return request.last[axis] == 0 ? whole : whole - request.block[axis] + request.last[axis];
}

// Arguments that the compiler adds behind the kernel's own; of those not listed zero is the meaning.
void fill_hidden_arguments(const Kernel& kernel, const LaunchRequest& request,
                           std::vector<uint8_t>& kernarg) {
  for (const KernelArgument& argument : kernel.arguments) {
    const std::string& kind = argument.value_kind;
    if (kind.rfind("hidden_", 0) != 0) continue;
    const int axis = std::clamp(kind.back() - 'x', 0, 2);
    uint64_t value = 0;
    if (kind.rfind("hidden_block_count_", 0) == 0) value = request.grid[axis] - (request.last[axis] != 0);
    if (kind.rfind("hidden_remainder_", 0) == 0) value = request.last[axis];
    if (kind.rfind("hidden_group_size_", 0) == 0) value = request.block[axis];
    if (kind == "hidden_grid_dims")
      value = request.grid[2] * request.block[2] > 1 ? 3 : request.grid[1] * request.block[1] > 1 ? 2 : 1;
    if (kind == "hidden_dynamic_lds_size") value = request.dynamic_lds;
    put(kernarg, argument.offset, argument.size, value);
  }
}

uint32_t explicit_bytes(const Kernel& kernel) {
  uint32_t end = 0;
  for (const KernelArgument& argument : kernel.arguments)
    if (argument.value_kind.rfind("hidden_", 0) != 0) end = std::max(end, argument.offset + argument.size);
  return kernel.arguments.empty() ? kernel.kernarg_bytes : end;
}

void check_request(const Kernel& kernel, const LaunchRequest& request) {
  const char* name = kernel.name.c_str();
  uint64_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (request.grid[axis] == 0 || request.grid[axis] > kMaxGrid || request.block[axis] == 0 ||
        request.block[axis] > 1024)
      throw LaunchError(
          format("launch of '%s': grid and block sizes must be positive (block at most 1024), got "
                 "grid[%d]=%u block[%d]=%u",
                 name, axis, request.grid[axis], axis, request.block[axis]));
    if (uint64_t{request.grid[axis]} * request.block[axis] > UINT32_MAX)
      throw LaunchError(
          format("launch of '%s': grid[%d]=%u times block[%d]=%u work-items, the limit is 2^32 - 1", name,
                 axis, request.grid[axis], axis, request.block[axis]));
    threads *= request.block[axis];
  }
  if (uint64_t{request.grid[0]} * request.grid[1] > kMaxGroups / request.grid[2])
    throw LaunchError(format("launch of '%s': more than 2^48 workgroups", name));
  if (threads > kernel.max_workgroup)
    throw LaunchError(format("launch of '%s': %llu work-items per workgroup, the kernel allows %u", name,
                             static_cast<unsigned long long>(threads), kernel.max_workgroup));
  if (uint64_t{kernel.lds_bytes} + request.dynamic_lds > kLdsBytes)
    throw LaunchError(format("launch of '%s': %u + %u bytes of LDS, the limit is %u", name, kernel.lds_bytes,
                             request.dynamic_lds, kLdsBytes));
  if (const uint32_t needed = explicit_bytes(kernel); request.kernarg.size() < needed)
    throw LaunchError(format("launch of '%s': %zu bytes of arguments, the kernel takes %u", name,
                             request.kernarg.size(), needed));
}

void write_initial_sgprs(Wave& wave, const Kernel& kernel, const PreparedLaunch& launch,
                         const Workgroup& group, uint64_t packet) {
  unsigned next = 0;
  const auto push = [&](uint32_t value) {
    if (next < kFlatScratch) wave.sgpr[next] = value, wave.sgpr_defined[next] = 1;
    ++next;
  };
  const auto push64 = [&](uint64_t value) {
    push(static_cast<uint32_t>(value)), push(static_cast<uint32_t>(value >> 32));
  };
  if (kernel.properties & kPrivateSegmentBuffer) push64(0), push64(0);
  if (kernel.properties & kDispatchPointer) push64(packet);
  if (kernel.properties & kQueuePointer) push64(0);
  if (kernel.properties & kKernargPointer) push64(launch.kernarg_address);
  if (kernel.properties & kDispatchId) push64(0);
  if (kernel.properties & kFlatScratchInit) push64(0);
  if (kernel.properties & kPrivateSegmentSize) push(kernel.private_bytes);
  const unsigned preload = kernel.preload & 127, preload_at = kernel.preload >> 7;
  for (unsigned i = 0; i < preload; ++i) {
    uint32_t value;
    std::memcpy(
        &value,
        launch.shared.memory->at(launch.kernarg_address + 4 * (preload_at + i), 4, false, "kernarg preload"),
        4);
    push(value);
  }
  for (int axis = 0; axis < 3; ++axis)
    if (kernel.rsrc2 >> (7 + axis) & 1) push(group.id[axis]);
  if (kernel.rsrc2 >> 10 & 1) push(0);
}

void write_work_item_ids(Wave& wave, const uint32_t block[3]) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t item = wave.index * kLanes + lane;
    const uint32_t x = item % block[0], y = item / block[0] % block[1], z = item / block[0] / block[1];
    wave.vgpr[0][lane] = x | y << 10 | z << 20;
  }
  wave.vgpr_defined[0] = ~uint64_t{0};
}

std::string place_of(const Wave& wave, uint64_t pc) {
  const Workgroup& group = *wave.group;
  return format("kernel '%s', workgroup (%u,%u,%u), wave %d, %s", group.launch->kernel.c_str(), group.id[0],
                group.id[1], group.id[2], wave.index, group.launch->offset_text(pc).c_str());
}

// Runs the wave until it ends, waits at a barrier or its turn is over.
void run_turn(Wave& wave, int turn) {
  const Program& program = *wave.group->launch->program;
  const uint64_t limit = wave.group->launch->options.max_instructions;
  for (int i = 0; i < turn && wave.status == WaveStatus::running; ++i) {
    const uint64_t pc = wave.pc;
    const Step* next = nullptr;
    try {
      if (wave.executed >= limit)
        throw LaunchError(format("no end after %llu instructions: runaway loop? (limit: max_instructions)",
                                 static_cast<unsigned long long>(limit)));
      next = &program.at(pc);
      step(wave, *next);
    } catch (const LaunchError& error) {
      throw located(wave, pc, next ? &next->instruction : nullptr, error.what());
    }
  }
}

}  // namespace

LaunchError located(const Wave& wave, uint64_t pc, const Instruction* instruction, const std::string& what) {
  const std::string text = instruction ? " '" + disassemble(*instruction) + "'" : "";
  return LaunchError(place_of(wave, pc) + text + ": " + what);
}

void run_group(Workgroup& group, std::mt19937_64* shuffle) {
  std::vector<Wave*> order;
  for (auto& wave : group.waves) order.push_back(wave.get());
  const int turn = shuffle != nullptr ? kLongTurn : kStep;
  for (;;) {
    if (shuffle) std::shuffle(order.begin(), order.end(), *shuffle);
    bool ran = false;
    for (Wave* wave : order)
      if (wave->status == WaveStatus::running) run_turn(*wave, turn), ran = true;
    if (ran) continue;
    if (std::all_of(order.begin(), order.end(), [](Wave* w) { return w->status == WaveStatus::ended; }))
      return;
    if (release_barrier(group)) continue;
    const auto stuck =
        std::find_if(order.begin(), order.end(), [](Wave* w) { return w->status != WaveStatus::ended; });
    throw located(**stuck, (*stuck)->pc, nullptr, "deadlock: no wave of the workgroup can go on");
  }
}

// ---- modules ---------------------------------------------------------------------------------------------

std::unique_ptr<LoadedModule> load(CodeObject object, Memory& memory) {
  auto module = std::make_unique<LoadedModule>();
  module->object = std::move(object);
  const CodeObject& code = module->object;
  module->load_address = memory.allocate(code.image_bytes, "code object");
  uint8_t* image = memory.at(module->load_address, code.image_bytes, true, "load of code");
  std::memset(image, 0, code.image_bytes);
  for (const Segment& segment : code.segments)
    std::memcpy(image + segment.address, code.file.data() + segment.file_offset, segment.file_bytes);
  for (const Relocation& relocation : code.relocations) {
    const uint64_t value = module->load_address + relocation.value;
    std::memcpy(image + relocation.address, &value, sizeof value);
  }
  module->program = std::make_unique<Program>(code, memory, module->load_address);
  return module;
}

void unload(LoadedModule& module, Memory& memory) {
  module.program.reset();
  memory.free(module.load_address);
}

// ---- launch ----------------------------------------------------------------------------------------------

PreparedLaunch::PreparedLaunch(LoadedModule& module, Memory& memory, const LaunchRequest& request)
    : memory_(memory) {
  kernel = &module.object.kernel(request.kernel);
  check_request(*kernel, request);
  shared.memory = &memory;
  shared.program = module.program.get();
  shared.findings = &findings;
  shared.kernel = kernel->name;
  shared.entry = module.load_address + kernel->entry;
  shared.vgprs = kernel->vgprs;
  shared.accum_offset = kernel->accum_offset;
  std::copy_n(request.grid, 3, shared.grid);
  std::copy_n(request.block, 3, shared.block);
  std::copy_n(request.last, 3, shared.last);
  shared.options = request.options;
  lds_bytes = kernel->lds_bytes + request.dynamic_lds;
  waves_per_group = (request.block[0] * request.block[1] * request.block[2] + kLanes - 1) / kLanes;

  // Own allocations: reading past the arguments is an error of the kernel.
  std::vector<uint8_t> kernarg = request.kernarg;
  kernarg.resize(std::max<size_t>(kernarg.size(), kernel->kernarg_bytes));
  fill_hidden_arguments(*kernel, request, kernarg);
  // Whole 8-byte units: clang reads three dwords at a multiple of 8 as four.
  kernarg_address = memory.allocate(std::max<size_t>((kernarg.size() + 7) / 8 * 8, 8), "kernel arguments");
  std::copy(kernarg.begin(), kernarg.end(),
            memory.at(kernarg_address, kernarg.size(), true, "kernel arguments"));
  if (kernel->properties & kDispatchPointer) {
    std::vector<uint8_t> packet(64);
    for (int axis = 0; axis < 3; ++axis) {
      put(packet, 4 + 2 * axis, 2, request.block[axis]);
      put(packet, 12 + 4 * axis, 4, work_items(request, axis));
    }
    put(packet, 24, 4, kernel->private_bytes);
    put(packet, 28, 4, lds_bytes);
    put(packet, 40, 8, kernarg_address);
    packet_address_ = memory.allocate(packet.size(), "dispatch packet");
    std::copy(packet.begin(), packet.end(),
              memory.at(packet_address_, packet.size(), true, "dispatch packet"));
  }
}

PreparedLaunch::~PreparedLaunch() {
  memory_.free(kernarg_address);
  if (packet_address_ != 0) memory_.free(packet_address_);
}

uint64_t PreparedLaunch::group_count() const {
  return uint64_t{shared.grid[0]} * shared.grid[1] * shared.grid[2];
}

void PreparedLaunch::start(Workgroup& group, uint64_t number) {
  group.launch = &shared;
  group.id[0] = static_cast<uint32_t>(number % shared.grid[0]);
  group.id[1] = static_cast<uint32_t>(number / shared.grid[0] % shared.grid[1]);
  group.id[2] = static_cast<uint32_t>(number / shared.grid[0] / shared.grid[1]);
  group.epoch = 0;
  group.lds.reset(lds_bytes, shared.options.check);
  while (group.waves.size() < waves_per_group) group.waves.push_back(std::make_unique<Wave>());
  uint32_t block[3];
  for (int axis = 0; axis < 3; ++axis)
    block[axis] = shared.last[axis] != 0 && group.id[axis] + 1 == shared.grid[axis] ? shared.last[axis]
                                                                                    : shared.block[axis];
  const uint32_t items = block[0] * block[1] * block[2];
  for (uint32_t index = 0; index < waves_per_group; ++index) {
    Wave& wave = *group.waves[index];
    wave.reset();
    wave.group = &group;
    wave.index = static_cast<int>(index);
    if (index * kLanes >= items) {  // a smaller workgroup at the end of the grid
      wave.status = WaveStatus::ended;
      continue;
    }
    wave.pc = shared.entry;
    wave.mode.bits = (kernel->rsrc1 >> 12 & 0xff) | (kernel->rsrc1 >> 21 & 1) << 8 |
                     (kernel->rsrc1 >> 23 & 1) << 9 | (kernel->rsrc1 >> 26 & 1) << 23;
    const uint32_t lanes = std::min<uint32_t>(kLanes, items - index * kLanes);
    wave.set_sgpr64(kExec, lanes == kLanes ? ~uint64_t{0} : (uint64_t{1} << lanes) - 1);
    wave.sgpr_defined[kExec] = wave.sgpr_defined[kExec + 1] = 1;
    write_initial_sgprs(wave, *kernel, *this, group, packet_address_);
    write_work_item_ids(wave, block);
    wave.scratch_bytes = kernel->private_bytes;
    wave.scratch.assign(size_t{kernel->private_bytes} * kLanes, 0xCD);
  }
}

LaunchSummary launch(LoadedModule& module, Memory& memory, const LaunchRequest& request) {
  PreparedLaunch prepared(module, memory, request);
  const uint64_t seed = request.options.order_seed;
  const uint64_t groups = prepared.group_count();
  std::vector<uint64_t> order(std::min(groups, kShuffled));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  if (seed != 0) std::shuffle(order.begin(), order.end(), random);
  const auto number_of = [&](uint64_t i) {
    const uint64_t begin = i - i % order.size();
    return groups - begin < order.size() ? i : begin + order[i - begin];
  };

  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> instructions{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    Workgroup group;
    for (uint64_t i; (i = next.fetch_add(1)) < groups;) {
      try {
        std::mt19937_64 waves(seed + i);
        prepared.start(group, number_of(i));
        run_group(group, seed != 0 ? &waves : nullptr);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!failure) failure = std::current_exception();
        next = groups;
        return;
      }
      for (uint32_t w = 0; w < prepared.waves_per_group; ++w) instructions += group.waves[w]->executed;
    }
  };
  const size_t threads = std::min<uint64_t>(std::max(request.options.threads, 1u), groups);
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
  return {prepared.findings.all(), instructions, groups};
}

// ---- one instruction -------------------------------------------------------------------------------------

namespace {

// MODE.VSKIP, set by s_setvskip: vector and memory instructions pass without any effect, counters included.
bool skipped(const Wave& wave, const Effects& effects) {
  if (!wave.mode.skips_vectors()) return false;
  switch (effects.unit) {
    case Unit::valu:
    case Unit::trans:
    case Unit::matrix:
    case Unit::vmem:
    case Unit::lds:
    case Unit::flat:
      return true;
    default:
      return false;
  }
}

}  // namespace

void step(Wave& wave, const Step& step) {
  const Instruction& instruction = step.instruction;
  if (skipped(wave, step.effects)) {
    wave.pc = instruction.next();
    wave.access.lanes = 0;
    ++wave.executed;
    return;
  }
  const uint64_t lanes = touched_lanes(wave, instruction, step.effects);
  if (wave.group->launch->options.check) {
    check_registers(wave, instruction, step.effects, lanes);
    wave.hazards.check(wave, instruction, step.effects);
    wave.hazards.record(wave, instruction, step.effects);
  }
  wave.pc = instruction.next();
  step.handler(wave, instruction);
  mark_written(wave, instruction, step.effects, lanes);
  ++wave.executed;
}

namespace {

// s_barrier counts only waves that have not ended, so the hardware lets the others pass.
void check_divergence(Workgroup& group) {
  const Wave* ended = nullptr;
  for (const auto& wave : group.waves)
    if (wave->status == WaveStatus::ended && (ended == nullptr || wave->barriers < ended->barriers))
      ended = wave.get();
  if (ended == nullptr) return;
  for (const auto& wave : group.waves) {
    if (wave->status != WaveStatus::at_barrier || wave->barriers <= ended->barriers) continue;
    const Step& barrier = group.launch->program->at(wave->pc - 4);
    wave->report(Rule::barrier_divergence, barrier.instruction,
                 format("wave %d waits at its barrier number %llu, wave %d has ended after %llu", wave->index,
                        static_cast<unsigned long long>(wave->barriers), ended->index,
                        static_cast<unsigned long long>(ended->barriers)));
    return;
  }
}

}  // namespace

bool release_barrier(Workgroup& group) {
  bool any = false;
  for (const auto& wave : group.waves) {
    if (wave->status == WaveStatus::running) return false;
    any |= wave->status == WaveStatus::at_barrier;
  }
  if (!any) return false;
  if (group.launch->options.check) check_divergence(group);
  ++group.epoch;
  group.lds.barrier(group);
  for (const auto& wave : group.waves)
    if (wave->status == WaveStatus::at_barrier) wave->status = WaveStatus::running;
  return true;
}

}  // namespace zyfa::emulator
