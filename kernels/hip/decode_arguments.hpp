// Arguments of decode.hip's kernels, for device and host code.
#pragma once

namespace zyfa::kernels {

constexpr unsigned kDecodeItems = 256;

enum DecodeType : unsigned { kDecodeBf16 = 0, kDecodeF16 = 1, kDecodeF32 = 2, kDecodeE4m3 = 3 };

// decode_KV_DQK_DV_ROWS, then decode_combine, with the same arguments. Rows of a key head are (query head of
// its group, query): heads / kv_heads * queries of them, in tiles of ROWS = 16 or 32.
//   decode_*:       grid (splits, row tiles, batch * kv_heads), workgroups of kDecodeItems
//   decode_combine: grid (heads, queries, batch), workgroups of kDecodeItems
// Strides of q, k, v and out are in bytes and, for q, k and v, multiples of 16; those of scales are in
// floats.
struct DecodeArguments {
  const void *q, *k, *v;
  void* out;
  float* lse;                                // null, or (batch, heads, queries)
  const float *q_scale, *k_scale, *v_scale;  // null: 1
  const float* sinks;                        // null, or (heads)
  const int* key_range;                      // null, or first visible key and one past the last, per batch
  const unsigned char* key_mask;             // null, or (batch, key) bytes, nonzero = visible
  float* partial_out;                        // workspace: batch * heads * queries * splits * DV
  float* partial_sums;                       // workspace: batch * heads * queries * splits * 2
  long long q_batch, k_batch, k_head, v_batch, v_head, out_batch, out_head;
  long long mask_batch;
  unsigned q_head, q_row, k_row, v_row, out_row;
  unsigned q_scale_batch, q_scale_head, k_scale_batch, k_scale_head, v_scale_batch, v_scale_head;
  unsigned heads, kv_heads, queries, keys;  // keys < 2^31
  int diagonal;                             // position of the first query: keys - queries, or 0
  unsigned causal;                          // keys after the query's position are invisible
  int window_left;                          // -1: none
  float scale;
  unsigned v_dim;  // DV
  unsigned splits;
  unsigned q_type;    // bf16; with an e4m3 cache e4m3 too
  unsigned out_type;  // f32, f16 or bf16
};
static_assert(sizeof(DecodeArguments) == 264, "host and device read the same bytes");

}  // namespace zyfa::kernels
