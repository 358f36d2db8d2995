// pairwise_dot: Multiply every two features of a sample; keep the products below the diagonal.
// Generated from spec f1630f2e12cffdbd and schedule 6def77514454c57e.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at B = 4096, F = 27, D = 128.
#ifndef SIZE_F
#define SIZE_F 27
#endif
#ifndef SIZE_D
#define SIZE_D 128
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
#ifndef D_WIDTH
#define D_WIDTH 128
#endif
#ifndef EVEN_D
#define EVEN_D 1
#endif
#ifndef ALIGNED_X
#define ALIGNED_X 1
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 0
#endif

// z[b, i, j] = sum(f32(x[b, i, d]) * f32(x[b, j, d]), d)
// y[b, i, j] = where(i > j, z[b, i, j], 0.0)
extern "C" __global__ void __launch_bounds__(64, 1) pairwise_dot_0(
    const f16* __restrict__ x_ptr,
    f16* __restrict__ y_ptr) {
  constexpr int F = SIZE_F;
  constexpr int D = SIZE_D;
  constexpr int i_n = 1 * cdiv(I_WIDTH, 16);
  constexpr int j_n = 4 * cdiv(J_WIDTH, 16);
  constexpr int i_n1 = 1 * cdiv(I_WIDTH, 4);
  constexpr int d_n = 8 * cdiv(D_WIDTH, 128);
  constexpr int j_n1 = 1 * cdiv(J_WIDTH, 4);
  constexpr int j_n2 = 1 * cdiv(J_WIDTH, 16);
  constexpr int shared_1 = 0 + round_up(2 * I_WIDTH * D_WIDTH, 1024);
  constexpr int shared_2 = shared_1 + round_up(2 * J_WIDTH * D_WIDTH, 1024);
  f16* const x_tile = shared_at<f16>(0);  // [I_WIDTH][D_WIDTH]
  f16* const x_2_tile = shared_at<f16>(shared_1);  // [J_WIDTH][D_WIDTH]
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
  int offs_i_1[i_n1];
  #pragma unroll
  for (int i_i = 0; i_i < i_n1; ++i_i)
    offs_i_1[i_i] = thread / 16 + i_i * 4;
  bool mask_i_1[i_n1];
  #pragma unroll
  for (int i_i = 0; i_i < i_n1; ++i_i)
    mask_i_1[i_i] = (offs_i_1[i_i] < F) | EVEN_I;
  int offs_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    offs_d[d_i] = thread % 16 * 8 + d_i % 8 + d_i / 8 * 128;
  bool mask_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
  f16 x_next[i_n1][d_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n1; ++i_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += ALIGNED_X ? 8 : 1)
      load<ALIGNED_X ? 8 : 1>(
          &x_next[i_i][d_i],
          place(x_ptr, b_at * F * D + offs_i_1[i_i] * D + offs_d[d_i]),
          mask_i_1[i_i] && mask_d[d_i]);
  #pragma unroll
  for (int i_i = 0; i_i < i_n1; ++i_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += 8)
      store<8>(
          &x_tile[swizzle<3, 3, 3>(panel<64>(I_WIDTH, thread / 16 + i_i * 4,
          thread % 16 * 8 + d_i % 8 + d_i / 8 * 128))],
          &x_next[i_i][d_i]);
  int offs_j_1[j_n1];
  #pragma unroll
  for (int j_i = 0; j_i < j_n1; ++j_i)
    offs_j_1[j_i] = thread / 16 + j_i * 4;
  bool mask_j_1[j_n1];
  #pragma unroll
  for (int j_i = 0; j_i < j_n1; ++j_i)
    mask_j_1[j_i] = (offs_j_1[j_i] < F) | EVEN_J;
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    offs_d[d_i] = thread % 16 * 8 + d_i % 8 + d_i / 8 * 128;
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
  f16 x_2_next[j_n1][d_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n1; ++j_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += ALIGNED_X ? 8 : 1)
      load<ALIGNED_X ? 8 : 1>(
          &x_2_next[j_i][d_i],
          place(x_ptr, b_at * F * D + offs_j_1[j_i] * D + offs_d[d_i]),
          mask_j_1[j_i] && mask_d[d_i]);
  #pragma unroll
  for (int j_i = 0; j_i < j_n1; ++j_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += 8)
      store<8>(
          &x_2_tile[swizzle<3, 3, 3>(panel<64>(J_WIDTH, thread / 16 + j_i * 4,
          thread % 16 * 8 + d_i % 8 + d_i / 8 * 128))],
          &x_2_next[j_i][d_i]);
  float z[i_n][j_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    #pragma unroll
    for (int j_i = 0; j_i < j_n; ++j_i)
      z[i_i][j_i] = 0.0f;
  __syncthreads();
  for (int d_issue_1 = 0; d_issue_1 < D_WIDTH; d_issue_1 += 16) {
    f16 part_1[i_n][4];
    #pragma unroll
    for (int i_i = 0; i_i < i_n; ++i_i)
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        load<4>(
            &part_1[i_i][d_i],
            &x_tile[swizzle<3, 3, 3>(panel<64>(I_WIDTH, thread % 16 + i_i * 16,
            d_issue_1 + thread / 16 * 4 + d_i))]);
    f16 part_3[j_n2][4];
    #pragma unroll
    for (int j_i = 0; j_i < j_n2; ++j_i)
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        load<4>(
            &part_3[j_i][d_i],
            &x_2_tile[swizzle<3, 3, 3>(panel<64>(J_WIDTH, thread % 16 + j_i * 16,
            d_issue_1 + thread / 16 * 4 + d_i))]);
    f16 part_2[4][j_n2];
    #pragma unroll
    for (int d_i = 0; d_i < 4; ++d_i)
      #pragma unroll
      for (int j_i = 0; j_i < j_n2; ++j_i)
        part_2[d_i][j_i] = part_3[j_i][d_i];
    #pragma unroll
    for (int d_i = 0; d_i < 4; d_i += 4)
      #pragma unroll
      for (int i_i = 0; i_i < i_n; i_i += 1)
        #pragma unroll
        for (int j_i = 0; j_i < j_n; j_i += 4)
          mfma_16x16x16(
              z[i_i][j_i], z[i_i][j_i + 1], z[i_i][j_i + 2], z[i_i][j_i + 3],
              part_1[i_i][d_i], part_1[i_i][d_i + 1], part_1[i_i][d_i + 2], part_1[i_i][d_i + 3],
              part_2[d_i][j_i / 4], part_2[d_i + 1][j_i / 4], part_2[d_i + 2][j_i / 4],
              part_2[d_i + 3][j_i / 4]);
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
