// softmax: Turn each row into probabilities: exponentials over their sum, the maximum taken off first.
// Generated from spec a9c8fdf53ea478e6 and schedule 34ddcc7b91c3de9a.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at M = 4096, K = 4096.
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
extern "C" __global__ void __launch_bounds__(128, 1) softmax_0(
    const float* __restrict__ x_ptr,
    float* __restrict__ y_ptr,
    int K) {
  constexpr int k_n = 4 * cdiv(K_WIDTH, 512);
  float* const part_tile = shared_at<float>(0);  // [2]
  float* const part_tile_2 = shared_at<float>(0);  // [2]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    offs_k[k_i] = thread * 4 + k_i % 4 + k_i / 4 * 512;
  bool mask_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
  const int m_at = tile;
  float x[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_X ? 4 : 1)
    load<ALIGNED_X ? 4 : 1>(&x[k_i], place(x_ptr, m_at * K + offs_k[k_i]), mask_k[k_i]);
  float mx;
  mx = least_of<float>();
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    mx = fn::larger(mx, (mask_k[k_i] ? x[k_i] : -kInfinity));
  #pragma unroll
  for (int distance = 1; distance <= 32; distance *= 2)
    mx = fn::larger(mx, shuffle_xor(mx, distance));
  float part_1 = mx;
  if ((thread & 63) == 0)
    part_tile[thread / 64] = part_1;
  __syncthreads();
  float part_2[2];
  #pragma unroll
  for (int part_i = 0; part_i < 2; part_i += 2)
    load<2>(&part_2[part_i], &part_tile[part_i]);
  mx = least_of<float>();
  #pragma unroll
  for (int part_i = 0; part_i < 2; ++part_i)
    mx = fn::larger(mx, part_2[part_i]);
  float e[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    e[k_i] = fn::exp2(x[k_i] * kLog2E - mx * kLog2E);
  float s;
  s = 0;
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    s += (mask_k[k_i] ? e[k_i] : 0.0f);
  #pragma unroll
  for (int distance = 1; distance <= 32; distance *= 2)
    s += shuffle_xor(s, distance);
  float part_3 = s;
  __syncthreads();
  if ((thread & 63) == 0)
    part_tile_2[thread / 64] = part_3;
  __syncthreads();
  float part_4[2];
  #pragma unroll
  for (int part_i = 0; part_i < 2; part_i += 2)
    load<2>(&part_4[part_i], &part_tile_2[part_i]);
  s = 0;
  #pragma unroll
  for (int part_i = 0; part_i < 2; ++part_i)
    s += part_4[part_i];
  float y[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    y[k_i] = e[k_i] / s;
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_X ? 4 : 1)
    store<ALIGNED_X ? 4 : 1>(place(y_ptr, m_at * K + offs_k[k_i]), &y[k_i], mask_k[k_i]);
}
