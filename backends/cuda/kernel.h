// What an emitted kernel calls: numbers of 16 bits, functions, vectors of memory, copies that run
// ahead, shuffles and matrix instructions. Everything is device code for sm_80 and later.
#ifndef BACKENDS_CUDA_KERNEL_H_
#define BACKENDS_CUDA_KERNEL_H_

#include "ptx.h"

using i64 = long long;
using i32 = int;
using i16 = short;
using i8 = signed char;
using u8 = unsigned char;

#define assume(holds) __builtin_assume(holds)  // tells the compiler
#define kInfinity __int_as_float(0x7f800000)
#define kNan __int_as_float(0x7fc00000)

// Held in 16 bits, computed with as f32.
struct bf16 {
  u16 bits;
  bf16() = default;
  explicit bf16(float x) : bits(ptx::bf16_of(x)) {}
  operator float() const { return __uint_as_float(u32(bits) << 16); }
  bf16& operator=(float x) { return *this = bf16(x); }
};

struct f16 {
  u16 bits;
  f16() = default;
  explicit f16(float x) : bits(ptx::f16_of(x)) {}
  operator float() const { return ptx::float_of(bits); }
  f16& operator=(float x) { return *this = f16(x); }
};

// 8 bits with kFraction of the significand, computed with as f32. Rounded to the nearest, ties to even;
// what is beyond kLargest becomes kBeyond, the code of the largest number or of infinity.
template <int kFraction, int kBias, int kLargest, int kBeyond>
struct Eight {
  static constexpr int kDropped = 23 - kFraction;
  u8 bits;
  Eight() = default;
  explicit Eight(float x) {
    const u32 b = __float_as_uint(x), size = b & 0x7fffffffu;
    u32 code = (size + (1u << (kDropped - 1)) - 1 + (size >> kDropped & 1u)) >> kDropped;
    code -= (127 - kBias) << kFraction;
    if (size < u32(128 - kBias) << 23)  // a subnormal number: a multiple of the least
      code = u32(rintf(fabsf(x) * __uint_as_float(u32(126 + kBias + kFraction) << 23)));
    else if (code > kLargest)
      code = kBeyond;
    bits = u8((size > 0x7f800000u ? 0x7f : code) | b >> 24 & 0x80u);
  }
  operator float() const {
    const u32 code = bits & 0x7fu, sign = u32(bits & 0x80u) << 24;
    const float size = __uint_as_float(code << kDropped) * __uint_as_float(u32(254 - kBias) << 23);
    if (code <= kLargest) return __uint_as_float(__float_as_uint(size) | sign);
    return __uint_as_float((code << kDropped | 0x7f800000u | (kBeyond == kLargest) << 22) | sign);
  }
  Eight& operator=(float x) { return *this = Eight(x); }
};
using f8e4m3 = Eight<3, 7, 0x7e, 0x7e>;
using f8e5m2 = Eight<2, 15, 0x7b, 0x7c>;

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
#if __CUDA_ARCH__ >= 900
  return __uint_as_float(ptx::tf32_of(x) & ~0x1fffu);
#endif
  const u32 b = __float_as_uint(x), rounded = (b + 0xfffu + ((b >> 13) & 1u)) & ~0x1fffu;
  return (b & 0x7f800000u) == 0x7f800000u ? x : __uint_as_float(rounded);
}

// Cut toward zero; what the type does not hold becomes its end, NaN becomes 0.
inline i32 i32_from(float x) { return __float2int_rz(x); }
inline i64 i64_from(float x) { return x != x ? 0 : __float2ll_rz(x); }

// Functions of floats, which are those of the compiler's library; other numbers become floats.
#define OF_FLOATS(name, call) \
  inline float name(float x) { return call; }
OF_FLOATS(abs, fabsf(x))
OF_FLOATS(floor, floorf(x))
OF_FLOATS(ceil, ceilf(x))
OF_FLOATS(round, rintf(x))
OF_FLOATS(trunc, truncf(x))
OF_FLOATS(sqrt, sqrtf(x))
OF_FLOATS(rsqrt, rsqrtf(x))
OF_FLOATS(exp, expf(x))
OF_FLOATS(exp2, exp2f(x))
OF_FLOATS(expm1, expm1f(x))
OF_FLOATS(log, logf(x))
OF_FLOATS(log2, log2f(x))
OF_FLOATS(log10, log10f(x))
OF_FLOATS(log1p, log1pf(x))
OF_FLOATS(erf, erff(x))
OF_FLOATS(erfc, erfcf(x))
OF_FLOATS(tanh, tanhf(x))
OF_FLOATS(sin, sinf(x))
OF_FLOATS(cos, cosf(x))
OF_FLOATS(tan, tanf(x))
OF_FLOATS(asin, asinf(x))
OF_FLOATS(acos, acosf(x))
OF_FLOATS(atan, atanf(x))
OF_FLOATS(sinh, sinhf(x))
OF_FLOATS(cosh, coshf(x))
OF_FLOATS(asinh, asinhf(x))
OF_FLOATS(acosh, acoshf(x))
OF_FLOATS(atanh, atanhf(x))
OF_FLOATS(sigmoid, 1.0f / (1.0f + expf(-x)))
OF_FLOATS(silu, x / (1.0f + expf(-x)))
OF_FLOATS(gelu, 0.5f * x * (1.0f + erff(x * 0.70710678f)))
#undef OF_FLOATS
inline float atan2(float a, float b) { return atan2f(a, b); }
inline i32 abs(i32 x) { return x < 0 ? -x : x; }
inline i64 abs(i64 x) { return x < 0 ? -x : x; }
inline bool isnan(float x) { return x != x; }
inline bool isinf(float x) { return fabsf(x) == kInfinity; }
inline bool isfinite(float x) { return fabsf(x) < kInfinity; }

// Functions of two operands: of f32, i32 and i64; others meet in one of these.
#define OF_NUMBERS(name, of_floats, of_integers)                           \
  inline float name(float a, float b) { return of_floats; }                \
  inline i32 name(i32 a, i32 b) { return of_integers; }                    \
  inline i64 name(i64 a, i64 b) { return of_integers; }                    \
  template <class A, class B>                                              \
  inline Met<A, B> name(A a, B b) {                                        \
    return name(Met<A, B>(a), Met<A, B>(b));                               \
  }

// As Python does it: what is left has the sign of the divisor.
inline float float_mod(float a, float b) {
  const float rest = fmodf(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
inline float float_floordiv(float a, float b) {
  if (b == 0) return a / b;
  const float rest = fmodf(a, b);
  const bool opposite = rest != 0 && (rest < 0) != (b < 0);
  const float quotient = (a - rest) / b - (opposite ? 1.0f : 0.0f), low = floorf(quotient);
  return quotient - low > 0.5f ? low + 1 : low;
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

OF_NUMBERS(maximum, ptx::max_nan(a, b), a > b ? a : b)  // a NaN among the operands is the result
OF_NUMBERS(minimum, ptx::min_nan(a, b), a < b ? a : b)
OF_NUMBERS(larger, fmaxf(a, b), a > b ? a : b)  // where NaN is of no account
OF_NUMBERS(smaller, fminf(a, b), a < b ? a : b)
OF_NUMBERS(fmod, fmodf(a, b), whole_fmod(a, b))
OF_NUMBERS(mod, float_mod(a, b), whole_mod(a, b))
OF_NUMBERS(floordiv, float_floordiv(a, b), whole_floordiv(a, b))
OF_NUMBERS(pow, powf(a, b), whole_pow(a, b))
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

// -- memory ---------------------------------------------------------------------------------------

extern __shared__ __align__(1024) u8 shared_bytes[];

// The part of shared memory that begins at a byte.
template <class T>
inline T* shared_at(int byte) {
  return reinterpret_cast<T*>(shared_bytes + byte);
}

inline u32 shared_address(const void* at) { return u32(__cvta_generic_to_shared(at)); }

template <int kBytes>
struct Word;
template <>
struct Word<1> { using Type = u8; };
template <>
struct Word<2> { using Type = u16; };
template <>
struct Word<4> { using Type = u32; };
template <>
struct Word<8> { using Type = uint2; };
template <>
struct Word<16> { using Type = uint4; };

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

// Registers = elements that are consecutive in memory and aligned to all of them.
template <int kCount, class T>
inline void load(T* to, const T* from) {
  Vector<kCount, T> read;
#pragma unroll
  for (int i = 0; i < read.kWords; ++i)
    read.words[i] = reinterpret_cast<const typename Vector<kCount, T>::Word*>(from)[i];
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = read.elements[i];
}
template <int kCount, class T>
inline void load(T* to, const T* from, bool inside, typename Own<T>::Type other) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = other;
  if (inside) load<kCount>(to, from);
}

// Elements that are consecutive in memory and aligned = registers.
template <int kCount, class T>
inline void store(T* to, const T* from) {
  Vector<kCount, T> written;
#pragma unroll
  for (int i = 0; i < kCount; ++i) written.elements[i] = from[i];
#pragma unroll
  for (int i = 0; i < written.kWords; ++i)
    reinterpret_cast<typename Vector<kCount, T>::Word*>(to)[i] = written.words[i];
}
template <int kCount, class T>
inline void store(T* to, const T* from, bool inside) {
  if (inside) store<kCount>(to, from);
}

// Global memory to shared memory, zeros where it is not inside; in flight until it is waited for,
// unless an element is shorter than what the hardware copies.
template <int kCount, class T>
inline void copy_async(T* to, const T* from, bool inside = true) {
  constexpr int kBytes = Vector<kCount, T>::kBytes;
#pragma unroll
  for (int i = 0; i < Vector<kCount, T>::kWords; ++i) {
    const u32 at = shared_address(to) + i * kBytes;
    const T* source = from + i * kBytes / sizeof(T);
    if constexpr (kBytes >= 4)
      ptx::copy_async<kBytes>(at, source, inside ? kBytes : 0);
    else
      for (int n = 0; n < kCount; ++n) to[n] = inside ? from[n] : T(0);
  }
}
using ptx::commit_copies;
using ptx::wait_copies;

#if __CUDA_ARCH__ >= 900
// A tensor as the DMA engine is told of it by the launcher.
struct alignas(64) TensorMap { u64 words[16]; };

// One barrier of shared memory for each stage of a ring: threads and bytes arrive at it, and others
// wait for the end of a phase, of which each second has parity 0.
template <int kStages>
inline void init_signals(u64* signals, int arrivals) {
  for (int n = 0; n < kStages; ++n) ptx::init_signal(shared_address(signals + n), arrivals);
  ptx::fence_signals();
}
inline void expect(u64* signal, int bytes) { ptx::expect(shared_address(signal), bytes); }
inline void arrive_thread(u64* signal) { ptx::arrive(shared_address(signal)); }
inline void arrive_warp(u64* signal) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) ptx::arrive(shared_address(signal));
}
inline void await(u64* signal, int parity) { ptx::await(shared_address(signal), parity); }

// A box of a tensor into shared memory. The last arguments are the coordinates where it begins, those
// of the last dimension first, and the signal that its bytes arrive at.
template <class T, class... Coordinates>
inline void copy_box(T* to, const TensorMap* map, Coordinates... coordinates) {
  ptx::copy_box(shared_address(to), map, coordinates...);
}
// Shared memory to a box of a tensor, which `finish_boxes` waits for.
template <class T, class... Coordinates>
inline void store_box(const TensorMap* map, const T* from, Coordinates... coordinates) {
  ptx::store_box(map, shared_address(from), coordinates...);
}
using ptx::fence_shared;
using ptx::finish_boxes;
using ptx::release_registers;
using ptx::sync_threads;
using ptx::take_registers;
#endif

// Adds to memory in one step that no other thread comes between.
inline void add_to(float* to, float x) { atomicAdd(to, x); }
inline void add_to(i32* to, i32 x) { atomicAdd(to, x); }
inline void add_to(f16* to, f16 x) { ptx::add_f16(to, x.bits); }
#if __CUDA_ARCH__ >= 900
inline void add_to(bf16* to, bf16 x) { ptx::add_bf16(to, x.bits); }
#endif

// How many of sorted entries are less than x, found by halving as often as their number has bits.
template <int kSteps, class T>
inline i32 rank(const T* borders, int count, T x) {
  int low = 0, high = count;
  for (int step = 0; step < kSteps; ++step) {
    const int middle = (low + high) / 2;
    const bool open = low < high, less = open && borders[middle] < x;
    low = less ? middle + 1 : low;
    high = less || !open ? high : middle;
  }
  return low;
}

// -- warps ----------------------------------------------------------------------------------------

constexpr u32 kWarp = 0xffffffffu;

// What the thread at a XOR distance holds.
template <class T>
inline T shuffle_xor(T x, int distance) {
  if constexpr (requires { x.bits; })
    x.bits = __shfl_xor_sync(kWarp, u32(x.bits), distance);
  else
    x = __shfl_xor_sync(kWarp, x, distance);
  return x;
}

// A running reduction: of a run of registers kStep apart, then of kThreads threads kApart apart,
// after what was carried so far; leaves the total in `carry`.
template <int kRun, int kStep, int kThreads, int kApart, class T, class Join>
inline void scan(T* run, T& carry, Join join) {
#pragma unroll
  for (int i = 1; i < kRun; ++i) run[i * kStep] = join(run[(i - 1) * kStep], run[i * kStep]);
  const int own = threadIdx.x % 32, place = own / kApart % kThreads;
  T total = run[(kRun - 1) * kStep];
#pragma unroll
  for (int distance = 1; distance < kThreads; distance *= 2) {
    const T before = __shfl_up_sync(kWarp, total, distance * kApart);
    if (place >= distance) total = join(before, total);
  }
  const T before = __shfl_up_sync(kWarp, total, kApart);
  const T first = place > 0 ? join(carry, before) : carry;
#pragma unroll
  for (int i = 0; i < kRun; ++i) run[i * kStep] = join(first, run[i * kStep]);
  const int last = own + (kThreads - 1 - place) * kApart;
  carry = join(carry, __shfl_sync(kWarp, total, last));
}

// What kParts warps scanned by themselves, after what was carried so far and the parts before a thread's
// own: joined to a run of registers kStep apart. Leaves the total of all in `carry`.
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

// -- matrices -------------------------------------------------------------------------------------

template <class T>
inline u32 pair(T low, T high) {
  return u32(low.bits) | u32(high.bits) << 16;
}
template <class T, class... Registers>
inline void unpair(const u32* words, T& low, T& high, Registers&... more) {
  low.bits = u16(*words);
  high.bits = u16(*words >> 16);
  if constexpr (sizeof...(more) > 0) unpair(words + 1, more...);
}

// Matrices of 8 x 8 elements of 16 bits, whose rows begin where eight threads each say, into pairs
// of registers.
template <class T, class... Registers>
inline void load_matrices(const T* row, T& low, T& high, Registers&... more) {
  u32 words[1 + sizeof...(more) / 2];
  ptx::load_matrices(shared_address(row), words);
  unpair(words, low, high, more...);
}
template <class T, class... Registers>
inline void load_matrices_transposed(const T* row, T& low, T& high, Registers&... more) {
  u32 words[1 + sizeof...(more) / 2];
  ptx::load_matrices_transposed(shared_address(row), words);
  unpair(words, low, high, more...);
}

// c += a * b of a warp: elements of each operand in the order of the instruction's registers.
#define MULTIPLY(T, instruction)                                                               \
  inline void mma_m16n8k16(float& c0, float& c1, float& c2, float& c3, T a0, T a1, T a2, T a3, \
                           T a4, T a5, T a6, T a7, T b0, T b1, T b2, T b3) {                   \
    instruction(c0, c1, c2, c3, pair(a0, a1), pair(a2, a3), pair(a4, a5), pair(a6, a7),        \
                pair(b0, b1), pair(b2, b3));                                                   \
  }
MULTIPLY(f16, ptx::mma_f16)
MULTIPLY(bf16, ptx::mma_bf16)
#undef MULTIPLY
inline void mma_m16n8k8(float& c0, float& c1, float& c2, float& c3, float a0, float a1, float a2,
                        float a3, float b0, float b1) {
  ptx::mma_tf32(c0, c1, c2, c3, __float_as_uint(a0), __float_as_uint(a1), __float_as_uint(a2),
                __float_as_uint(a3), __float_as_uint(b0), __float_as_uint(b1));
}

// A matrix of a tile in panels, as a warpgroup's instruction reads it: where it begins, and how far
// apart panels and groups of 8 rows are.
template <class T>
struct Matrix { u64 descriptor; };
template <int kPanel, class T>
inline Matrix<T> matrix(const T* tile, int rows, int row, int column) {
  constexpr int kBytes = kPanel * sizeof(T);
  constexpr u64 kSwizzle = kBytes == 128 ? 1 : kBytes == 64 ? 2 : kBytes == 32 ? 3 : 0;
  const u32 start = shared_address(tile + panel<kPanel>(rows, row, column));
  const u64 panels = rows * kBytes >> 4, groups = 8 * kBytes >> 4;
  return {u64(start >> 4) | panels << 16 | groups << 32 | kSwizzle << 62};
}

// D += A * B of four warps. kA, kB: whether M, or N, is the contiguous dimension of the operand.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
template <class T>
struct Wgmma;
#define WGMMA(T, instruction) \
  template <>                 \
  struct Wgmma<T> { template <int kColumns> using Of = instruction<kColumns>; };
WGMMA(f16, ptx::wgmma_f16)
WGMMA(bf16, ptx::wgmma_bf16)
WGMMA(float, ptx::wgmma_tf32)
WGMMA(f8e4m3, ptx::wgmma_e4m3)
WGMMA(f8e5m2, ptx::wgmma_e5m2)
#undef WGMMA
template <int kColumns, int kA, int kB, class D, class T>
inline void wgmma(D* top, D* bottom, Matrix<T> a, Matrix<T> b) {
  using Of = typename Wgmma<T>::template Of<kColumns>;
  Of::template multiply<kA, kB>(top, bottom, a.descriptor, b.descriptor);
}
// A in registers, in their order.
template <int kColumns, int kB, class D, class T, class... Registers>
inline void wgmma(D* top, D* bottom, Matrix<T> b, Registers... a) {
  union { T elements[sizeof...(a)]; u32 words[4]; } held = {{a...}};
  using Of = typename Wgmma<T>::template Of<kColumns>;
  Of::template multiply<kB>(top, bottom, held.words, b.descriptor);
}
inline void arrive_warpgroup() { ptx::arrive_warpgroup(); }
inline void commit_warpgroup() { ptx::commit_warpgroup(); }
template <int kPending>
inline void wait_warpgroup() {
  ptx::wait_warpgroup<kPending>();
}
#endif

#endif  // BACKENDS_CUDA_KERNEL_H_
