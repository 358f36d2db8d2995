#include "backends/sim/native/gemm.h"

#include <algorithm>

namespace sim {
namespace {

using device::Index;

// The tile of c that stays in registers: kRows rows of two vectors of four.
constexpr Index kRows = 4;
constexpr Index kColumns = 8;
constexpr Index kDepth = 256;  // steps of k between two visits to c

// The compiler's vector types work on any machine, and never contract a * b + c.
template <class T>
using Vector __attribute__((vector_size(16))) = T;

template <class T>
Vector<T> load(const T* from) {
  Vector<T> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class T>
Vector<T> all(T value) {
  return Vector<T>{value, value, value, value};
}

// One tile: `a` holds kRows values for each step of k, `b` kColumns. The sums are variables, not
// an array, so that they stay in registers at any level of optimisation.
template <class T>
void micro(Index k, const T* a, const T* b, T* out) {
  Vector<T> s00{}, s01{}, s10{}, s11{}, s20{}, s21{}, s30{}, s31{};
  for (Index step = 0; step < k; ++step, a += kRows, b += kColumns) {
    const Vector<T> b0 = load(b);
    const Vector<T> b1 = load(b + 4);
    const Vector<T> a0 = all(a[0]), a1 = all(a[1]), a2 = all(a[2]), a3 = all(a[3]);
    s00 += a0 * b0, s01 += a0 * b1;
    s10 += a1 * b0, s11 += a1 * b1;
    s20 += a2 * b0, s21 += a2 * b1;
    s30 += a3 * b0, s31 += a3 * b1;
  }
  const Vector<T> sums[] = {s00, s01, s10, s11, s20, s21, s30, s31};
  __builtin_memcpy(out, sums, sizeof sums);
}

// Panels of `width` rows (or columns): for each step of k, their values contiguous; the last
// panel is filled with zeros.
template <class T>
void pack(const T* from, Index outer_stride, Index k_stride, Index count, Index k, Index width,
          T* to) {
  for (Index first = 0; first < count; first += width) {
    const Index some = std::min(width, count - first);
    for (Index step = 0; step < k; ++step, to += width) {
      const T* source = from + first * outer_stride + step * k_stride;
      for (Index i = 0; i < some; ++i) to[i] = source[i * outer_stride];
      for (Index i = some; i < width; ++i) to[i] = 0;
    }
  }
}

template <class T>
void add_tile(const T* tile, Index rows, Index columns, T* c, Index stride) {
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) c[i * stride + j] += tile[i * kColumns + j];
}

template <class T>
void product(Index m, Index n, Index k, const T* a, const T* b, T* c) {
  const Index row_panels = (m + kRows - 1) / kRows;
  const Index column_panels = (n + kColumns - 1) / kColumns;
  const Index most = std::min(k, kDepth);
  std::vector<T> packed_a(static_cast<std::size_t>(row_panels * kRows * most));
  std::vector<T> packed_b(static_cast<std::size_t>(column_panels * kColumns * most));
  T tile[kRows * kColumns];
  for (Index first = 0; first < k; first += kDepth) {
    const Index depth = std::min(kDepth, k - first);
    pack(a + first, k, Index{1}, m, depth, kRows, packed_a.data());
    pack(b + first * n, Index{1}, n, n, depth, kColumns, packed_b.data());
    for (Index j = 0; j < column_panels; ++j) {
      const T* panel_b = packed_b.data() + j * kColumns * depth;
      for (Index i = 0; i < row_panels; ++i) {
        micro(depth, packed_a.data() + i * kRows * depth, panel_b, tile);
        add_tile(tile, std::min(kRows, m - i * kRows), std::min(kColumns, n - j * kColumns),
                 c + i * kRows * n + j * kColumns, n);
      }
    }
  }
}

}  // namespace

void gemm(Index m, Index n, Index k, const float* a, const float* b, float* c) {
  product(m, n, k, a, b, c);
}

void gemm(Index m, Index n, Index k, const std::int32_t* a, const std::int32_t* b,
          std::int32_t* c) {
  // Unsigned, so that overflow wraps.
  using U = std::uint32_t;
  product(m, n, k, reinterpret_cast<const U*>(a), reinterpret_cast<const U*>(b),
          reinterpret_cast<U*>(c));
}

}  // namespace sim
