// Kernels that make no sense but many kinds of instructions: what clang emits must decode and come back.
#define GLOBAL __attribute__((global))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
typedef float f2 __attribute__((ext_vector_type(2)));
typedef float f4 __attribute__((ext_vector_type(4)));
typedef float f16v __attribute__((ext_vector_type(16)));
typedef _Float16 h2 __attribute__((ext_vector_type(2)));
typedef _Float16 h8 __attribute__((ext_vector_type(8)));
typedef __bf16 b2 __attribute__((ext_vector_type(2)));
typedef __bf16 b8 __attribute__((ext_vector_type(8)));
typedef int i4 __attribute__((ext_vector_type(4)));
typedef int i8v __attribute__((ext_vector_type(8)));
typedef short s2 __attribute__((ext_vector_type(2)));
typedef unsigned long long u64;
typedef long long i64;
extern "C" {
GLOBAL void saxpy(float* y, const float* x, float a, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
  if (i < n) y[i] = a * x[i] + y[i];
}
GLOBAL void dbl(double* y, const double* x, double a, int n) {
  int i = __builtin_amdgcn_workitem_id_x();
  for (int k = 0; k < n; ++k)
    y[i + k * 64] = x[i] / a + __builtin_sqrt(x[k]) + __builtin_fma(x[i], 1.0, a * 0.15915494309189532) -
                    (double)k + 2.5 * (double)(float)x[k];
}
GLOBAL void ints(int* y, const int* x, unsigned* u, u64* w, i64* z, int n) {
  int i = __builtin_amdgcn_workitem_id_x();
  y[i] = x[i] / n + x[i] % 7 + (x[i] >> (n & 31)) + __builtin_popcount(x[i]) + __builtin_clz(u[i] | 1) +
         __builtin_ctz(u[i] | 2) + __builtin_bitreverse32(u[i]);
  u[i] = u[i] / 3u + (u[i] << 3) + (u[i] & 0xff00ff) + ((u[i] * 77u) >> 5) +
         (unsigned)((u64)u[i] * 0x123456789ull >> 32);
  w[i] = w[i] * w[i + 1] + (w[i] >> (n & 63)) + (w[i] << 3) + w[i] / (u64)n;
  z[i] = z[i] / n + (z[i] >> (n & 63)) + (z[i] < n ? 5 : z[i + 1]);
}
GLOBAL void halves(h2* y, const h2* x, _Float16* s, int n) {
  int i = __builtin_amdgcn_workitem_id_x();
  y[i] = x[i] * x[i + 1] + y[i];
  y[i] += (h2){(_Float16)1.0, (_Float16)1.0};
  y[i + 64] = __builtin_elementwise_max(x[i], y[i]);
  s[i] = s[i] * s[i + 1] - s[n] + (_Float16)(float)n;
  s[i + 64] = (_Float16)(s[i] > s[n] ? 1.5f : 2.0f);
  s[i + 128] = __builtin_sqrtf16(s[i]) / s[n];
}
GLOBAL void shorts(s2* y, const s2* x, short* s, unsigned char* c, signed char* d) {
  int i = __builtin_amdgcn_workitem_id_x();
  y[i] = x[i] * y[i] + x[i + 1];
  y[i + 64] = x[i] << (s2){3, 2};
  s[i] = s[i] * s[i + 3] + 5;
  s[i + 64] = s[i] >> 2;
  c[i] = c[i] + c[i + 1];
  d[i] = d[i] * 3;
  c[i + 64] = d[i] < 4 ? c[i] : (unsigned char)s[i];
}
GLOBAL void bf(b2* y, const float* x, float* z, __bf16* q) {
  int i = __builtin_amdgcn_workitem_id_x();
  y[i] = (b2){(__bf16)x[i], (__bf16)x[i + 1]};
  z[i] = (float)q[i] * 2.0f;
  q[i] = (__bf16)(z[i] + 1.0f);
}
GLOBAL void pk(f2* y, const f2* x, float s) {
  int i = __builtin_amdgcn_workitem_id_x();
  y[i] = x[i] * y[i] + x[i + 1];
  y[i] = y[i] * 2.0f + 1.0f;
  y[i + 64] = x[i] * s + (f2){1.0f, 0.5f};
  y[i + 128] = -x[i] - y[i].yx;
}
GLOBAL void mma(f16v* d, f4* e, const h8* a, const b8* b, const i8v* p, int* sc, u64* l) {
  int i = __builtin_amdgcn_workitem_id_x();
  f16v acc = d[i];
  acc = __builtin_amdgcn_mfma_f32_32x32x16_f16(a[i], a[i + 1], acc, 0, 0, 0);
  acc = __builtin_amdgcn_mfma_f32_32x32x16_bf16(b[i], b[i + 1], acc, 0, 0, 0);
  acc = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(p[i], p[i + 1], acc, 0, 0, 1, sc[i], 2, sc[i + 1]);
  acc = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(p[i], p[i + 1], acc, 4, 2, 0, 0, 0, 0);
  acc = __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(l[i], l[i + 1], acc, 0, 0, 0);
  d[i] = acc;
  e[i] = __builtin_amdgcn_mfma_f32_16x16x32_f16(a[i], a[i + 1], (f4)0.0f, 0, 0, 0);
  e[i + 64] = __builtin_amdgcn_smfmac_f32_16x16x64_f16(
      a[i], __builtin_bit_cast(__attribute__((ext_vector_type(16))) _Float16, p[i]), e[i], sc[i], 0, 0);
}
GLOBAL void lds(float* y, const float* x, int n) {
  SHARED float t[4096];
  SHARED int at[4];
  SHARED double td[64];
  int i = __builtin_amdgcn_workitem_id_x();
  t[i] = x[i];
  t[i + 256] = x[i + 256];
  td[i & 63] = x[i];
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup");
  f4 v = *(f4*)&t[4 * (i & 63)];
  f2 w = *(f2*)&t[2 * i];
  y[i] = v.x + v.y + v.z + v.w + w.x + t[n + i] + t[n + i + 64 * 3] + (float)td[n & 63];
  __atomic_fetch_add(&at[0], i, __ATOMIC_RELAXED);
  __atomic_fetch_max(&at[1], i, __ATOMIC_RELAXED);
  __builtin_amdgcn_s_barrier();
  y[i + 256] = (float)(at[0] + at[1]);
  y[i + 512] = __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(4 * i, n));
  y[i + 513] = __builtin_bit_cast(float, __builtin_amdgcn_ds_swizzle(n * i, 0x401f));
}
GLOBAL void cross(int* y, const int* x, float* f, int n) {
  int i = __builtin_amdgcn_workitem_id_x();
  int v = x[i];
  v += __builtin_amdgcn_update_dpp(0, v, 0x111, 0xf, 0xf, true);
  v += __builtin_amdgcn_update_dpp(v, v, 0x142, 0xa, 0xf, false);
  v += __builtin_amdgcn_mov_dpp(v, 0xb1, 0xf, 0xf, true);
  v ^= __builtin_amdgcn_readfirstlane(v) + __builtin_amdgcn_readlane(v, n);
  u64 m = __builtin_amdgcn_ballot_w64(v > 3);
  y[i] = v + __builtin_amdgcn_mbcnt_hi(m >> 32, __builtin_amdgcn_mbcnt_lo(m, 0));
  auto sw = __builtin_amdgcn_permlane32_swap(v, y[i], false, true);
  y[i + 64] = sw[0] + sw[1];
  y[i + 128] = __builtin_amdgcn_perm(v, n, 0x07060302) + __builtin_amdgcn_alignbyte(v, n, 3) +
               __builtin_amdgcn_ubfe(v, 3, 5) + __builtin_amdgcn_sbfe(v, 7, 3);
  f[i] = __builtin_amdgcn_fmed3f(f[i], 1.0f, 0.0f) +
         __builtin_amdgcn_exp2f(f[i + 1]) * __builtin_amdgcn_rcpf(f[n]) + __builtin_amdgcn_logf(f[i + 2]) +
         __builtin_amdgcn_rsqf(f[i + 3]) + __builtin_amdgcn_sinf(f[i]) + __builtin_amdgcn_ldexpf(f[i], n) +
         __builtin_amdgcn_frexp_mantf(f[i]) + __builtin_amdgcn_fractf(f[i + 9]);
  f[i + 64] = f[i] / f[i + 1] + __builtin_floorf(f[i + 2]) + __builtin_fabsf(f[n]) + __builtin_truncf(f[5]) +
              __builtin_rintf(f[6 + i]) + __builtin_ceilf(f[i + 7]);
  f[i + 128] = __builtin_fmaxf(__builtin_fminf(f[i], 1.0f), 0.0f);
  y[i + 256] = (int)f[i] + (int)(unsigned)f[i + 3];
  y[i + 320] = __builtin_amdgcn_cvt_pk_fp8_f32(f[i], f[i + 1], 0, false);
  y[i + 321] = __builtin_amdgcn_cvt_pk_fp8_f32(f[i], f[i + 1], y[i], true);
  y[i + 322] = __builtin_amdgcn_cvt_sr_fp8_f32(f[i], n, y[i], 2);
  f2 u = __builtin_amdgcn_cvt_pk_f32_fp8(y[i], true);
  f[i + 192] = u.x + u.y + __builtin_amdgcn_cvt_f32_fp8(y[i], 3);
}
GLOBAL void atomics(int* y, float* f, double* d, u64* w) {
  int i = __builtin_amdgcn_workitem_id_x();
  __atomic_fetch_add(y, i, __ATOMIC_SEQ_CST);
  y[i] = __atomic_exchange_n(y + 1, i, __ATOMIC_ACQ_REL);
  int e = 3;
  __atomic_compare_exchange_n(y + 2, &e, i, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  y[i + 1] = e;
  __atomic_fetch_xor(w, (u64)i, __ATOMIC_RELAXED);
  w[i] = __atomic_fetch_or(w + 1, 7ull, __ATOMIC_RELAXED);
  __hip_atomic_fetch_add(f, 1.0f, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_add(d, 1.0, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
DEVICE __attribute__((noinline)) int callee(int* p, int n) {
  int s = 0;
  for (int i = 0; i < n; ++i) s += p[i] * i;
  return s;
}
GLOBAL void calls(int* y, int n) {
  int local[64];
  for (int i = 0; i < 64; ++i) local[i] = y[i];
  local[n & 63] = 5;
  y[n] = callee(local, n & 63) + callee(y, n);
}
GLOBAL void sw(int* y, int n) {
  int i = __builtin_amdgcn_workitem_id_x();
  switch (n) {
    case 0:
      y[i] = 3;
      break;
    case 1:
      y[i] *= 7;
      break;
    case 2:
      y[i] = y[i] ? 2 : y[i + 1];
      break;
    case 9:
      __builtin_trap();
    default:
      while (y[i] < n) y[i] += i + 1;
  }
}
GLOBAL void buf(f4* y, void* p, int n, int m) {
  auto r = __builtin_amdgcn_make_buffer_rsrc(p, 0, n, 0x20000);
  int i = __builtin_amdgcn_workitem_id_x();
  y[i] = __builtin_bit_cast(f4, __builtin_amdgcn_raw_buffer_load_b128(r, i * 16, m, 0));
  __builtin_amdgcn_raw_buffer_store_b32(n, r, i * 4, 0, 1);
  __builtin_amdgcn_raw_buffer_store_b8(n, r, i, m, 2);
  SHARED char t[4096];
  __builtin_amdgcn_raw_ptr_buffer_load_lds(r, (__attribute__((address_space(3))) void*)t, 16, i * 16, m, 64,
                                           0);
  __builtin_amdgcn_global_load_lds((__attribute__((address_space(1))) void*)p,
                                   (__attribute__((address_space(3))) void*)t, 16, 0, 0);
  __builtin_amdgcn_s_waitcnt(0);
  __builtin_amdgcn_s_setprio(2);
  __builtin_amdgcn_s_sleep(3);
  __builtin_amdgcn_sched_barrier(0);
  y[i + 64] = *(f4*)(t + i * 16);
  y[i + 128].x = (float)__builtin_readcyclecounter() + (float)__builtin_amdgcn_s_getreg(0x1801);
  __builtin_amdgcn_s_setreg(0x1801, n);
}
}
