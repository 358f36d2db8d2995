// Matrix instructions of a wavefront, as functions of registers. Part of kernel.h.
#ifndef BACKENDS_HIP_MATRICES_H_
#define BACKENDS_HIP_MATRICES_H_

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
// The last four are scales of blocks along K: where all are the constant 0, there are none. Before them, the forms of B and A.
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
// With scales: of a thread's row of A, or column of B, and block thread / M of 32 elements along K.
#define SCALED_MFMA(shape, count, A, B, form_a, form_b)                                           \
  inline void mfma_scaled_##shape(C##count##_OF(float), THIRTY_TWO(A, a), THIRTY_TWO(B, b),        \
                                  f8e8m0 a_scale, f8e8m0 b_scale) {                               \
    const auto d = __builtin_amdgcn_mfma_scale_f32_##shape##_f8f6f4(                              \
        bytes_as<Words8>(OF_THIRTY_TWO(b)), bytes_as<Words8>(OF_THIRTY_TWO(a)),                   \
        Tuple<float, count>{ALL##count}, form_b, form_a, 0, b_scale.bits, 0, a_scale.bits);       \
    SET##count(d);                                                                                \
  }
#define SCALED_MFMAS(A, B, form_a, form_b)                                                        \
  SCALED_MFMA(16x16x128, 4, A, B, form_a, form_b) SCALED_MFMA(32x32x64, 16, A, B, form_a, form_b)
SCALED_MFMAS(f8e4m3, f8e4m3, 0, 0) SCALED_MFMAS(f8e4m3, f8e5m2, 0, 1)
SCALED_MFMAS(f8e5m2, f8e4m3, 1, 0) SCALED_MFMAS(f8e5m2, f8e5m2, 1, 1)
#undef SCALED_MFMA
#undef SCALED_MFMAS
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

#endif  // BACKENDS_HIP_MATRICES_H_
