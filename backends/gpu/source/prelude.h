// What kernels of C-like languages call whatever runs them: functions, vectors of memory, places in
// tiles. A language's own header includes this one after its numbers: u16, u32, u64, f16, bf16, with
// max_nan and min_nan, which keep NaN, whole_i32 and whole_i64, and the words of memory, Word<bytes>;
// ROUND_TF32 where the hardware rounds so; HAS_F64 where it has f64, with max_nan, min_nan, whole_i32
// and whole_i64 of it.
#ifndef BACKENDS_GPU_SOURCE_PRELUDE_H_
#define BACKENDS_GPU_SOURCE_PRELUDE_H_

constexpr int cdiv(int size, int tile) { return (size + tile - 1) / tile; }
constexpr int round_up(int bytes, int step) { return (bytes + step - 1) / step * step; }
constexpr int least(int a, int b) { return a < b ? a : b; }
constexpr int most(int a, int b) { return a > b ? a : b; }

// The ends of a type, with which maxima and minima begin.
template <class T>
inline T least_of() {
  if constexpr (T(0.5f) != T(0)) return T(-kInfinity);
  else return T(-1) < T(0) ? T(1) << (8 * sizeof(T) - 1) : T(0);
}
template <class T>
inline T most_of() {
  if constexpr (T(0.5f) != T(0)) return T(kInfinity);
  else return T(~least_of<T>());
}

namespace fn {

template <class A, class B>
using Met = decltype(A() + B());  // the type in which two operands meet

inline float round_tf32(float x) {  // to the nearest, ties to even
#ifdef ROUND_TF32
  return ROUND_TF32(x);
#endif
  const u32 b = __float_as_uint(x), rounded = (b + 0xfffu + ((b >> 13) & 1u)) & ~0x1fffu;
  return (b & 0x7f800000u) == 0x7f800000u ? x : __uint_as_float(rounded);
}

// Where a language has f64 (HAS_F64), functions have a form of it.
#ifdef HAS_F64
template <class T>
constexpr bool kDouble = false;
template <>
constexpr bool kDouble<double> = true;
#define OF_F64(text) text
#else
#define OF_F64(text)
#endif

// Cut toward zero; what the type does not hold becomes its end, NaN becomes 0.
inline i32 i32_from(float x) { return whole_i32(x); }
inline i64 i64_from(float x) { return whole_i64(x); }
OF_F64(template <class T> requires kDouble<T> inline i32 i32_from(T x) { return whole_i32(x); })
OF_F64(template <class T> requires kDouble<T> inline i64 i64_from(T x) { return whole_i64(x); })

// Functions of floats, which are those of the compiler's library; other numbers become floats.
#define OF_FLOATS(name, call, wide)           \
  inline float name(float x) { return call; } \
  OF_F64(template <class T> requires kDouble<T> inline T name(T x) { return wide; })
OF_FLOATS(abs, fabsf(x), ::fabs(x))
OF_FLOATS(floor, floorf(x), ::floor(x))
OF_FLOATS(ceil, ceilf(x), ::ceil(x))
OF_FLOATS(round, rintf(x), ::rint(x))
OF_FLOATS(trunc, truncf(x), ::trunc(x))
OF_FLOATS(sqrt, sqrtf(x), ::sqrt(x))
OF_FLOATS(rsqrt, rsqrtf(x), ::rsqrt(x))
OF_FLOATS(exp, expf(x), ::exp(x))
OF_FLOATS(exp2, exp2f(x), ::exp2(x))
#ifndef EXP2_FLUSHED
#define EXP2_FLUSHED(x) exp2f(x)
#endif
// Of exponents less their maximum, whose sum is at least 1: what no normal number holds may be 0.
OF_FLOATS(exp2_flushed, EXP2_FLUSHED(x), ::exp2(x))
OF_FLOATS(expm1, expm1f(x), ::expm1(x))
OF_FLOATS(log, logf(x), ::log(x))
OF_FLOATS(log2, log2f(x), ::log2(x))
OF_FLOATS(log10, log10f(x), ::log10(x))
OF_FLOATS(log1p, log1pf(x), ::log1p(x))
OF_FLOATS(erf, erff(x), ::erf(x))
OF_FLOATS(erfc, erfcf(x), ::erfc(x))
OF_FLOATS(tanh, tanhf(x), ::tanh(x))
OF_FLOATS(sin, sinf(x), ::sin(x))
OF_FLOATS(cos, cosf(x), ::cos(x))
OF_FLOATS(tan, tanf(x), ::tan(x))
OF_FLOATS(asin, asinf(x), ::asin(x))
OF_FLOATS(acos, acosf(x), ::acos(x))
OF_FLOATS(atan, atanf(x), ::atan(x))
OF_FLOATS(sinh, sinhf(x), ::sinh(x))
OF_FLOATS(cosh, coshf(x), ::cosh(x))
OF_FLOATS(asinh, asinhf(x), ::asinh(x))
OF_FLOATS(acosh, acoshf(x), ::acosh(x))
OF_FLOATS(atanh, atanhf(x), ::atanh(x))
OF_FLOATS(sigmoid, 1.0f / (1.0f + expf(-x)), 1.0 / (1.0 + ::exp(-x)))
OF_FLOATS(silu, x / (1.0f + expf(-x)), x / (1.0 + ::exp(-x)))
// As PyTorch does: erfc would keep more digits far below 0, and takes twice as long.
OF_FLOATS(gelu, 0.5f * x * (1.0f + erff(x * 0.70710678f)),
          0.5 * x * (1.0 + ::erf(x * 0.70710678118654752)))
#undef OF_FLOATS
inline float atan2(float a, float b) { return atan2f(a, b); }
OF_F64(template <class T> requires kDouble<T> inline T atan2(T a, T b) { return ::atan2(a, b); })
inline i32 abs(i32 x) { return x < 0 ? -x : x; }
inline i64 abs(i64 x) { return x < 0 ? -x : x; }
inline bool isnan(float x) { return x != x; }
inline bool isinf(float x) { return fabsf(x) == kInfinity; }
inline bool isfinite(float x) { return fabsf(x) < kInfinity; }
OF_F64(template <class T> requires kDouble<T> inline bool isnan(T x) { return x != x; })
OF_F64(template <class T> requires kDouble<T> inline bool isinf(T x) { return ::fabs(x) == kInfinity; })
OF_F64(template <class T> requires kDouble<T> inline bool isfinite(T x) { return ::fabs(x) < kInfinity; })

// Functions of two operands: of f32, f64, i32 and i64; others meet in one of these.
#define OF_NUMBERS(name, of_floats, wide, of_integers)                     \
  inline float name(float a, float b) { return of_floats; }                \
  OF_F64(inline double name(double a, double b) { return wide; })          \
  inline i32 name(i32 a, i32 b) { return of_integers; }                    \
  inline i64 name(i64 a, i64 b) { return of_integers; }                    \
  template <class A, class B>                                              \
  inline Met<A, B> name(A a, B b) {                                        \
    return name(Met<A, B>(a), Met<A, B>(b));                               \
  }

// As Python does it: what is left has the sign of the divisor.
inline float rest_of(float a, float b) { return fmodf(a, b); }
inline float floor_of(float x) { return floorf(x); }
OF_F64(inline double rest_of(double a, double b) { return ::fmod(a, b); })
OF_F64(inline double floor_of(double x) { return ::floor(x); })
template <class T>
inline T float_mod(T a, T b) {
  const T rest = rest_of(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
template <class T>
inline T float_floordiv(T a, T b) {
  if (b == 0) return a / b;
  const T rest = rest_of(a, b);
  const bool opposite = rest != 0 && (rest < 0) != (b < 0);
  const T quotient = (a - rest) / b - (opposite ? T(1) : T(0)), low = floor_of(quotient);
  return quotient - low > T(0.5) ? low + 1 : low;
}
// Of integers: a division by zero gives 0.
template <class T>
inline T whole_floordiv(T a, T b) {
  if (b == 0) return 0;
  if (b == -1) return -a;
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
template <class T>
inline T whole_fmod(T a, T b) {
  return b == 0 || b == -1 ? T(0) : a % b;
}
template <class T>
inline T whole_mod(T a, T b) {
  const T rest = whole_fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
template <class T>
inline T whole_pow(T base, T exponent) {
  if (exponent < 0 && base != 1 && base != -1) return 0;
  u64 left = exponent < 0 ? -u64(exponent) : u64(exponent), result = 1;
  for (u64 square = u64(base); left != 0; left >>= 1, square *= square)
    if (left & 1) result *= square;
  return T(result);
}

OF_NUMBERS(maximum, max_nan(a, b), max_nan(a, b), a > b ? a : b)  // a NaN among the operands is the result
OF_NUMBERS(minimum, min_nan(a, b), min_nan(a, b), a < b ? a : b)
OF_NUMBERS(larger, fmaxf(a, b), ::fmax(a, b), a > b ? a : b)  // where NaN is of no account
OF_NUMBERS(smaller, fminf(a, b), ::fmin(a, b), a < b ? a : b)
OF_NUMBERS(fmod, fmodf(a, b), ::fmod(a, b), whole_fmod(a, b))
OF_NUMBERS(mod, float_mod(a, b), float_mod(a, b), whole_mod(a, b))
OF_NUMBERS(floordiv, float_floordiv(a, b), float_floordiv(a, b), whole_floordiv(a, b))
OF_NUMBERS(pow, powf(a, b), ::pow(a, b), whole_pow(a, b))
#undef OF_NUMBERS

template <class T>
inline auto relu(T x) {
  return maximum(x, 0);
}
template <class T>
inline auto square(T x) {
  return x * x;
}
template <class T>
inline Met<T, T> sign(T x) {
  return (x > 0) - (x < 0);
}

inline i64 shl(i64 a, i64 b) { return i64(u64(a) << (u64(b) & 63)); }
inline i64 shr(i64 a, i64 b) { return a >> (u64(b) & 63); }

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
  return float(c0 >> 8) * 5.9604644775390625e-8f;
}

}  // namespace fn

constexpr float kLog2E = 1.4426950408889634f;

// Elements as the words that one instruction moves.
template <int kCount, class T>
union Vector {
  static constexpr int kBytes = kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16;
  static constexpr int kWords = kCount * sizeof(T) / kBytes;
  using Word = typename ::Word<kBytes>::Type;
  T elements[kCount];
  Word words[kWords];
};

// An index with the bits from `base` up exchanged with those from `base + shift` up, by XOR.
template <int kBits, int kBase, int kShift>
constexpr int swizzle(int index) {
  constexpr int kMask = ((1 << kBits) - 1) << (kBase + (kShift > 0 ? kShift : 0));
  return index ^ (kShift > 0 ? (index & kMask) >> kShift : (index & kMask) << -kShift);
}

// The place of an element in a tile whose rows are cut into panels, which lie one after the other.
template <int kPanel>
constexpr int panel(int rows, int row, int column) {
  return column / kPanel * (rows * kPanel) + row * kPanel + column % kPanel;
}

// A type that arguments are converted to.
template <class T>
struct Own { using Type = T; };

// How words of memory are accessed where the caches are told nothing. A language's header has types
// with the same functions that tell them something (EvictFirst).
struct NoHint {
  static constexpr bool kOnce = false;
  template <class Word>
  static void load(Word& to, const Word* from) { to = *from; }
  template <class Word>
  static void store(Word* to, const Word& from) { *to = from; }
};

// Elements between registers. Bytes as a whole: one by one, each may take a register of its own.
template <int kCount, class T>
inline void copy_elements(T* to, const T* from) {
#if defined(__clang__)
  if constexpr (sizeof(T) == 1) {
    __builtin_memcpy(to, from, kCount);
    return;
  }
#endif
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = from[i];
}

// Registers = elements that are consecutive in memory and aligned to all of them.
template <int kCount, class Hint = NoHint, class T>
inline void load(T* to, const T* from) {
  Vector<kCount, T> read;
#pragma unroll
  for (int i = 0; i < read.kWords; ++i)
    Hint::load(read.words[i], reinterpret_cast<const typename Vector<kCount, T>::Word*>(from) + i);
  copy_elements<kCount>(to, read.elements);
}
template <int kCount, class Hint = NoHint, class T>
inline void load(T* to, const T* from, bool inside, typename Own<T>::Type other) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = other;
  if (inside) load<kCount, Hint>(to, from);
}

// Elements that are consecutive in memory and aligned = registers.
template <int kCount, class Hint = NoHint, class T>
inline void store(T* to, const T* from) {
  Vector<kCount, T> written;
  copy_elements<kCount>(written.elements, from);
#pragma unroll
  for (int i = 0; i < written.kWords; ++i)
    Hint::store(reinterpret_cast<typename Vector<kCount, T>::Word*>(to) + i, written.words[i]);
}
template <int kCount, class Hint = NoHint, class T>
inline void store(T* to, const T* from, bool inside) {
  if (inside) store<kCount, Hint>(to, from);
}

// How many of sorted entries are less than x, found by halving as often as their number has bits.
template <int kSteps, class T, class X>
inline i32 rank(const T* borders, int count, X x) {
  int low = 0, high = count;
  for (int step = 0; step < kSteps; ++step) {
    const int middle = (low + high) / 2;
    const bool open = low < high, less = open && borders[middle] < x;
    low = less ? middle + 1 : low;
    high = less || !open ? high : middle;
  }
  return low;
}

// What kParts warps scanned by themselves, after what was carried so far and the parts before a
// thread's own: joined to a run of registers kStep apart. Leaves the total of all in `carry`.
template <int kRun, int kStep, int kParts, class T, class Join>
inline void scan_after(T* run, const T* totals, int own, T& carry, Join join) {
  T first = carry;
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    if (part < own) first = join(first, totals[part]);
    carry = join(carry, totals[part]);
  }
#pragma unroll
  for (int i = 0; i < kRun; ++i) run[i * kStep] = join(first, run[i * kStep]);
}

#endif  // BACKENDS_GPU_SOURCE_PRELUDE_H_
