// row_softmax: Turn each row into probabilities.
// Generated from spec e20d5cc05d156fc8 and schedule 2500a094d29dc788.
#include "kernel.h"

// What a build sets; these are the values at M = 1024, K = 1024.
#ifndef EVEN_M
#define EVEN_M 1
#endif
#ifndef K_WIDTH
#define K_WIDTH 1024
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
extern "C" __global__ void __launch_bounds__(128, 1) row_softmax_0(
    const float* __restrict__ x_ptr,
    float* __restrict__ y_ptr,
    int M,
    int K) {
  constexpr int k_n = 4 * cdiv(K_WIDTH, 128);
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    offs_k[k_i] = thread % 32 * 4 + k_i % 4 + k_i / 4 * 128;
  bool mask_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
  const int m_at = tile * 4;
  const int offs_m = m_at + thread / 32;
  const bool mask_m = (offs_m < M) | EVEN_M;
  float x[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_X ? 4 : 1)
    load<ALIGNED_X ? 4 : 1>(&x[k_i], x_ptr + offs_m * K + offs_k[k_i], mask_m && mask_k[k_i], 0.0f);
  float mx;
  mx = least_of<float>();
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    mx = fn::larger(mx, (mask_k[k_i] ? x[k_i] : -kInfinity));
  #pragma unroll
  for (int distance = 1; distance <= 16; distance *= 2)
    mx = fn::larger(mx, shuffle_xor(mx, distance));
  float e[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    e[k_i] = fn::exp2_flushed(x[k_i] * kLog2E - mx * kLog2E);
  float s;
  s = 0;
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    s += (mask_k[k_i] ? e[k_i] : 0.0f);
  #pragma unroll
  for (int distance = 1; distance <= 16; distance *= 2)
    s += shuffle_xor(s, distance);
  float y[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    y[k_i] = e[k_i] / s;
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_X ? 4 : 1)
    store<ALIGNED_X ? 4 : 1>(y_ptr + offs_m * K + offs_k[k_i], &y[k_i], mask_m && mask_k[k_i]);
}
