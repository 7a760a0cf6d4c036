#include "timing/compute_unit.hpp"

#include <algorithm>
#include <cmath>

#include "errors.hpp"

namespace zyfa::emulator::timing {
namespace {

constexpr uint64_t kNever = ~uint64_t{0};
constexpr uint64_t kVisit = 4;  // a SIMD is visited every fourth cycle
constexpr int kPorts = static_cast<int>(Port::count);

// The first visit of this SIMD at or after a time.
uint64_t visit_after(uint64_t time, int simd) {
  if (time == kNever) return kNever;
  const auto phase = static_cast<uint64_t>(simd);
  return time <= phase ? phase : phase + (time - phase + kVisit - 1) / kVisit * kVisit;
}

bool waits_at_barrier(const Wave& wave) { return wave.status == WaveStatus::at_barrier; }

}  // namespace

Code::Place& Code::fetch(uint64_t address) {
  const Step& step = program_.at(address);  // throws outside the code
  auto& place = places_.at((address - begin_) / 4);
  place = std::make_unique<Place>();
  place->step = &step;
  place->cost = cost_of(step, constants_);
  if (place->cost.counts_ds) place->lds = std::make_unique<LdsPattern>();
  return *place;
}

ComputeUnit::ComputeUnit(Code& code, const Constants& constants, Stats& stats, Trace& trace)
    : code_(code), constants_(constants), stats_(stats), trace_(trace), lds_(constants), memory_(constants) {}

void ComputeUnit::place_waves(const std::vector<Workgroup*>& groups) {
  groups_ = groups;
  at_barrier_.assign(groups.size(), 0);
  running_.assign(groups.size(), 0);
  ended_.assign(groups.size(), 0);
  size_t before = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    const size_t waves = groups[g]->waves.size(), together = (waves + kSimds - 1) / kSimds;
    stats_.waves.resize(std::max(stats_.waves.size(), waves));
    running_[g] = static_cast<uint32_t>(waves);
    for (size_t w = 0; w < waves; ++w) {
      slots_.push_back(std::make_unique<Slot>());
      Slot& slot = *slots_.back();
      slot.wave = groups[g]->waves[w].get();
      slot.head = &code_.at(slot.wave->pc);
      slot.group = static_cast<uint16_t>(g);
      slot.track = static_cast<uint16_t>(kWaveTracks + slots_.size() - 1);
      slot.simd = static_cast<uint8_t>(constants_.wave_placement == 0 ? (before + w) % kSimds
                                                                      : w / together % kSimds);
      simds_[slot.simd].slots.push_back(&slot);
      ++stats_.simds[slot.simd].waves;
      if (trace_.enabled)
        trace_.wave_names.push_back(format("workgroup (%u,%u,%u) wave %zu, SIMD %u", groups[g]->id[0],
                                           groups[g]->id[1], groups[g]->id[2], w, slot.simd));
    }
    before += waves;
  }
  // Vector growth moves the elements: point at them when it is over.
  for (auto& slot : slots_) slot->stats = &stats_.waves[static_cast<size_t>(slot->wave->index)];
}

std::vector<uint64_t> ComputeUnit::run(const std::vector<Workgroup*>& groups) {
  place_waves(groups);
  for (int s = 0; s < kSimds; ++s)
    simds_[s].next = simds_[s].slots.empty() ? kNever : static_cast<uint64_t>(s);
  for (;;) {
    int first = 0;
    for (int s = 1; s < kSimds; ++s)
      if (simds_[s].next < simds_[first].next) first = s;
    if (simds_[first].next == kNever) break;
    visit(first, simds_[first].next);
  }
  for (const auto& slot : slots_)
    if (!slot->over)
      throw located(*slot->wave, slot->wave->pc, nullptr, "deadlock: no wave of the workgroup can go on");
  stats_.lds_busy += lds_.busy();
  stats_.memory_busy += memory_.busy();
  stats_.cycles += *std::max_element(ended_.begin(), ended_.end());
  return ended_;
}

void ComputeUnit::book(Slot& slot, uint64_t now) {
  if (slot.cause == Cause::count || now <= slot.since) return;
  Code::Place& place = waits_at_barrier(*slot.wave) || slot.barrier != nullptr ? *slot.barrier : *slot.head;
  const uint64_t cycles = now - slot.since;
  place.stats.stalls[static_cast<int>(slot.cause)] += cycles;
  place.stats.stalled += cycles;
  slot.stats->stalls[static_cast<int>(slot.cause)] += cycles;
  slot.since = now;
}

// When the counters let the head instruction pass.
uint64_t ComputeUnit::waited(Slot& slot, const Cost& cost, Cause& cause) const {
  const uint64_t vm = slot.vm.until(cost.vm_limit);
  // Scalar loads come back in any order: with one outstanding only zero is certain.
  const int lgkm = slot.ds.count() + slot.smem.count();
  uint64_t lgkm_done = 0;
  if (lgkm > cost.lgkm_limit)
    lgkm_done = slot.smem.count() > 0 ? std::max(slot.ds.newest(), slot.smem.newest())
                                      : slot.ds.until(cost.lgkm_limit);
  cause = vm >= lgkm_done ? Cause::wait_vm : Cause::wait_lgkm;
  return std::max(vm, lgkm_done);
}

// When the head instruction of a wave could issue if no other wave wanted the same port, and what it waits
// for until then.
uint64_t ComputeUnit::earliest(Slot& slot, Simd& simd, uint64_t now, Cause& cause) const {
  cause = Cause::count;
  if (slot.ready > now) return slot.ready;
  const Cost& cost = slot.head->cost;
  uint64_t time = slot.ready;
  const auto later = [&](uint64_t other, Cause why) {
    if (other > time) time = other, cause = other > now ? why : cause;
  };
  switch (cost.kind) {
    case Class::waitcnt: {
      slot.vm.retire(now), slot.ds.retire(now), slot.smem.retire(now);
      Cause why;
      const uint64_t done = waited(slot, cost, why);
      later(done, why);
      break;
    }
    case Class::matrix:
      if (cost.port == Port::valu) later(simd.valu_free, Cause::valu_busy);
      later(simd.matrix_free, Cause::matrix_pipe);
      break;
    case Class::lds:
      later(lds_.place_at(slot.simd), Cause::lds_queue);
      slot.ds.retire(now);
      if (slot.ds.full()) later(slot.ds.until(15), Cause::counter_full);
      break;
    case Class::smem:
      slot.smem.retire(now);
      if (slot.smem.full()) later(slot.smem.until(15), Cause::counter_full);
      break;
    case Class::vmem:
      later(memory_.issue_at(slot.simd), Cause::vmem_issue);
      slot.vm.retire(now);
      if (slot.vm.full()) later(slot.vm.until(63), Cause::counter_full);
      break;
    default:
      if (cost.port != Port::valu) break;
      later(simd.valu_free, Cause::valu_busy);
      if (!cost.coexec) later(simd.matrix_free, Cause::coexec);
  }
  return time;
}

void ComputeUnit::visit(int index, uint64_t now) {
  Simd& simd = simds_[index];
  Slot* chosen[kPorts] = {};
  for (Slot* slot : simd.slots) {
    if (slot->over || waits_at_barrier(*slot->wave)) continue;
    book(*slot, now);
    Cause cause;
    const uint64_t time = earliest(*slot, simd, now, cause);
    slot->since = std::max(now, slot->ready);
    slot->cause = cause;
    if (time > now) continue;
    slot->cause = Cause::arbitration;
    const Port port = slot->head->cost.port;
    if (port == Port::none) {
      issue(*slot, now);
      continue;
    }
    Slot*& best = chosen[static_cast<int>(port)];
    if (best == nullptr || slot->wave->priority > best->wave->priority) best = slot;
  }
  for (Slot* slot : chosen)
    if (slot != nullptr) issue(*slot, now);

  uint64_t next = kNever;
  for (Slot* slot : simd.slots) {
    if (slot->over || waits_at_barrier(*slot->wave)) continue;
    Cause cause;
    next = std::min(next, earliest(*slot, simd, now, cause));
  }
  simd.next = next == kNever ? kNever : visit_after(std::max(next, now + kVisit), index);
}

void ComputeUnit::step_checked(Slot& slot) {
  Wave& wave = *slot.wave;
  const uint64_t pc = wave.pc, limit = wave.group->launch->options.max_instructions;
  try {
    if (wave.executed >= limit)
      throw LaunchError(format("no end after %llu instructions: runaway loop? (limit: max_instructions)",
                               static_cast<unsigned long long>(limit)));
    step(wave, *slot.head->step);
  } catch (const LaunchError& error) {
    throw located(wave, pc, &slot.head->step->instruction, error.what());
  }
}

void ComputeUnit::issue(Slot& slot, uint64_t now) {
  Code::Place& place = *slot.head;
  const Cost& cost = place.cost;
  Wave& wave = *slot.wave;
  wave.access.lanes = 0, wave.access.two = false;
  step_checked(slot);
  ++stats_.instructions;
  ++place.stats.executed;
  ++slot.stats->issued[static_cast<int>(cost.kind)];
  slot.cause = Cause::count;
  slot.ready = now + cost.hold;
  if (cost.held != Cause::count && cost.hold > kVisit) {
    place.stats.stalls[static_cast<int>(cost.held)] += cost.hold - kVisit;
    place.stats.stalled += cost.hold - kVisit;
    slot.stats->stalls[static_cast<int>(cost.held)] += cost.hold - kVisit;
  }
  trace_.add(*place.step, now, std::max<uint64_t>(cost.hold, kVisit), slot.track);
  if (cost.port == Port::valu || cost.port == Port::matrix)
    issue_vector(slot, place, now);
  else if (cost.counts_vm || cost.counts_ds || cost.counts_smem)
    issue_memory(slot, place, now);

  if (wave.status == WaveStatus::ended) {
    slot.over = true;
    --running_[slot.group];
    ended_[slot.group] = std::max(
        {ended_[slot.group], now + kVisit, simds_[slot.simd].matrix_free, simds_[slot.simd].valu_free});
    if (at_barrier_[slot.group] > 0) meet_barrier(slot.group, now);
    return;
  }
  slot.head = &code_.at(wave.pc);
  if (waits_at_barrier(wave)) {
    slot.barrier = &place;
    slot.since = slot.ready;
    slot.cause = Cause::barrier;
    ++at_barrier_[slot.group];
    meet_barrier(slot.group, now);
  }
}

void ComputeUnit::issue_vector(Slot& slot, const Code::Place& place, uint64_t now) {
  Simd& simd = simds_[slot.simd];
  SimdStats& stats = stats_.simds[slot.simd];
  const Cost& cost = place.cost;
  simd.valu_free = std::max(simd.valu_free, now + cost.valu);
  if (cost.kind == Class::matrix) {
    simd.matrix_free = now + cost.matrix;
    stats.matrix += cost.matrix;
    stats.matrix_issue += cost.valu;
    trace_.add(*place.step, now, cost.matrix,
               static_cast<uint16_t>(static_cast<int>(Pipe::matrix) * kSimds + slot.simd));
    return;
  }
  stats.valu += cost.valu;
  if (simd.matrix_free > now) {
    stats.overlapped += cost.valu;
    if (cost.doubtful) stats.doubtful_overlap += cost.valu;
  }
  trace_.add(*place.step, now, cost.valu,
             static_cast<uint16_t>(static_cast<int>(Pipe::valu) * kSimds + slot.simd));
}

void ComputeUnit::issue_memory(Slot& slot, Code::Place& place, uint64_t now) {
  const Cost& cost = place.cost;
  const Access& access = slot.wave->access;
  if (cost.counts_smem) {
    const uint64_t done = memory_.scalar_request(now, place.step);
    slot.smem.push(std::max(done, slot.smem.newest()));
    return;
  }
  if (cost.counts_ds) {
    const LdsWork& work = lds_work(cost, access, constants_, *place.lds);
    stats_.lds_bytes += work.bytes;
    stats_.conflict_cycles += work.conflicts;
    place.stats.conflict_cycles += work.conflicts;
    const uint64_t done = lds_.request(slot.simd, now, work);
    slot.ds.push(std::max(done, slot.ds.newest()));
    trace_.add(*place.step, now, done - now,
               static_cast<uint16_t>(static_cast<int>(Pipe::lds) * kSimds + slot.simd));
    return;
  }
  const MemoryWork work = memory_work(access);
  stats_.memory_bytes += work.bytes;
  uint64_t done = memory_.request(slot.simd, now, work);
  if (place.step->effects.lds_dma)
    done = lds_.write_later(done, static_cast<uint32_t>(__builtin_popcountll(access.lanes)) * access.bytes);
  slot.vm.push(std::max(done, slot.vm.newest()));
  trace_.add(*place.step, now, done - now,
             static_cast<uint16_t>(static_cast<int>(Pipe::memory) * kSimds + slot.simd));
}

// Lets the waves of a workgroup go on when the last of them has arrived or ended.
void ComputeUnit::meet_barrier(uint16_t group, uint64_t now) {
  if (at_barrier_[group] < running_[group] || !release_barrier(*groups_[group])) return;
  at_barrier_[group] = 0;
  const uint64_t go =
      now + std::max<uint64_t>(kVisit, static_cast<uint64_t>(std::lround(constants_.barrier_cycles)));
  for (auto& other : slots_) {
    if (other->group != group || other->over || other->barrier == nullptr) continue;
    book(*other, now + kVisit);
    other->barrier = nullptr;
    other->cause = Cause::count;
    other->ready = std::max(other->ready, go);
    Simd& simd = simds_[other->simd];
    simd.next = std::min(simd.next, visit_after(other->ready, other->simd));
  }
}

}  // namespace zyfa::emulator::timing
