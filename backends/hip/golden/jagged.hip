// bags: Add up the rows of a table that each bag names.
// Generated from spec e674e9d78fdd8a4f and schedule de07203ce70c1972.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at V = 10000, D = 64, L = 4096, B = 256.
#ifndef D_WIDTH
#define D_WIDTH 64
#endif
#ifndef EVEN_D
#define EVEN_D 1
#endif
#ifndef ALIGNED_TABLE
#define ALIGNED_TABLE 1
#endif

// y[b, d] = sum(table[idx[l], d], l=range(offsets[b], offsets[b + 1]))
extern "C" __global__ void __launch_bounds__(256, 1) bags_0(
    const int* __restrict__ idx_ptr,
    const float* __restrict__ table_ptr,
    const int* __restrict__ offsets_ptr,
    float* __restrict__ y_ptr,
    int D) {
  constexpr int d_n = 4 * cdiv(D_WIDTH, 64);
  constexpr int shared_1 = 0 + round_up(16 * D_WIDTH, 1024);
  float* const part_tile_1 = shared_at<float>(0);  // [4][D_WIDTH]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    offs_d[d_i] = thread % 16 * 4 + d_i % 4 + d_i / 4 * 64;
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
  for (int l_at = l_low; l_at < l_high; l_at += 32) {
    int offs_l[2];
    #pragma unroll
    for (int l_i = 0; l_i < 2; ++l_i)
      offs_l[l_i] = l_at + thread / 16 + l_i * 16;
    bool mask_l[2];
    #pragma unroll
    for (int l_i = 0; l_i < 2; ++l_i)
      mask_l[l_i] = offs_l[l_i] < l_high;
    int idx[2];
    #pragma unroll
    for (int l_i = 0; l_i < 2; ++l_i)
      idx[l_i] = read(idx_ptr, offs_l[l_i], mask_l[l_i]);
    float table[2][d_n];
    #pragma unroll
    for (int l_i = 0; l_i < 2; ++l_i)
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
      for (int l_i = 0; l_i < 2; ++l_i)
        part_1[d_i] += table[l_i][d_i];
    }
    #pragma unroll
    for (int distance = 16; distance <= 32; distance *= 2)
      #pragma unroll
      for (int d_i = 0; d_i < d_n; ++d_i)
        part_1[d_i] += shuffle_xor(part_1[d_i], distance);
    float part_2[d_n];
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i)
      part_2[d_i] = part_1[d_i];
    __syncthreads();
    if ((thread & 48) == 0)
      #pragma unroll
      for (int d_i = 0; d_i < d_n; ++d_i)
        part_tile_1[thread / 64 * D_WIDTH + thread % 16 * 4 + d_i % 4 + d_i / 4 * 64] =
            part_2[d_i];
    __syncthreads();
    float part_3[4][d_n];
    #pragma unroll
    for (int part_i = 0; part_i < 4; ++part_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n; ++d_i)
        part_3[part_i][d_i] =
            part_tile_1[part_i * D_WIDTH + thread % 16 * 4 + d_i % 4 + d_i / 4 * 64];
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i) {
      part_1[d_i] = 0;
      #pragma unroll
      for (int part_i = 0; part_i < 4; ++part_i)
        part_1[d_i] += part_3[part_i][d_i];
    }
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i)
      y[d_i] += part_1[d_i];
  }
  if ((thread & 240) == 0)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += ALIGNED_TABLE ? 4 : 1)
      store<ALIGNED_TABLE ? 4 : 1>(place(y_ptr, b_at * D + offs_d[d_i]), &y[d_i], mask_d[d_i]);
}
