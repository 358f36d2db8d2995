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

// How elements of a type are multiplied and summed: `wide` is a vector of b, of as many of its rows
// as one step takes; `added` is a sum with its products with as many of a.
template <class T>
struct Multiplied {
  using Sum = T;
  typedef T Vector __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  typedef Vector Wide;
  static constexpr int kTogether = 1;  // values of k in one step
  static Wide wide(const T* row, Index) { return *reinterpret_cast<const Vector*>(row); }
  static Vector added(Vector sum, const T* one, Wide b) { return sum + *one * b; }
};

// Products of bf16 are exact in f32. The processor multiplies pairs of them where it can.
template <>
struct Multiplied<bf16> {
  using Sum = float;
  typedef float Vector __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
  typedef u32 Wide __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
  typedef u16 Half __attribute__((vector_size(kVectorBytes / 2), aligned(2), may_alias));
  static Wide wide(const bf16* row) {
    return __builtin_convertvector(*reinterpret_cast<const Half*>(row), Wide);
  }
#ifdef __AVX512BF16__
  static constexpr int kTogether = 2;
  static Wide wide(const bf16* row, Index stride) { return wide(row) | wide(row + stride) << 16; }
  static Vector added(Vector sum, const bf16* pair, Wide b) {
    const __m512i a = _mm512_set1_epi32(i32(u32(pair[0].held) | u32(pair[1].held) << 16));
    return Vector(_mm512_dpbf16_ps(__m512(sum), (__m512bh)a, (__m512bh)b));
  }
#else
  static constexpr int kTogether = 1;
  static Wide wide(const bf16* row, Index) { return wide(row) << 16; }
  static Vector added(Vector sum, const bf16* one, Wide b) { return sum + float(*one) * Vector(b); }
#endif
};

// c[m, n] = the sum of a[m, k] * b[k, n]; whoever makes it fills a and b, calls run and reads c, or
// has the rows of an array written or added to. E: the type of the operands.
template <class E>
struct Product {
  using Of = Multiplied<E>;
  using T = typename Of::Sum;
  using Vector = typename Of::Vector;
  static constexpr Index kWide = kVectorBytes / sizeof(T), kColumns = 2 * kWide;
  static constexpr int kTogether = Of::kTogether;
  Index rows, columns, depth, across, stride;
  E *left, *right;
  T* result;

  // Rows of b and c are a little longer than a power of two, so that they share no cache set.
  Product(Index m, Index n, Index k)
      : rows(m),
        columns(n),
        depth(k),
        across(tiles(k, kTogether) * kTogether),
        stride(tiles(n, kColumns) * kColumns + kWide) {
    left = static_cast<E*>(product_blocks[0].room((m * across + 1) * Index(sizeof(E))));
    right = static_cast<E*>(product_blocks[1].room((across + 1) * stride * Index(sizeof(E))));
    result = static_cast<T*>(product_blocks[2].room((m + 1) * stride * Index(sizeof(T))));
    for (k = depth; k < across; ++k) {
      for (m = 0; m < rows; ++m) a(m, k) = E(0);
      for (n = 0; n < stride; ++n) b(k, n) = E(0);
    }
  }
  E& a(Index m, Index k) const { return left[m * across + k]; }
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

  // Two vectors of columns of b: `steps` steps from row `first` on.
  struct Columns {
    const typename Of::Wide (*wide)[2];
    Index first, steps;
  };

  void column(T* onto, Index row, Index n, Index first, bool add) const {
    typename Of::Wide block[kDepth / kTogether][2];
    const Index end = least(across, first + kDepth), steps = (end - first) / kTogether;
    for (Index i = 0; i < steps; ++i)
      for (int v = 0; v < 2; ++v)
        block[i][v] = Of::wide(&b(first + i * kTogether, n + v * kWide), stride);
    Index m = 0;
    const Columns these{block, first, steps};
    for (; m + kRows <= rows; m += kRows) part<kRows>(onto + m * row, row, m, add, these);
    for (; m + 2 <= rows; m += 2) part<2>(onto + m * row, row, m, add, these);
    for (; m < rows; ++m) part<1>(onto + m * row, row, m, add, these);
  }

  // A few rows and columns, which are summed in registers.
  template <int kPart>
  void part(T* onto, Index row, Index m, bool add, const Columns& block) const {
    Vector sum[kPart][2];
    for (int r = 0; r < kPart; ++r)
      for (int v = 0; v < 2; ++v)
        sum[r][v] = add ? *reinterpret_cast<const Vector*>(onto + r * row + v * kWide) : Vector{};
    for (Index i = 0; i < block.steps; ++i) {
      const auto low = block.wide[i][0], high = block.wide[i][1];
#pragma GCC unroll 8
      for (int r = 0; r < kPart; ++r) {
        const E* some = &a(m + r, block.first + i * kTogether);
        sum[r][0] = Of::added(sum[r][0], some, low);
        sum[r][1] = Of::added(sum[r][1], some, high);
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
