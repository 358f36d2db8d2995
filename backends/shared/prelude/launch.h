// What a kernel is called with, and what its loops call beside the functions of the language.
#ifndef BACKENDS_SHARED_PRELUDE_LAUNCH_H_
#define BACKENDS_SHARED_PRELUDE_LAUNCH_H_

#include "functions.h"

// Contiguous elements; the index of one is the reader's to compute.
template <class T>
struct Array {
  T* data;
  T& operator()(Index at) const { return data[at]; }
};

// The arguments of a launch: its tensors, its sizes, and how many threads may run it.
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
inline bool in_bounds(Index at, Index size) { return u64(at) < u64(size); }

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

// What has an order: formats of 16 bits as f32, others as they are.
template <class T>
inline T ordered(T x) {
  return x;
}
inline float ordered(bf16 x) { return float(x); }
inline float ordered(f16 x) { return float(x); }

// How many of sorted entries are less than x, which may have another type.
template <class T, class X>
inline i32 rank(Array<T> borders, Index count, X x) {
  Index low = 0, high = count;
  while (low < high) {
    const Index middle = (low + high) / 2;
    if (ordered(borders(middle)) < ordered(x))
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

#endif  // BACKENDS_SHARED_PRELUDE_LAUNCH_H_
