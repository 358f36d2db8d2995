// pairwise_dot: Multiply every two features of a sample; keep the products below the diagonal.
// Generated from spec f1630f2e12cffdbd and schedule c5be0349e8ecbda2.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at B = 4096, F = 27, D = 128.
#ifndef SIZE_F
#define SIZE_F 27
#endif
#ifndef SIZE_D
#define SIZE_D 128
#endif
#ifndef EVEN_D
#define EVEN_D 1
#endif
#ifndef I_WIDTH
#define I_WIDTH 32
#endif
#ifndef EVEN_I
#define EVEN_I 0
#endif
#ifndef J_WIDTH
#define J_WIDTH 32
#endif
#ifndef EVEN_J
#define EVEN_J 0
#endif
#ifndef ALIGNED_X
#define ALIGNED_X 1
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 0
#endif

// z[b, i, j] = sum(f32(x[b, i, d]) * f32(x[b, j, d]), d)
// y[b, i, j] = where(i > j, z[b, i, j], 0.0)
extern "C" __global__ void __launch_bounds__(64, 4) pairwise_dot_0(
    const f16* __restrict__ x_ptr,
    f16* __restrict__ y_ptr) {
  constexpr int F = SIZE_F;
  constexpr int D = SIZE_D;
  constexpr int i_n = 1 * cdiv(I_WIDTH, 16);
  constexpr int j_n = 4 * cdiv(J_WIDTH, 16);
  constexpr int j_n1 = 1 * cdiv(J_WIDTH, 16);
  constexpr int shared_1 = 0 + round_up(128 * I_WIDTH, 1024);
  constexpr int shared_2 = shared_1 + round_up(128 * J_WIDTH, 1024);
  f16* const x_tile = shared_at<f16>(0);  // [2][I_WIDTH][32]
  f16* const x_2_tile = shared_at<f16>(shared_1);  // [2][J_WIDTH][32]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_i[i_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    offs_i[i_i] = thread % 16 + i_i * 16;
  bool mask_i[i_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    mask_i[i_i] = (offs_i[i_i] < F) | EVEN_I;
  int offs_j[j_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    offs_j[j_i] = thread / 16 * 4 + j_i % 4 + j_i / 4 * 16;
  bool mask_j[j_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    mask_j[j_i] = (offs_j[j_i] < F) | EVEN_J;
  const int b_at = tile;
  float z[i_n][j_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    #pragma unroll
    for (int j_i = 0; j_i < j_n; ++j_i)
      z[i_i][j_i] = 0.0f;
  int offs_i_1[i_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    offs_i_1[i_i] = thread / 4 + i_i * 16;
  bool mask_i_1[i_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    mask_i_1[i_i] = (offs_i_1[i_i] < F) | EVEN_I;
  int offs_j_1[j_n1];
  #pragma unroll
  for (int j_i = 0; j_i < j_n1; ++j_i)
    offs_j_1[j_i] = thread / 4 + j_i * 16;
  bool mask_j_1[j_n1];
  #pragma unroll
  for (int j_i = 0; j_i < j_n1; ++j_i)
    mask_j_1[j_i] = (offs_j_1[j_i] < F) | EVEN_J;
  int d_at_1 = 0;
  __syncthreads();
  int offs_d[8];
  bool mask_d[8];
  f16 x_next[i_n][8];
  f16 x_2_next[j_n1][8];
  #pragma unroll
  for (int d_stage_1 = 0; d_stage_1 < 1; ++d_stage_1) {
    if (d_at_1 < D) {
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        offs_d[d_i] = d_at_1 + thread % 4 * 8 + d_i;
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
      #pragma unroll
      for (int i_i = 0; i_i < i_n; ++i_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += ALIGNED_X ? 8 : 1)
          load<ALIGNED_X ? 8 : 1>(
              &x_next[i_i][d_i],
              place(x_ptr, b_at * F * D + offs_i_1[i_i] * D + offs_d[d_i]),
              mask_i_1[i_i] && mask_d[d_i]);
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        offs_d[d_i] = d_at_1 + thread % 4 * 8 + d_i;
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
      #pragma unroll
      for (int j_i = 0; j_i < j_n1; ++j_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += ALIGNED_X ? 8 : 1)
          load<ALIGNED_X ? 8 : 1>(
              &x_2_next[j_i][d_i],
              place(x_ptr, b_at * F * D + offs_j_1[j_i] * D + offs_d[d_i]),
              mask_j_1[j_i] && mask_d[d_i]);
      #pragma unroll
      for (int i_i = 0; i_i < i_n; ++i_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += 8)
          store<8>(
              &x_tile[d_stage_1 * 32 * I_WIDTH + swizzle<2, 3, 3>(panel<32>(I_WIDTH,
              thread / 4 + i_i * 16, thread % 4 * 8 + d_i))],
              &x_next[i_i][d_i]);
      #pragma unroll
      for (int j_i = 0; j_i < j_n1; ++j_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += 8)
          store<8>(
              &x_2_tile[d_stage_1 * 32 * J_WIDTH + swizzle<2, 3, 3>(panel<32>(J_WIDTH,
              thread / 4 + j_i * 16, thread % 4 * 8 + d_i))],
              &x_2_next[j_i][d_i]);
    }
    d_at_1 = d_at_1 + 32;
  }
  int d_read_1 = 0;
  int d_write_1 = 1;
  if (d_at_1 < D) {
    #pragma unroll
    for (int d_i = 0; d_i < 8; ++d_i)
      offs_d[d_i] = d_at_1 + thread % 4 * 8 + d_i;
    #pragma unroll
    for (int d_i = 0; d_i < 8; ++d_i)
      mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
    #pragma unroll
    for (int i_i = 0; i_i < i_n; ++i_i)
      #pragma unroll
      for (int d_i = 0; d_i < 8; d_i += ALIGNED_X ? 8 : 1)
        load<ALIGNED_X ? 8 : 1>(
            &x_next[i_i][d_i],
            place(x_ptr, b_at * F * D + offs_i_1[i_i] * D + offs_d[d_i]),
            mask_i_1[i_i] && mask_d[d_i]);
    #pragma unroll
    for (int d_i = 0; d_i < 8; ++d_i)
      offs_d[d_i] = d_at_1 + thread % 4 * 8 + d_i;
    #pragma unroll
    for (int d_i = 0; d_i < 8; ++d_i)
      mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
    #pragma unroll
    for (int j_i = 0; j_i < j_n1; ++j_i)
      #pragma unroll
      for (int d_i = 0; d_i < 8; d_i += ALIGNED_X ? 8 : 1)
        load<ALIGNED_X ? 8 : 1>(
            &x_2_next[j_i][d_i],
            place(x_ptr, b_at * F * D + offs_j_1[j_i] * D + offs_d[d_i]),
            mask_j_1[j_i] && mask_d[d_i]);
  }
  d_at_1 = d_at_1 + 32;
  for (int d_at = 0; d_at < D; d_at += 32) {
    __syncthreads();
    if (d_at + 32 < D) {
      #pragma unroll
      for (int i_i = 0; i_i < i_n; ++i_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += 8)
          store<8>(
              &x_tile[d_write_1 * 32 * I_WIDTH + swizzle<2, 3, 3>(panel<32>(I_WIDTH,
              thread / 4 + i_i * 16, thread % 4 * 8 + d_i))],
              &x_next[i_i][d_i]);
      #pragma unroll
      for (int j_i = 0; j_i < j_n1; ++j_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += 8)
          store<8>(
              &x_2_tile[d_write_1 * 32 * J_WIDTH + swizzle<2, 3, 3>(panel<32>(J_WIDTH,
              thread / 4 + j_i * 16, thread % 4 * 8 + d_i))],
              &x_2_next[j_i][d_i]);
    }
    if (d_at_1 < D) {
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        offs_d[d_i] = d_at_1 + thread % 4 * 8 + d_i;
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
      #pragma unroll
      for (int i_i = 0; i_i < i_n; ++i_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += ALIGNED_X ? 8 : 1)
          load<ALIGNED_X ? 8 : 1>(
              &x_next[i_i][d_i],
              place(x_ptr, b_at * F * D + offs_i_1[i_i] * D + offs_d[d_i]),
              mask_i_1[i_i] && mask_d[d_i]);
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        offs_d[d_i] = d_at_1 + thread % 4 * 8 + d_i;
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
      #pragma unroll
      for (int j_i = 0; j_i < j_n1; ++j_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += ALIGNED_X ? 8 : 1)
          load<ALIGNED_X ? 8 : 1>(
              &x_2_next[j_i][d_i],
              place(x_ptr, b_at * F * D + offs_j_1[j_i] * D + offs_d[d_i]),
              mask_j_1[j_i] && mask_d[d_i]);
    }
    d_at_1 = d_at_1 + 32;
    d_write_1 = ((d_write_1 == 1) ? 0 : d_write_1 + 1);
    #pragma unroll
    for (int d_issue_1 = 0; d_issue_1 < 32; d_issue_1 += 32) {
      f16 part_1[i_n][8];
      #pragma unroll
      for (int i_i = 0; i_i < i_n; ++i_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += 8)
          load<8>(
              &part_1[i_i][d_i],
              &x_tile[d_read_1 * 32 * I_WIDTH + swizzle<2, 3, 3>(panel<32>(I_WIDTH,
              thread % 16 + i_i * 16, d_issue_1 + thread / 16 * 8 + d_i))]);
      f16 part_3[j_n1][8];
      #pragma unroll
      for (int j_i = 0; j_i < j_n1; ++j_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += 8)
          load<8>(
              &part_3[j_i][d_i],
              &x_2_tile[d_read_1 * 32 * J_WIDTH + swizzle<2, 3, 3>(panel<32>(J_WIDTH,
              thread % 16 + j_i * 16, d_issue_1 + thread / 16 * 8 + d_i))]);
      f16 part_2[8][j_n1];
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        #pragma unroll
        for (int j_i = 0; j_i < j_n1; ++j_i)
          part_2[d_i][j_i] = part_3[j_i][d_i];
      #pragma unroll
      for (int d_i = 0; d_i < 8; d_i += 8)
        #pragma unroll
        for (int i_i = 0; i_i < i_n; i_i += 1)
          #pragma unroll
          for (int j_i = 0; j_i < j_n; j_i += 4)
            mfma_16x16x32(
                z[i_i][j_i], z[i_i][j_i + 1], z[i_i][j_i + 2], z[i_i][j_i + 3],
                part_1[i_i][d_i], part_1[i_i][d_i + 1], part_1[i_i][d_i + 2], part_1[i_i][d_i + 3],
                part_1[i_i][d_i + 4], part_1[i_i][d_i + 5], part_1[i_i][d_i + 6],
                part_1[i_i][d_i + 7],
                part_2[d_i][j_i / 4], part_2[d_i + 1][j_i / 4], part_2[d_i + 2][j_i / 4],
                part_2[d_i + 3][j_i / 4], part_2[d_i + 4][j_i / 4], part_2[d_i + 5][j_i / 4],
                part_2[d_i + 6][j_i / 4], part_2[d_i + 7][j_i / 4]);
    }
    d_read_1 = ((d_read_1 == 1) ? 0 : d_read_1 + 1);
  }
  f16 y[i_n][j_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    #pragma unroll
    for (int j_i = 0; j_i < j_n; ++j_i)
      y[i_i][j_i] = f16(((offs_i[i_i] > offs_j[j_i]) ? z[i_i][j_i] : 0.0f));
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    #pragma unroll
    for (int j_i = 0; j_i < j_n; j_i += ALIGNED_Y ? 4 : 1)
      store<ALIGNED_Y ? 4 : 1>(
          place(y_ptr, b_at * F * F + offs_i[i_i] * F + offs_j[j_i]),
          &y[i_i][j_i],
          mask_i[i_i] && mask_j[j_i]);
}
