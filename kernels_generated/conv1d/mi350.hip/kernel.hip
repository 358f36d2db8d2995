// conv1d: Convolve each row with kernels of width 3, padded by 1, and add a bias.
// Generated from spec a9ddf1487adb2982 and schedule 97f53c1f6ea4c9f9.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at B = 2048, C = 96, L = 200, O = 96.
#ifndef EVEN_X_BLC_C
#define EVEN_X_BLC_C 0
#endif
#ifndef EVEN_X_BLC_L
#define EVEN_X_BLC_L 0
#endif
#ifndef ALIGNED_X_BLC
#define ALIGNED_X_BLC 1
#endif
#ifndef EVEN_W_IOC_C
#define EVEN_W_IOC_C 1
#endif
#ifndef EVEN_C
#define EVEN_C 1
#endif
#ifndef O_WIDTH
#define O_WIDTH 128
#endif
#ifndef EVEN_O
#define EVEN_O 0
#endif
#ifndef L_WIDTH
#define L_WIDTH 256
#endif
#ifndef EVEN_L
#define EVEN_L 0
#endif
#ifndef ALIGNED_W_IOC
#define ALIGNED_W_IOC 1
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif

// x_blc[x_blc_b, x_blc_l, x_blc_c] = x[x_blc_b, x_blc_c, x_blc_l]
extern "C" __global__ void __launch_bounds__(128, 1) conv1d_0(
    const f16* __restrict__ x_ptr,
    f16* __restrict__ x_blc_ptr,
    int C,
    int L) {
  f16* const stored_tile = shared_at<f16>(0);  // [32][64 + 8]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  const int tiles_x_blc_c = cdiv(C, 64);
  const int tiles_x_blc_l = cdiv(L, 32);
  const int x_blc_b_at = tile / (tiles_x_blc_c * tiles_x_blc_l);
  const int x_blc_c_at = tile / tiles_x_blc_l % tiles_x_blc_c * 64;
  const int x_blc_l_at = tile % tiles_x_blc_l * 32;
  int offs_x_blc_c[16];
  #pragma unroll
  for (int x_blc_c_i = 0; x_blc_c_i < 16; ++x_blc_c_i)
    offs_x_blc_c[x_blc_c_i] = x_blc_c_at + thread / 32 + x_blc_c_i * 4;
  bool mask_x_blc_c[16];
  #pragma unroll
  for (int x_blc_c_i = 0; x_blc_c_i < 16; ++x_blc_c_i)
    mask_x_blc_c[x_blc_c_i] = (offs_x_blc_c[x_blc_c_i] < C) | EVEN_X_BLC_C;
  const int offs_x_blc_l = x_blc_l_at + thread % 32;
  const bool mask_x_blc_l = (offs_x_blc_l < L) | EVEN_X_BLC_L;
  f16 x[16];
  #pragma unroll
  for (int x_blc_c_i = 0; x_blc_c_i < 16; ++x_blc_c_i)
    x[x_blc_c_i] =
        read(x_ptr, x_blc_b_at * C * L + offs_x_blc_c[x_blc_c_i] * L + offs_x_blc_l, mask_x_blc_c[x_blc_c_i] && mask_x_blc_l);
  f16 x_blc[16];
  #pragma unroll
  for (int x_blc_c_i = 0; x_blc_c_i < 16; ++x_blc_c_i)
    x_blc[x_blc_c_i] = x[x_blc_c_i];
  #pragma unroll
  for (int x_blc_c_i = 0; x_blc_c_i < 16; ++x_blc_c_i)
    stored_tile[thread % 32 * 72 + thread / 32 + x_blc_c_i * 4] = x_blc[x_blc_c_i];
  __syncthreads();
  f16 part_1[2][8];
  #pragma unroll
  for (int x_blc_l_i = 0; x_blc_l_i < 2; ++x_blc_l_i)
    #pragma unroll
    for (int x_blc_c_i = 0; x_blc_c_i < 8; x_blc_c_i += 8)
      load<8>(
          &part_1[x_blc_l_i][x_blc_c_i],
          &stored_tile[(thread / 8 + x_blc_l_i * 16) * 72 + thread % 8 * 8 + x_blc_c_i]);
  int offs_x_blc_l_1[2];
  #pragma unroll
  for (int x_blc_l_i = 0; x_blc_l_i < 2; ++x_blc_l_i)
    offs_x_blc_l_1[x_blc_l_i] = x_blc_l_at + thread / 8 + x_blc_l_i * 16;
  bool mask_x_blc_l_1[2];
  #pragma unroll
  for (int x_blc_l_i = 0; x_blc_l_i < 2; ++x_blc_l_i)
    mask_x_blc_l_1[x_blc_l_i] = (offs_x_blc_l_1[x_blc_l_i] < L) | EVEN_X_BLC_L;
  int offs_x_blc_c_1[8];
  #pragma unroll
  for (int x_blc_c_i = 0; x_blc_c_i < 8; ++x_blc_c_i)
    offs_x_blc_c_1[x_blc_c_i] = x_blc_c_at + thread % 8 * 8 + x_blc_c_i;
  bool mask_x_blc_c_1[8];
  #pragma unroll
  for (int x_blc_c_i = 0; x_blc_c_i < 8; ++x_blc_c_i)
    mask_x_blc_c_1[x_blc_c_i] = (offs_x_blc_c_1[x_blc_c_i] < C) | EVEN_X_BLC_C;
  #pragma unroll
  for (int x_blc_l_i = 0; x_blc_l_i < 2; ++x_blc_l_i)
    #pragma unroll
    for (int x_blc_c_i = 0; x_blc_c_i < 8; x_blc_c_i += ALIGNED_X_BLC ? 8 : 1)
      store<ALIGNED_X_BLC ? 8 : 1>(
          place(x_blc_ptr, x_blc_b_at * L * C + offs_x_blc_l_1[x_blc_l_i] * C + offs_x_blc_c_1[x_blc_c_i]),
          &part_1[x_blc_l_i][x_blc_c_i],
          mask_x_blc_l_1[x_blc_l_i] && mask_x_blc_c_1[x_blc_c_i]);
}

// w_ioc[x_w_ioc_i_2, w_ioc_o, w_ioc_c] = w[w_ioc_o, w_ioc_c, x_w_ioc_i_2]
extern "C" __global__ void __launch_bounds__(64, 1) conv1d_1(
    const f16* __restrict__ w_ptr,
    f16* __restrict__ w_ioc_ptr,
    int C,
    int O) {
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  const int tiles_w_ioc_o = O;
  const int tiles_w_ioc_c = cdiv(C, 32);
  const int x_w_ioc_i_2_at = tile / (tiles_w_ioc_o * tiles_w_ioc_c);
  const int w_ioc_o_at = tile / tiles_w_ioc_c % tiles_w_ioc_o;
  const int w_ioc_c_at = tile % tiles_w_ioc_c * 32;
  const int offs_w_ioc_c = w_ioc_c_at + thread % 32;
  const bool mask_w_ioc_c = (offs_w_ioc_c < C) | EVEN_W_IOC_C;
  f16 w;
  w = read(w_ptr, w_ioc_o_at * C * 3 + x_w_ioc_i_2_at + offs_w_ioc_c * 3, mask_w_ioc_c);
  const f16 w_ioc = w;
  if ((thread & 32) == 0)
    write(w_ioc_ptr, x_w_ioc_i_2_at * O * C + w_ioc_o_at * C + offs_w_ioc_c, mask_w_ioc_c, w_ioc);
}

// acc[b, o, l] = sum(f32(pad(x_blc[b, l + i - 1, c], 0.0)) * f32(w_ioc[i, o, c]), c, i)
// y[b, o, l] = acc[b, o, l] + f32(bias[o])
extern "C" __global__ void __launch_bounds__(256, 1) conv1d_2(
    const f16* __restrict__ bias_ptr,
    const f16* __restrict__ x_blc_ptr,
    const f16* __restrict__ w_ioc_ptr,
    f16* __restrict__ y_ptr,
    int C,
    int L,
    int O) {
  constexpr int o_n = 1 * cdiv(O_WIDTH, 16);
  constexpr int l_n = 4 * cdiv(L_WIDTH, 64);
  constexpr int o_n1 = 1 * cdiv(O_WIDTH, 64);
  constexpr int l_n1 = 1 * cdiv(L_WIDTH, 64);
  constexpr int shared_1 = 0 + round_up(128 * O_WIDTH, 1024);
  constexpr int shared_2 = shared_1 + round_up(128 * L_WIDTH, 1024);
  f16* const w_ioc_tile = shared_at<f16>(0);  // [2][O_WIDTH][32]
  f16* const x_blc_tile = shared_at<f16>(shared_1);  // [2][L_WIDTH][32]
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
  int offs_l[l_n];
  #pragma unroll
  for (int l_i = 0; l_i < l_n; ++l_i)
    offs_l[l_i] = thread / 16 * 4 + l_i % 4 + l_i / 4 * 64;
  bool mask_l[l_n];
  #pragma unroll
  for (int l_i = 0; l_i < l_n; ++l_i)
    mask_l[l_i] = (offs_l[l_i] < L) | EVEN_L;
  f16 bias[o_n];
  #pragma unroll
  for (int o_i = 0; o_i < o_n; ++o_i)
    bias[o_i] = read(bias_ptr, offs_o[o_i], mask_o[o_i]);
  const int b_at = tile;
  float acc[o_n][l_n];
  #pragma unroll
  for (int o_i = 0; o_i < o_n; ++o_i)
    #pragma unroll
    for (int l_i = 0; l_i < l_n; ++l_i)
      acc[o_i][l_i] = 0.0f;
  int offs_o_1[o_n1];
  #pragma unroll
  for (int o_i = 0; o_i < o_n1; ++o_i)
    offs_o_1[o_i] = thread / 4 + o_i * 64;
  bool mask_o_1[o_n1];
  #pragma unroll
  for (int o_i = 0; o_i < o_n1; ++o_i)
    mask_o_1[o_i] = (offs_o_1[o_i] < O) | EVEN_O;
  int offs_l_1[l_n1];
  #pragma unroll
  for (int l_i = 0; l_i < l_n1; ++l_i)
    offs_l_1[l_i] = thread / 4 + l_i * 64;
  bool mask_l_1[l_n1];
  #pragma unroll
  for (int l_i = 0; l_i < l_n1; ++l_i)
    mask_l_1[l_i] = (offs_l_1[l_i] < L) | EVEN_L;
  int c_step_1 = 0;
  __syncthreads();
  int i_at_1;
  int c_at_1;
  int offs_c[8];
  bool mask_c[8];
  f16 w_ioc_next[o_n1][8];
  f16 x_blc_next[l_n1][8];
  #pragma unroll
  for (int c_stage_1 = 0; c_stage_1 < 1; ++c_stage_1) {
    if (c_step_1 < cdiv(C, 32) * 3) {
      i_at_1 = c_step_1 / cdiv(C, 32);
      c_at_1 = c_step_1 % cdiv(C, 32) * 32;
      #pragma unroll
      for (int c_i = 0; c_i < 8; ++c_i)
        offs_c[c_i] = c_at_1 + thread % 4 * 8 + c_i;
      #pragma unroll
      for (int c_i = 0; c_i < 8; ++c_i)
        mask_c[c_i] = (offs_c[c_i] < C) | EVEN_C;
      #pragma unroll
      for (int o_i = 0; o_i < o_n1; ++o_i)
        #pragma unroll
        for (int c_i = 0; c_i < 8; c_i += ALIGNED_W_IOC ? 8 : 1)
          load<ALIGNED_W_IOC ? 8 : 1>(
              &w_ioc_next[o_i][c_i],
              place(w_ioc_ptr, i_at_1 * O * C + offs_o_1[o_i] * C + offs_c[c_i]),
              mask_o_1[o_i] && mask_c[c_i]);
      #pragma unroll
      for (int c_i = 0; c_i < 8; ++c_i)
        offs_c[c_i] = c_at_1 + thread % 4 * 8 + c_i;
      #pragma unroll
      for (int c_i = 0; c_i < 8; ++c_i)
        mask_c[c_i] = (offs_c[c_i] < C) | EVEN_C;
      #pragma unroll
      for (int l_i = 0; l_i < l_n1; ++l_i)
        #pragma unroll
        for (int c_i = 0; c_i < 8; c_i += ALIGNED_X_BLC ? 8 : 1)
          load<ALIGNED_X_BLC ? 8 : 1>(
              &x_blc_next[l_i][c_i],
              place(x_blc_ptr, b_at * L * C + (offs_l_1[l_i] + i_at_1 - 1) * C + offs_c[c_i]),
              mask_l_1[l_i] && mask_c[c_i] && offs_l_1[l_i] + i_at_1 - 1 >= 0 && offs_l_1[l_i] + i_at_1 - 1 < L);
      #pragma unroll
      for (int o_i = 0; o_i < o_n1; ++o_i)
        #pragma unroll
        for (int c_i = 0; c_i < 8; c_i += 8)
          store<8>(
              &w_ioc_tile[c_stage_1 * 32 * O_WIDTH + swizzle<2, 3, 3>(panel<32>(O_WIDTH,
              thread / 4 + o_i * 64, thread % 4 * 8 + c_i))],
              &w_ioc_next[o_i][c_i]);
      #pragma unroll
      for (int l_i = 0; l_i < l_n1; ++l_i)
        #pragma unroll
        for (int c_i = 0; c_i < 8; c_i += 8)
          store<8>(
              &x_blc_tile[c_stage_1 * 32 * L_WIDTH + swizzle<2, 3, 3>(panel<32>(L_WIDTH,
              thread / 4 + l_i * 64, thread % 4 * 8 + c_i))],
              &x_blc_next[l_i][c_i]);
    }
    c_step_1 = c_step_1 + 1;
  }
  int c_read_1 = 0;
  int c_write_1 = 1;
  if (c_step_1 < cdiv(C, 32) * 3) {
    i_at_1 = c_step_1 / cdiv(C, 32);
    c_at_1 = c_step_1 % cdiv(C, 32) * 32;
    #pragma unroll
    for (int c_i = 0; c_i < 8; ++c_i)
      offs_c[c_i] = c_at_1 + thread % 4 * 8 + c_i;
    #pragma unroll
    for (int c_i = 0; c_i < 8; ++c_i)
      mask_c[c_i] = (offs_c[c_i] < C) | EVEN_C;
    #pragma unroll
    for (int o_i = 0; o_i < o_n1; ++o_i)
      #pragma unroll
      for (int c_i = 0; c_i < 8; c_i += ALIGNED_W_IOC ? 8 : 1)
        load<ALIGNED_W_IOC ? 8 : 1>(
            &w_ioc_next[o_i][c_i],
            place(w_ioc_ptr, i_at_1 * O * C + offs_o_1[o_i] * C + offs_c[c_i]),
            mask_o_1[o_i] && mask_c[c_i]);
    #pragma unroll
    for (int c_i = 0; c_i < 8; ++c_i)
      offs_c[c_i] = c_at_1 + thread % 4 * 8 + c_i;
    #pragma unroll
    for (int c_i = 0; c_i < 8; ++c_i)
      mask_c[c_i] = (offs_c[c_i] < C) | EVEN_C;
    #pragma unroll
    for (int l_i = 0; l_i < l_n1; ++l_i)
      #pragma unroll
      for (int c_i = 0; c_i < 8; c_i += ALIGNED_X_BLC ? 8 : 1)
        load<ALIGNED_X_BLC ? 8 : 1>(
            &x_blc_next[l_i][c_i],
            place(x_blc_ptr, b_at * L * C + (offs_l_1[l_i] + i_at_1 - 1) * C + offs_c[c_i]),
            mask_l_1[l_i] && mask_c[c_i] && offs_l_1[l_i] + i_at_1 - 1 >= 0 && offs_l_1[l_i] + i_at_1 - 1 < L);
  }
  c_step_1 = c_step_1 + 1;
  for (int c_step = 0; c_step < cdiv(C, 32) * 3; ++c_step) {
    __syncthreads();
    if (c_step + 1 < cdiv(C, 32) * 3) {
      #pragma unroll
      for (int o_i = 0; o_i < o_n1; ++o_i)
        #pragma unroll
        for (int c_i = 0; c_i < 8; c_i += 8)
          store<8>(
              &w_ioc_tile[c_write_1 * 32 * O_WIDTH + swizzle<2, 3, 3>(panel<32>(O_WIDTH,
              thread / 4 + o_i * 64, thread % 4 * 8 + c_i))],
              &w_ioc_next[o_i][c_i]);
      #pragma unroll
      for (int l_i = 0; l_i < l_n1; ++l_i)
        #pragma unroll
        for (int c_i = 0; c_i < 8; c_i += 8)
          store<8>(
              &x_blc_tile[c_write_1 * 32 * L_WIDTH + swizzle<2, 3, 3>(panel<32>(L_WIDTH,
              thread / 4 + l_i * 64, thread % 4 * 8 + c_i))],
              &x_blc_next[l_i][c_i]);
    }
    if (c_step_1 < cdiv(C, 32) * 3) {
      i_at_1 = c_step_1 / cdiv(C, 32);
      c_at_1 = c_step_1 % cdiv(C, 32) * 32;
      #pragma unroll
      for (int c_i = 0; c_i < 8; ++c_i)
        offs_c[c_i] = c_at_1 + thread % 4 * 8 + c_i;
      #pragma unroll
      for (int c_i = 0; c_i < 8; ++c_i)
        mask_c[c_i] = (offs_c[c_i] < C) | EVEN_C;
      #pragma unroll
      for (int o_i = 0; o_i < o_n1; ++o_i)
        #pragma unroll
        for (int c_i = 0; c_i < 8; c_i += ALIGNED_W_IOC ? 8 : 1)
          load<ALIGNED_W_IOC ? 8 : 1>(
              &w_ioc_next[o_i][c_i],
              place(w_ioc_ptr, i_at_1 * O * C + offs_o_1[o_i] * C + offs_c[c_i]),
              mask_o_1[o_i] && mask_c[c_i]);
      #pragma unroll
      for (int c_i = 0; c_i < 8; ++c_i)
        offs_c[c_i] = c_at_1 + thread % 4 * 8 + c_i;
      #pragma unroll
      for (int c_i = 0; c_i < 8; ++c_i)
        mask_c[c_i] = (offs_c[c_i] < C) | EVEN_C;
      #pragma unroll
      for (int l_i = 0; l_i < l_n1; ++l_i)
        #pragma unroll
        for (int c_i = 0; c_i < 8; c_i += ALIGNED_X_BLC ? 8 : 1)
          load<ALIGNED_X_BLC ? 8 : 1>(
              &x_blc_next[l_i][c_i],
              place(x_blc_ptr, b_at * L * C + (offs_l_1[l_i] + i_at_1 - 1) * C + offs_c[c_i]),
              mask_l_1[l_i] && mask_c[c_i] && offs_l_1[l_i] + i_at_1 - 1 >= 0 && offs_l_1[l_i] + i_at_1 - 1 < L);
    }
    c_step_1 = c_step_1 + 1;
    c_write_1 = ((c_write_1 == 1) ? 0 : c_write_1 + 1);
    #pragma unroll
    for (int c_issue_1 = 0; c_issue_1 < 32; c_issue_1 += 32) {
      f16 part_1[o_n][8];
      #pragma unroll
      for (int o_i = 0; o_i < o_n; ++o_i)
        #pragma unroll
        for (int c_i = 0; c_i < 8; c_i += 8)
          load<8>(
              &part_1[o_i][c_i],
              &w_ioc_tile[c_read_1 * 32 * O_WIDTH + swizzle<2, 3, 3>(panel<32>(O_WIDTH,
              thread % 16 + o_i * 16, c_issue_1 + thread / 16 % 4 * 8 + c_i))]);
      f16 part_3[l_n1][8];
      #pragma unroll
      for (int l_i = 0; l_i < l_n1; ++l_i)
        #pragma unroll
        for (int c_i = 0; c_i < 8; c_i += 8)
          load<8>(
              &part_3[l_i][c_i],
              &x_blc_tile[c_read_1 * 32 * L_WIDTH + swizzle<2, 3, 3>(panel<32>(L_WIDTH,
              thread % 16 + thread / 64 * 16 + l_i * 64, c_issue_1 + thread / 16 % 4 * 8 + c_i))]);
      f16 part_2[8][l_n1];
      #pragma unroll
      for (int c_i = 0; c_i < 8; ++c_i)
        #pragma unroll
        for (int l_i = 0; l_i < l_n1; ++l_i)
          part_2[c_i][l_i] = part_3[l_i][c_i];
      #pragma unroll
      for (int c_i = 0; c_i < 8; c_i += 8)
        #pragma unroll
        for (int o_i = 0; o_i < o_n; o_i += 1)
          #pragma unroll
          for (int l_i = 0; l_i < l_n; l_i += 4)
            mfma_16x16x32(
                acc[o_i][l_i], acc[o_i][l_i + 1], acc[o_i][l_i + 2], acc[o_i][l_i + 3],
                part_1[o_i][c_i], part_1[o_i][c_i + 1], part_1[o_i][c_i + 2], part_1[o_i][c_i + 3],
                part_1[o_i][c_i + 4], part_1[o_i][c_i + 5], part_1[o_i][c_i + 6],
                part_1[o_i][c_i + 7],
                part_2[c_i][l_i / 4], part_2[c_i + 1][l_i / 4], part_2[c_i + 2][l_i / 4],
                part_2[c_i + 3][l_i / 4], part_2[c_i + 4][l_i / 4], part_2[c_i + 5][l_i / 4],
                part_2[c_i + 6][l_i / 4], part_2[c_i + 7][l_i / 4]);
    }
    c_read_1 = ((c_read_1 == 1) ? 0 : c_read_1 + 1);
  }
  f16 y[o_n][l_n];
  #pragma unroll
  for (int o_i = 0; o_i < o_n; ++o_i)
    #pragma unroll
    for (int l_i = 0; l_i < l_n; ++l_i)
      y[o_i][l_i] = f16(acc[o_i][l_i] + float(bias[o_i]));
  #pragma unroll
  for (int o_i = 0; o_i < o_n; ++o_i)
    #pragma unroll
    for (int l_i = 0; l_i < l_n; l_i += ALIGNED_Y ? 4 : 1)
      store<ALIGNED_Y ? 4 : 1>(
          place(y_ptr, b_at * O * L + offs_o[o_i] * L + offs_l[l_i]),
          &y[o_i][l_i],
          mask_o[o_i] && mask_l[l_i]);
}
