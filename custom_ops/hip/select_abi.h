/* A window into the choice of kernels for tests: plain C, built as libzyfa_select.so when ZYFA_BUILD_TESTS is
 * on.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Strides are batch, head, row, column in elements; words are numbers in the order of WORDS in
   kernels/select/problem.py. */
typedef struct {
  int64_t batch, q_heads, kv_heads, q_len, new_len, past_len, qk_dim, v_dim, window_left;
  int64_t query[4], key[4], value[4], output[4], bias[4];
  int64_t q_scale[2], k_scale[2], v_scale[2];
  float scale, softcap;
  int32_t is_causal, has_bias, sinks, lse, present_key, present_value;
  int32_t dtype, out_dtype, mask_dtype, precision, fp8_edges, rotation, causal_alignment, key_mask,
      byte_rounding;
  const char* architecture;
} zyfa_select_problem;

/* Writes the choice as kernels/select/choice.py prints it, or the refusal; returns its length, which may be
   more than `size`, negative for a refusal. */
int64_t zyfa_select(const zyfa_select_problem* problem, char* text, int64_t size);

/* The same for ZyfaQuantizeFp8 of x, and for ZyfaHadamard. */
int64_t zyfa_select_quantize(int64_t batch, int64_t heads, int64_t rows, int64_t dim, int32_t dtype,
                             int32_t bhsd, int32_t granularity, int32_t rotation, const char* architecture,
                             char* text, int64_t size);
int64_t zyfa_select_hadamard(int64_t count, int64_t dim, int32_t dtype, const char* architecture, char* text,
                             int64_t size);

#ifdef __cplusplus
}
#endif
