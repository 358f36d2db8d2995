// embedding_bag: Add up the rows of table that each bag names; bag b holds idx[offsets[b]:offsets[b + 1]].
// Generated from spec a43c77321c1f0d91 and schedule 9bb2fdb99a98af96.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at V = 1000000, D = 128, L = 131072, B = 4096.
#ifndef D_WIDTH
#define D_WIDTH 128
#endif
#ifndef EVEN_D
#define EVEN_D 1
#endif
#ifndef ALIGNED_TABLE
#define ALIGNED_TABLE 1
#endif

// y[b, d] = sum(table[idx[l], d], l=range(offsets[b], offsets[b + 1]))
extern "C" __global__ void __launch_bounds__(128, 1) embedding_bag_0(
    const int* __restrict__ idx_ptr,
    const float* __restrict__ table_ptr,
    const int* __restrict__ offsets_ptr,
    float* __restrict__ y_ptr,
    int D) {
  constexpr int d_n = 4 * cdiv(D_WIDTH, 128);
  constexpr int shared_1 = 0 + round_up(8 * D_WIDTH, 1024);
  float* const part_tile_1 = shared_at<float>(0);  // [2][D_WIDTH]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    offs_d[d_i] = thread % 32 * 4 + d_i % 4 + d_i / 4 * 128;
  bool mask_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
  const int b_at = tile;
  float y[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    y[d_i] = 0.0f;
  const int l_low = offsets_ptr[b_at];
  const int l_high = offsets_ptr[b_at + 1];
  for (int l_at = l_low; l_at < l_high; l_at += 16) {
    int offs_l[4];
    #pragma unroll
    for (int l_i = 0; l_i < 4; ++l_i)
      offs_l[l_i] = l_at + thread / 32 + l_i * 4;
    bool mask_l[4];
    #pragma unroll
    for (int l_i = 0; l_i < 4; ++l_i)
      mask_l[l_i] = offs_l[l_i] < l_high;
    int idx[4];
    #pragma unroll
    for (int l_i = 0; l_i < 4; ++l_i)
      idx[l_i] = read(idx_ptr, offs_l[l_i], mask_l[l_i]);
    float table[4][d_n];
    #pragma unroll
    for (int l_i = 0; l_i < 4; ++l_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n; d_i += ALIGNED_TABLE ? 4 : 1)
        load<ALIGNED_TABLE ? 4 : 1>(
            &table[l_i][d_i],
            place(table_ptr, idx[l_i] * D + offs_d[d_i]),
            mask_l[l_i] && mask_d[d_i]);
    float part_1[d_n];
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i) {
      part_1[d_i] = 0;
      #pragma unroll
      for (int l_i = 0; l_i < 4; ++l_i)
        part_1[d_i] += table[l_i][d_i];
    }
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i)
      part_1[d_i] += shuffle_xor(part_1[d_i], 32);
    float part_2[d_n];
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i)
      part_2[d_i] = part_1[d_i];
    __syncthreads();
    if ((thread & 32) == 0)
      #pragma unroll
      for (int d_i = 0; d_i < d_n; ++d_i)
        part_tile_1[thread / 64 * D_WIDTH + thread % 32 * 4 + d_i % 4 + d_i / 4 * 128] =
            part_2[d_i];
    __syncthreads();
    float part_3[2][d_n];
    #pragma unroll
    for (int part_i = 0; part_i < 2; ++part_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n; ++d_i)
        part_3[part_i][d_i] =
            part_tile_1[part_i * D_WIDTH + thread % 32 * 4 + d_i % 4 + d_i / 4 * 128];
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i) {
      part_1[d_i] = 0;
      #pragma unroll
      for (int part_i = 0; part_i < 2; ++part_i)
        part_1[d_i] += part_3[part_i][d_i];
    }
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i)
      y[d_i] += part_1[d_i];
  }
  if ((thread & 96) == 0)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += ALIGNED_TABLE ? 4 : 1)
      store<ALIGNED_TABLE ? 4 : 1>(place(y_ptr, b_at * D + offs_d[d_i]), &y[d_i], mask_d[d_i]);
}
