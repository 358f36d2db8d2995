// HIP on the CPU: the same source, each work-item of a block a fiber. Wavefronts of 64, LDS, barriers,
// exchanges between threads and matrix instructions with the operand layouts of the hardware.
//
// The source is compiled with -fsanitize=thread, whose calls before each access of memory are
// answered here: LDS and tensors have bounds, and LDS knows who touched it since the last barrier.
// A fault ends the launch and names block and thread. Threads and wavefronts run in order, or reversed.
#ifndef BACKENDS_HIP_NATIVE_HIP_RUNTIME_H_
#define BACKENDS_HIP_NATIVE_HIP_RUNTIME_H_

#define __global__
#define __device__
#define __host__
#define __shared__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))

#include "emulator.h"

#define threadIdx (emulated::now.thread)
#define blockIdx (emulated::now.block)
#define blockDim (emulated::now.threads)
#define gridDim (emulated::now.blocks)

inline void __syncthreads() { emulated::barrier(); }
inline unsigned place_in_wave() { return threadIdx.x % emulated::kWave; }

// Exchanges: what each thread gives, then what it gets of another.
template <class T>
inline T __shfl(T x, int thread) {
  return emulated::exchanged(x, thread % emulated::kWave);
}
template <class T>
inline T __shfl_up(T x, unsigned distance) {
  const int own = place_in_wave(), from = own - int(distance);
  return emulated::exchanged(x, from < 0 ? own : from);
}
template <class T>
inline T __shfl_xor(T x, int distance) {
  return emulated::exchanged(x, (int(place_in_wave()) ^ distance) % emulated::kWave);
}

// The modifiers of instructions (DPP) that move words within rows of 16 threads: four places of each quad,
// rotation to the right, reflection of halves.
inline int __builtin_amdgcn_mov_dpp(int x, int control, int rows, int banks, bool zeros) {
  const int own = place_in_wave(), row = own & ~15, in = own & 15;
  int from = -1;
  if (control < 0x100) from = (own & ~3) + (control >> 2 * (own & 3) & 3);
  else if (control > 0x120 && control < 0x130) from = row + ((in - (control & 15)) & 15);
  else if (control == 0x141) from = (own & ~7) + (7 - (own & 7));
  if (from < 0 || rows != 15 || banks != 15) emulated::fault("instruction", "a DPP control that is not emulated");
  return emulated::exchanged(x, from);
}
// In groups of 32 threads: and, or, xor masks of 5 bits each.
inline int __builtin_amdgcn_ds_swizzle(int x, int mask) {
  const int own = place_in_wave(), in = own & 31;
  return emulated::exchanged(x, (own & 32) + (((in & (mask & 31)) | (mask >> 5 & 31)) ^ (mask >> 10 & 31)));
}

// From global memory to LDS past the registers: arrives when the thread waits for it.
template <int kBytes>
inline void copy_to_lds(void* to, const void* from, bool inside) {
  emulated::copied_to_shared(to, inside ? from : nullptr, kBytes);
}
inline void wait_for_words() { emulated::land(); }

template <class T>
inline T atomicAdd(T* to, T x) {
  const T old = *to;
  *to = old + x;
  return old;
}
inline float unsafeAtomicAdd(float* to, float x) { return atomicAdd(to, x); }
inline unsigned atomicCAS(unsigned* to, unsigned old, unsigned x) {
  const unsigned found = *to;
  if (found == old) *to = x;
  return found;
}

// Hints to caches, which there are none of here.
#define __builtin_nontemporal_load(from) (*(from))
#define __builtin_nontemporal_store(from, to) (*(to) = (from))

inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }

#define OF_ONE(name) \
  inline float name##f(float x) { return __builtin_##name##f(x); }
OF_ONE(fabs) OF_ONE(floor) OF_ONE(ceil) OF_ONE(rint) OF_ONE(trunc) OF_ONE(sqrt)
OF_ONE(exp) OF_ONE(exp2) OF_ONE(expm1) OF_ONE(log) OF_ONE(log2) OF_ONE(log10) OF_ONE(log1p)
OF_ONE(erf) OF_ONE(erfc) OF_ONE(tanh) OF_ONE(sin) OF_ONE(cos) OF_ONE(tan) OF_ONE(asin) OF_ONE(acos)
OF_ONE(atan) OF_ONE(sinh) OF_ONE(cosh) OF_ONE(asinh) OF_ONE(acosh) OF_ONE(atanh)
#undef OF_ONE
#define OF_ONE(name) \
  inline double name(double x) { return __builtin_##name(x); }
OF_ONE(fabs) OF_ONE(floor) OF_ONE(ceil) OF_ONE(rint) OF_ONE(trunc) OF_ONE(sqrt)
OF_ONE(exp) OF_ONE(exp2) OF_ONE(expm1) OF_ONE(log) OF_ONE(log2) OF_ONE(log10) OF_ONE(log1p)
OF_ONE(erf) OF_ONE(erfc) OF_ONE(tanh) OF_ONE(sin) OF_ONE(cos) OF_ONE(tan) OF_ONE(asin) OF_ONE(acos)
OF_ONE(atan) OF_ONE(sinh) OF_ONE(cosh) OF_ONE(asinh) OF_ONE(acosh) OF_ONE(atanh)
#undef OF_ONE
inline double atan2(double a, double b) { return __builtin_atan2(a, b); }
inline double fmod(double a, double b) { return __builtin_fmod(a, b); }
inline double pow(double a, double b) { return __builtin_pow(a, b); }
inline double fmax(double a, double b) { return __builtin_fmax(a, b); }
inline double fmin(double a, double b) { return __builtin_fmin(a, b); }
inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
inline float atan2f(float a, float b) { return __builtin_atan2f(a, b); }
inline float fmodf(float a, float b) { return __builtin_fmodf(a, b); }
inline float powf(float a, float b) { return __builtin_powf(a, b); }
inline float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
inline float fminf(float a, float b) { return __builtin_fminf(a, b); }
inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }

// -- matrix instructions ----------------------------------------------------------------------------

namespace emulated {

template <class T, int kCount>
using Tuple = T __attribute__((ext_vector_type(kCount)));

template <class T>
HIDDEN inline float number(T x) { return float(x); }
HIDDEN inline float number(__bf16 x) {
  return __builtin_bit_cast(float, unsigned(__builtin_bit_cast(unsigned short, x)) << 16);
}
// Eight bits of which kFraction are of the significand, at any place of a word.
template <int kFraction, int kBias, int kCount>
struct Eights {
  unsigned char bytes[kCount];
  HIDDEN float operator[](int n) const {
    const int code = bytes[n] & 0x7f, exponent = code >> kFraction, part = code & ((1 << kFraction) - 1);
    const float sign = bytes[n] & 0x80 ? -1.0f : 1.0f;
    if (kFraction == 2 && exponent == 31) return part ? __builtin_nanf("") : sign * __builtin_inff();
    if (kFraction == 3 && code == 0x7f) return __builtin_nanf("");
    const int whole = exponent ? part + (1 << kFraction) : part;
    return sign * __builtin_ldexpf(float(whole), (exponent ? exponent : 1) - kBias - kFraction);
  }
};
template <int kCount>
struct Whole {
  signed char bytes[kCount];
  HIDDEN int operator[](int n) const { return bytes[n]; }
};

HIDDEN inline float number(short bf16) {
  return __builtin_bit_cast(float, unsigned(static_cast<unsigned short>(bf16)) << 16);
}

// D = A * B + C of kSide x kSide, K = kDepth. A thread holds kEach elements along K of row (A) or column
// (B) thread % kSide, from K = thread / kSide * kEach on, or in runs of kRun. Of D it holds column
// thread % kSide, in groups of kRows rows, which threads kSide apart have one after the other. CDNA 3 instruction set guide, "Matrix instructions".
template <int kSide, int kDepth, bool kRounded, int kRuns, int kRows, bool kScaled, class A, class B, class Out>
struct Multiplied {
  static constexpr int kEach = kDepth * kSide / kWave, kGroup = kRows * (kWave / kSide);
  static constexpr int kRun = kEach / kRuns, kBlock = 32;
  using Number = decltype(Out()[0] + 0);
  struct Given { A a; B b; Out c; unsigned char scales[2]; };

  template <class In>
  HIDDEN static Number part(const In& operand, int n) {
    if constexpr (sizeof(Number) == 8) return operand;
    else if constexpr (Number(0.5f) == 0) return operand[n];
    else {
      float x;
      if constexpr (kEach == 1) x = number(operand);
      else x = number(operand[n]);
      return kRounded ? rounded(x) : x;
    }
  }
  // Of a row of A and a column of B. A thread gives that of block thread / kSide of kBlock elements along K,
  // which are not those that it holds: test/mx_mfma_op of ROCm/composable_kernel.
  HIDDEN static auto scale(void** given, int row, int column, int k) {
    if constexpr (!kScaled) return Number(1);
    else {
      const int from = k / kBlock * kSide;
      const int a = static_cast<Given*>(given[from + row])->scales[0];
      const int b = static_cast<Given*>(given[from + column])->scales[1];
      return a == 255 || b == 255 ? __builtin_nan("") : __builtin_ldexp(1.0, a + b - 254);
    }
  }
  HIDDEN static void all(void** given) {
    static Number left[kSide][kDepth], right[kDepth][kSide];
    for (int thread = 0; thread < kWave; ++thread) {
      const Given& one = *static_cast<const Given*>(given[thread]);
      for (int n = 0; n < kEach; ++n) {
        const int k = n / kRun * kRun * (kWave / kSide) + thread / kSide * kRun + n % kRun;
        left[thread % kSide][k] = part(one.a, n);
        right[k][thread % kSide] = part(one.b, n);
      }
    }
    for (int row = 0; row < kSide; ++row) {
      Number sums[kSide];
      const int held = row / kGroup * kRows + row % kRows, first = row % kGroup / kRows * kSide;
      for (int n = 0; n < kSide; ++n) sums[n] = static_cast<Given*>(given[first + n])->c[held];
      for (int k = 0; k < kDepth; ++k)
        for (int n = 0; n < kSide; ++n) sums[n] += left[row][k] * right[k][n] * scale(given, row, n, k);
      for (int n = 0; n < kSide; ++n) static_cast<Given*>(given[first + n])->c[held] = sums[n];
    }
  }
};
template <int kSide, int kDepth, bool kRounded, int kRuns = 1, int kRows = 4, bool kScaled = false, class A, class B, class Out>
HIDDEN inline Out multiplied(A a, B b, Out c, int a_scale = 0, int b_scale = 0) {
  using Way = Multiplied<kSide, kDepth, kRounded, kRuns, kRows, kScaled, A, B, Out>;
  typename Way::Given mine{a, b, c, {static_cast<unsigned char>(a_scale), static_cast<unsigned char>(b_scale)}};
  collective(&mine, Way::all);
  return mine.c;
}

}  // namespace emulated

#define MFMA(name, side, depth, count, each, T, rounded)                                         \
  inline emulated::Tuple<float, count> __builtin_amdgcn_mfma_f32_##name(                         \
      emulated::Tuple<T, each> a, emulated::Tuple<T, each> b, emulated::Tuple<float, count> c,   \
      int, int, int) {                                                                           \
    return emulated::multiplied<side, depth, rounded>(a, b, c);                                  \
  }
#define MFMA_OF_ONE(name, side, depth, count)                                                     \
  inline emulated::Tuple<float, count> __builtin_amdgcn_mfma_f32_##name(                          \
      float a, float b, emulated::Tuple<float, count> c, int, int, int) {                         \
    return emulated::multiplied<side, depth, false>(a, b, c);                                     \
  }
MFMA(16x16x16f16, 16, 16, 4, 4, _Float16, false)
MFMA(16x16x16bf16_1k, 16, 16, 4, 4, short, false)
MFMA(32x32x8f16, 32, 8, 16, 4, _Float16, false)
MFMA(32x32x8bf16_1k, 32, 8, 16, 4, short, false)
MFMA_OF_ONE(16x16x4f32, 16, 4, 4)
MFMA_OF_ONE(32x32x2f32, 32, 2, 16)
MFMA(16x16x8_xf32, 16, 8, 4, 2, float, true)
MFMA(32x32x4_xf32, 32, 4, 16, 2, float, true)
MFMA(16x16x32_f16, 16, 32, 4, 8, _Float16, false)
MFMA(32x32x16_f16, 32, 16, 16, 8, _Float16, false)
MFMA(16x16x32_bf16, 16, 32, 4, 8, __bf16, false)
MFMA(32x32x16_bf16, 32, 16, 16, 8, __bf16, false)
inline emulated::Tuple<double, 4> __builtin_amdgcn_mfma_f64_16x16x4f64(
    double a, double b, emulated::Tuple<double, 4> c, int, int, int) {
  return emulated::multiplied<16, 4, false, 1, 1>(a, b, c);
}
#define MFMA_OF_I8(name, side, depth, count, Words)                                               \
  inline emulated::Tuple<int, count> __builtin_amdgcn_mfma_i32_##name##_i8(                       \
      Words a, Words b, emulated::Tuple<int, count> c, int, int, int) {                           \
    using In = emulated::Whole<sizeof(Words)>;                                                    \
    return emulated::multiplied<side, depth, false>(                                              \
        __builtin_bit_cast(In, a), __builtin_bit_cast(In, b), c);                                 \
  }
#define WORDS(count) emulated::Tuple<int, count>
MFMA_OF_I8(16x16x32, 16, 32, 4, long)
MFMA_OF_I8(32x32x16, 32, 16, 16, long)
MFMA_OF_I8(16x16x64, 16, 64, 4, WORDS(4))
MFMA_OF_I8(32x32x32, 32, 32, 16, WORDS(4))
#define MFMA_OF_EIGHT(name, side, depth, count, A, B)                                             \
  inline emulated::Tuple<float, count> __builtin_amdgcn_mfma_f32_##name(                          \
      long a, long b, emulated::Tuple<float, count> c, int, int, int) {                           \
    return emulated::multiplied<side, depth, false>(                                              \
        __builtin_bit_cast(A, a), __builtin_bit_cast(B, b), c);                                   \
  }
#define FP8(count) emulated::Eights<3, 7, count>
#define BF8(count) emulated::Eights<2, 15, count>
#define MFMA_OF_EIGHTS(shape, side, depth, count)                                                 \
  MFMA_OF_EIGHT(shape##_fp8_fp8, side, depth, count, FP8(8), FP8(8))                              \
  MFMA_OF_EIGHT(shape##_fp8_bf8, side, depth, count, FP8(8), BF8(8))                              \
  MFMA_OF_EIGHT(shape##_bf8_fp8, side, depth, count, BF8(8), FP8(8))                              \
  MFMA_OF_EIGHT(shape##_bf8_bf8, side, depth, count, BF8(8), BF8(8))
MFMA_OF_EIGHTS(16x16x32, 16, 32, 4)
MFMA_OF_EIGHTS(32x32x16, 32, 16, 16)
// Forms: 0 is f8e4m3, 1 f8e5m2. A scale is the byte of a word that a number before it says. As the compiler
// does, constants 0 as scales are taken for none.
#define NO_SCALES __attribute__((enable_if(a_scale == 0 && b_scale == 0, "no scales")))
#define MFMA_OF_FORMS(name, side, depth, count)                                                   \
  MFMA_OF_FORM(name, side, depth, count, false, NO_SCALES)                                        \
  MFMA_OF_FORM(name, side, depth, count, true, )
#define MFMA_OF_FORM(name, side, depth, count, scaled, which)                                     \
  inline emulated::Tuple<float, count> __builtin_amdgcn_mfma_scale_f32_##name##_f8f6f4(           \
      WORDS(8) a, WORDS(8) b, emulated::Tuple<float, count> c, int form_a, int form_b,            \
      int byte_a, int a_scale, int byte_b, int b_scale) which {                                   \
    const auto left = [&](auto kind) { return __builtin_bit_cast(decltype(kind), a); };           \
    const auto right = [&](auto kind) { return __builtin_bit_cast(decltype(kind), b); };          \
    const auto with = [&](auto x, auto y) {                                                       \
      return emulated::multiplied<side, depth, false, 2, 4, scaled>(                              \
          left(x), right(y), c, a_scale >> 8 * byte_a, b_scale >> 8 * byte_b);                    \
    };                                                                                            \
    const FP8(32) fp8{};                                                                          \
    const BF8(32) bf8{};                                                                          \
    if (form_a) return form_b ? with(bf8, bf8) : with(bf8, fp8);                                  \
    return form_b ? with(fp8, bf8) : with(fp8, fp8);                                              \
  }
MFMA_OF_FORMS(16x16x128, 16, 128, 4)
MFMA_OF_FORMS(32x32x64, 32, 64, 16)
#undef MFMA
#undef MFMA_OF_ONE
#undef MFMA_OF_I8
#undef MFMA_OF_EIGHT
#undef MFMA_OF_EIGHTS
#undef MFMA_OF_FORMS
#undef MFMA_OF_FORM
#undef NO_SCALES
#undef WORDS
#undef FP8
#undef BF8

#endif  // BACKENDS_HIP_NATIVE_HIP_RUNTIME_H_
