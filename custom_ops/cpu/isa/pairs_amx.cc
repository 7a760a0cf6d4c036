// Products of bfloat16 pairs on the tile registers of AMX: 16 x 16 FP32 sums, 32 dims or keys at a time.
#include <initializer_list>

#include "amx_tiles.hpp"
#include "isa.hpp"

namespace zyfa::cpu::isa {
namespace {

struct alignas(64) Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

const Configuration& configuration() {
  static const Configuration full = [] {
    Configuration c;
    for (int tile = 0; tile < 8; ++tile) {
      c.row_bytes[tile] = 64;
      c.rows[tile] = kSide;
    }
    return c;
  }();
  return full;
}

inline void load_sums(const float* sums, int64_t lanes) {
  const int64_t bytes = lanes * 4;
  _tile_loadd(0, sums, bytes);
  _tile_loadd(1, sums + kSide, bytes);
  _tile_loadd(2, sums + kSide * lanes, bytes);
  _tile_loadd(3, sums + kSide * lanes + kSide, bytes);
}

// 32 rows of left times 32 lanes of right.
inline void multiply(const uint16_t* left, int64_t left_stride, const uint32_t* right, int64_t inner,
                     int64_t lanes) {
  for (int64_t i = 0; i < inner; i += kInner) {
    _tile_loadd(4, left + i, left_stride * 2);
    _tile_loadd(6, right + i / 2 * lanes, lanes * 4);
    _tile_loadd(7, right + i / 2 * lanes + kSide, lanes * 4);
    _tile_loadd(5, left + kSide * left_stride + i, left_stride * 2);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

// 32 rows of left times 16 lanes of right, in registers 0 and 2.
inline void multiply_half(const uint16_t* left, int64_t left_stride, const uint32_t* right, int64_t inner,
                          int64_t lanes) {
  for (int64_t i = 0; i < inner; i += kInner) {
    _tile_loadd(4, left + i, left_stride * 2);
    _tile_loadd(6, right + i / 2 * lanes, lanes * 4);
    _tile_loadd(5, left + kSide * left_stride + i, left_stride * 2);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
  }
}

// Left and right operands of a product: `rows` of left by some lanes of right, `inner` dims or keys of both.
// `more`, if any, is another right operand for the same left one.
struct Factors {
  const uint16_t* left;
  int64_t left_stride, rows;
  const uint32_t *right, *more;
  int64_t inner;
};

template <bool Add>
inline void product(const Factors& f, int64_t count, int64_t lanes, float* sums) {
  const bool half = count < 2 * kSide;
  for (int64_t row = 0; row < f.rows; row += 2 * kSide) {
    const uint16_t* from = f.left + row * f.left_stride;
    float *upper = sums + row * lanes, *lower = upper + kSide * lanes;
    if (!Add) {
      clear_sums();
    } else if (half) {
      _tile_loadd(0, upper, lanes * 4);
      _tile_loadd(2, lower, lanes * 4);
    } else {
      load_sums(upper, lanes);
    }
    for (const uint32_t* right : {f.right, f.more}) {
      if (right == nullptr) continue;
      if (half)
        multiply_half(from, f.left_stride, right, f.inner, lanes);
      else
        multiply(from, f.left_stride, right, f.inner, lanes);
    }
    if (half) {
      store_half_sums(upper, lanes);
    } else {
      store_sums(upper, lanes);
    }
  }
}

// o *= keep where any lane's factor is not 1.
void rescale(const float* keep, int64_t columns, int64_t lanes, float* o) {
  for (int64_t lane = 0; lane < lanes; lane += kLaneBlock) {
    const __m512 factor = _mm512_loadu_ps(keep + lane);
    if (_mm512_cmp_ps_mask(factor, _mm512_set1_ps(1.0f), _CMP_NEQ_UQ) == 0) continue;
    for (int64_t column = 0; column < columns; ++column) {
      float* at = o + column * lanes + lane;
      _mm512_storeu_ps(at, _mm512_mul_ps(_mm512_loadu_ps(at), factor));
    }
  }
}

}  // namespace

template <typename Tag>
void Pairs<Tag>::begin() {
  // The operand of the intrinsic names the first 8 bytes only.
  asm volatile("ldtilecfg %0" ::"m"(configuration()));
}

template <typename Tag>
void Pairs<Tag>::end() {
  _tile_release();
}

template <typename Tag>
void Pairs<Tag>::scores(const uint16_t* k, int64_t k_stride, const uint32_t* q, int64_t dim, int64_t lanes,
                        const KeySpans& spans, float* s) {
  for (int64_t lane = 0; lane < lanes; lane += kHalfLanes) {
    const KeySpan keys = outward(spans.of(lane));
    product<false>({k + keys.first * k_stride, k_stride, keys.count, q + lane, nullptr, dim}, lanes - lane,
                   lanes, s + keys.first * lanes + lane);
  }
}

template <typename Tag>
void Pairs<Tag>::accumulate(const uint16_t* v, const uint32_t* p, const uint32_t* low, int64_t columns,
                            int64_t lanes, const KeySpans& spans, const float* keep, float* o) {
  rescale(keep, columns, lanes, o);
  for (int64_t lane = 0; lane < lanes; lane += kHalfLanes) {
    const KeySpan keys = outward(spans.of(lane));
    const int64_t at = keys.first / 2 * lanes + lane;
    product<true>(
        {v + keys.first, kTileKeys, columns, p + at, low == nullptr ? nullptr : low + at, keys.count},
        lanes - lane, lanes, o + lane);
  }
}

template struct Pairs<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
