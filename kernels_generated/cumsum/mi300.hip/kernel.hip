// cumsum: Add up each row from its start to every place.
// Generated from spec 66c4a252b85db64e and schedule dd94185ed743ce11.
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

// y[m, k] = cumsum(x[m, k], k)
extern "C" __global__ void __launch_bounds__(256, 1) cumsum_0(
    const float* __restrict__ x_ptr,
    float* __restrict__ y_ptr,
    int K) {
  constexpr int k_n = 4 * cdiv(K_WIDTH, 1024);
  constexpr int part_n = 1 * cdiv(cdiv(K_WIDTH, 1024) * 4, 4);
  constexpr int part_n1 = 4 * cdiv(cdiv(K_WIDTH, 1024) * 4, 4);
  constexpr int shared_1 = 0 + round_up(4 * cdiv(K_WIDTH, 1024) * 4, 1024);
  float* const part_tile_3 = shared_at<float>(0);  // [cdiv(K_WIDTH, 1024) * 4]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    offs_k[k_i] = thread * 4 + k_i % 4 + k_i / 4 * 1024;
  bool mask_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
  const int m_at = tile;
  float x[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_X ? 4 : 1)
    load<ALIGNED_X ? 4 : 1>(&x[k_i], place(x_ptr, m_at * K + offs_k[k_i]), mask_k[k_i]);
  float part_1[k_n];
  float part_2[part_n];
  {  // part_1 along k, of each warp by itself
    const auto join = [](float a, float b) { return a + b; };
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      part_1[k_i] = x[k_i];
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += 4) {
      float carry = 0;
      scan<4, 1, 64, 1>(&part_1[k_i], carry, join);
      part_2[k_i / 4] = carry;
    }
  }
  if ((thread & 63) == 0)
    #pragma unroll
    for (int part_i = 0; part_i < part_n; ++part_i)
      part_tile_3[thread / 64 + part_i * 4] = part_2[part_i];
  __syncthreads();
  float part_3[part_n1];
  #pragma unroll
  for (int part_i = 0; part_i < part_n1; part_i += 4)
    load<4>(&part_3[part_i], &part_tile_3[part_i]);
  {  // part_1 along k, after the parts of other warps
    float carry = 0;
    const auto join = [](float a, float b) { return a + b; };
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += 4)
      scan_after<4, 1, 4>(&part_1[k_i], &part_3[k_i / 4 * 4], thread / 64, carry, join);
  }
  float y[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    y[k_i] = part_1[k_i];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_X ? 4 : 1)
    store<ALIGNED_X ? 4 : 1>(place(y_ptr, m_at * K + offs_k[k_i]), &y[k_i], mask_k[k_i]);
}
