// row_norm: Bring each row to mean 0 and variance 1, then scale and shift it.
// Generated from spec a97ddebcfa1ea5a3 and schedule 039e6ff257f1e0db.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at M = 1024, K = 1024.
#ifndef K_WIDTH
#define K_WIDTH 1024
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
extern "C" __global__ void __launch_bounds__(256, 1) row_norm_0(
    const float* __restrict__ x_ptr,
    const float* __restrict__ g_ptr,
    const float* __restrict__ b_ptr,
    float* __restrict__ y_ptr,
    int M,
    int K) {
  constexpr float eps = 1e-05f;
  constexpr int k_n = 4 * cdiv(K_WIDTH, 1024);
  float* const part_tile = shared_at<float>(0);  // [4]
  float* const part_tile_2 = shared_at<float>(0);  // [4]
  const int thread = threadIdx.x;
  int offs_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    offs_k[k_i] = thread * 4 + k_i % 4 + k_i / 4 * 1024;
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
  for (int tile = blockIdx.x; tile < M; tile += gridDim.x) {
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
    float part_1 = s;
    __syncthreads();
    if ((thread & 63) == 0)
      part_tile[thread / 64] = part_1;
    __syncthreads();
    float part_2[4];
    #pragma unroll
    for (int part_i = 0; part_i < 4; part_i += 4)
      load<4>(&part_2[part_i], &part_tile[part_i]);
    s = 0;
    #pragma unroll
    for (int part_i = 0; part_i < 4; ++part_i)
      s += part_2[part_i];
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
    float part_3 = ss;
    __syncthreads();
    if ((thread & 63) == 0)
      part_tile_2[thread / 64] = part_3;
    __syncthreads();
    float part_4[4];
    #pragma unroll
    for (int part_i = 0; part_i < 4; part_i += 4)
      load<4>(&part_4[part_i], &part_tile_2[part_i]);
    ss = 0;
    #pragma unroll
    for (int part_i = 0; part_i < 4; ++part_i)
      ss += part_4[part_i];
    const float r = fn::rsqrt((ss / K) + eps);
    float y[k_n];
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      y[k_i] = (((x[k_i] - mean) * r) * g[k_i]) + b[k_i];
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += ALIGNED_G ? 4 : 1)
      store<ALIGNED_G ? 4 : 1>(place(y_ptr, m_at * K + offs_k[k_i]), &y[k_i], mask_k[k_i]);
  }
}
