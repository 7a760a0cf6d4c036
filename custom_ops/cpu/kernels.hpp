// The inner loops, compiled once per instruction set (isa/) and chosen at load.
//
// A panel is up to 64 query rows that go through the keys together. Rows are the lanes of every vector:
// scores and probabilities are key-major (kTileKeys x lanes), outputs column-major (columns x lanes), so that
// maxima, exponentials and sums of a row never cross lanes and K and V are used in the order in which they
// lie.
#pragma once

#include <cstdint>

#include "../dtype.hpp"

namespace zyfa::cpu {

constexpr int64_t kTileKeys = 64;    // one bit per key fits a 64-bit word
constexpr int64_t kLaneBlock = 16;   // lanes come in blocks
constexpr int64_t kPanelLanes = 64;  // at most
constexpr int64_t kHalfLanes = kPanelLanes / 2;
constexpr int64_t kFewRows = 4;  // lanes that have products of their own
constexpr int64_t kStep = 32;    // dims and columns of operands are zero-padded to multiples of this

constexpr int64_t padded(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

// Keys of a tile, from an even number to an even number.
struct KeySpan {
  int64_t first = 0, count = kTileKeys;

  constexpr int64_t past() const { return first + count; }
  bool operator==(const KeySpan& other) const { return first == other.first && count == other.count; }
};

// Keys in steps of kStep: as far as products of pairs may go beyond a span.
constexpr KeySpan outward(const KeySpan& keys) {
  const int64_t first = keys.first / kStep * kStep;
  return {first, padded(keys.past(), kStep) - first};
}

// What each half of a panel's lanes may see of a tile, and each block of them. Products leave out what a half
// does not see: scores there are not written. Where they may go probabilities must be 0 unless seen.
struct KeySpans {
  KeySpan half[2];
  KeySpan block[kPanelLanes / kLaneBlock];

  const KeySpan& of(int64_t lane) const { return half[lane / kHalfLanes]; }
  bool are_one() const { return half[0] == half[1]; }
};

// What operands of the products are made of.
enum class Operand {
  fp32,            // K and V as rows
  fp32_few_rows,   // the same for panels of up to kFewRows rows, Q as rows too
  bfloat16_pairs,  // K as rows, V transposed (columns x kTileKeys); Q and P as words of two consecutive dims
                   // or keys, the first in the low half
};

constexpr bool is_pairs(Operand operand) { return operand == Operand::bfloat16_pairs; }
constexpr int64_t element_bytes(Operand operand) { return is_pairs(operand) ? 2 : 4; }

// FP32 numbers as sums of bfloat16 terms, largest first; three hold any of them. A product of two numbers is
// made of products of terms; those of terms whose positions, from 0, add up to more than 2 are left out:
// 2^-26 to 2^-25 of the product (root mean square), at most 2^-22.
constexpr int64_t kMostTerms = 3;

// Terms that hold any number of the type.
constexpr int64_t terms_of(DType type) {
  return type == DType::float32 ? kMostTerms : type == DType::float16 ? 2 : 1;
}

// How the lanes of a block take part in a tile of the FP8 path.
enum class BlockKind : uint8_t { skip, lean, two_term, bfloat16 };

// log2 of what a probability of one is worth in the sums of the FP8 path: 8 + (6 + 0.45665) / 8.
constexpr float kFp8Unit = 8.80708f;

// State of the rows of a panel, one value per lane.
struct LaneState {
  float anchor[kPanelLanes];      // running maximum, -inf before the first key
  float sum[kPanelLanes];         // of the probabilities as they multiply V
  float keep[kPanelLanes];        // factor for what was accumulated before the current tile
  int32_t nan[kPanelLanes];       // not 0: saw a NaN score of a visible key (FP8 path; FP32 sums become NaN)
  int32_t exponent[kPanelLanes];  // FP8 path: block exponent d of the current tile
};

// Logits of a tile, from its scores: fma(s - shift, factor, offset) with lane values.
struct LaneScale {
  float factor[kPanelLanes];  // log2 units per unit of score, not negative
  bool finished;              // scores are log2 units (FP8) already: softcap or bias were applied
};

// Rows of a tile that will be wanted soon; bytes is 0 for nothing.
struct Ahead {
  const void* rows = nullptr;
  int64_t stride = 0, bytes = 0;
};

// The softmax of a tile to terms, in pieces of two keys.
struct TermSoftmax {
  const float* factor;
  int64_t lanes;
  LaneState* state;
  const float* s;
  uint32_t* p;
  float against[kPanelLanes], sum[kPanelLanes];
};

// Work on vectors that is done while tile registers are multiplied: pieces 0 to `pieces` - 1.
struct Meanwhile {
  void (*piece)(TermSoftmax& of, int64_t index);
  TermSoftmax* of;
  int64_t pieces;
};

struct Kernels {
  const char* isa;
  Operand fastest;  // for values that bfloat16 holds exactly

  // s[key][lane] = sum over dims of k[key][dim] * q[dim][lane]. `k_stride` in elements.
  void (*scores)(const float* k, int64_t k_stride, const float* q, int64_t dim, int64_t lanes,
                 const KeySpans& spans, float* s);
  // o[column][lane] = o[column][lane] * keep[lane] + sum over keys of v[key][column] * p[key][lane].
  void (*accumulate)(const float* v, int64_t v_stride, const float* p, int64_t columns, int64_t lanes,
                     const KeySpans& spans, const float* keep, float* o);
  // The same for up to kFewRows rows, whose queries lie as rows; K and V of any floating point type. The
  // other lanes of s and o are left as they are.
  void (*scores_few)(DType type, const void* k, int64_t k_stride, const float* q, int64_t q_stride,
                     int64_t dim, int64_t rows, int64_t lanes, const Ahead& ahead, float* s);
  void (*accumulate_few)(DType type, const void* v, int64_t v_stride, const float* p, int64_t columns,
                         int64_t rows, int64_t lanes, const float* keep, const Ahead& ahead, float* o);
  // The same on bfloat16 pairs, with second terms unless `low` is null; null where FP32 is as fast. `dim` and
  // `columns` are multiples of kStep; v is columns x kTileKeys.
  void (*scores_pairs)(const uint16_t* k, int64_t k_stride, const uint32_t* q, int64_t dim, int64_t lanes,
                       const KeySpans& spans, float* s);
  void (*accumulate_pairs)(const uint16_t* v, const uint32_t* p, const uint32_t* low, int64_t columns,
                           int64_t lanes, const KeySpans& spans, const float* keep, float* o);
  // The same on FP32 in `terms` terms, P in kMostTerms; null where FP32 is as fast. How terms lie:
  // isa/terms.hpp.
  void (*scores_terms)(const uint16_t* k, const uint32_t* q, int64_t terms, int64_t dim, int64_t lanes,
                       const KeySpans& spans, const Meanwhile& meanwhile, float* s);
  void (*accumulate_terms)(const uint16_t* v, int64_t terms, const uint32_t* p, int64_t columns,
                           int64_t lanes, const KeySpans& spans, const float* keep, float* o);
  // The terms of kTileKeys rows of K or V and of the lanes of Q (padded dims x lanes). False when terms
  // cannot stand for them, as for NaN and infinity: the largest magnitude of all keys, or of each row of V or
  // Q, is 0 or from 2^-40 up to 2^50. So no sum of finite values is infinite, and subnormal products, which
  // count as 0, are missed by nothing but values that are 2^-60 of their neighbours.
  bool (*key_terms)(const float* k, int64_t k_stride, int64_t terms, int64_t dim, uint16_t* to);
  bool (*value_terms)(const float* v, int64_t v_stride, int64_t terms, int64_t columns, uint16_t* to);
  bool (*query_terms)(const float* q, int64_t terms, int64_t dim, int64_t lanes, uint32_t* to);
  // See PairsScope.
  void (*begin_pairs)();
  void (*end_pairs)();

  // s = -inf for keys whose bit is not set and for lanes with key < begin[lane] or key >= end[lane], in what
  // `within` says of each block of lanes.
  void (*hide)(uint64_t keys, const int32_t* begin, const int32_t* end, int64_t lanes, const KeySpans& within,
               float* s);

  // Online softmax: moves anchors, sets keep, turns scores into p (in place for FP32), adds to the sums.
  // p = exp2((s - anchor) * factor), relative error below 2e-7; for bfloat16 rounded before it is summed.
  void (*softmax_fp32)(const float* factor, int64_t lanes, LaneState& state, float* s);
  void (*softmax_bfloat16)(const float* factor, int64_t lanes, LaneState& state, float* s);
  void (*softmax_pairs)(const float* factor, int64_t lanes, LaneState& state, const float* s, uint32_t* p);
  // As FP32, to terms: first, for kTileKeys / 2 pieces and at last.
  void (*begin_softmax)(TermSoftmax& of);
  void (*softmax_piece)(TermSoftmax& of, int64_t index);
  void (*end_softmax)(TermSoftmax& of);

  // A tile of docs/numerics.md, "A row in a tile". FP32: p in place, hi + lo / 16 in two-term blocks. Pairs:
  // p and, unless `low` is null, the second terms, which are 0 in blocks of other kinds; outside of what
  // products of the half read nothing is written.
  void (*fp8_fp32)(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, const KeySpans& spans,
                   LaneState& state, float* s);
  void (*fp8_pairs)(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, const KeySpans& spans,
                    LaneState& state, const float* s, uint32_t* p, uint32_t* low);

  // Contiguous elements of a type, converted.
  void (*to_fp32)(DType type, const void* from, int64_t count, float* to);
  void (*to_bfloat16)(DType type, const void* from, int64_t count, uint16_t* to);
  // from / divisor * factor, rounded to the type.
  void (*write_row)(DType type, const float* from, int64_t count, float factor, float divisor, void* to);
  // to[column][row] = from[row][column] on words; rows and columns are multiples of kLaneBlock, strides in
  // words.
  void (*transpose)(const uint32_t* from, int64_t from_stride, int64_t rows, int64_t columns, uint32_t* to,
                    int64_t to_stride);
  // to[column][key] = from[key][column] on 16-bit elements, kTileKeys keys; columns is a multiple of kStep.
  void (*transpose_values)(const uint16_t* from, int64_t columns, uint16_t* to);
  // Bit `key` is set when a row of `count` elements holds NaN or infinity; kTileKeys rows.
  uint64_t (*not_finite)(DType type, const void* rows, int64_t stride, int64_t count);
};

// Around a run of products of pairs on one thread.
class PairsScope {
 public:
  explicit PairsScope(const Kernels& kernels) : kernels_(kernels) { kernels.begin_pairs(); }
  ~PairsScope() { kernels_.end_pairs(); }
  PairsScope(const PairsScope&) = delete;
  PairsScope& operator=(const PairsScope&) = delete;

 private:
  const Kernels& kernels_;
};

// The best set this machine has, or the one ZYFA_CPU_ISA names. Throws Error when that one is unknown or not
// supported here.
const Kernels& kernels();

}  // namespace zyfa::cpu
