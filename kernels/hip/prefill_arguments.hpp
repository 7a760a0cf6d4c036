// Arguments of the BF16 prefill kernels, as host and device see them: natural alignment, one by-value struct.
//
// Kernels bf16_prefill_{d64,d128,d192_v128,d256}, by the head dims of query and key, and of value; with
// _general behind it where needs_general() says so. Workgroup: kPrefillWaves waves, kPrefillWideWaves for
// d256 and for all _general ones. Grid: (ceil(queries / rows), query heads, batch) with kPrefillWaveRows rows
// per wave. Launch nothing when one of the three is 0; keys may be 0.
//
// Strides are bytes. Columns of query, key, value and output are contiguous; their pointers and strides are
// multiples of 16, k_row and v_row below 2^25, bias_row below 2^26. Any of the pointers marked nullable may
// be null.
#pragma once

namespace zyfa {

constexpr unsigned kPrefillWaves = 8;
constexpr unsigned kPrefillWideWaves = 4;
constexpr unsigned kPrefillWaveRows = 32;

enum class OutputType : unsigned { bf16, f16, f32 };

struct Bf16PrefillArguments {
  const void* query;     // bfloat16 (batch, head, row, dim)
  const void* key;       // bfloat16 (batch, key head, key, dim)
  const void* value;     // bfloat16 (batch, key head, key, dim)
  void* output;          // (batch, head, row, dim)
  float* lse;            // nullable; (batch, head, row), rows contiguous
  const int* key_range;  // nullable; first visible key and one past the last, per batch
  const float* sinks;    // nullable; one logit per query head
  const void* key_mask;  // nullable; bytes (batch, key), nonzero = visible, keys contiguous
  const void* bias;      // nullable; (batch, head, row, key), added after scale and softcap
  long long q_batch, q_head, k_batch, k_head, v_batch, v_head, o_batch, o_head, lse_batch, lse_head;
  long long mask_batch, bias_batch, bias_head, bias_row;  // 0 where broadcast
  unsigned q_row, k_row, v_row, o_row;
  unsigned bias_column;       // the size of an element, or 0 where broadcast
  unsigned bias_is_float;     // 1: float, 0: bfloat16
  unsigned queries, keys;     // below 2^31
  unsigned group_reciprocal;  // ceil(2^32 / query heads per key head), 0 for one
  unsigned causal;            // 1: row i sees keys up to i + diagonal
  int diagonal;               // key position of row 0
  int window_left;            // keys to the left that stay visible besides the own one; negative: all
  float scale;                // of the scores, any sign, 0 too
  float softcap;              // 0: none
  OutputType output_type;
  unsigned reserved;  // 0
};

// Softcap, bias, and scales that cannot be folded into the factor of a difference of scores: those that are
// not positive, and those with which a score could overflow or a difference of -inf be multiplied by 0.
constexpr bool needs_general(const Bf16PrefillArguments& a) {
  return a.softcap != 0 || a.bias != nullptr || !(a.scale >= 1e-37f && a.scale <= 0.69f);
}

}  // namespace zyfa
