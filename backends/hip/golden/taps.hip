// transposed_conv: Convolve transposed rows with kernels of width 3.
// Generated from spec 6b58cc4babb046a6 and schedule 35c7bcfaf39305c7.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at B = 2, C = 128, O = 128, L = 64.
#ifndef EVEN_O
#define EVEN_O 1
#endif
#ifndef EVEN_L
#define EVEN_L 0
#endif
#ifndef EVEN_C
#define EVEN_C 1
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif

// y[b, o, l] = sum(pad(x[b, c, l + i - 2], 0.0) * w[c, o, 2 - i], c, i=3)
extern "C" __global__ void __launch_bounds__(256, 4) transposed_conv_0(
    const float* __restrict__ x_ptr,
    const float* __restrict__ w_ptr,
    float* __restrict__ y_ptr,
    int C,
    int L,
    int O,
    int P) {
  float* const x_tile = shared_at<float>(0);  // [2][64][32]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  const int tiles_o = cdiv(O, 32);
  const int tiles_l = cdiv(P, 32);
  const int b_at = tile / (tiles_o * tiles_l);
  const int o_at = tile / tiles_l % tiles_o * 32;
  const int l_at = tile % tiles_l * 32;
  const int offs_o = o_at + thread % 16 + thread / 64 % 2 * 16;
  const bool mask_o = (offs_o < O) | EVEN_O;
  int offs_l[4];
  #pragma unroll
  for (int l_i = 0; l_i < 4; ++l_i)
    offs_l[l_i] = l_at + thread / 16 % 4 * 4 + thread / 128 * 16 + l_i;
  bool mask_l[4];
  #pragma unroll
  for (int l_i = 0; l_i < 4; ++l_i)
    mask_l[l_i] = (offs_l[l_i] < P) | EVEN_L;
  float y[4];
  #pragma unroll
  for (int l_i = 0; l_i < 4; ++l_i)
    y[l_i] = 0.0f;
  int offs_l_1[4];
  #pragma unroll
  for (int l_i = 0; l_i < 4; ++l_i)
    offs_l_1[l_i] = l_at + thread % 8 * 4 + l_i;
  bool mask_l_1[4];
  #pragma unroll
  for (int l_i = 0; l_i < 4; ++l_i)
    mask_l_1[l_i] = (offs_l_1[l_i] < P) | EVEN_L;
  int i_step_1 = 0;
  __syncthreads();
  int c_at_1;
  int i_at_1;
  int offs_c_1[2];
  bool mask_c_1[2];
  float x_next[2][4];
  #pragma unroll
  for (int i_stage_1 = 0; i_stage_1 < 1; ++i_stage_1) {
    if (i_step_1 < cdiv(C, 64) * 3) {
      c_at_1 = i_step_1 / 3 * 64;
      i_at_1 = i_step_1 % 3;
      #pragma unroll
      for (int c_i = 0; c_i < 2; ++c_i)
        offs_c_1[c_i] = c_at_1 + thread / 8 + c_i * 32;
      #pragma unroll
      for (int c_i = 0; c_i < 2; ++c_i)
        mask_c_1[c_i] = (offs_c_1[c_i] < C) | EVEN_C;
      #pragma unroll
      for (int c_i = 0; c_i < 2; ++c_i)
        #pragma unroll
        for (int l_i = 0; l_i < 4; ++l_i)
          x_next[c_i][l_i] =
              read(x_ptr, b_at * C * L + offs_c_1[c_i] * L + offs_l_1[l_i] + i_at_1 - 2, mask_c_1[c_i] && mask_l_1[l_i] && offs_l_1[l_i] + i_at_1 - 2 >= 0 && offs_l_1[l_i] + i_at_1 - 2 < L);
      #pragma unroll
      for (int c_i = 0; c_i < 2; ++c_i)
        #pragma unroll
        for (int l_i = 0; l_i < 4; l_i += 4)
          store<4>(
              &x_tile[i_stage_1 * 2048 + swizzle<3, 2, 3>(panel<32>(64, thread / 8 + c_i * 32,
              thread % 8 * 4 + l_i))],
              &x_next[c_i][l_i]);
    }
    i_step_1 = i_step_1 + 1;
  }
  int i_read_1 = 0;
  int i_write_1 = 1;
  if (i_step_1 < cdiv(C, 64) * 3) {
    c_at_1 = i_step_1 / 3 * 64;
    i_at_1 = i_step_1 % 3;
    #pragma unroll
    for (int c_i = 0; c_i < 2; ++c_i)
      offs_c_1[c_i] = c_at_1 + thread / 8 + c_i * 32;
    #pragma unroll
    for (int c_i = 0; c_i < 2; ++c_i)
      mask_c_1[c_i] = (offs_c_1[c_i] < C) | EVEN_C;
    #pragma unroll
    for (int c_i = 0; c_i < 2; ++c_i)
      #pragma unroll
      for (int l_i = 0; l_i < 4; ++l_i)
        x_next[c_i][l_i] =
            read(x_ptr, b_at * C * L + offs_c_1[c_i] * L + offs_l_1[l_i] + i_at_1 - 2, mask_c_1[c_i] && mask_l_1[l_i] && offs_l_1[l_i] + i_at_1 - 2 >= 0 && offs_l_1[l_i] + i_at_1 - 2 < L);
  }
  i_step_1 = i_step_1 + 1;
  for (int i_step = 0; i_step < cdiv(C, 64) * 3; ++i_step) {
    __syncthreads();
    if (i_step + 1 < cdiv(C, 64) * 3) {
      #pragma unroll
      for (int c_i = 0; c_i < 2; ++c_i)
        #pragma unroll
        for (int l_i = 0; l_i < 4; l_i += 4)
          store<4>(
              &x_tile[i_write_1 * 2048 + swizzle<3, 2, 3>(panel<32>(64, thread / 8 + c_i * 32,
              thread % 8 * 4 + l_i))],
              &x_next[c_i][l_i]);
    }
    if (i_step_1 < cdiv(C, 64) * 3) {
      c_at_1 = i_step_1 / 3 * 64;
      i_at_1 = i_step_1 % 3;
      #pragma unroll
      for (int c_i = 0; c_i < 2; ++c_i)
        offs_c_1[c_i] = c_at_1 + thread / 8 + c_i * 32;
      #pragma unroll
      for (int c_i = 0; c_i < 2; ++c_i)
        mask_c_1[c_i] = (offs_c_1[c_i] < C) | EVEN_C;
      #pragma unroll
      for (int c_i = 0; c_i < 2; ++c_i)
        #pragma unroll
        for (int l_i = 0; l_i < 4; ++l_i)
          x_next[c_i][l_i] =
              read(x_ptr, b_at * C * L + offs_c_1[c_i] * L + offs_l_1[l_i] + i_at_1 - 2, mask_c_1[c_i] && mask_l_1[l_i] && offs_l_1[l_i] + i_at_1 - 2 >= 0 && offs_l_1[l_i] + i_at_1 - 2 < L);
    }
    i_step_1 = i_step_1 + 1;
    i_write_1 = ((i_write_1 == 1) ? 0 : i_write_1 + 1);
    const int c_at = i_step / 3 * 64;
    const int i_at = i_step % 3;
    int offs_c[16];
    #pragma unroll
    for (int c_i = 0; c_i < 16; ++c_i)
      offs_c[c_i] = c_at + thread / 16 % 4 + c_i * 4;
    bool mask_c[16];
    #pragma unroll
    for (int c_i = 0; c_i < 16; ++c_i)
      mask_c[c_i] = (offs_c[c_i] < C) | EVEN_C;
    const int w_rows = 2 - i_at;
    float w[16];
    #pragma unroll
    for (int c_i = 0; c_i < 16; ++c_i)
      w[c_i] = read(w_ptr, w_rows + offs_c[c_i] * O * 3 + offs_o * 3, mask_c[c_i] && mask_o);
    float part_1[16];
    #pragma unroll
    for (int c_i = 0; c_i < 16; ++c_i)
      part_1[c_i] = w[c_i];
    #pragma unroll
    for (int c_issue_1 = 0; c_issue_1 < 64; c_issue_1 += 4) {
      float part_2;
      part_2 =
          x_tile[i_read_1 * 2048 + swizzle<3, 2, 3>(panel<32>(64, c_issue_1 + thread / 16 % 4, thread % 16 + thread / 128 * 16))];
      #pragma unroll
      for (int l_i = 0; l_i < 4; l_i += 4)
        mfma_16x16x4(y[l_i], y[l_i + 1], y[l_i + 2], y[l_i + 3], part_1[c_issue_1 / 4 * 1], part_2);
    }
    i_read_1 = ((i_read_1 == 1) ? 0 : i_read_1 + 1);
    interleave<16, 1>();
  }
  #pragma unroll
  for (int l_i = 0; l_i < 4; l_i += ALIGNED_Y ? 2 : 1)
    store<ALIGNED_Y ? 2 : 1>(
        place(y_ptr, b_at * O * P + offs_o * P + offs_l[l_i]),
        &y[l_i],
        mask_o && mask_l[l_i]);
}
