// layer_norm: Bring each row to mean 0 and variance 1, then scale it by g and shift it by b.
// Generated from spec f12a38eb734fdc36 and schedule 62f7e598bca0de68.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at M = 4096, K = 4096.
#ifndef K_WIDTH
#define K_WIDTH 4096
#endif
#ifndef EVEN_K
#define EVEN_K 1
#endif
#ifndef ALIGNED_G
#define ALIGNED_G 1
#endif

// s[m] = sum(x[m, k], k)
// mean[m] = s[m] / K
// ss[m] = sum((x[m, k] - mean[m]) ** 2, k)
// r[m] = rsqrt(ss[m] / K + eps)
// y[m, k] = (x[m, k] - mean[m]) * r[m] * g[k] + b[k]
extern "C" __global__ void __launch_bounds__(64, 1) layer_norm_0(
    const float* __restrict__ x_ptr,
    const float* __restrict__ g_ptr,
    const float* __restrict__ b_ptr,
    float* __restrict__ y_ptr,
    int K) {
  constexpr float eps = 1e-05f;
  constexpr int k_n = 4 * cdiv(K_WIDTH, 256);
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    offs_k[k_i] = thread * 4 + k_i % 4 + k_i / 4 * 256;
  bool mask_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
  float g[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_G ? 4 : 1)
    load<ALIGNED_G ? 4 : 1>(&g[k_i], place(g_ptr, offs_k[k_i]), mask_k[k_i]);
  float b[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_G ? 4 : 1)
    load<ALIGNED_G ? 4 : 1>(&b[k_i], place(b_ptr, offs_k[k_i]), mask_k[k_i]);
  const int m_at = tile;
  float x[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_G ? 4 : 1)
    load<ALIGNED_G ? 4 : 1>(&x[k_i], place(x_ptr, m_at * K + offs_k[k_i]), mask_k[k_i]);
  float s;
  s = 0;
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    s += x[k_i];
  #pragma unroll
  for (int distance = 1; distance <= 32; distance *= 2)
    s += shuffle_xor(s, distance);
  const float mean = s / K;
  float ss_term[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    ss_term[k_i] = fn::square(x[k_i] - mean);
  float ss;
  ss = 0;
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    ss += (mask_k[k_i] ? ss_term[k_i] : 0.0f);
  #pragma unroll
  for (int distance = 1; distance <= 32; distance *= 2)
    ss += shuffle_xor(ss, distance);
  const float r = fn::rsqrt((ss / K) + eps);
  float y[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    y[k_i] = (((x[k_i] - mean) * r) * g[k_i]) + b[k_i];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_G ? 4 : 1)
    store<ALIGNED_G ? 4 : 1>(place(y_ptr, m_at * K + offs_k[k_i]), &y[k_i], mask_k[k_i]);
}
