// What random programs are made of: one source for gfx950 and for the host. Every operation is defined for
// all operands, so that two right compilers on two right machines agree bit by bit (NaN payloads aside: see
// bits_of).
#pragma clang diagnostic ignored "-Weverything"
#ifdef __AMDGCN__
#define DEVICE __attribute__((device))
#else
#define DEVICE
#endif
#define INLINE DEVICE static inline __attribute__((always_inline))
#define CALLED DEVICE static __attribute__((noinline))

using i8 = signed char;
using u8 = unsigned char;
using i16 = short;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned;
using i64 = long long;
using u64 = unsigned long long;
using f16 = _Float16;
using bf16 = __bf16;
using f32 = float;
using f64 = double;
template <class T, int N>
using vec = T __attribute__((ext_vector_type(N)));
using i16x2 = vec<i16, 2>;
using u16x2 = vec<u16, 2>;
using f16x2 = vec<f16, 2>;
using f16x4 = vec<f16, 4>;
using bf16x2 = vec<bf16, 2>;
using f32x2 = vec<f32, 2>;
using f32x4 = vec<f32, 4>;
using f64x2 = vec<f64, 2>;
using i32x2 = vec<i32, 2>;
using u8x4 = vec<u8, 4>;
using u64x2 = vec<u64, 2>;

template <class T>
constexpr bool is_signed = T(-1) < T(0);
template <class T>
constexpr int bits = 8 * sizeof(T);
template <class T>
struct Unsigned {
  using type = __make_unsigned(T);
};
template <class T>
using U = typename Unsigned<T>::type;
// Arithmetic that wraps: u32 for what C would promote to int.
template <class T>
struct Wide {
  using type = u32;
};
template <>
struct Wide<i64> {
  using type = u64;
};
template <>
struct Wide<u64> {
  using type = u64;
};
template <class T>
using W = typename Wide<T>::type;
template <class T>
constexpr T least = is_signed<T> ? T(U<T>(1) << (bits<T> - 1)) : T(0);

// ---- integers
#define OP1(name)    \
  template <class T> \
  INLINE T name(T a)
#define OP2(name)    \
  template <class T> \
  INLINE T name(T a, T b)
#define OP3(name)    \
  template <class T> \
  INLINE T name(T a, T b, T c)
OP2(add) { return T(W<T>(a) + W<T>(b)); }
OP2(sub) { return T(W<T>(a) - W<T>(b)); }
OP2(mul) { return T(W<T>(a) * W<T>(b)); }
OP2(band) { return T(a & b); }
OP2(bor) { return T(a | b); }
OP2(bxor) { return T(a ^ b); }
OP2(bandn) { return T(a & ~b); }
OP2(born) { return T(a | ~b); }
OP2(bxnor) { return T(~(a ^ b)); }
OP2(quotient) { return b == 0 || (is_signed<T> && a == least<T> && b == T(-1)) ? a : T(a / b); }
OP2(remainder) { return b == 0 || (is_signed<T> && b == T(-1)) ? T(1) : T(a % b); }
OP2(shl) { return T(W<T>(a) << (b & (bits<T> - 1))); }
OP2(shr) { return T(a >> (b & (bits<T> - 1))); }
OP2(lshr) { return T(U<T>(a) >> (b & (bits<T> - 1))); }
OP3(funnel) {
  const u32 s = u32(c & (bits<T> - 1)) | 1;
  return T((W<T>(U<T>(a)) << s) | (U<T>(b) >> (bits<T> - s)));
}
OP2(rotate) {
  if constexpr (bits<T> == 8) return T(__builtin_rotateleft8(u8(a), u8(b)));
  if constexpr (bits<T> == 16) return T(__builtin_rotateleft16(u16(a), u16(b)));
  if constexpr (bits<T> == 32) return T(__builtin_rotateright32(u32(a), u32(b)));
  if constexpr (bits<T> == 64) return T(__builtin_rotateright64(u64(a), u64(b)));
}
OP2(least_of) { return a < b ? a : b; }
OP2(most_of) { return a > b ? a : b; }
OP3(clamped) { return most_of(least_of(a, most_of(b, c)), least_of(b, c)); }
OP3(median) { return most_of(least_of(a, b), least_of(most_of(a, b), c)); }
OP3(most_of_three) { return most_of(most_of(a, b), c); }
OP3(least_of_three) { return least_of(least_of(a, b), c); }
OP2(add_saturated) { return __builtin_elementwise_add_sat(a, b); }
OP2(sub_saturated) { return __builtin_elementwise_sub_sat(a, b); }
OP2(distance) { return a > b ? sub(a, b) : sub(b, a); }
OP3(sad) { return add(distance(a, b), c); }
OP3(multiply_add) { return add(mul(a, b), c); }
OP3(add_three) { return add(add(a, b), c); }
OP3(shift_add) { return add(shl(a, b), c); }
OP3(add_shift) { return shl(add(a, b), c); }
OP3(shift_or) { return bor(shl(a, b), c); }
OP3(and_or) { return T((a & b) | c); }
OP3(insert) { return T((a & b) | (~a & c)); }
OP3(parity) { return T(a ^ b ^ c); }
OP3(majority) { return T((a & b) | (a & c) | (b & c)); }
OP3(extract) {
  const u32 at = u32(b & (bits<T> - 1)), width = u32(c & (bits<T> - 1));
  return T((U<T>(a) >> at) & ((W<T>(1) << width) - 1));
}
OP2(extract_signed) {
  const u32 width = u32(b & (bits<T> / 2 - 1)) + 1;
  using S = __make_signed(T);
  return T(S(shl(a, T(bits<T> - width))) >> (bits<T> - width));
}
OP2(multiply_high) {
  if constexpr (bits<T> == 64) {
    if constexpr (is_signed<T>) return T((__int128(a) * b) >> 64);
    return T(((unsigned __int128)(a)*b) >> 64);
  } else {
    using D = __remove_reference_t(decltype(is_signed<T> ? i64(a) : u64(a)));
    if constexpr (is_signed<T>) return T((i64(a) * i64(b)) >> bits<T>);
    return T((u64(a) * u64(b)) >> bits<T>);
  }
}
OP3(multiply_add_24) {
  if constexpr (is_signed<T>) {
    const i64 x = i32(u32(a) << 8) >> 8, y = i32(u32(b) << 8) >> 8;
    return add(T(x * y), c);
  }
  return add(T(u64(a & T(0xffffff)) * u64(b & T(0xffffff))), c);
}
OP2(multiply_high_24) { return T((u64(u32(a) & 0xffffff) * u64(u32(b) & 0xffffff)) >> 32); }
OP1(negated) { return T(-W<T>(a)); }
OP1(inverted) { return T(~a); }
OP1(magnitude) { return a < 0 ? negated(a) : a; }
OP1(ones) { return T(__builtin_popcountg(U<T>(a))); }
OP1(leading) { return T(__builtin_clzg(U<T>(a), 77)); }
OP1(trailing) { return T(__builtin_ctzg(U<T>(a), 78)); }
OP1(leading_signs) { return T(__builtin_clzg(U<T>(a ^ (a >> (bits<T> - 1))), bits<T>)); }
OP1(reversed) {
  if constexpr (bits<T> == 8) return T(__builtin_bitreverse8(a));
  if constexpr (bits<T> == 16) return T(__builtin_bitreverse16(a));
  if constexpr (bits<T> == 32) return T(__builtin_bitreverse32(a));
  if constexpr (bits<T> == 64) return T(__builtin_bitreverse64(a));
}
OP1(swapped) {
  if constexpr (bits<T> == 8) return a;
  if constexpr (bits<T> == 16) return T(__builtin_bswap16(a));
  if constexpr (bits<T> == 32) return T(__builtin_bswap32(a));
  if constexpr (bits<T> == 64) return T(__builtin_bswap64(a));
}
// Bytes of a and b in another order, as v_perm_b32 takes them.
template <int SEED, class T>
INLINE T bytes_of(T a, T b) {
  U<T> result = 0;
  for (int i = 0; i < int(sizeof(T)); ++i) {
    const int from = (SEED >> (4 * i)) & 15, at = 8 * (from & (sizeof(T) - 1));
    if (from == 15) continue;
    result |= U<T>(U<T>(U<T>(from & 8 ? b : a) >> at) & 255) << (8 * i);
  }
  return T(result);
}
template <u64 N, class T>
INLINE T divided_by(T a) {
  constexpr T n = T(N) == 0 || T(N) == T(-1) ? T(3) : T(N);
  return T(a / n);
}
template <u64 N, class T>
INLINE T modulo(T a) {
  constexpr T n = T(N) == 0 || T(N) == T(-1) ? T(7) : T(N);
  return T(a % n);
}

// ---- floats
INLINE f32 f(f32 a) { return a; }
OP2(fadd) { return T(a + b); }
OP2(fsub) { return T(a - b); }
OP2(fmul) { return T(a * b); }
OP2(fdiv) { return T(a / b); }
OP1(fneg) { return T(-a); }
OP1(fabs) { return __builtin_elementwise_abs(a); }
#ifdef __AMDGCN__
OP3(fused) { return T(__builtin_elementwise_fma(a, b, c)); }
#else
OP3(fused) { return T(__builtin_elementwise_fma(a, b, c)); }
// Through float the host would round twice: round to odd in double first. The product is exact.
template <class H>
INLINE H fused_small(H a, H b, H c) {
  const f64 p = f64(f32(a)) * f64(f32(b)), q = f32(c), s = p + q, t = s - p;
  const f64 lost = (p - (s - t)) + (q - t);
  u64 u = __builtin_bit_cast(u64, s);
  if (lost == lost && lost != 0 && s - s == 0 && !(u & 1)) u += (lost > 0) == (s > 0) ? 1 : -1;
  return H(__builtin_bit_cast(f64, u));
}
template <>
inline f16 fused(f16 a, f16 b, f16 c) {
  return fused_small(a, b, c);
}
template <>
inline f16x2 fused(f16x2 a, f16x2 b, f16x2 c) {
  return f16x2{fused_small<f16>(a[0], b[0], c[0]), fused_small<f16>(a[1], b[1], c[1])};
}
template <>
inline f16x4 fused(f16x4 a, f16x4 b, f16x4 c) {
  return f16x4{fused_small<f16>(a[0], b[0], c[0]), fused_small<f16>(a[1], b[1], c[1]),
               fused_small<f16>(a[2], b[2], c[2]), fused_small<f16>(a[3], b[3], c[3])};
}
#endif
OP1(square_root) { return T(__builtin_elementwise_sqrt(a)); }
OP1(down) { return T(__builtin_elementwise_floor(a)); }
OP1(up) { return T(__builtin_elementwise_ceil(a)); }
OP1(cut) { return T(__builtin_elementwise_trunc(a)); }
OP1(even) { return T(__builtin_elementwise_roundeven(a)); }
OP1(nearest) { return T(__builtin_elementwise_round(a)); }
OP1(fraction) { return T(a - __builtin_elementwise_floor(a)); }
OP2(fminimum) { return __builtin_elementwise_minimum(a, b); }
OP2(fmaximum) { return __builtin_elementwise_maximum(a, b); }
OP3(fminimum_of_three) { return fminimum(fminimum(a, b), c); }
OP3(fmaximum_of_three) { return fmaximum(fmaximum(a, b), c); }
OP2(fleast) { return a < b ? a : b; }
OP2(fmost) { return a > b ? a : b; }
// The sign of a zero, and which zero minNum takes, are free.
OP2(fmin_number) { return a == 0 && b == 0 ? T(a + b) : T(__builtin_fmin(f64(a), f64(b))); }
OP2(fmin_same) { return a == 0 && b == 0 ? T(a + b) : T(__builtin_elementwise_min(a, b)); }
OP2(fmax_same) { return a == 0 && b == 0 ? T(a + b) : T(__builtin_elementwise_max(a, b)); }
OP3(fmedian) {
  if (a != a || b != b || c != c || a == 0 || b == 0 || c == 0) return T(0);
  return fmax_same(fmin_same(a, b), fmin_same(fmax_same(a, b), c));
}
OP2(with_sign) { return b != b ? a : T(__builtin_elementwise_copysign(a, b)); }
OP1(reciprocal) { return T(T(1) / a); }
OP3(muladd) { return T(T(a * b) + c); }
OP2(saturated) { return T(fleast(fmost(T(a * b), T(0)), T(1))); }
OP1(doubled) { return T(a + a); }
OP2(scaled_half) { return T(T(a + b) * T(0.5)); }
OP2(fsquare) { return T(T(a - b) * T(-4)); }

template <class T>
INLINE T scaled(T a, i32 n) {
  n = n % 3000;
  if constexpr (sizeof(T) == 8) return __builtin_ldexp(a, n);
  if constexpr (sizeof(T) == 4) return __builtin_ldexpf(a, n);
  return a;
}
template <class T>
INLINE T mantissa(T a) {
  int e = 0;
  if (!(a - a == 0)) return a;
  if constexpr (sizeof(T) == 8) return __builtin_frexp(a, &e);
  if constexpr (sizeof(T) == 4) return __builtin_frexpf(a, &e);
  return a;
}
template <class T>
INLINE i32 exponent(T a) {
  int e = 0;
  if (!(a - a == 0)) return 0;
  if constexpr (sizeof(T) == 8) __builtin_frexp(a, &e);
  if constexpr (sizeof(T) == 4) __builtin_frexpf(a, &e);
  return e;
}
template <int MASK, class T>
INLINE bool is_class(T a) {
  return __builtin_isfpclass(a, MASK);
}

// ---- conversions
template <class T, class F>
INLINE T to_integer(F a) {
  constexpr f64 low = is_signed<T> ? -f64(u64(1) << (bits<T> - 1)) : -1.0,
                high = bits<T> == 64 ? (is_signed<T> ? 0x1p63 : 0x1p64)
                                     : f64(u64(1) << (bits<T> - is_signed<T>));
  // F's own limits: 65504 for f16.
  if constexpr (sizeof(F) == 2) {
    const f32 x = f32(a);
    return x < f32(high) && (x > f32(low) || (is_signed<T> && x >= f32(low))) ? T(a) : T(3);
  } else {
    return a < F(high) && (a > F(low) || (is_signed<T> && a >= F(low))) ? T(a) : T(3);
  }
}
template <class T, class I>
INLINE T to_float(I a) {
  // 64 bits to 16: both compilers go through another type, which one is theirs to choose.
  if constexpr (sizeof(T) == 2 && sizeof(I) > 2) return T(f32(a));
  return T(a);
}
template <class T, class F>
INLINE T convert(F a) {
  if constexpr (sizeof(T) == 2 && sizeof(F) == 2)
    return T(f32(a));
  else
    return T(a);
}
template <class T>
INLINE T quiet(T a) {
  return a != a ? T(__builtin_nanf("")) : a;
}
template <class T>
INLINE u64 bits_of(T a) {
  if constexpr (T(0.5) != T(0)) {
    if (a != a) return 0x7ff8;
    if constexpr (sizeof(T) == 2) return __builtin_bit_cast(u16, a);
    if constexpr (sizeof(T) == 4) return __builtin_bit_cast(u32, a);
    if constexpr (sizeof(T) == 8) return __builtin_bit_cast(u64, a);
  } else {
    return u64(a);
  }
}
template <class T>
INLINE T from_bits(u64 a) {
  if constexpr (T(0.5) == T(0)) return T(a);
  if constexpr (T(0.5) != T(0)) {
    if constexpr (sizeof(T) == 2) return quiet(__builtin_bit_cast(T, u16(a)));
    if constexpr (sizeof(T) == 4) return quiet(__builtin_bit_cast(T, u32(a)));
    if constexpr (sizeof(T) == 8) return quiet(__builtin_bit_cast(T, a));
  }
}
template <class T>
INLINE T blend(bool c, T a, T b) {
  return c ? a : b;
}

#ifndef __AMDGCN__
// What compiler-rt would bring: rounding to nearest even, once.
extern "C" {
static u64 rounded_bits(u64 mantissa, int drop) {
  if (drop > 63) return 0;
  const u64 rest = mantissa & ((u64(1) << drop) - 1), half = u64(1) << (drop - 1);
  mantissa >>= drop;
  return mantissa + (rest > half || (rest == half && (mantissa & 1)));
}
// Any double to a format of 16 bits with this many mantissa bits.
static u16 narrow(f64 a, int mantissa_bits) {
  const u64 u = __builtin_bit_cast(u64, a), fraction = u & 0xfffffffffffff;
  const int exponent_bits = 15 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const u16 sign = u16(u >> 48 & 0x8000), infinity = u16(((1 << exponent_bits) - 1) << mantissa_bits);
  int e = int(u >> 52 & 0x7ff);
  if (e == 0x7ff) return sign | infinity | (fraction ? 1 << (mantissa_bits - 1) : 0);
  if (e == 0) return sign;
  e += bias - 1023;
  const u64 m = fraction | u64(1) << 52;
  if (e <= 0) return sign | u16(rounded_bits(m, 52 - mantissa_bits + 1 - e));
  const u64 r = (u64(e - 1) << mantissa_bits) + rounded_bits(m, 52 - mantissa_bits);
  return sign | (r >= infinity ? infinity : u16(r));
}
__attribute__((visibility("hidden"))) bf16 __truncsfbf2(f32 a) {
  return __builtin_bit_cast(bf16, narrow(a, 7));
}
__attribute__((visibility("hidden"))) bf16 __truncdfbf2(f64 a) {
  return __builtin_bit_cast(bf16, narrow(a, 7));
}
__attribute__((visibility("hidden"))) f16 __truncdfhf2(f64 a) {
  return __builtin_bit_cast(f16, narrow(a, 10));
}
}
#endif
// Signed vectors must not overflow either.
template <>
struct Unsigned<i16x2> {
  using type = u16x2;
};
template <>
struct Unsigned<i32x2> {
  using type = vec<u32, 2>;
};
template <>
struct Unsigned<u16x2> {
  using type = u16x2;
};
template <>
struct Unsigned<u8x4> {
  using type = u8x4;
};
template <>
struct Unsigned<u64x2> {
  using type = u64x2;
};
#define AS_UNSIGNED(a) __builtin_bit_cast(U<T>, a)
OP2(vadd) { return __builtin_bit_cast(T, AS_UNSIGNED(a) + AS_UNSIGNED(b)); }
OP2(vsub) { return __builtin_bit_cast(T, AS_UNSIGNED(a) - AS_UNSIGNED(b)); }
OP2(vmul) { return __builtin_bit_cast(T, AS_UNSIGNED(a) * AS_UNSIGNED(b)); }
OP2(vand) { return a & b; }
OP2(vor) { return a | b; }
OP2(vxor) { return a ^ b; }
OP3(vmuladd) { return vadd(vmul(a, b), c); }
OP2(least_of_v) { return __builtin_elementwise_min(a, b); }
OP2(most_of_v) { return __builtin_elementwise_max(a, b); }
