// What an emitted kernel is made of: tensors, tiles in scratch, and products of packed tiles.
#ifndef BACKENDS_CPP_KERNEL_H_
#define BACKENDS_CPP_KERNEL_H_

#include <omp.h>
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif
#include <stdlib.h>

#include "functions.h"

// contiguous elements; whoever reads one says where it lies.
template <class T>
struct Array {
  T* data;
  T& operator()(Index at) const { return data[at]; }
};

// What a kernel is called with.
struct Args {
  void* const* tensors;
  const Index* sizes;
  Index threads;

  Index size(Index n) const { return sizes[n]; }
  template <class T>
  Array<T> array(Index n) const {
    return {static_cast<T*>(tensors[n])};
  }
};

#define KERNEL(name) extern "C" void name(const Args& args)

inline Index least(Index a, Index b) { return a < b ? a : b; }
inline Index tiles(Index size, Index tile) { return (size + tile - 1) / tile; }
inline bool first_thread() { return omp_get_thread_num() == 0; }
inline bool inside(Index at, Index size) { return u64(at) < u64(size); }

namespace {

// The memory of one thread: the n-th tile that a kernel takes lies where the last n-th one did. It
// begins some cache lines into a page, others for each tile: loads and stores whose addresses end
// alike wait for each other.
struct Block {
  void* data = nullptr;
  Index bytes = 0;
  ~Block() { free(data); }
  void* room(Index wanted) {
    if (wanted > bytes) {
      free(data);
      bytes = (wanted + 4095) / 4096 * 4096;
      data = aligned_alloc(4096, bytes);
      if (data == nullptr) abort();
    }
    return data;
  }
};
constexpr int kMostTiles = 512;
thread_local Block blocks[kMostTiles], product_blocks[3];

struct Scratch {
  int taken = 0;
  template <class T>
  Array<T> take(Index count) {
    if (taken == kMostTiles) abort();
    const Index bytes = (count < 1 ? 1 : count) * Index(sizeof(T)), aside = taken * 320 % 4096;
    char* room = static_cast<char*>(blocks[taken++].room(bytes + aside));
    return {reinterpret_cast<T*>(room + aside)};
  }
};

#ifdef __AVX512F__
constexpr int kVectorBytes = 64, kRows = 8;
#else
constexpr int kVectorBytes = 32, kRows = 6;
#endif
constexpr Index kDepth = 256;  // of a block: its columns of b stay in the first-level cache

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
  using Of = MultiplyAdd<E>;
  using T = typename Of::Sum;
  using Word = typename Of::Word;
  using Operand = typename Of::Operand;
  using Vector = typename Of::Vector;
  static constexpr Index kWide = kVectorBytes / sizeof(T), kColumns = 2 * kWide;
  static constexpr int kStep = Of::kStep;
  Index rows, columns, depth;
  Index padded;  // depth, up to whole K steps
  Index stride;
  E *left, *right;
  T* result;

  // Rows of b and c are a little longer than a power of two, so that they share no cache set.
  Product(Index m, Index n, Index k)
      : rows(m),
        columns(n),
        depth(k),
        padded(tiles(k, kStep) * kStep),
        stride(tiles(n, kColumns) * kColumns + kWide) {
    left = static_cast<E*>(product_blocks[0].room((m * padded + 1) * Index(sizeof(E))));
    right = static_cast<E*>(product_blocks[1].room((padded + 1) * stride * Index(sizeof(E))));
    result = static_cast<T*>(product_blocks[2].room((m + 1) * stride * Index(sizeof(T))));
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

  // room: whether rows of c have some beyond their last column.
  void run_onto(T* onto, Index row, bool accumulate, bool room) const {
    for (Index k = 0; k < depth || k == 0; k += kDepth)
      for (Index n = 0; n < columns; n += kColumns) {
        const bool add = accumulate || k > 0;
        if (room || n + kColumns <= columns) {
          column(onto + n, row, n, k, add);
          continue;
        }
        const Index left_over = columns - n;  // of the last columns a copy is written
        for (Index m = 0; m < rows; ++m)
          for (Index i = 0; i < left_over; ++i) c(m, i) = onto[m * row + n + i];
        column(result, stride, n, k, add);
        for (Index m = 0; m < rows; ++m)
          for (Index i = 0; i < left_over; ++i) onto[m * row + n + i] = c(m, i);
      }
  }

  // kColumns words for each of `steps` K steps, from row `first` of b on.
  struct Panel {
    const Word* words;
    Index stride, first, steps;
  };

  void column(T* onto, Index row, Index n, Index first, bool add) const {
    const Index steps = (least(padded, first + kDepth) - first) / kStep;
    if constexpr (Of::kPacked) {
      alignas(64) Word packed[kDepth / kStep * kColumns];
      for (Index i = 0; i < steps; ++i)
        for (Index v = 0; v < kColumns; v += kWide)
          *reinterpret_cast<Operand*>(packed + i * kColumns + v) =
              Of::operand(&b(first + i * kStep, n + v), stride);
      multiply(onto, row, add, {packed, kColumns, first, steps});
    } else {
      multiply(onto, row, add, {&b(first, n), stride, first, steps});
    }
  }

  void multiply(T* onto, Index row, bool add, const Panel& panel) const {
    Index m = 0;
    for (; m + kRows <= rows; m += kRows) part<kRows>(onto + m * row, row, m, add, panel);
    for (; m + 2 <= rows; m += 2) part<2>(onto + m * row, row, m, add, panel);
    for (; m < rows; ++m) part<1>(onto + m * row, row, m, add, panel);
  }

  // A few rows and columns, which are summed in registers.
  template <int kPart>
  void part(T* onto, Index row, Index m, bool add, const Panel& panel) const {
    Vector sum[kPart][2];
    for (int r = 0; r < kPart; ++r)
      for (int v = 0; v < 2; ++v)
        sum[r][v] = add ? *reinterpret_cast<const Vector*>(onto + r * row + v * kWide) : Vector{};
    for (Index i = 0; i < panel.steps; ++i) {
      const Operand* operands = reinterpret_cast<const Operand*>(panel.words + i * panel.stride);
      const Operand low = operands[0], high = operands[1];
#pragma GCC unroll 8
      for (int r = 0; r < kPart; ++r) {
        const E* at = &a(m + r, panel.first + i * kStep);
        sum[r][0] = Of::multiply_add(sum[r][0], at, low);
        sum[r][1] = Of::multiply_add(sum[r][1], at, high);
      }
    }
    for (int r = 0; r < kPart; ++r)
      for (int v = 0; v < 2; ++v)
        *reinterpret_cast<Vector*>(onto + r * row + v * kWide) = sum[r][v];
  }
};

// The ends of an integer type.
template <class T>
constexpr T least_of() {
  if (sizeof(T) >= 4) return sizeof(T) == 8 ? T(INT64_MIN) : T(INT32_MIN);
  return T(T(-1) < 0 ? -(1 << (8 * sizeof(T) - 1)) : 0);
}
template <class T>
constexpr T most_of() {
  return T(~u64(least_of<T>()));
}

// How many of sorted entries are less than x.
template <class T>
inline i32 rank(Array<T> borders, Index count, T x) {
  Index low = 0, high = count;
  while (low < high) {
    const Index middle = (low + high) / 2;
    if (borders(middle) < x)
      low = middle + 1;
    else
      high = middle;
  }
  return i32(low);
}

// Adds to memory in one step that no other thread comes between.
inline void add_to(Array<float> to, Index at, float x) {
  float seen, next;
  __atomic_load(to.data + at, &seen, __ATOMIC_RELAXED);
  do next = seen + x;
  while (!__atomic_compare_exchange(to.data + at, &seen, &next, true, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED));
}
inline void add_to(Array<i32> to, Index at, i32 x) {
  __atomic_fetch_add(to.data + at, x, __ATOMIC_RELAXED);
}

}  // namespace

#pragma omp declare reduction(larger : float : omp_out = fn::maximum(omp_out, omp_in)) \
    initializer(omp_priv = -fn::kInfinity)
#pragma omp declare reduction(smaller : float : omp_out = fn::minimum(omp_out, omp_in)) \
    initializer(omp_priv = fn::kInfinity)

#endif  // BACKENDS_CPP_KERNEL_H_
