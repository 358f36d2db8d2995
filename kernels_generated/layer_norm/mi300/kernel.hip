// layer_norm: Bring each row to mean 0 and variance 1, then scale it by g and shift it by b.
// Generated from spec f12a38eb734fdc36 and schedule 3293e0f7a15fa268.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at M = 4096, K = 4096.
#ifndef SIZE_M
#define SIZE_M 4096
#endif
#ifndef SIZE_K
#define SIZE_K 4096
#endif
#ifndef EVEN_M
#define EVEN_M 1
#endif
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
extern "C" __global__ void __launch_bounds__(256, 1) layer_norm_0(
    const float* __restrict__ x_ptr,
    const float* __restrict__ g_ptr,
    const float* __restrict__ b_ptr,
    float* __restrict__ y_ptr) {
  constexpr float eps = 1e-05f;
  constexpr int M = SIZE_M;
  constexpr int K = SIZE_K;
  constexpr int k_n = 4 * cdiv(K_WIDTH, 512);
  float* const part_tile = shared_at<float>(0);  // [2][2]
  float* const part_tile_2 = shared_at<float>(0);  // [2][2]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    offs_k[k_i] = thread % 128 * 4 + k_i % 4 + k_i / 4 * 512;
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
  const int m_at = tile * 2;
  const int offs_m = m_at + thread / 128;
  const bool mask_m = (offs_m < M) | EVEN_M;
  float x[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_G ? 4 : 1)
    load<ALIGNED_G ? 4 : 1>(&x[k_i], place(x_ptr, offs_m * K + offs_k[k_i]), mask_m && mask_k[k_i]);
  float s;
  s = 0;
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    s += x[k_i];
  #pragma unroll
  for (int distance = 1; distance <= 32; distance *= 2)
    s += shuffle_xor(s, distance);
  float part_1 = s;
  if ((thread & 63) == 0)
    part_tile[thread / 64 % 2 * 2 + thread / 128] = part_1;
  __syncthreads();
  float part_2[2];
  #pragma unroll
  for (int part_i = 0; part_i < 2; ++part_i)
    part_2[part_i] = part_tile[part_i * 2 + thread / 128];
  s = 0;
  #pragma unroll
  for (int part_i = 0; part_i < 2; ++part_i)
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
    part_tile_2[thread / 64 % 2 * 2 + thread / 128] = part_3;
  __syncthreads();
  float part_4[2];
  #pragma unroll
  for (int part_i = 0; part_i < 2; ++part_i)
    part_4[part_i] = part_tile_2[part_i * 2 + thread / 128];
  ss = 0;
  #pragma unroll
  for (int part_i = 0; part_i < 2; ++part_i)
    ss += part_4[part_i];
  const float r = fn::rsqrt((ss / K) + eps);
  float y[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    y[k_i] = (((x[k_i] - mean) * r) * g[k_i]) + b[k_i];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_G ? 4 : 1)
    store<ALIGNED_G ? 4 : 1>(
        place(y_ptr, offs_m * K + offs_k[k_i]),
        &y[k_i],
        mask_m && mask_k[k_i]);
}
