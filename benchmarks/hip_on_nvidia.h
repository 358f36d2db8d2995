// What an emitted HIP kernel without matrix instructions calls, on a GPU of NVIDIA. A wavefront of 64 is two
// warps, which exchange words through shared memory and have a barrier of their own.
#ifndef BENCHMARKS_HIP_ON_NVIDIA_H_
#define BENCHMARKS_HIP_ON_NVIDIA_H_

// Those of CUDA C++ exchange within a warp.
#define shuffle_xor shuffle_xor_of_warp
#define scan scan_of_warp
#include "cuda_kernel.h"
#undef shuffle_xor
#undef scan
#undef __maxnreg__
#define __maxnreg__(registers)  // of another chip

constexpr int kWave = 64, kMostWaves = 15;  // barrier 0 is that of the block, and there are 16

__shared__ u32 exchanged[kMostWaves][kWave];

// The word of another thread of the wavefront. The first barrier waits until the words of the last exchange
// are read, the second until those of this one are written.
inline u32 word_of(u32 x, int thread) {
  const int wave = threadIdx.x / kWave;
  asm volatile("bar.sync %0, 64;" ::"r"(wave + 1) : "memory");
  exchanged[wave][threadIdx.x % kWave] = x;
  asm volatile("bar.sync %0, 64;" ::"r"(wave + 1) : "memory");
  return exchanged[wave][thread];
}

template <class T>
inline T of_thread(T x, int thread) {
  constexpr int kWords = (sizeof(T) + 3) / 4;
  u32 words[kWords] = {};
  memcpy(words, &x, sizeof(T));
#pragma unroll
  for (int n = 0; n < kWords; ++n) words[n] = word_of(words[n], thread);
  memcpy(&x, words, sizeof(T));
  return x;
}
template <class T>
inline T shuffle_xor(T x, int distance) {
  return of_thread(x, threadIdx.x % kWave ^ distance);
}

// As kernel.h of HIP has it.
template <int kRun, int kStep, int kThreads, int kApart, class T, class Join>
inline void scan(T* run, T& carry, Join join) {
#pragma unroll
  for (int i = 1; i < kRun; ++i) run[i * kStep] = join(run[(i - 1) * kStep], run[i * kStep]);
  const int own = threadIdx.x % kWave, place = own / kApart % kThreads;
  T total = run[(kRun - 1) * kStep];
#pragma unroll
  for (int distance = 1; distance < kThreads; distance *= 2) {
    const int from = own - distance * kApart;
    const T before = of_thread(total, from < 0 ? own : from);
    if (place >= distance) total = join(before, total);
  }
  const T before = of_thread(total, own < kApart ? own : own - kApart);
  const T first = place > 0 ? join(carry, before) : carry;
#pragma unroll
  for (int i = 0; i < kRun; ++i) run[i * kStep] = join(first, run[i * kStep]);
  carry = join(carry, of_thread(total, own + (kThreads - 1 - place) * kApart));
}

template <class T, class At>
struct Place {
  T* tensor;
  At at;
};
template <class T, class At>
inline Place<T, At> place(T* tensor, At at) { return {tensor, at}; }

template <int kCount, class T, class At>
inline void load(T* to, Place<const T, At> from, bool inside, typename Own<T>::Type other) {
  load<kCount>(to, from.tensor + from.at, inside, other);
}
template <int kCount, class T, class At>
inline void load(T* to, Place<const T, At> from, bool inside) {
  load<kCount>(to, from.tensor + from.at, inside, T(0));
}
template <int kCount, class T, class At>
inline void store(Place<T, At> to, const T* from, bool inside) {
  store<kCount>(to.tensor + to.at, from, inside);
}
template <class T, class At>
inline T read(const T* tensor, At at, bool inside, typename Own<T>::Type other) {
  return inside ? tensor[at] : other;
}
template <class T, class At>
inline T read(const T* tensor, At at, bool inside) {
  return inside ? tensor[at] : T(0);
}
template <class T, class At>
inline void write(T* tensor, At at, bool inside, typename Own<T>::Type x) {
  if (inside) tensor[at] = x;
}

#endif  // BENCHMARKS_HIP_ON_NVIDIA_H_
