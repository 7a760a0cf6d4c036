#include "timing/lds_banks.hpp"

#include <algorithm>
#include <cmath>

namespace zyfa::emulator::timing {
namespace {

constexpr uint64_t kAll = ~uint64_t{0};
constexpr int kMaxPhases = 8;

// Phases of ds_read_b128, ds_read_b64, ds_read_b96 and ds_write_b64 were measured by others on the chip;
// transposed reads are taken as plain reads of their width, the rest as consecutive lanes that fill the width
// of the data path.
struct Phases {
  uint8_t bytes;
  bool write;
  uint8_t banks;
  uint8_t count;
  uint64_t lanes[kMaxPhases];
};

constexpr uint64_t span(int first, int last) { return (kAll >> (63 - last)) & (kAll << first); }

constexpr uint64_t kRead128 = span(0, 3) | span(12, 15) | span(20, 27),
                   kRead128b = span(4, 11) | span(16, 19) | span(28, 31);
constexpr uint64_t kRead96[4] = {span(0, 3) | span(20, 23), span(4, 7) | span(16, 19),
                                 span(8, 11) | span(28, 31), span(12, 15) | span(24, 27)};

constexpr Phases kPhases[] = {
    {4, false, 64, 2, {span(0, 31), span(32, 63)}},
    {8, false, 64, 2, {span(0, 31), span(32, 63)}},
    {12,
     false,
     32,
     8,
     {kRead96[0], kRead96[1], kRead96[2], kRead96[3], kRead96[0] << 32, kRead96[1] << 32, kRead96[2] << 32,
      kRead96[3] << 32}},
    {16, false, 64, 4, {kRead128, kRead128b, kRead128 << 32, kRead128b << 32}},
    {4, true, 32, 2, {span(0, 31), span(32, 63)}},
    {8, true, 32, 4, {span(0, 15), span(16, 31), span(32, 47), span(48, 63)}},
    {12,
     true,
     32,
     8,
     {span(0, 7), span(8, 15), span(16, 23), span(24, 31), span(32, 39), span(40, 47), span(48, 55),
      span(56, 63)}},
    {16,
     true,
     32,
     8,
     {span(0, 7), span(8, 15), span(16, 23), span(24, 31), span(32, 39), span(40, 47), span(48, 55),
      span(56, 63)}},
};

const Phases& phases_of(uint32_t bytes, bool write) {
  const uint32_t rounded = bytes <= 4 ? 4 : bytes <= 8 ? 8 : bytes <= 12 ? 12 : 16;
  for (const Phases& phases : kPhases)
    if (phases.bytes == rounded && phases.write == write) return phases;
  return kPhases[0];
}

// Most distinct dwords that one bank has to deliver for these lanes: 1 without conflicts, 0 without lanes.
template <typename Address>
uint32_t conflict_degree(const Address* addresses, uint64_t lanes, uint32_t bytes, uint32_t banks) {
  uint32_t held[64], count[64], degree = 0;
  uint64_t used = 0;
  uint32_t extras[kLanes * 5];  // dwords beyond the first of their bank; an unaligned 16 bytes span five
  int extra = 0;
  for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto address = static_cast<uint32_t>(addresses[__builtin_ctzll(rest)]);
    const uint32_t last = (address + bytes - 1) / 4;
    for (uint32_t dword = address / 4; dword <= last; ++dword) {
      const uint32_t bank = dword % banks;
      const uint64_t bit = uint64_t{1} << bank;
      if (!(used & bit)) {
        used |= bit;
        held[bank] = dword;
        count[bank] = 1;
        degree = std::max(degree, 1u);
      } else if (held[bank] != dword) {
        if (std::find(extras, extras + extra, dword) != extras + extra) continue;
        extras[extra++] = dword;
        degree = std::max(degree, ++count[bank]);
      }
    }
  }
  return degree;
}

LdsWork work_of(const Cost& cost, const Access& access, const Constants& constants) {
  LdsWork work;
  const uint32_t bytes = cost.exchange ? 4 : std::clamp<uint32_t>(access.bytes, 1, 16);
  const Phases& phases = phases_of(bytes, cost.write);
  const double width = cost.write ? constants.lds_write_bytes_per_clock : constants.lds_bytes_per_clock;
  const double factor = cost.transpose ? constants.lds_transpose_factor : 1;
  const auto serve = [&](const auto* addresses) {
    for (int i = 0; i < phases.count; ++i) {
      const double full = __builtin_popcountll(phases.lanes[i]) * phases.bytes;
      const auto clocks = static_cast<uint32_t>(std::lround(std::ceil(std::max(1.0, full / width) * factor)));
      const uint32_t degree =
          cost.exchange ? 1 : conflict_degree(addresses, phases.lanes[i] & access.lanes, bytes, phases.banks);
      if (degree == 0) continue;
      work.cycles += clocks * degree;
      work.conflicts += clocks * (degree - 1);
    }
    work.bytes += static_cast<uint32_t>(__builtin_popcountll(access.lanes)) * bytes;
  };
  serve(access.address);
  if (access.two && !cost.exchange) serve(access.second);
  return work;
}

// Stores the pattern of these addresses; true when it is the one that was there.
bool same_pattern(const Access& access, LdsPattern& last) {
  const uint64_t base = access.lanes == 0 ? 0 : access.address[__builtin_ctzll(access.lanes)];
  uint32_t changed = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto relative = static_cast<uint32_t>(access.address[lane] - base);
    changed |= relative ^ last.first[lane];
    last.first[lane] = relative;
  }
  if (access.two)
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint32_t relative = access.second[lane] - static_cast<uint32_t>(base);
      changed |= relative ^ last.second[lane];
      last.second[lane] = relative;
    }
  const uint32_t phase = base % 4 + 1;  // 0: nothing stored yet
  const bool same = changed == 0 && last.lanes == access.lanes && last.bytes == access.bytes &&
                    last.two == access.two && last.phase == phase;
  last.lanes = access.lanes;
  last.bytes = access.bytes;
  last.two = access.two;
  last.phase = phase;
  return same;
}

}  // namespace

const LdsWork& lds_work(const Cost& cost, const Access& access, const Constants& constants,
                        LdsPattern& last) {
  if (!same_pattern(access, last)) last.work = work_of(cost, access, constants);
  return last.work;
}

}  // namespace zyfa::emulator::timing
