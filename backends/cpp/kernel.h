// What a kernel for the local machine adds to the prelude: threads, and a matmul in vectors.
#ifndef BACKENDS_CPP_KERNEL_H_
#define BACKENDS_CPP_KERNEL_H_

#include <omp.h>
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

#include "launch.h"
#include "arena.h"

inline bool first_thread() { return omp_get_thread_num() == 0; }

namespace {

thread_local Block product_blocks[3];

#ifdef __AVX512F__
constexpr int kVectorBytes = 64, kRows = 8;
#else
constexpr int kVectorBytes = 32, kRows = 6;
#endif
constexpr Index kDepth = 256;  // of a block of K: its columns of b stay in the first-level cache

// How a matmul multiplies operands of type E into sums of type Sum. A K step takes kStep values of
// k; Word: those of one column of b. kPacked: rows of b hold no words, so `operand` makes them.
template <class E>
struct MultiplyAdd {
  using Sum = E;
  using Word = E;
  typedef E Vector __attribute__((vector_size(kVectorBytes), aligned(sizeof(E)), may_alias));
  typedef Vector Operand;
  static constexpr bool kPacked = false;
  static constexpr int kStep = 1;
  static Vector multiply_add(Vector sum, const E* a, Operand b) { return sum + *a * b; }
};

// Products of bf16 are exact in f32. A K step is two values of k where the processor has dpbf16.
template <>
struct MultiplyAdd<bf16> {
  using Sum = float;
  using Word = u32;
  typedef float Vector __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
  typedef u32 Operand __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
  typedef u16 Half __attribute__((vector_size(kVectorBytes / 2), aligned(2), may_alias));
  static constexpr bool kPacked = true;
  static Operand extended(const bf16* row) {
    return __builtin_convertvector(*reinterpret_cast<const Half*>(row), Operand);
  }
#ifdef __AVX512BF16__
  static constexpr int kStep = 2;
  static Operand operand(const bf16* row, Index stride) {
    return extended(row) | extended(row + stride) << 16;
  }
  static Vector multiply_add(Vector sum, const bf16* a, Operand b) {
    const __m512i pair = _mm512_set1_epi32(i32(u32(a[0].held) | u32(a[1].held) << 16));
    return Vector(_mm512_dpbf16_ps(__m512(sum), (__m512bh)pair, (__m512bh)b));
  }
#else
  static constexpr int kStep = 1;
  static Operand operand(const bf16* row, Index) { return extended(row) << 16; }
  static Vector multiply_add(Vector sum, const bf16* a, Operand b) {
    return sum + float(*a) * Vector(b);
  }
#endif
};

// c[m, n] = the sum of a[m, k] * b[k, n]; whoever makes it fills a and b, calls run and reads c, or
// has the rows of an array written or added to. E: the type of the operands.
template <class E>
struct Product {
  using Math = MultiplyAdd<E>;
  using T = typename Math::Sum;
  using Word = typename Math::Word;
  using Operand = typename Math::Operand;
  using Vector = typename Math::Vector;
  static constexpr Index kElements = kVectorBytes / sizeof(T), kColumns = 2 * kElements;
  static constexpr int kStep = Math::kStep;
  Index rows, columns, depth;
  Index padded;  // depth, up to whole K steps
  Index stride;  // of b and of c: a little longer than a power of two, so that rows share no cache set
  E *left, *right;
  T* result;

  Product(Index m, Index n, Index k)
      : rows(m),
        columns(n),
        depth(k),
        padded(tiles(k, kStep) * kStep),
        stride(tiles(n, kColumns) * kColumns + kElements) {
    left = static_cast<E*>(product_blocks[0].reserve((m * padded + 1) * Index(sizeof(E))));
    right = static_cast<E*>(product_blocks[1].reserve((padded + 1) * stride * Index(sizeof(E))));
    result = static_cast<T*>(product_blocks[2].reserve((m + 1) * stride * Index(sizeof(T))));
    for (k = depth; k < padded; ++k) {
      for (m = 0; m < rows; ++m) a(m, k) = E(0);
      for (n = 0; n < stride; ++n) b(k, n) = E(0);
    }
  }
  E& a(Index m, Index k) const { return left[m * padded + k]; }
  E& b(Index k, Index n) const { return right[k * stride + n]; }
  T& c(Index m, Index n) const { return result[m * stride + n]; }

  void run() const { run_onto(result, stride, false, true); }
  void run(Array<T> onto, Index at, Index row, bool accumulate) const {
    run_onto(onto.data + at, row, accumulate, false);
  }

  // spare: whether rows of c go on beyond their last column.
  void run_onto(T* onto, Index row, bool accumulate, bool spare) const {
    for (Index k = 0; k < depth || k == 0; k += kDepth)
      for (Index n = 0; n < columns; n += kColumns) {
        const bool add = accumulate || k > 0;
        if (spare || n + kColumns <= columns) {
          run_columns(onto + n, row, n, k, add);
          continue;
        }
        const Index live = columns - n;  // of the last columns a copy is written
        for (Index m = 0; m < rows; ++m)
          for (Index i = 0; i < live; ++i) c(m, i) = onto[m * row + n + i];
        run_columns(result, stride, n, k, add);
        for (Index m = 0; m < rows; ++m)
          for (Index i = 0; i < live; ++i) onto[m * row + n + i] = c(m, i);
      }
  }

  // kColumns words for each of `steps` K steps, from row `first` of b on.
  struct Panel {
    const Word* words;
    Index stride, first, steps;
  };

  void run_columns(T* onto, Index row, Index n, Index first, bool add) const {
    const Index steps = (least(padded, first + kDepth) - first) / kStep;
    if constexpr (Math::kPacked) {
      alignas(64) Word packed[kDepth / kStep * kColumns];
      for (Index i = 0; i < steps; ++i)
        for (Index v = 0; v < kColumns; v += kElements)
          *reinterpret_cast<Operand*>(packed + i * kColumns + v) =
              Math::operand(&b(first + i * kStep, n + v), stride);
      run_panel(onto, row, add, {packed, kColumns, first, steps});
    } else {
      run_panel(onto, row, add, {&b(first, n), stride, first, steps});
    }
  }

  void run_panel(T* onto, Index row, bool add, const Panel& panel) const {
    Index m = 0;
    for (; m + kRows <= rows; m += kRows) register_tile<kRows>(onto + m * row, row, m, add, panel);
    for (; m + 2 <= rows; m += 2) register_tile<2>(onto + m * row, row, m, add, panel);
    for (; m < rows; ++m) register_tile<1>(onto + m * row, row, m, add, panel);
  }

  // A few rows of a panel, which are summed in registers.
  template <int kTile>
  void register_tile(T* onto, Index row, Index m, bool add, const Panel& panel) const {
    Vector sum[kTile][2];
    for (int r = 0; r < kTile; ++r)
      for (int v = 0; v < 2; ++v)
        sum[r][v] =
            add ? *reinterpret_cast<const Vector*>(onto + r * row + v * kElements) : Vector{};
    for (Index i = 0; i < panel.steps; ++i) {
      const Operand* operands = reinterpret_cast<const Operand*>(panel.words + i * panel.stride);
      const Operand low = operands[0], high = operands[1];
#pragma GCC unroll 8
      for (int r = 0; r < kTile; ++r) {
        const E* at = &a(m + r, panel.first + i * kStep);
        sum[r][0] = Math::multiply_add(sum[r][0], at, low);
        sum[r][1] = Math::multiply_add(sum[r][1], at, high);
      }
    }
    for (int r = 0; r < kTile; ++r)
      for (int v = 0; v < 2; ++v)
        *reinterpret_cast<Vector*>(onto + r * row + v * kElements) = sum[r][v];
  }
};

}  // namespace

#pragma omp declare reduction(larger : float : omp_out = fn::maximum(omp_out, omp_in)) \
    initializer(omp_priv = -fn::kInfinity)
#pragma omp declare reduction(smaller : float : omp_out = fn::minimum(omp_out, omp_in)) \
    initializer(omp_priv = fn::kInfinity)

#endif  // BACKENDS_CPP_KERNEL_H_
