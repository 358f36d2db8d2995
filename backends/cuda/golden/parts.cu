// running: The sum and the maximum of each row so far, of rows longer than a warp covers.
// Generated from spec 954a4be68985be67 and schedule 4954a74d06f284a9.
#include "kernel.h"

// What a build sets; these are the values at M = 64, K = 1024.
#ifndef K_WIDTH
#define K_WIDTH 1024
#endif
#ifndef EVEN_K
#define EVEN_K 1
#endif
#ifndef ALIGNED_X
#define ALIGNED_X 1
#endif

// y[m, k] = cumsum(x[m, k], k)
// z[m, k] = cummax(x[m, k], k)
extern "C" __global__ void __launch_bounds__(128, 1) running_0(
    const float* __restrict__ x_ptr,
    float* __restrict__ y_ptr,
    float* __restrict__ z_ptr,
    int K) {
  constexpr int k_n = 4 * cdiv(K_WIDTH, 512);
  constexpr int part_n = 1 * cdiv(cdiv(K_WIDTH, 512) * 4, 4);
  constexpr int part_n1 = 4 * cdiv(cdiv(K_WIDTH, 512) * 4, 4);
  constexpr int shared_1 = 0 + round_up(most(4 * cdiv(K_WIDTH, 512) * 4, 4 * cdiv(K_WIDTH, 512) * 4), 1024);
  float* const part_tile_4 = shared_at<float>(0);  // [cdiv(K_WIDTH, 512) * 4]
  float* const part_tile_7 = shared_at<float>(0);  // [cdiv(K_WIDTH, 512) * 4]
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
    load<ALIGNED_X ? 4 : 1>(&x[k_i], x_ptr + m_at * K + offs_k[k_i], mask_k[k_i], 0.0f);
  float part_2[k_n];
  float part_3[part_n];
  {  // part_2 along k, of each warp by itself
    const auto join = [](float a, float b) { return a + b; };
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      part_2[k_i] = x[k_i];
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += 4) {
      float carry = 0;
      scan<4, 1, 32, 1>(&part_2[k_i], carry, join);
      part_3[k_i / 4] = carry;
    }
  }
  if ((thread & 31) == 0)
    #pragma unroll
    for (int part_i = 0; part_i < part_n; ++part_i)
      part_tile_4[thread / 32 + part_i * 4] = part_3[part_i];
  __syncthreads();
  float part_4[part_n1];
  #pragma unroll
  for (int part_i = 0; part_i < part_n1; part_i += 4)
    load<4>(&part_4[part_i], &part_tile_4[part_i]);
  {  // part_2 along k, after the parts of other warps
    float carry = 0;
    const auto join = [](float a, float b) { return a + b; };
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += 4)
      scan_after<4, 1, 4>(&part_2[k_i], &part_4[k_i / 4 * 4], thread / 32, carry, join);
  }
  float y[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    y[k_i] = part_2[k_i];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_X ? 4 : 1)
    store<ALIGNED_X ? 4 : 1>(y_ptr + m_at * K + offs_k[k_i], &y[k_i], mask_k[k_i]);
  float part_1[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    part_1[k_i] = (mask_k[k_i] ? x[k_i] : -kInfinity);
  float part_5[k_n];
  float part_6[part_n];
  {  // part_5 along k, of each warp by itself
    const auto join = [](float a, float b) { return fn::maximum(a, b); };
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      part_5[k_i] = part_1[k_i];
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += 4) {
      float carry = least_of<float>();
      scan<4, 1, 32, 1>(&part_5[k_i], carry, join);
      part_6[k_i / 4] = carry;
    }
  }
  __syncthreads();
  if ((thread & 31) == 0)
    #pragma unroll
    for (int part_i = 0; part_i < part_n; ++part_i)
      part_tile_7[thread / 32 + part_i * 4] = part_6[part_i];
  __syncthreads();
  float part_7[part_n1];
  #pragma unroll
  for (int part_i = 0; part_i < part_n1; part_i += 4)
    load<4>(&part_7[part_i], &part_tile_7[part_i]);
  {  // part_5 along k, after the parts of other warps
    float carry = least_of<float>();
    const auto join = [](float a, float b) { return fn::maximum(a, b); };
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += 4)
      scan_after<4, 1, 4>(&part_5[k_i], &part_7[k_i / 4 * 4], thread / 32, carry, join);
  }
  float z[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    z[k_i] = part_5[k_i];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_X ? 4 : 1)
    store<ALIGNED_X ? 4 : 1>(z_ptr + m_at * K + offs_k[k_i], &z[k_i], mask_k[k_i]);
}
