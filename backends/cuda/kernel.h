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

#include "eight.h"

using ptx::max_nan;
using ptx::min_nan;
inline i32 whole_i32(float x) { return __float2int_rz(x); }
inline i64 whole_i64(float x) { return x != x ? 0 : __float2ll_rz(x); }
#define HAS_F64
inline double max_nan(double a, double b) { return a != a ? a : b != b ? b : fmax(a, b); }
inline double min_nan(double a, double b) { return a != a ? a : b != b ? b : fmin(a, b); }
inline i32 whole_i32(double x) { return x != x ? 0 : __double2int_rz(x); }
inline i64 whole_i64(double x) { return x != x ? 0 : __double2ll_rz(x); }
#if __CUDA_ARCH__ >= 900
#define ROUND_TF32(x) __uint_as_float(ptx::tf32_of(x) & ~0x1fffu)
#endif

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

#define EXP2_FLUSHED(x) ptx::exp2_flushed(x)
#include "prelude.h"

namespace fn {

// gelu that is rounded to 16 bits: within 2e-4 of it, in half the instructions. The normal distribution of -|x| is a
// power of 2, which is 0 where |x| is 16, so infinite numbers and NaN become what they become in gelu.
inline float short_gelu(float x) {
  const float size = fabsf(x) < 16.0f ? fabsf(x) : 16.0f;
  const float high = (-2.69919848e-4f * size + 5.29736187e-3f) * size - 4.63193953e-2f;
  const float power = ((high * size - 4.66907352e-1f) * size - 1.147789f) * size - 1.00022829f;
  const float tail = exp2_flushed(power);
  return x * (x > 0.0f ? 1.0f - tail : tail);
}
inline double short_gelu(double x) { return gelu(x); }

}  // namespace fn

// -- memory ---------------------------------------------------------------------------------------

extern __shared__ __align__(1024) u8 shared_bytes[];

// The part of shared memory that begins at a byte.
template <class T>
inline T* shared_at(int byte) {
  return reinterpret_cast<T*>(shared_bytes + byte);
}

inline u32 shared_address(const void* at) { return u32(__cvta_generic_to_shared(at)); }

using ptx::EvictFirst;  // hints to the caches
using ptx::EvictLast;
using ptx::PastL1;
template <class Hint>
constexpr int least_copy() {  // bytes from which a copy does as it is told
  if constexpr (requires { Hint::kLeast; }) return Hint::kLeast;
  else return 4;
}

// Global memory to shared memory, zeros where it is not inside; in flight until it is waited for,
// unless an element is shorter than what the hardware copies.
template <int kCount, class Hint = NoHint, class T>
inline void copy_async(T* to, const T* from, bool inside = true) {
  constexpr int kBytes = Vector<kCount, T>::kBytes;
#pragma unroll
  for (int i = 0; i < Vector<kCount, T>::kWords; ++i) {
    const u32 at = shared_address(to) + i * kBytes;
    const T* source = from + i * kBytes / sizeof(T);
    if constexpr (kBytes >= least_copy<Hint>())
      ptx::copy_async<kBytes, Hint>(at, source, inside ? kBytes : 0);
    else
      for (int n = 0; n < kCount; ++n) {
        T held = T(0);
        if (inside) load<1, Hint>(&held, from + n);
        to[n] = held;
      }
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
// At the signals of all blocks of the cluster.
template <int kBlocks>
inline void arrive_cluster(u64* signal) {
  __syncwarp();
  const u32 block = threadIdx.x % 32;
  if (block < kBlocks) ptx::arrive_at(shared_address(signal), block);
}
inline void await(u64* signal, int parity) { ptx::await(shared_address(signal), parity); }

// A box of a tensor into shared memory. The last arguments are the coordinates where it begins, those
// of the last dimension first, and the signal that its bytes arrive at. kBlocks: of a cluster, all of
// which get the box at the same place, and its bytes at their own signal.
template <int kBlocks = 1, class Hint = NoHint, class T, class... Coordinates>
inline void copy_box(T* to, const TensorMap* map, Coordinates... coordinates) {
  ptx::copy_box<Hint, kBlocks>(shared_address(to), map, coordinates...);
}
// Shared memory to a box of a tensor, which `finish_boxes` waits for.
template <class Hint = NoHint, class T, class... Coordinates>
inline void store_box(const TensorMap* map, const T* from, Coordinates... coordinates) {
  ptx::store_box<Hint>(map, shared_address(from), coordinates...);
}
using ptx::fence_shared;
using ptx::finish_boxes;
using ptx::release_registers;
using ptx::sync_cluster;
using ptx::sync_group;
using ptx::sync_threads;
using ptx::take_registers;
#endif

// Adds to memory in one step that no other thread comes between.
inline void add_to(float* to, float x) { atomicAdd(to, x); }
inline void add_to(double* to, double x) { atomicAdd(to, x); }
inline void add_to(i32* to, i32 x) { atomicAdd(to, x); }
inline void add_to(f16* to, f16 x) { ptx::add_f16(to, x.bits); }
#if __CUDA_ARCH__ >= 900
inline void add_to(bf16* to, bf16 x) { ptx::add_bf16(to, x.bits); }
#endif

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
// Of 8 bits, four of which are a word.
#define MULTIPLY(T, D, instruction)                                                         \
  template <class... Operands>                                                              \
  inline void mma_m16n8k32(D& c0, D& c1, D& c2, D& c3, T a0, Operands... more) {            \
    union { T elements[1 + sizeof...(more)]; u32 words[6]; } held = {{a0, more...}};        \
    const u32* w = held.words;                                                              \
    instruction(c0, c1, c2, c3, w[0], w[1], w[2], w[3], w[4], w[5]);                        \
  }
MULTIPLY(i8, i32, ptx::mma_s8)
#if __CUDA_ARCH__ >= 890
MULTIPLY(f8e4m3, float, ptx::mma_e4m3)
MULTIPLY(f8e5m2, float, ptx::mma_e5m2)
#endif
#undef MULTIPLY

// Blocks that wait for each other: how many began before this one, flags in memory that one raises for
// another, and a fence between them and what else is read and written.
inline int take_number(int* counter) {
  int* const number = shared_at<int>(0);
  if (threadIdx.x == 0) *number = atomicAdd(counter, 1);
  __syncthreads();
  const int own = *number;
  __syncthreads();
  return own;
}
inline void raise_flag(int* flag) { ptx::raise(flag); }
inline void await_raised(const int* flag) { ptx::await_raised(flag); }
// A pointer to what other blocks write while a kernel runs, so that no `__restrict__` holds for it.
#define between_blocks
// Each thread awaits some of the flags, and knows then what was written before they were raised.
template <int kThreads>
inline void acquire_all(const int* flags, int count) {
  for (int n = threadIdx.x; n < count; n += kThreads) ptx::acquire_raised(flags + n);
}
inline void fence_device() { ptx::fence_device(); }

// A matrix of a tile in panels, as a warpgroup's instruction reads it: where it begins, and how far
// apart panels and groups of 8 rows are.
template <class T>
struct Matrix { u64 descriptor; };
template <int kPanel, class T>
inline Matrix<T> matrix(const T* tile, int rows, int row, int column) {
  constexpr int kBytes = kPanel * sizeof(T);
  constexpr u64 kSwizzle = kBytes == 128 ? 1 : kBytes == 64 ? 2 : kBytes == 32 ? 3 : 0;
  // An address has the number of its block in the cluster in bits that a descriptor has no place for.
  const u32 start = shared_address(tile + panel<kPanel>(rows, row, column)) & 0x3ffff;
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
WGMMA(i8, ptx::wgmma_s8)
#undef WGMMA
template <int kColumns, int kA, int kB, class D, class T>
inline void wgmma(D* top, D* bottom, Matrix<T> a, Matrix<T> b) {
  using Of = typename Wgmma<T>::template Of<kColumns>;
  Of::template multiply<kA, kB>(top, bottom, a.descriptor, b.descriptor);
}
// A in registers. They are words before the first instruction is issued: the compiler waits where it makes
// one between two of them.
template <class T, class... Others>
inline void pack_words(u32 (&words)[4], T first, Others... others) {
  union { T elements[1 + sizeof...(others)]; u32 words[4]; } held = {{first, others...}};
  #pragma unroll
  for (int at = 0; at < 4; ++at) {
    words[at] = held.words[at];
    ptx::keep_word(words[at]);
  }
}
template <int kColumns, int kB, class D, class T>
inline void wgmma(D* top, D* bottom, Matrix<T> b, const u32 (&a)[4]) {
  using Of = typename Wgmma<T>::template Of<kColumns>;
  Of::template multiply<kB>(top, bottom, a, b.descriptor);
}
inline void arrive_warpgroup() { ptx::arrive_warpgroup(); }
inline void commit_warpgroup() { ptx::commit_warpgroup(); }
template <int kPending>
inline void wait_warpgroup() {
  ptx::wait_warpgroup<kPending>();
}
inline void keep_order(float x) { ptx::keep_order(x); }
#endif

#endif  // BACKENDS_CUDA_KERNEL_H_
