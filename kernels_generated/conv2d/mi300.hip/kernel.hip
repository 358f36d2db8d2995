// conv2d: Convolve images with 3x3 kernels, padded by 1, and add a bias.
// Generated from spec c28c2ece5cecb63c and schedule e02a1a98db9c9b05.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at B = 1024, C = 32, H = 28, W = 28, O = 32.
#ifndef W_IJOC_C_WIDTH
#define W_IJOC_C_WIDTH 32
#endif
#ifndef EVEN_W_IJOC_C
#define EVEN_W_IJOC_C 1
#endif
#ifndef EVEN_P
#define EVEN_P 1
#endif
#ifndef O_WIDTH
#define O_WIDTH 32
#endif
#ifndef EVEN_O
#define EVEN_O 1
#endif
#ifndef EVEN_Q
#define EVEN_Q 0
#endif
#ifndef C_WIDTH
#define C_WIDTH 32
#endif
#ifndef EVEN_C
#define EVEN_C 1
#endif
#ifndef ALIGNED_W_IJOC
#define ALIGNED_W_IJOC 1
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif

// w_ijoc[x_w_ijoc_i_2, w_ijoc_j, w_ijoc_o, w_ijoc_c] = w[w_ijoc_o, w_ijoc_c, x_w_ijoc_i_2,
//     w_ijoc_j]
extern "C" __global__ void __launch_bounds__(64, 1) conv2d_0(
    const f16* __restrict__ w_ptr,
    f16* __restrict__ w_ijoc_ptr,
    int C,
    int O) {
  constexpr int w_ijoc_c_n = 1 * cdiv(W_IJOC_C_WIDTH, 32);
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_w_ijoc_c[w_ijoc_c_n];
  #pragma unroll
  for (int w_ijoc_c_i = 0; w_ijoc_c_i < w_ijoc_c_n; ++w_ijoc_c_i)
    offs_w_ijoc_c[w_ijoc_c_i] = thread % 32 + w_ijoc_c_i * 32;
  bool mask_w_ijoc_c[w_ijoc_c_n];
  #pragma unroll
  for (int w_ijoc_c_i = 0; w_ijoc_c_i < w_ijoc_c_n; ++w_ijoc_c_i)
    mask_w_ijoc_c[w_ijoc_c_i] = (offs_w_ijoc_c[w_ijoc_c_i] < C) | EVEN_W_IJOC_C;
  const int tiles_w_ijoc_j = 3;
  const int tiles_w_ijoc_o = O;
  const int x_w_ijoc_i_2_at = tile / (tiles_w_ijoc_j * tiles_w_ijoc_o);
  const int w_ijoc_j_at = tile / tiles_w_ijoc_o % tiles_w_ijoc_j;
  const int w_ijoc_o_at = tile % tiles_w_ijoc_o;
  f16 w[w_ijoc_c_n];
  #pragma unroll
  for (int w_ijoc_c_i = 0; w_ijoc_c_i < w_ijoc_c_n; ++w_ijoc_c_i)
    w[w_ijoc_c_i] =
        read(w_ptr, w_ijoc_o_at * C * 3 * 3 + x_w_ijoc_i_2_at * 3 + w_ijoc_j_at + offs_w_ijoc_c[w_ijoc_c_i] * 3 * 3, mask_w_ijoc_c[w_ijoc_c_i]);
  f16 w_ijoc[w_ijoc_c_n];
  #pragma unroll
  for (int w_ijoc_c_i = 0; w_ijoc_c_i < w_ijoc_c_n; ++w_ijoc_c_i)
    w_ijoc[w_ijoc_c_i] = w[w_ijoc_c_i];
  if ((thread & 32) == 0)
    #pragma unroll
    for (int w_ijoc_c_i = 0; w_ijoc_c_i < w_ijoc_c_n; ++w_ijoc_c_i)
      write(w_ijoc_ptr, x_w_ijoc_i_2_at * 3 * O * C + w_ijoc_j_at * O * C + w_ijoc_o_at * C + offs_w_ijoc_c[w_ijoc_c_i], mask_w_ijoc_c[w_ijoc_c_i], w_ijoc[w_ijoc_c_i]);
}

// acc[b, o, p, q] = sum(f32(pad(x[b, c, p + i - 1, q + j - 1], 0.0)) * f32(w_ijoc[i, j, o, c]), c,
//     i, j)
// y[b, o, p, q] = acc[b, o, p, q] + f32(bias[o])
extern "C" __global__ void __launch_bounds__(256, 3) conv2d_1(
    const f16* __restrict__ x_ptr,
    const f16* __restrict__ bias_ptr,
    const f16* __restrict__ w_ijoc_ptr,
    f16* __restrict__ y_ptr,
    int C,
    int H,
    int W,
    int O) {
  constexpr int o_n = 1 * cdiv(O_WIDTH, 16);
  constexpr int o_n1 = 1 * cdiv(O_WIDTH, 32);
  constexpr int c_n = 8 * cdiv(C_WIDTH, 32);
  constexpr int c_n1 = 1 * cdiv(C_WIDTH, 16);
  constexpr int shared_1 = 0 + round_up(4 * O_WIDTH * C_WIDTH, 1024);
  constexpr int shared_2 = shared_1 + round_up(most(512 * C_WIDTH, 512 * C_WIDTH), 1024);
  f16* const w_ijoc_tile = shared_at<f16>(0);  // [2][O_WIDTH][C_WIDTH]
  f16* const x_tile = shared_at<f16>(shared_1);  // [2][C_WIDTH][4][32]
  f16* const x_tile0 = shared_at<f16>(shared_1);  // [2][C_WIDTH][128]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_o[o_n];
  #pragma unroll
  for (int o_i = 0; o_i < o_n; ++o_i)
    offs_o[o_i] = thread % 16 + o_i * 16;
  bool mask_o[o_n];
  #pragma unroll
  for (int o_i = 0; o_i < o_n; ++o_i)
    mask_o[o_i] = (offs_o[o_i] < O) | EVEN_O;
  int offs_q[4];
  #pragma unroll
  for (int q_i = 0; q_i < 4; ++q_i)
    offs_q[q_i] = thread / 16 % 8 * 4 + q_i;
  bool mask_q[4];
  #pragma unroll
  for (int q_i = 0; q_i < 4; ++q_i)
    mask_q[q_i] = (offs_q[q_i] < W) | EVEN_Q;
  f16 bias[o_n];
  #pragma unroll
  for (int o_i = 0; o_i < o_n; ++o_i)
    bias[o_i] = read(bias_ptr, offs_o[o_i], mask_o[o_i]);
  const int tiles_p = cdiv(H, 4);
  const int b_at = tile / tiles_p;
  const int p_at = tile % tiles_p * 4;
  int offs_p[2];
  #pragma unroll
  for (int p_i = 0; p_i < 2; ++p_i)
    offs_p[p_i] = p_at + thread / 128 + p_i * 2;
  bool mask_p[2];
  #pragma unroll
  for (int p_i = 0; p_i < 2; ++p_i)
    mask_p[p_i] = (offs_p[p_i] < H) | EVEN_P;
  float acc[o_n][2][4];
  #pragma unroll
  for (int o_i = 0; o_i < o_n; ++o_i)
    #pragma unroll
    for (int p_i = 0; p_i < 2; ++p_i)
      #pragma unroll
      for (int q_i = 0; q_i < 4; ++q_i)
        acc[o_i][p_i][q_i] = 0.0f;
  int offs_o_1[o_n1];
  #pragma unroll
  for (int o_i = 0; o_i < o_n1; ++o_i)
    offs_o_1[o_i] = thread / 4 % 32 + o_i * 32;
  bool mask_o_1[o_n1];
  #pragma unroll
  for (int o_i = 0; o_i < o_n1; ++o_i)
    mask_o_1[o_i] = (offs_o_1[o_i] < O) | EVEN_O;
  int offs_c[c_n];
  #pragma unroll
  for (int c_i = 0; c_i < c_n; ++c_i)
    offs_c[c_i] = thread % 4 * 8 + c_i % 8 + c_i / 8 * 32;
  bool mask_c[c_n];
  #pragma unroll
  for (int c_i = 0; c_i < c_n; ++c_i)
    mask_c[c_i] = (offs_c[c_i] < C) | EVEN_C;
  int offs_c_1[c_n1];
  #pragma unroll
  for (int c_i = 0; c_i < c_n1; ++c_i)
    offs_c_1[c_i] = thread / 16 + c_i * 16;
  bool mask_c_1[c_n1];
  #pragma unroll
  for (int c_i = 0; c_i < c_n1; ++c_i)
    mask_c_1[c_i] = (offs_c_1[c_i] < C) | EVEN_C;
  const int offs_p_1 = p_at + thread / 4 % 4;
  const bool mask_p_1 = (offs_p_1 < H) | EVEN_P;
  int offs_q_1[8];
  #pragma unroll
  for (int q_i = 0; q_i < 8; ++q_i)
    offs_q_1[q_i] = thread % 4 * 8 + q_i;
  bool mask_q_1[8];
  #pragma unroll
  for (int q_i = 0; q_i < 8; ++q_i)
    mask_q_1[q_i] = (offs_q_1[q_i] < W) | EVEN_Q;
  int j_step_1 = 0;
  __syncthreads();
  int i_at_1;
  int j_at_1;
  f16 w_ijoc_next[o_n1][c_n];
  f16 x_next[c_n1][8];
  #pragma unroll
  for (int j_stage_1 = 0; j_stage_1 < 1; ++j_stage_1) {
    if (j_step_1 < 9) {
      i_at_1 = j_step_1 / 3;
      j_at_1 = j_step_1 % 3;
      #pragma unroll
      for (int o_i = 0; o_i < o_n1; ++o_i)
        #pragma unroll
        for (int c_i = 0; c_i < c_n; c_i += ALIGNED_W_IJOC ? 8 : 1)
          load<ALIGNED_W_IJOC ? 8 : 1>(
              &w_ijoc_next[o_i][c_i],
              place(w_ijoc_ptr, i_at_1 * 3 * O * C + j_at_1 * O * C + offs_o_1[o_i] * C + offs_c[c_i]),
              mask_o_1[o_i] && mask_c[c_i]);
      #pragma unroll
      for (int c_i = 0; c_i < c_n1; ++c_i)
        #pragma unroll
        for (int q_i = 0; q_i < 8; ++q_i)
          x_next[c_i][q_i] =
              read(x_ptr, b_at * C * H * W + offs_c_1[c_i] * H * W + (offs_p_1 + i_at_1 - 1) * W + offs_q_1[q_i] + j_at_1 - 1, mask_c_1[c_i] && mask_p_1 && mask_q_1[q_i] && offs_p_1 + i_at_1 - 1 >= 0 && offs_p_1 + i_at_1 - 1 < H && offs_q_1[q_i] + j_at_1 - 1 >= 0 && offs_q_1[q_i] + j_at_1 - 1 < W);
      if ((thread & 128) == 0)
        #pragma unroll
        for (int o_i = 0; o_i < o_n1; ++o_i)
          #pragma unroll
          for (int c_i = 0; c_i < c_n; c_i += 8)
            store<8>(
                &w_ijoc_tile[j_stage_1 * O_WIDTH * C_WIDTH + swizzle<2, 3, 3>(panel<32>(O_WIDTH,
                thread / 4 % 32 + o_i * 32, thread % 4 * 8 + c_i % 8 + c_i / 8 * 32))],
                &w_ijoc_next[o_i][c_i]);
      #pragma unroll
      for (int c_i = 0; c_i < c_n1; ++c_i)
        #pragma unroll
        for (int q_i = 0; q_i < 8; q_i += 8)
          store<8>(
              &x_tile[j_stage_1 * 128 * C_WIDTH + swizzle<3, 3, 3>(panel<64>(C_WIDTH,
              thread / 16 + c_i * 16, thread / 4 % 4 * 32 + thread % 4 * 8 + q_i))],
              &x_next[c_i][q_i]);
    }
    j_step_1 = j_step_1 + 1;
  }
  int j_read_1 = 0;
  int j_write_1 = 1;
  if (j_step_1 < 9) {
    i_at_1 = j_step_1 / 3;
    j_at_1 = j_step_1 % 3;
    #pragma unroll
    for (int o_i = 0; o_i < o_n1; ++o_i)
      #pragma unroll
      for (int c_i = 0; c_i < c_n; c_i += ALIGNED_W_IJOC ? 8 : 1)
        load<ALIGNED_W_IJOC ? 8 : 1>(
            &w_ijoc_next[o_i][c_i],
            place(w_ijoc_ptr, i_at_1 * 3 * O * C + j_at_1 * O * C + offs_o_1[o_i] * C + offs_c[c_i]),
            mask_o_1[o_i] && mask_c[c_i]);
    #pragma unroll
    for (int c_i = 0; c_i < c_n1; ++c_i)
      #pragma unroll
      for (int q_i = 0; q_i < 8; ++q_i)
        x_next[c_i][q_i] =
            read(x_ptr, b_at * C * H * W + offs_c_1[c_i] * H * W + (offs_p_1 + i_at_1 - 1) * W + offs_q_1[q_i] + j_at_1 - 1, mask_c_1[c_i] && mask_p_1 && mask_q_1[q_i] && offs_p_1 + i_at_1 - 1 >= 0 && offs_p_1 + i_at_1 - 1 < H && offs_q_1[q_i] + j_at_1 - 1 >= 0 && offs_q_1[q_i] + j_at_1 - 1 < W);
  }
  j_step_1 = j_step_1 + 1;
  for (int j_step = 0; j_step < 9; ++j_step) {
    __syncthreads();
    if (j_step + 1 < 9) {
      if ((thread & 128) == 0)
        #pragma unroll
        for (int o_i = 0; o_i < o_n1; ++o_i)
          #pragma unroll
          for (int c_i = 0; c_i < c_n; c_i += 8)
            store<8>(
                &w_ijoc_tile[j_write_1 * O_WIDTH * C_WIDTH + swizzle<2, 3, 3>(panel<32>(O_WIDTH,
                thread / 4 % 32 + o_i * 32, thread % 4 * 8 + c_i % 8 + c_i / 8 * 32))],
                &w_ijoc_next[o_i][c_i]);
      #pragma unroll
      for (int c_i = 0; c_i < c_n1; ++c_i)
        #pragma unroll
        for (int q_i = 0; q_i < 8; q_i += 8)
          store<8>(
              &x_tile[j_write_1 * 128 * C_WIDTH + swizzle<3, 3, 3>(panel<64>(C_WIDTH,
              thread / 16 + c_i * 16, thread / 4 % 4 * 32 + thread % 4 * 8 + q_i))],
              &x_next[c_i][q_i]);
    }
    if (j_step_1 < 9) {
      i_at_1 = j_step_1 / 3;
      j_at_1 = j_step_1 % 3;
      #pragma unroll
      for (int o_i = 0; o_i < o_n1; ++o_i)
        #pragma unroll
        for (int c_i = 0; c_i < c_n; c_i += ALIGNED_W_IJOC ? 8 : 1)
          load<ALIGNED_W_IJOC ? 8 : 1>(
              &w_ijoc_next[o_i][c_i],
              place(w_ijoc_ptr, i_at_1 * 3 * O * C + j_at_1 * O * C + offs_o_1[o_i] * C + offs_c[c_i]),
              mask_o_1[o_i] && mask_c[c_i]);
      #pragma unroll
      for (int c_i = 0; c_i < c_n1; ++c_i)
        #pragma unroll
        for (int q_i = 0; q_i < 8; ++q_i)
          x_next[c_i][q_i] =
              read(x_ptr, b_at * C * H * W + offs_c_1[c_i] * H * W + (offs_p_1 + i_at_1 - 1) * W + offs_q_1[q_i] + j_at_1 - 1, mask_c_1[c_i] && mask_p_1 && mask_q_1[q_i] && offs_p_1 + i_at_1 - 1 >= 0 && offs_p_1 + i_at_1 - 1 < H && offs_q_1[q_i] + j_at_1 - 1 >= 0 && offs_q_1[q_i] + j_at_1 - 1 < W);
    }
    j_step_1 = j_step_1 + 1;
    j_write_1 = ((j_write_1 == 1) ? 0 : j_write_1 + 1);
    float part_1[o_n][8];
    #pragma unroll
    for (int o_i = 0; o_i < o_n; ++o_i)
      #pragma unroll
      for (int p_i = 0; p_i < 2; ++p_i)
        #pragma unroll
        for (int q_i = 0; q_i < 4; ++q_i)
          part_1[o_i][p_i * 4 + q_i] = acc[o_i][p_i][q_i];
    for (int c_issue_1 = 0; c_issue_1 < C_WIDTH; c_issue_1 += 16) {
      f16 part_2[o_n][4];
      #pragma unroll
      for (int o_i = 0; o_i < o_n; ++o_i)
        #pragma unroll
        for (int c_i = 0; c_i < 4; c_i += 4)
          load<4>(
              &part_2[o_i][c_i],
              &w_ijoc_tile[j_read_1 * O_WIDTH * C_WIDTH + swizzle<2, 3, 3>(panel<32>(O_WIDTH,
              thread % 16 + o_i * 16, c_issue_1 + thread / 16 % 4 * 4 + c_i))]);
      f16 part_3[4][2];
      #pragma unroll
      for (int c_i = 0; c_i < 4; ++c_i)
        #pragma unroll
        for (int p_q_i = 0; p_q_i < 2; ++p_q_i)
          part_3[c_i][p_q_i] =
              x_tile0[j_read_1 * 128 * C_WIDTH + swizzle<3, 3, 3>(panel<64>(C_WIDTH, c_issue_1 + thread / 16 % 4 * 4 + c_i, thread % 16 + thread / 64 * 16 + p_q_i * 64))];
      #pragma unroll
      for (int c_i = 0; c_i < 4; c_i += 4)
        #pragma unroll
        for (int o_i = 0; o_i < o_n; o_i += 1)
          #pragma unroll
          for (int p_q_i = 0; p_q_i < 8; p_q_i += 4)
            mfma_16x16x16(
                part_1[o_i][p_q_i], part_1[o_i][p_q_i + 1], part_1[o_i][p_q_i + 2],
                part_1[o_i][p_q_i + 3],
                part_2[o_i][c_i], part_2[o_i][c_i + 1], part_2[o_i][c_i + 2], part_2[o_i][c_i + 3],
                part_3[c_i][p_q_i / 4], part_3[c_i + 1][p_q_i / 4], part_3[c_i + 2][p_q_i / 4],
                part_3[c_i + 3][p_q_i / 4]);
    }
    #pragma unroll
    for (int o_i = 0; o_i < o_n; ++o_i)
      #pragma unroll
      for (int p_i = 0; p_i < 2; ++p_i)
        #pragma unroll
        for (int q_i = 0; q_i < 4; ++q_i)
          acc[o_i][p_i][q_i] = part_1[o_i][p_i * 4 + q_i];
    j_read_1 = ((j_read_1 == 1) ? 0 : j_read_1 + 1);
  }
  f16 y[o_n][2][4];
  #pragma unroll
  for (int o_i = 0; o_i < o_n; ++o_i)
    #pragma unroll
    for (int p_i = 0; p_i < 2; ++p_i)
      #pragma unroll
      for (int q_i = 0; q_i < 4; ++q_i)
        y[o_i][p_i][q_i] = f16(acc[o_i][p_i][q_i] + float(bias[o_i]));
  #pragma unroll
  for (int o_i = 0; o_i < o_n; ++o_i)
    #pragma unroll
    for (int p_i = 0; p_i < 2; ++p_i)
      #pragma unroll
      for (int q_i = 0; q_i < 4; q_i += ALIGNED_Y ? 4 : 1)
        store<ALIGNED_Y ? 4 : 1>(
            place(y_ptr, b_at * O * H * W + offs_o[o_i] * H * W + offs_p[p_i] * W + offs_q[q_i]),
            &y[o_i][p_i][q_i],
            mask_o[o_i] && mask_p[p_i] && mask_q[q_i]);
}
