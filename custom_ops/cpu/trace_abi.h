/* A window into the CPU kernel for tests: plain C, built as libzyfa_cpu_trace.so when ZYFA_BUILD_TESTS is on.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The FP8 path on float inputs, contiguous (batch, heads, rows, dim); text attributes as in the operator. */
typedef struct {
  int64_t batch, num_heads, kv_num_heads, q_len, kv_len, qk_dim, v_dim;
  float scale;
  int32_t is_causal;
  int32_t top_left; /* causal_alignment is "top_left" */
  int64_t window_left;
  const char* fp8_edges;
  const char* rotation;
} zyfa_trace_problem;

/* One row in one tile: probability[c] is the rounded P of key 64 * tile + c, in units of 2^d, 0 for invisible
   keys. In a lean tile it is the value of an e4m3 code, in a two-term tile hi + lo / 16. Calls come in the
   order of computation. */
typedef void (*zyfa_trace_row_tile)(void* user, int64_t batch, int64_t head, int64_t row, int64_t tile,
                                    int32_t is_edge, float m, int32_t d, const float* probability);

/* Runs on the calling thread. `key_mask` is (batch, kv_len) bytes or null, `sinks` (num_heads) or null;
   `output` is (batch, num_heads, q_len, v_dim), `lse` (batch, num_heads, q_len). Returns 0, or 1 with a
   message in `error`. */
int zyfa_trace_fp8(const zyfa_trace_problem* problem, const float* q, const float* k, const float* v,
                   const uint8_t* key_mask, const float* sinks, zyfa_trace_row_tile callback, void* user,
                   float* output, float* lse, char* error, int64_t error_size);

/* Name of the instruction set that was chosen. */
const char* zyfa_trace_isa(void);

#ifdef __cplusplus
}
#endif
