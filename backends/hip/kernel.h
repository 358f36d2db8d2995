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
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = read.elements[i];
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
#pragma unroll
  for (int i = 0; i < kCount; ++i) written.elements[i] = from[i];
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
  return __builtin_amdgcn_readfirstlane(u32(reinterpret_cast<u64>(own)) - place_in_wave() * kBytes);
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

// -- matrices -------------------------------------------------------------------------------------

// Operands as a matrix instruction takes them: elements in the order of its registers.
template <class E, class T, class... Elements>
inline auto packed(T first, Elements... more) {
  if constexpr (sizeof(E) == sizeof(float)) return Tuple<E, 1 + sizeof...(more)>{first, more...};
  else return Tuple<E, 1 + sizeof...(more)>{__builtin_bit_cast(E, first), __builtin_bit_cast(E, more)...};
}

// How the instructions before it, up to the beginning of the loop, follow each other: a read of LDS, then
// kMatrix matrix instructions, kReads times.
template <int kReads, int kMatrix>
inline void interleave() {
#if defined(__AMDGCN__)
#pragma unroll
  for (int n = 0; n < kReads; ++n) {
    __builtin_amdgcn_sched_group_barrier(0x100, 1, 0);
    __builtin_amdgcn_sched_group_barrier(0x8, kMatrix, 0);
  }
#endif
}

// c += a * b of a wavefront, of some registers of C, of A and of B. The instruction gets B before A, so
// that it computes C transposed: a work-item's registers of C are runs of four columns of a row.
#define C4 float &c0, float &c1, float &c2, float &c3
#define C16                                                                                    \
  C4, float &c4, float &c5, float &c6, float &c7, float &c8, float &c9, float &c10, float &c11, \
      float &c12, float &c13, float &c14, float &c15
#define ALL4 c0, c1, c2, c3
#define ALL16 ALL4, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15
#define SET4(d) c0 = d[0], c1 = d[1], c2 = d[2], c3 = d[3]
#define SET16(d)                                                                            \
  SET4(d), c4 = d[4], c5 = d[5], c6 = d[6], c7 = d[7], c8 = d[8], c9 = d[9], c10 = d[10],   \
           c11 = d[11], c12 = d[12], c13 = d[13], c14 = d[14], c15 = d[15]
#define ONE(T, x) T x##0
#define TWO(T, x) T x##0, T x##1
#define FOUR(T, x) TWO(T, x), T x##2, T x##3
#define EIGHT(T, x) FOUR(T, x), T x##4, T x##5, T x##6, T x##7
#define SIXTEEN(T, x)                                                                              \
  EIGHT(T, x), T x##8, T x##9, T x##10, T x##11, T x##12, T x##13, T x##14, T x##15
#define THIRTY_TWO(T, x)                                                                           \
  SIXTEEN(T, x), T x##16, T x##17, T x##18, T x##19, T x##20, T x##21, T x##22, T x##23, T x##24,   \
      T x##25, T x##26, T x##27, T x##28, T x##29, T x##30, T x##31
#define OF_ONE(x) x##0
#define OF_EIGHT(x) x##0, x##1, x##2, x##3, x##4, x##5, x##6, x##7
#define OF_SIXTEEN(x) OF_EIGHT(x), x##8, x##9, x##10, x##11, x##12, x##13, x##14, x##15
#define OF_THIRTY_TWO(x)                                                                           \
  OF_SIXTEEN(x), x##16, x##17, x##18, x##19, x##20, x##21, x##22, x##23, x##24, x##25, x##26,       \
      x##27, x##28, x##29, x##30, x##31
#define ONE_OF(E, x) x##0
#define TWO_OF(E, x) packed<E>(x##0, x##1)
#define FOUR_OF(E, x) packed<E>(x##0, x##1, x##2, x##3)
#define EIGHT_OF(E, x) packed<E>(x##0, x##1, x##2, x##3, x##4, x##5, x##6, x##7)
#define MFMA(shape, count, T, operand, E, instruction)                                       \
  inline void mfma_##shape(C##count, operand(T, a), operand(T, b)) {                         \
    const auto d = __builtin_amdgcn_mfma_f32_##instruction(                                  \
        operand##_OF(E, b), operand##_OF(E, a), Tuple<float, count>{ALL##count}, 0, 0, 0);   \
    SET##count(d);                                                                           \
  }
MFMA(16x16x16, 4, f16, FOUR, _Float16, 16x16x16f16)
MFMA(16x16x16, 4, bf16, FOUR, i16, 16x16x16bf16_1k)
MFMA(32x32x8, 16, f16, FOUR, _Float16, 32x32x8f16)
MFMA(32x32x8, 16, bf16, FOUR, i16, 32x32x8bf16_1k)
MFMA(16x16x4, 4, float, ONE, float, 16x16x4f32)
MFMA(32x32x2, 16, float, ONE, float, 32x32x2f32)
#if !defined(__gfx950__)
MFMA(16x16x8, 4, float, TWO, float, 16x16x8_xf32)
MFMA(32x32x4, 16, float, TWO, float, 32x32x4_xf32)
#endif
#if !defined(__gfx942__)
MFMA(16x16x32, 4, f16, EIGHT, _Float16, 16x16x32_f16)
MFMA(16x16x32, 4, bf16, EIGHT, __bf16, 16x16x32_bf16)
MFMA(32x32x16, 16, f16, EIGHT, _Float16, 32x32x16_f16)
MFMA(32x32x16, 16, bf16, EIGHT, __bf16, 32x32x16_bf16)
#endif
// Of 8 bits and of f64. `Words` is what the instruction takes an operand as.
template <class Words, class... Elements>
inline Words bytes_as(Elements... elements) {
  const u8 found[] = {__builtin_bit_cast(u8, elements)...};
  return __builtin_bit_cast(Words, found);
}
#define C4_OF(N) N &c0, N &c1, N &c2, N &c3
#define C16_OF(N)                                                                                 \
  C4_OF(N), N &c4, N &c5, N &c6, N &c7, N &c8, N &c9, N &c10, N &c11, N &c12, N &c13, N &c14, N &c15
#define WIDE_MFMA(shape, count, N, A, B, operand, Words, instruction, ...)                        \
  inline void mfma_##shape(C##count##_OF(N), operand(A, a), operand(B, b)) {                      \
    const auto d = __builtin_amdgcn_mfma_##instruction(                                           \
        bytes_as<Words>(OF_##operand(b)), bytes_as<Words>(OF_##operand(a)),                       \
        Tuple<N, count>{ALL##count}, __VA_ARGS__);                                                \
    SET##count(d);                                                                                \
  }
inline void mfma_16x16x4(C4_OF(double), double a0, double b0) {
  const auto d = __builtin_amdgcn_mfma_f64_16x16x4f64(b0, a0, Tuple<double, 4>{ALL4}, 0, 0, 0);
  SET4(d);
}
using Words2 = long;
using Words4 = Tuple<int, 4>;
using Words8 = Tuple<int, 8>;
WIDE_MFMA(16x16x32, 4, i32, i8, i8, EIGHT, Words2, i32_16x16x32_i8, 0, 0, 0)
WIDE_MFMA(32x32x16, 16, i32, i8, i8, EIGHT, Words2, i32_32x32x16_i8, 0, 0, 0)
#if !defined(__gfx942__)  // there floats of 8 bits have other values
WIDE_MFMA(16x16x64, 4, i32, i8, i8, SIXTEEN, Words4, i32_16x16x64_i8, 0, 0, 0)
WIDE_MFMA(32x32x32, 16, i32, i8, i8, SIXTEEN, Words4, i32_32x32x32_i8, 0, 0, 0)
// The last four are scales of blocks along K: without any, all are 1. Before them, the forms of B and A.
#define EIGHT_BITS(A, B, a, b, form_a, form_b)                                                       \
  WIDE_MFMA(16x16x32, 4, float, A, B, EIGHT, Words2, f32_16x16x32_##b##_##a, 0, 0, 0)                 \
  WIDE_MFMA(32x32x16, 16, float, A, B, EIGHT, Words2, f32_32x32x16_##b##_##a, 0, 0, 0)                \
  WIDE_MFMA(16x16x128, 4, float, A, B, THIRTY_TWO, Words8, scale_f32_16x16x128_f8f6f4, form_b, form_a, \
            0, 0, 0, 0)                                                                              \
  WIDE_MFMA(32x32x64, 16, float, A, B, THIRTY_TWO, Words8, scale_f32_32x32x64_f8f6f4, form_b, form_a,  \
            0, 0, 0, 0)
EIGHT_BITS(f8e4m3, f8e4m3, fp8, fp8, 0, 0)
EIGHT_BITS(f8e4m3, f8e5m2, fp8, bf8, 0, 1)
EIGHT_BITS(f8e5m2, f8e4m3, bf8, fp8, 1, 0)
EIGHT_BITS(f8e5m2, f8e5m2, bf8, bf8, 1, 1)
#undef EIGHT_BITS
#endif
#undef WIDE_MFMA
#undef C4_OF
#undef C16_OF
#undef SIXTEEN
#undef THIRTY_TWO
#undef OF_ONE
#undef OF_EIGHT
#undef OF_SIXTEEN
#undef OF_THIRTY_TWO
#undef C4
#undef C16
#undef ALL4
#undef ALL16
#undef SET4
#undef SET16
#undef ONE
#undef TWO
#undef FOUR
#undef EIGHT
#undef ONE_OF
#undef TWO_OF
#undef FOUR_OF
#undef EIGHT_OF
#undef MFMA

#pragma clang force_cuda_host_device end

#endif  // BACKENDS_HIP_KERNEL_H_
