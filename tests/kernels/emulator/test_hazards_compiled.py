"""What clang emits keeps every wait-state rule: its hazard recogniser is a second witness of ours."""

from __future__ import annotations

from zyfa_ort.kernels.asm.assemble import compile_hip
from zyfa_ort.kernels.emulator import lint

HIP = """
#define __global__ __attribute__((global))
typedef float f4 __attribute__((ext_vector_type(4)));
typedef float f16 __attribute__((ext_vector_type(16)));
typedef double d4 __attribute__((ext_vector_type(4)));
typedef _Float16 h4 __attribute__((ext_vector_type(4)));
typedef __bf16 b8 __attribute__((ext_vector_type(8)));
typedef int i4 __attribute__((ext_vector_type(4)));
typedef int i8 __attribute__((ext_vector_type(8)));
#define LANE int t = __builtin_amdgcn_workitem_id_x();
extern "C" __global__ void softmax(b8* k, b8* q, float* o) {
  LANE f16 acc = {0};
  float m = -1e30f, l = 0;
  for (int i = 0; i < 8; i++) {
    f16 s = {0};
    for (int j = 0; j < 4; j++)
      s = __builtin_amdgcn_mfma_f32_32x32x16_bf16(k[i * 256 + j * 64 + t], q[j * 64 + t], s, 0, 0, 0);
    float mx = m;
    for (int r = 0; r < 16; r++) mx = __builtin_fmaxf(mx, s[r]);
    auto w = __builtin_amdgcn_permlane32_swap(__builtin_bit_cast(int, mx), __builtin_bit_cast(int, mx), false, false);
    mx = __builtin_fmaxf(__builtin_bit_cast(float, w[0]), __builtin_bit_cast(float, w[1]));
    float f = __builtin_amdgcn_exp2f(m - mx);
    m = mx;
    b8 p0, p1;
    for (int r = 0; r < 16; r++) {
      float e = __builtin_amdgcn_exp2f(s[r] - mx);
      l = l * f + e;
      if (r < 8) p0[r] = (__bf16)e; else p1[r - 8] = (__bf16)e;
    }
    acc *= f;
    acc = __builtin_amdgcn_mfma_f32_32x32x16_bf16(k[i * 7 + t], p0, acc, 0, 0, 0);
    acc = __builtin_amdgcn_mfma_f32_32x32x16_bf16(k[i * 9 + t], p1, acc, 0, 0, 0);
  }
  for (int r = 0; r < 16; r++) o[t * 16 + r] = acc[r] / l;
}
extern "C" __global__ void scaled(i8* a, i8* b, f16* o) {
  LANE f16 c = {0};
  for (int i = 0; i < 8; i++)
    c = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(a[i * 64 + t], b[i * 64 + t], c, 0, 0, 0, t, 0, t);
  o[t] = c * 2.f;
}
extern "C" __global__ void shapes(h4* h, float* s, double* d, f4* o, d4* e) {
  LANE f4 c = o[t];
  c = __builtin_amdgcn_mfma_f32_4x4x4f16(h[t], h[t + 1], c, 0, 0, 0);
  o[t + 64] = c + 1.f;
  c = __builtin_amdgcn_mfma_f32_16x16x4f32(s[t], s[t + 1], o[t + 9], 0, 0, 0);
  o[t + 128] = __builtin_amdgcn_mfma_f32_16x16x4f32(c.x, s[t + 1], c, 0, 0, 0);
  e[t] = __builtin_amdgcn_mfma_f64_16x16x4f64(d[t], d[t + 1], e[t], 0, 0, 0) * 2.;
  d[t] = __builtin_amdgcn_mfma_f64_4x4x4f64(d[t + 3], d[t + 2], d[t], 0, 0, 0);
}
extern "C" __global__ void sparse(i4* a, i8* b, f4* o) {
  LANE f4 c = o[t];
  c = __builtin_amdgcn_smfmac_f32_16x16x128_fp8_fp8(a[t], b[t], c, t, 0, 0);
  o[t] = __builtin_amdgcn_smfmac_f32_16x16x128_fp8_fp8(a[t + 64], b[t + 64], c, t, 0, 0) + 1.f;
}
extern "C" __global__ void lanes(int* a, double* d, float* f) {
  LANE int x = a[t];
  for (int i = 0; i < 64; i++) {
    int s = __builtin_amdgcn_readlane(x, (a[i] + i) & 63);
    if (s > x) x += s * 3;
  }
  a[t] = x + __builtin_amdgcn_update_dpp(x, t * 3, 0x111, 15, 15, false);
  d[t] = d[t + 1] / d[t + 2];
  f[t] = f[t + 1] / f[t + 2] + __builtin_sqrtf(f[t + 3]);
  __builtin_amdgcn_s_setreg(2049, 3);
  a[t + 1] = __builtin_amdgcn_s_getreg(2049) + __builtin_amdgcn_sdot4(a[t + 7], a[t + 8], x, false);
  int low = __builtin_amdgcn_cvt_pk_fp8_f32(f[t + 2], f[t], 0, false);
  a[t + 2] = __builtin_amdgcn_cvt_pk_fp8_f32(f[t], f[t + 1], low, true) + 5;
}
"""


def test_what_the_compiler_emits_breaks_no_rule() -> None:
    errors = [f for f in lint(compile_hip(HIP)) if f.severity == "error"]
    assert errors == [], [str(f) for f in errors]
