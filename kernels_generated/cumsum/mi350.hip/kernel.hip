// cumsum: Add up each row from its start to every place.
// Generated from spec 66c4a252b85db64e and schedule eb1d8a2d6d89cc8e.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at M = 4096, K = 4096.
#ifndef EVEN_M
#define EVEN_M 1
#endif
#ifndef K_WIDTH
#define K_WIDTH 4096
#endif
#ifndef EVEN_K
#define EVEN_K 1
#endif
#ifndef ALIGNED_X
#define ALIGNED_X 1
#endif

// y[m, k] = cumsum(x[m, k], k)
extern "C" __global__ void __launch_bounds__(256, 1) cumsum_0(
    const float* __restrict__ x_ptr,
    float* __restrict__ y_ptr,
    int M,
    int K) {
  constexpr int k_n = 4 * cdiv(K_WIDTH, 256);
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    offs_k[k_i] = thread % 64 * 4 + k_i % 4 + k_i / 4 * 256;
  bool mask_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
  const int m_at = tile * 4;
  const int offs_m_1 = m_at + thread / 64;
  const bool mask_m_1 = (offs_m_1 < M) | EVEN_M;
  float x[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_X ? 4 : 1)
    load<ALIGNED_X ? 4 : 1>(
        &x[k_i],
        place(x_ptr, offs_m_1 * K + offs_k[k_i]),
        mask_m_1 && mask_k[k_i]);
  float part_1[k_n];
  {  // part_1 along k
    float carry = 0;
    const auto join = [](float a, float b) { return a + b; };
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      part_1[k_i] = x[k_i];
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += 4)
      scan<4, 1, 64, 1>(&part_1[k_i], carry, join);
  }
  float y[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    y[k_i] = part_1[k_i];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_X ? 4 : 1)
    store<ALIGNED_X ? 4 : 1>(
        place(y_ptr, offs_m_1 * K + offs_k[k_i]),
        &y[k_i],
        mask_m_1 && mask_k[k_i]);
}
