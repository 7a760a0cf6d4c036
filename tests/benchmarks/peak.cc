// What the arithmetic units and the memory of this machine give: loops over registers, and a copy.
// Compiled and loaded by peak.py. The loops keep as many independent accumulators as hide the latency of one
// operation.
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace {

// Runs a fixed number of steps and returns its floating-point operations.
using Loop = double (*)();

volatile float sink;

#if defined(__x86_64__)

constexpr int kSteps = 20000;

__attribute__((target("avx2,fma"))) double avx2_fp32() {
  constexpr int kAccumulators = 12;
  __m256 acc[kAccumulators];
  const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
  for (__m256& a : acc) a = y;
  for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kAccumulators; ++j) acc[j] = _mm256_fmadd_ps(acc[j], x, y);
  }
  for (const __m256& a : acc) sink = _mm256_cvtss_f32(a);
  return 2.0 * 8 * kAccumulators * kSteps;
}

__attribute__((target("avx512f"))) double avx512_fp32() {
  constexpr int kAccumulators = 24;
  __m512 acc[kAccumulators];
  const __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
  for (__m512& a : acc) a = y;
  for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 24
    for (int j = 0; j < kAccumulators; ++j) acc[j] = _mm512_fmadd_ps(acc[j], x, y);
  }
  for (const __m512& a : acc) sink = _mm512_cvtss_f32(a);
  return 2.0 * 16 * kAccumulators * kSteps;
}

__attribute__((target("avx512f,avx512bf16"))) double avx512_bf16() {
  constexpr int kAccumulators = 24;
  __m512 acc[kAccumulators];
  const __m512 y = _mm512_set1_ps(0.001f);
  const __m512bh pairs = _mm512_cvtne2ps_pbh(y, y);
  for (__m512& a : acc) a = y;
  for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 24
    for (int j = 0; j < kAccumulators; ++j) acc[j] = _mm512_dpbf16_ps(acc[j], pairs, pairs);
  }
  for (const __m512& a : acc) sink = _mm512_cvtss_f32(a);
  return 2.0 * 32 * kAccumulators * kSteps;
}

// Palette 1, all eight tiles of 16 rows x 64 bytes: 0-3 accumulate, 4-5 are left and 6-7 right operands.
__attribute__((target("amx-tile,amx-bf16"))) double amx_bf16() {
  struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
  } config{};
  config.palette = 1;
  for (int tile = 0; tile < 8; ++tile) {
    config.bytes[tile] = 64;
    config.rows[tile] = 16;
  }
  _tile_loadconfig(&config);
  uint16_t small[16 * 32];
  for (uint16_t& value : small) value = 0x3a83;  // 0.001
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, small, 64);
  _tile_loadd(5, small, 64);
  _tile_loadd(6, small, 64);
  _tile_loadd(7, small, 64);
  for (int i = 0; i < kSteps; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  float result[16 * 16];
  _tile_stored(0, result, 64);
  sink = result[0];
  _tile_release();
  return 4.0 * 2 * 16 * 16 * 32 * kSteps;
}

// The kernel hands out the tiles' state per process, on request.
bool amx_is_ours() {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
  if ((d & kAmxBf16) == 0 || (d & kAmxTile) == 0) return false;
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

#endif

struct Unit {
  const char* name;
  Loop loop;
  bool supported;
};

const std::vector<Unit>& units() {
  static const std::vector<Unit> all = {
#if defined(__x86_64__)
      {"fp32 avx2", avx2_fp32, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
      {"fp32 avx512", avx512_fp32, __builtin_cpu_supports("avx512f") != 0},
      {"bf16 avx512", avx512_bf16, __builtin_cpu_supports("avx512bf16") != 0},
      {"bf16 amx", amx_bf16, amx_is_ours()},
#endif
  };
  return all;
}

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// The sum over threads of work per second, where `step` returns the work it did.
template <typename Step>
double rate(const int* cpus, int threads, double seconds, Step step) {
  std::vector<double> rates(threads);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      pin(cpus[t]);
      step(t);
      double work = 0;
      const double start = now();
      double end = start;
      while (end - start < seconds) {
        work += step(t);
        end = now();
      }
      rates[t] = work / (end - start);
    });
  double sum = 0;
  for (int t = 0; t < threads; ++t) {
    running[t].join();
    sum += rates[t];
  }
  return sum;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int zyfa_unit_count() { return static_cast<int>(units().size()); }
EXPORT const char* zyfa_unit_name(int unit) { return units()[unit].name; }
EXPORT int zyfa_unit_supported(int unit) { return units()[unit].supported; }

// Floating-point operations per second of one unit, one thread on each of `cpus`.
EXPORT double zyfa_unit_rate(int unit, const int* cpus, int threads, double seconds) {
  return rate(cpus, threads, seconds, [&](int) { return units()[unit].loop(); });
}

// Bytes per second, read plus written, of copying `bytes` per thread from one buffer to another.
EXPORT double zyfa_copy_rate(int64_t bytes, const int* cpus, int threads, double seconds) {
  std::vector<std::vector<char>> from(threads), to(threads);
  for (int t = 0; t < threads; ++t) {
    from[t].assign(bytes, 1);
    to[t].assign(bytes, 2);
  }
  return rate(cpus, threads, seconds, [&](int t) {
    std::memcpy(to[t].data(), from[t].data(), bytes);
    sink = to[t][bytes / 2];
    return 2.0 * static_cast<double>(bytes);
  });
}
