// What an emitted kernel calls: numbers of 16 bits, functions, vectors of memory, copies to LDS,
// exchanges within a wavefront of 64 and matrix instructions. Device code for gfx942 and gfx950.
#ifndef BACKENDS_HIP_KERNEL_H_
#define BACKENDS_HIP_KERNEL_H_

#include <hip/hip_runtime.h>

#pragma clang force_cuda_host_device begin

using i64 = long long;
using i32 = int;
using i16 = short;
using i8 = signed char;
using u64 = unsigned long long;
using u32 = unsigned;
using u16 = unsigned short;
using u8 = unsigned char;

// The most registers of a thread, those of both files together.
#undef __maxnreg__
#if defined(__AMDGCN__)
#define __maxnreg__(registers) __attribute__((amdgpu_num_vgpr((registers) / 2)))  // of each file
#else
#define __maxnreg__(registers)
#endif

#define kInfinity __builtin_inff()
#define kNan __builtin_nanf("")

// To the nearest, ties to even.
inline u16 bf16_of(float x) {
#if defined(__gfx950__)
  return __builtin_bit_cast(u16, __bf16(x));  // one instruction
#else
  const u32 b = __float_as_uint(x), nan = b | 0x400000u;
  const u32 rounded = b + 0x7fffu + (b >> 16 & 1u);
  return u16(__builtin_unpredictable(x != x) ? nan >> 16 : rounded >> 16);
#endif
}

// Held in 16 bits, computed with as f32.
struct bf16 {
  u16 bits;
  bf16() = default;
  explicit bf16(float x) : bits(bf16_of(x)) {}
  operator float() const { return __uint_as_float(u32(bits) << 16); }
  bf16& operator=(float x) { return *this = bf16(x); }
};

struct f16 {
  u16 bits;
  f16() = default;
  explicit f16(float x) : bits(__builtin_bit_cast(u16, _Float16(x))) {}
  operator float() const { return __builtin_bit_cast(_Float16, bits); }
  f16& operator=(float x) { return *this = f16(x); }
};

#include "eight.h"

inline float max_nan(float a, float b) { return __builtin_elementwise_maximum(a, b); }
inline float min_nan(float a, float b) { return __builtin_elementwise_minimum(a, b); }

template <class T, int kCount>
using Tuple = T __attribute__((ext_vector_type(kCount)));

template <int kBytes>
struct Word;
template <>
struct Word<1> { using Type = u8; };
template <>
struct Word<2> { using Type = u16; };
template <>
struct Word<4> { using Type = u32; };
template <>
struct Word<8> { using Type = Tuple<u32, 2>; };
template <>
struct Word<16> { using Type = Tuple<u32, 4>; };

// Cut toward zero, as the conversions of the hardware do; NaN becomes 0.
inline i32 whole_i32(float x) {
  if (x != x) return 0;
  return x >= 0x1p31f ? 0x7fffffff : x < -0x1p31f ? i32(0x80000000u) : i32(x);
}
inline i64 whole_i64(float x) {
  if (x != x) return 0;
  return x >= 0x1p63f ? i64(~0ull >> 1) : x < -0x1p63f ? i64(1ull << 63) : i64(x);
}

#define HAS_F64
inline double max_nan(double a, double b) { return a != a ? a : b != b ? b : fmax(a, b); }
inline double min_nan(double a, double b) { return a != a ? a : b != b ? b : fmin(a, b); }
inline i32 whole_i32(double x) {
  if (x != x) return 0;
  return x >= 0x1p31 ? 0x7fffffff : x <= -0x1p31 ? i32(0x80000000u) : i32(x);
}
inline i64 whole_i64(double x) {
  if (x != x) return 0;
  return x >= 0x1p63 ? i64(~0ull >> 1) : x < -0x1p63 ? i64(1ull << 63) : i64(x);
}

// The compiler takes it for true.
inline void assume(bool condition) { __builtin_assume(condition); }

#include "prelude.h"

// -- tensors --------------------------------------------------------------------------------------

// Whether a tensor has 2 GB or more, which the 32 bits of a buffer's offsets do not reach.
#ifndef FAR
#define FAR 0
#endif

// Where elements of a tensor begin.
template <class T, class At>
struct Place {
  T* tensor;
  At at;
};
template <class T, class At>
inline Place<T, At> place(T* tensor, At at) { return {tensor, at}; }

#if defined(__AMDGCN__) && !FAR
// A tensor as a buffer: an access beyond its end reads 0 or writes nothing, so that a mask moves an
// offset there, and no branch.
inline auto buffer(const void* tensor) {
  return __builtin_amdgcn_make_buffer_rsrc(const_cast<void*>(tensor), 0, 0x7fffffff, 0x27000);
}
template <class T>
inline int offset(int at, bool inside) { return inside ? at * int(sizeof(T)) : int(0x80000000u); }

template <int kBytes>
inline typename Word<kBytes>::Type read_buffer(const void* tensor, int offset) {
  if constexpr (kBytes == 1) return __builtin_amdgcn_raw_buffer_load_b8(buffer(tensor), offset, 0, 0);
  else if constexpr (kBytes == 2) return __builtin_amdgcn_raw_buffer_load_b16(buffer(tensor), offset, 0, 0);
  else if constexpr (kBytes == 4) return __builtin_amdgcn_raw_buffer_load_b32(buffer(tensor), offset, 0, 0);
  else if constexpr (kBytes == 8) return __builtin_amdgcn_raw_buffer_load_b64(buffer(tensor), offset, 0, 0);
  else return __builtin_amdgcn_raw_buffer_load_b128(buffer(tensor), offset, 0, 0);
}
template <int kBytes>
inline void write_buffer(typename Word<kBytes>::Type x, void* tensor, int offset) {
  if constexpr (kBytes == 1) __builtin_amdgcn_raw_buffer_store_b8(x, buffer(tensor), offset, 0, 0);
  else if constexpr (kBytes == 2) __builtin_amdgcn_raw_buffer_store_b16(x, buffer(tensor), offset, 0, 0);
  else if constexpr (kBytes == 4) __builtin_amdgcn_raw_buffer_store_b32(x, buffer(tensor), offset, 0, 0);
  else if constexpr (kBytes == 8) __builtin_amdgcn_raw_buffer_store_b64(x, buffer(tensor), offset, 0, 0);
  else __builtin_amdgcn_raw_buffer_store_b128(x, buffer(tensor), offset, 0, 0);
}

template <int kCount, class T, class From>
inline void load(T* to, Place<From, int> from, bool inside) {
  Vector<kCount, T> read;
#pragma unroll
  for (int i = 0; i < read.kWords; ++i)
    read.words[i] = read_buffer<read.kBytes>(from.tensor, offset<T>(from.at, inside) + i * read.kBytes);
  copy_elements<kCount>(to, read.elements);
}
template <int kCount, class T, class From>
inline void load(T* to, Place<From, int> from, bool inside, typename Own<T>::Type other) {
  load<kCount>(to, from, inside);
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = inside ? to[i] : other;
}
template <int kCount, class T>
inline void store(Place<T, int> to, const T* from, bool inside) {
  Vector<kCount, T> written;
  copy_elements<kCount>(written.elements, from);
#pragma unroll
  for (int i = 0; i < written.kWords; ++i)
    write_buffer<written.kBytes>(written.words[i], to.tensor, offset<T>(to.at, inside) + i * written.kBytes);
}
#endif

// Where a tensor is far, or its positions have 64 bits, and where no GPU runs this.
template <int kCount, class T, class From, class At>
inline void load(T* to, Place<From, At> from, bool inside, typename Own<T>::Type other) {
  load<kCount>(to, from.tensor + from.at, inside, other);
}
template <int kCount, class T, class From, class At>
inline void load(T* to, Place<From, At> from, bool inside) {
  load<kCount>(to, from, inside, T(0));
}
template <int kCount, class T, class At>
inline void store(Place<T, At> to, const T* from, bool inside) {
  store<kCount>(to.tensor + to.at, from, inside);
}

// The element of a tensor where a mask holds, else another value, or 0.
template <class T, class At>
inline T read(const T* tensor, At at, bool inside, typename Own<T>::Type other) {
  T found;
  load<1>(&found, place(tensor, at), inside, other);
  return found;
}
template <class T, class At>
inline T read(const T* tensor, At at, bool inside) {
  T found;
  load<1>(&found, place(tensor, at), inside);
  return found;
}
template <class T, class At>
inline void write(T* tensor, At at, bool inside, typename Own<T>::Type x) {
  store<1>(place(tensor, at), &x, inside);
}

// -- LDS ------------------------------------------------------------------------------------------

extern __shared__ __attribute__((aligned(1024))) u8 shared_bytes[];

// The part of LDS that begins at a byte.
template <class T>
inline T* shared_at(int byte) {
  return reinterpret_cast<T*>(shared_bytes + byte);
}

// Bytes of global memory to LDS past the registers, kBytes of each thread of a wavefront to consecutive
// places. Written as assembly: of a builtin the compiler thinks that each read of LDS behind it may read
// what it brings, and waits for it. The hardware wants a cycle between M0 and its use, and more after
// scalars that came from a vector register.
#if defined(__AMDGCN__)
#define WORDS_TO_LDS(form, ...)                                                            \
  if constexpr (kBytes == 4) asm volatile("s_mov_b32 m0, %0\n\ts_nop 4\n\t" form("") ::__VA_ARGS__ : "memory", "m0"); \
  else asm volatile("s_mov_b32 m0, %0\n\ts_nop 4\n\t" form("x4") ::__VA_ARGS__ : "memory", "m0");
#define OF_BUFFER(words) "buffer_load_dword" words " %1, %2, 0 offen lds"
#define OF_BUFFER_ONCE(words) "buffer_load_dword" words " %1, %2, 0 offen nt lds"
#define OF_GLOBAL(words) "global_load_lds_dword" words " %1, off"
// The byte of LDS that the wavefront's first thread fills.
template <int kBytes>
inline u32 first_byte(const void* own) {
  return __builtin_amdgcn_readfirstlane(u32(reinterpret_cast<u64>(own)) - threadIdx.x % 64 * kBytes);
}
#if !FAR
template <int kBytes, class Hint, class T, class From>
inline void words_to_lds(T* to, Place<From, int> from, bool inside) {
  const u64 address = reinterpret_cast<u64>(from.tensor);
  const Tuple<u32, 4> tensor = {u32(address), u32(address >> 32), 0x7fffffffu, 0x27000u};  // as `buffer`
  if constexpr (Hint::kOnce) { WORDS_TO_LDS(OF_BUFFER_ONCE, "s"(first_byte<kBytes>(to)), "v"(offset<T>(from.at, inside)), "s"(tensor)) }
  else { WORDS_TO_LDS(OF_BUFFER, "s"(first_byte<kBytes>(to)), "v"(offset<T>(from.at, inside)), "s"(tensor)) }
}
#endif
template <int kBytes, class Hint, class T, class From, class At>
inline void words_to_lds(T* to, Place<From, At> from, bool inside) {
  const u32 first = first_byte<kBytes>(to);
  if (inside) { WORDS_TO_LDS(OF_GLOBAL, "s"(first), "v"(from.tensor + from.at)) }
  else *reinterpret_cast<typename Word<kBytes>::Type*>(to) = {};
}
inline void wait_for_words() { asm volatile("s_waitcnt vmcnt(0)" ::: "memory"); }
#else
template <int kBytes, class Hint, class T, class From, class At>
inline void words_to_lds(T* to, Place<From, At> from, bool inside) {
  copy_to_lds<kBytes>(to, from.tensor + from.at, inside);
}
#endif

// kCount elements to a tile, in the background where they are the kThread bytes that a thread copies at
// once. Elements where a mask does not hold become 0.
template <int kCount, int kThread, class Hint = NoHint, class T, class From, class At>
inline void copy_async(T* to, Place<From, At> from, bool inside) {
  if constexpr (kCount * sizeof(T) == kThread) words_to_lds<kThread, Hint>(to, from, inside);
  else {
    T held[kCount];
    load<kCount>(&held[0], from, inside);
    store<kCount>(to, &held[0]);
  }
}
template <int kCount, int kThread, class Hint = NoHint, class T, class From>
inline void copy_async(T* to, const From* from) {
  copy_async<kCount, kThread, Hint>(to, place(from, i64(0)), true);
}
inline void commit_copies() {}  // a wavefront counts its copies, and waits for all of them
template <int kPending>
inline void wait_copies() {
  static_assert(kPending == 0);
  wait_for_words();
}

// A hint to the caches: lines that are used once, which leave them first.
struct EvictFirst {
  static constexpr bool kOnce = true;
  template <class Word>
  static void load(Word& to, const Word* from) { to = __builtin_nontemporal_load(from); }
  template <class Word>
  static void store(Word* to, const Word& from) { __builtin_nontemporal_store(from, to); }
};

// Adds to memory in one step that no other thread comes between.
inline void add_to(float* to, float x) { unsafeAtomicAdd(to, x); }
inline void add_to(i32* to, i32 x) { atomicAdd(to, x); }
// Of 16 bits: the word that has it is exchanged until no other thread came between.
template <class T>
inline void add_short(T* to, T x) {
  const u64 address = reinterpret_cast<u64>(to);
  u32* const word = reinterpret_cast<u32*>(address & ~3ull);
  const int shift = address & 2 ? 16 : 0;
  for (u32 old = *reinterpret_cast<volatile u32*>(word);;) {
    T sum;
    sum.bits = u16(old >> shift);
    sum = float(sum) + float(x);
    const u32 made = (old & ~(0xffffu << shift)) | u32(sum.bits) << shift;
    const u32 found = atomicCAS(word, old, made);
    if (found == old) return;
    old = found;
  }
}
inline void add_to(f16* to, f16 x) { add_short(to, x); }
inline void add_to(bf16* to, bf16 x) { add_short(to, x); }

// -- wavefronts -----------------------------------------------------------------------------------

// A word of the thread at a XOR distance: a modifier of an instruction (DPP) up to 8, the LDS
// crossbar from there on. Distances are constants once loops are unrolled.
inline i32 word_xor(i32 x, int distance) {
  switch (distance) {
    case 1: return __builtin_amdgcn_mov_dpp(x, 0xb1, 0xf, 0xf, true);  // quad_perm [1,0,3,2]
    case 2: return __builtin_amdgcn_mov_dpp(x, 0x4e, 0xf, 0xf, true);  // quad_perm [2,3,0,1]
    case 4:                                                            // 7 ^ 3
      x = __builtin_amdgcn_mov_dpp(x, 0x141, 0xf, 0xf, true);          // row_half_mirror
      return __builtin_amdgcn_mov_dpp(x, 0x1b, 0xf, 0xf, true);        // quad_perm [3,2,1,0]
    case 8: return __builtin_amdgcn_mov_dpp(x, 0x128, 0xf, 0xf, true);  // row_ror:8
    case 16: return __builtin_amdgcn_ds_swizzle(x, 0x401f);  // XOR 16 in groups of 32 threads
    default: return __shfl_xor(x, distance);
  }
}

// What the thread at a XOR distance holds.
template <class T>
inline T shuffle_xor(T x, int distance) {
  constexpr int kWords = (sizeof(T) + 3) / 4;
  i32 words[kWords] = {};
  __builtin_memcpy(words, &x, sizeof(T));
#pragma unroll
  for (int n = 0; n < kWords; ++n) words[n] = word_xor(words[n], distance);
  __builtin_memcpy(&x, words, sizeof(T));
  return x;
}

// A running reduction: of a run of registers kStep apart, then of kThreads threads kApart apart,
// after what was carried so far; leaves the total in `carry`.
template <int kRun, int kStep, int kThreads, int kApart, class T, class Join>
inline void scan(T* run, T& carry, Join join) {
#pragma unroll
  for (int i = 1; i < kRun; ++i) run[i * kStep] = join(run[(i - 1) * kStep], run[i * kStep]);
  const int own = threadIdx.x % 64, place = own / kApart % kThreads;
  T total = run[(kRun - 1) * kStep];
#pragma unroll
  for (int distance = 1; distance < kThreads; distance *= 2) {
    const T before = __shfl_up(total, distance * kApart);
    if (place >= distance) total = join(before, total);
  }
  const T before = __shfl_up(total, kApart);
  const T first = place > 0 ? join(carry, before) : carry;
#pragma unroll
  for (int i = 0; i < kRun; ++i) run[i * kStep] = join(first, run[i * kStep]);
  const int last = own + (kThreads - 1 - place) * kApart;
  carry = join(carry, __shfl(total, last));
}

#include "matrices.h"

#pragma clang force_cuda_host_device end

#endif  // BACKENDS_HIP_KERNEL_H_
