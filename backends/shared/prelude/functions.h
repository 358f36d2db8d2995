// The functions of the language in C++: those that kernels call in inner loops have no branch that
// a compiler cannot turn into a selection, so that it vectorises them.
#ifndef BACKENDS_SHARED_PRELUDE_FUNCTIONS_H_
#define BACKENDS_SHARED_PRELUDE_FUNCTIONS_H_

#include <stdint.h>

using i64 = int64_t;
using i32 = int32_t;
using i16 = int16_t;
using i8 = int8_t;
using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using Index = i64;

constexpr double inf = __builtin_inf();

namespace fn {

constexpr float kNan = __builtin_nanf("");
constexpr float kInfinity = __builtin_inff();

inline u32 bits(float x) { return __builtin_bit_cast(u32, x); }
inline float from_bits(u32 x) { return __builtin_bit_cast(float, x); }

// The upper 16 bits, rounded to the nearest, ties to even; a NaN stays one.
inline u16 bf16_bits(float x) {
  const u32 b = bits(x);
  const u32 rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
  return u16(x != x ? (b >> 16) | 0x40u : rounded);
}

// To the nearest, ties to even. Compilers vectorise this, and not the cast to _Float16.
inline u16 f16_bits(float x) {
  const u32 b = bits(x), magnitude = b & 0x7fffffffu;
  const u32 large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;  // 65536 and above, NaN
  const u32 small = bits(from_bits(magnitude) + 0.5f) - 0x3f000000u;  // subnormal: the adder rounds
  const u32 usual = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const u32 finite = magnitude < 0x38800000u ? small : usual;
  return u16((magnitude >= 0x47800000u ? large : finite) | ((b >> 16) & 0x8000u));
}

inline float round_tf32(float x) {
  const u32 b = bits(x);
  const u32 rounded = (b + 0xfffu + ((b >> 13) & 1u)) & ~0x1fffu;
  return (b & 0x7f800000u) == 0x7f800000u ? x : from_bits(rounded);
}

// Cut toward zero; what the type does not hold becomes its end, NaN becomes 0.
inline i32 i32_from(float x) {
  const float clamped = x > -2147483648.0f ? (x < 2147483648.0f ? x : 0.0f) : 0.0f;
  return x >= 2147483648.0f ? INT32_MAX : x <= -2147483648.0f ? INT32_MIN : i32(clamped);
}
inline i64 i64_from(float x) {
  const float clamped = x > -0x1p63f ? (x < 0x1p63f ? x : 0.0f) : 0.0f;
  return x >= 0x1p63f ? INT64_MAX : x <= -0x1p63f ? INT64_MIN : i64(clamped);
}

inline float abs(float x) { return __builtin_fabsf(x); }
inline float floor(float x) { return __builtin_floorf(x); }
inline float ceil(float x) { return __builtin_ceilf(x); }
inline float round(float x) { return __builtin_rintf(x); }
inline float trunc(float x) { return __builtin_truncf(x); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
inline bool isnan(float x) { return x != x; }
inline bool isinf(float x) { return __builtin_fabsf(x) == kInfinity; }
inline bool isfinite(float x) { return __builtin_fabsf(x) < kInfinity; }
inline i32 abs(i32 x) { return x < 0 ? -x : x; }
inline i64 abs(i64 x) { return x < 0 ? -x : x; }

// A NaN among the operands is the result.
template <class T>
inline T minimum(T a, T b) {
  return (a != a) | (a < b) ? a : b;
}
template <class T>
inline T maximum(T a, T b) {
  return (a != a) | (a > b) ? a : b;
}
template <class T>
inline T relu(T x) {
  return maximum(x, T(0));
}
template <class T>
inline T square(T x) {
  return x * x;
}
template <class T>
inline T sign(T x) {
  return T((x > T(0)) - (x < T(0)));
}

// Cody and Waite's reduction, Cephes' polynomial; two factors, so that subnormal results are right.
inline float exp(float x) {
  const float low = x < -105.0f ? -105.0f : x;
  const float c = low > 89.0f ? 89.0f : low;
  const float n = __builtin_rintf(c * 1.44269504f);
  const float r = (c - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const i32 whole = i32(x != x ? 0.0f : n), half = whole >> 1;
  const float first = from_bits(u32(half + 127) << 23);
  const float second = from_bits(u32(whole - half + 127) << 23);
  return p * first * second;
}

inline float log(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float scaled = tiny ? x * 8388608.0f : x;
  const u32 b = bits(scaled);
  const u32 shifted = b - 0x3f3504f3u;  // so that the significand is in [sqrt(1/2), sqrt(2))
  const float e = float(i32(shifted) >> 23) - (tiny ? 23.0f : 0.0f);
  const float m = from_bits((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const float found = (m + (p * m * z - 2.12194440e-4f * e - 0.5f * z)) + 0.693359375f * e;
  const float zero = x == 0.0f ? -kInfinity : found;
  const float negative = x < 0.0f ? kNan : zero;
  return (x != x) | (x == kInfinity) ? x : negative;
}

// A rational function on [-9, 9], beyond which it is 1 to the last place.
inline float tanh(float x) {
  const float low = x < -9.0f ? -9.0f : x;
  const float c = low > 9.0f ? 9.0f : low, s = c * c;
  float p = -2.76076847742355e-16f;
  p = p * s + 2.00018790482477e-13f;
  p = p * s - 8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * s + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  return __builtin_fabsf(x) < 4e-4f ? x : c * p / q;
}

inline float erf(float x) {
  const float low = x < -4.0f ? -4.0f : x;
  const float c = low > 4.0f ? 4.0f : low, s = c * c;
  float p = -2.72614225801306e-10f;
  p = p * s + 2.77068142495902e-08f;
  p = p * s - 2.10102402082508e-06f;
  p = p * s - 5.69250639462346e-05f;
  p = p * s - 7.34990630326855e-04f;
  p = p * s - 2.95459980854025e-03f;
  p = p * s - 1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * s - 2.13374055278905e-04f;
  q = q * s - 1.68282697438203e-03f;
  q = q * s - 7.37332916720468e-03f;
  q = q * s - 1.42647390514189e-02f;
  return c * p / q;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + fn::exp(-x)); }
inline float silu(float x) { return x / (1.0f + fn::exp(-x)); }
// erfc of t >= 0, to 2e-6 of its size: exp(-t * t) times a polynomial of 1 / (1 + t / 2), fitted to
// the logarithm.
inline float erfc_positive(float t) {
  const float u = 1.0f / (1.0f + 0.5f * t);
  float p = 0.174835691f;
  p = p * u - 0.837345269f;
  p = p * u + 1.50995309f;
  p = p * u - 1.14593276f;
  p = p * u + 0.274354249f;
  p = p * u - 0.177689017f;
  p = p * u + 0.0921446996f;
  p = p * u + 0.375318596f;
  p = p * u + 0.999865375f;
  p = p * u - 1.26550444f;
  return u * fn::exp(p - t * t);
}

// 1 + erf(x) would cancel for negative x. A large x is clamped, as infinity times 0 is NaN; that is
// the value of minus infinity, as in PyTorch.
inline float gelu(float x) {
  const float size = x < 0.0f ? -x : x, a = x > 19.0f ? 19.0f : size;
  return (x > 0.0f ? x : 0.0f) - 0.5f * a * erfc_positive(a * 0.70710678f);
}

// Those of the compiler's library: right, and not vectorised.
inline float exp2(float x) { return __builtin_exp2f(x); }
inline float expm1(float x) { return __builtin_expm1f(x); }
inline float log2(float x) { return __builtin_log2f(x); }
inline float log10(float x) { return __builtin_log10f(x); }
inline float log1p(float x) { return __builtin_log1pf(x); }
inline float erfc(float x) { return __builtin_erfcf(x); }
inline float sin(float x) { return __builtin_sinf(x); }
inline float cos(float x) { return __builtin_cosf(x); }
inline float tan(float x) { return __builtin_tanf(x); }
inline float asin(float x) { return __builtin_asinf(x); }
inline float acos(float x) { return __builtin_acosf(x); }
inline float atan(float x) { return __builtin_atanf(x); }
inline float sinh(float x) { return __builtin_sinhf(x); }
inline float cosh(float x) { return __builtin_coshf(x); }
inline float asinh(float x) { return __builtin_asinhf(x); }
inline float acosh(float x) { return __builtin_acoshf(x); }
inline float atanh(float x) { return __builtin_atanhf(x); }
inline float atan2(float a, float b) { return __builtin_atan2f(a, b); }
inline float pow(float a, float b) { return __builtin_powf(a, b); }
inline float fmod(float a, float b) { return __builtin_fmodf(a, b); }

// As Python does it: what is left has the sign of the divisor.
inline float mod(float a, float b) {
  const float rest = __builtin_fmodf(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
inline float floordiv(float a, float b) {
  if (b == 0) return a / b;
  const float rest = __builtin_fmodf(a, b);
  const bool opposite = rest != 0 && (rest < 0) != (b < 0);
  const float quotient = (a - rest) / b - (opposite ? 1.0f : 0.0f);
  const float low = __builtin_floorf(quotient);
  return quotient - low > 0.5f ? low + 1 : low;
}

// Of integers: a division by zero gives 0, as a trap would end the process.
template <class T>
inline T floordiv(T a, T b) {
  if (b == 0) return 0;
  if (b == -1) return -a;
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
template <class T>
inline T mod(T a, T b) {
  if (b == 0 || b == -1) return 0;
  const T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
template <class T>
inline T fmod(T a, T b) {
  return b == 0 || b == -1 ? T(0) : a % b;
}
template <class T>
inline T pow(T base, T exponent) {
  if (exponent < 0 && base != 1 && base != -1) return 0;
  u64 left = exponent < 0 ? -u64(exponent) : u64(exponent), result = 1;
  for (u64 square = u64(base); left != 0; left >>= 1, square *= square)
    if (left & 1) result *= square;
  return T(result);
}
template <class T>
inline T shl(T a, T b) {
  return T(u64(a) << (u64(b) & 63));
}
template <class T>
inline T shr(T a, T b) {
  return T(i64(a) >> (u64(b) & 63));
}

// Philox4x32-10 of Salmon et al. (SC 2011): a multiple of 2^-24 in [0, 1) from the first word of
// the block that has the counter in its lower two words.
inline float uniform(i64 seed, i64 counter) {
  u32 c0 = u32(counter), c1 = u32(u64(counter) >> 32), c2 = 0, c3 = 0;
  u32 k0 = u32(seed), k1 = u32(u64(seed) >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 first = u64(0xD2511F53u) * c0, second = u64(0xCD9E8D57u) * c2;
    c0 = u32(second >> 32) ^ c1 ^ k0;
    c1 = u32(second);
    c2 = u32(first >> 32) ^ c3 ^ k1;
    c3 = u32(first);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return float(c0 >> 8) * 0x1p-24f;
}

}  // namespace fn

// Held in 16 bits, computed with as f32. The assignments are written out because compilers vectorise
// that of a member, and not the one that they make for a struct.
struct bf16 {
  u16 held;
  bf16() = default;
  bf16(const bf16&) = default;
  bf16& operator=(const bf16& x) { return held = x.held, *this; }
  explicit bf16(float x) : held(fn::bf16_bits(x)) {}
  explicit operator float() const { return fn::from_bits(u32(held) << 16); }
};

struct f16 {
  u16 held;
  f16() = default;
  f16(const f16&) = default;
  f16& operator=(const f16& x) { return held = x.held, *this; }
  explicit f16(float x) : held(fn::f16_bits(x)) {}
  explicit operator float() const { return float(__builtin_bit_cast(_Float16, held)); }
};

#endif  // BACKENDS_SHARED_PRELUDE_FUNCTIONS_H_
