// softmax: Turn each row into probabilities: exponentials over their sum, the maximum taken off first.
// Generated from spec a9c8fdf53ea478e6 and schedule 1cecc379cd70efda.
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

// mx[m] = max(x[m, k], k)
// e[m, k] = exp(x[m, k] - mx[m])
// s[m] = sum(e[m, k], k)
// y[m, k] = e[m, k] / s[m]
extern "C" __global__ void __launch_bounds__(256, 1) softmax_0(
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
  const int m_at = tile * 8;
  int offs_m[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    offs_m[m_i] = m_at + thread / 64 + m_i * 4;
  bool mask_m[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    mask_m[m_i] = (offs_m[m_i] < M) | EVEN_M;
  float x[2][k_n];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += ALIGNED_X ? 4 : 1)
      load<ALIGNED_X ? 4 : 1>(
          &x[m_i][k_i],
          place(x_ptr, offs_m[m_i] * K + offs_k[k_i]),
          mask_m[m_i] && mask_k[k_i]);
  float mx[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i) {
    mx[m_i] = least_of<float>();
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      mx[m_i] = fn::larger(mx[m_i], (mask_k[k_i] ? x[m_i][k_i] : -kInfinity));
  }
  #pragma unroll
  for (int distance = 1; distance <= 32; distance *= 2)
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      mx[m_i] = fn::larger(mx[m_i], shuffle_xor(mx[m_i], distance));
  float e[2][k_n];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      e[m_i][k_i] = fn::exp2(x[m_i][k_i] * kLog2E - mx[m_i] * kLog2E);
  float s[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i) {
    s[m_i] = 0;
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      s[m_i] += (mask_k[k_i] ? e[m_i][k_i] : 0.0f);
  }
  #pragma unroll
  for (int distance = 1; distance <= 32; distance *= 2)
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      s[m_i] += shuffle_xor(s[m_i], distance);
  float y[2][k_n];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      y[m_i][k_i] = e[m_i][k_i] / s[m_i];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += ALIGNED_X ? 4 : 1)
      store<ALIGNED_X ? 4 : 1>(
          place(y_ptr, offs_m[m_i] * K + offs_k[k_i]),
          &y[m_i][k_i],
          mask_m[m_i] && mask_k[k_i]);
}
