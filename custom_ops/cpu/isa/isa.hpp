// One tag per instruction set. The templates are defined in the files of this folder and instantiated there
// for the tag of the set that the file is compiled for (ZYFA_ISA), so that no code of a newer set leaks into
// an older one.
#pragma once

#include <cstdint>

#include "../kernels.hpp"

namespace zyfa::cpu::isa {

struct Baseline {
#if defined(__aarch64__)
  static constexpr const char* name = "neon";
#else
  static constexpr const char* name = "baseline";
#endif
};
struct Avx2 {
  static constexpr const char* name = "avx2";
};
struct Avx512 {
  static constexpr const char* name = "avx512";
};
struct Avx512Bf16 {
  static constexpr const char* name = "avx512_bf16";
};
struct AmxBf16 {
  static constexpr const char* name = "amx_bf16";
};

// Throws Error. Out of line and in a file for every processor, as templates of the error would not be.
[[noreturn]] void refuse_type(const char* verb, DType type);

// products.cc
template <typename Tag>
struct Products {
  static void scores(const float* k, int64_t k_stride, const float* q, int64_t dim, int64_t lanes,
                     const KeySpans& spans, float* s);
  static void accumulate(const float* v, int64_t v_stride, const float* p, int64_t columns, int64_t lanes,
                         const KeySpans& spans, const float* keep, float* o);
};

// pairs_avx512.cc, pairs_amx.cc
template <typename Tag>
struct Pairs {
  static void scores(const uint16_t* k, int64_t k_stride, const uint32_t* q, int64_t dim, int64_t lanes,
                     const KeySpans& spans, float* s);
  static void accumulate(const uint16_t* v, const uint32_t* p, const uint32_t* low, int64_t columns,
                         int64_t lanes, const KeySpans& spans, const float* keep, float* o);
  static void begin();
  static void end();
};

// terms.cc
template <typename Tag>
struct SplitTerms {
  static bool keys(const float* k, int64_t k_stride, int64_t terms, int64_t dim, uint16_t* to);
  static bool values(const float* v, int64_t v_stride, int64_t terms, int64_t columns, uint16_t* to);
  static bool queries(const float* q, int64_t terms, int64_t dim, int64_t lanes, uint32_t* to);
};

// terms_amx.cc
template <typename Tag>
struct TermProducts {
  static void scores(const uint16_t* k, const uint32_t* q, int64_t terms, int64_t dim, int64_t lanes,
                     const KeySpans& spans, const Meanwhile& meanwhile, float* s);
  static void accumulate(const uint16_t* v, int64_t terms, const uint32_t* p, int64_t columns, int64_t lanes,
                         const KeySpans& spans, const float* keep, float* o);
};

// few.cc
template <typename Tag>
struct Few {
  static void scores(DType type, const void* k, int64_t k_stride, const float* q, int64_t q_stride,
                     int64_t dim, int64_t rows, int64_t lanes, const Ahead& ahead, float* s);
  static void accumulate(DType type, const void* v, int64_t v_stride, const float* p, int64_t columns,
                         int64_t rows, int64_t lanes, const float* keep, const Ahead& ahead, float* o);
};

// softmax.cc
template <typename Tag>
struct Softmax {
  static void hide(uint64_t keys, const int32_t* begin, const int32_t* end, int64_t lanes,
                   const KeySpans& within, float* s);
  static void fp32(const float* factor, int64_t lanes, LaneState& state, float* s);
  static void bfloat16(const float* factor, int64_t lanes, LaneState& state, float* s);
  static void pairs(const float* factor, int64_t lanes, LaneState& state, const float* s, uint32_t* p);
};

template <typename Tag>
struct SoftmaxPieces {
  static void begin(TermSoftmax& of);
  static void piece(TermSoftmax& of, int64_t index);
  static void end(TermSoftmax& of);
};

// fp8.cc
template <typename Tag>
struct Fp8 {
  static void fp32(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, const KeySpans& spans,
                   LaneState& state, float* s);
  static void pairs(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, const KeySpans& spans,
                    LaneState& state, const float* s, uint32_t* p, uint32_t* low);
};

// convert.cc
template <typename Tag>
struct Convert {
  static void to_fp32(DType type, const void* from, int64_t count, float* to);
  static void to_bfloat16(DType type, const void* from, int64_t count, uint16_t* to);
  static void write_row(DType type, const float* from, int64_t count, float factor, float divisor, void* to);
  static uint64_t not_finite(DType type, const void* rows, int64_t stride, int64_t count);
};

// transpose.cc
template <typename Tag>
struct Transpose {
  static void words(const uint32_t* from, int64_t from_stride, int64_t rows, int64_t columns, uint32_t* to,
                    int64_t to_stride);
  static void values(const uint16_t* from, int64_t columns, uint16_t* to);
};

}  // namespace zyfa::cpu::isa
