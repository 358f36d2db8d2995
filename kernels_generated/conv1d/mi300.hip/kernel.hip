// conv1d: Convolve each row with kernels of width 3, padded by 1, and add a bias.
// Generated from spec a9ddf1487adb2982 and schedule 1185417d30df77cc.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at B = 2048, C = 96, L = 200, O = 96.
#ifndef EVEN_W_IOC_C
#define EVEN_W_IOC_C 0
#endif
#ifndef EVEN_L
#define EVEN_L 0
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
#ifndef ALIGNED_W_IOC
#define ALIGNED_W_IOC 1
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif

// w_ioc[x_w_ioc_i_2, w_ioc_o, w_ioc_c] = w[w_ioc_o, w_ioc_c, x_w_ioc_i_2]
extern "C" __global__ void __launch_bounds__(64, 1) conv1d_0(
    const f16* __restrict__ w_ptr,
    f16* __restrict__ w_ioc_ptr,
    int C,
    int O) {
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  const int tiles_w_ioc_o = O;
  const int tiles_w_ioc_c = cdiv(C, 64);
  const int x_w_ioc_i_2_at = tile / (tiles_w_ioc_o * tiles_w_ioc_c);
  const int w_ioc_o_at = tile / tiles_w_ioc_c % tiles_w_ioc_o;
  const int w_ioc_c_at = tile % tiles_w_ioc_c * 64;
  const int offs_w_ioc_c = w_ioc_c_at + thread;
  const bool mask_w_ioc_c = (offs_w_ioc_c < C) | EVEN_W_IOC_C;
  f16 w;
  w = read(w_ptr, w_ioc_o_at * C * 3 + x_w_ioc_i_2_at + offs_w_ioc_c * 3, mask_w_ioc_c);
  const f16 w_ioc = w;
  write(w_ioc_ptr, x_w_ioc_i_2_at * O * C + w_ioc_o_at * C + offs_w_ioc_c, mask_w_ioc_c, w_ioc);
}

// acc[b, o, l] = sum(f32(pad(x[b, c, l + i - 1], 0.0)) * f32(w_ioc[i, o, c]), c, i)
// y[b, o, l] = acc[b, o, l] + f32(bias[o])
extern "C" __global__ void __launch_bounds__(256, 2) conv1d_1(
    const f16* __restrict__ x_ptr,
    const f16* __restrict__ bias_ptr,
    const f16* __restrict__ w_ioc_ptr,
    f16* __restrict__ y_ptr,
    int B,
    int C,
    int L,
    int O) {
  constexpr int o_n = 1 * cdiv(O_WIDTH, 32);
  constexpr int o_n1 = 1 * cdiv(O_WIDTH, 64);
  constexpr int shared_2 = 8192 + round_up(128 * O_WIDTH, 1024);
  f16* const w_ioc_tile = shared_at<f16>(8192);  // [2][O_WIDTH][32]
  f16* const x_tile = shared_at<f16>(0);  // [2][64][32]
  const int thread = threadIdx.x;
  int offs_o[o_n];
  #pragma unroll
  for (int o_i = 0; o_i < o_n; ++o_i)
    offs_o[o_i] = thread % 16 + thread / 64 % 2 * 16 + o_i * 32;
  bool mask_o[o_n];
  #pragma unroll
  for (int o_i = 0; o_i < o_n; ++o_i)
    mask_o[o_i] = (offs_o[o_i] < O) | EVEN_O;
  f16 bias[o_n];
  #pragma unroll
  for (int o_i = 0; o_i < o_n; ++o_i)
    bias[o_i] = read(bias_ptr, offs_o[o_i], mask_o[o_i]);
  for (int tile = blockIdx.x; tile < B * cdiv(L, 64); tile += gridDim.x) {
    const int tiles_l = cdiv(L, 64);
    const int b_at = tile / tiles_l;
    const int l_at = tile % tiles_l * 64;
    int offs_l[8];
    #pragma unroll
    for (int l_i = 0; l_i < 8; ++l_i)
      offs_l[l_i] = l_at + thread / 16 % 4 * 4 + thread / 128 * 16 + l_i % 4 + l_i / 4 * 32;
    bool mask_l[8];
    #pragma unroll
    for (int l_i = 0; l_i < 8; ++l_i)
      mask_l[l_i] = (offs_l[l_i] < L) | EVEN_L;
    float acc[o_n][8];
    #pragma unroll
    for (int o_i = 0; o_i < o_n; ++o_i)
      #pragma unroll
      for (int l_i = 0; l_i < 8; ++l_i)
        acc[o_i][l_i] = 0.0f;
    for (int i_at = 0; i_at < 3; ++i_at) {
      int offs_o_1[o_n1];
      #pragma unroll
      for (int o_i = 0; o_i < o_n1; ++o_i)
        offs_o_1[o_i] = thread / 4 + o_i * 64;
      bool mask_o_1[o_n1];
      #pragma unroll
      for (int o_i = 0; o_i < o_n1; ++o_i)
        mask_o_1[o_i] = (offs_o_1[o_i] < O) | EVEN_O;
      int offs_l_1[2];
      #pragma unroll
      for (int l_i = 0; l_i < 2; ++l_i)
        offs_l_1[l_i] = l_at + thread / 8 * 2 + l_i;
      bool mask_l_1[2];
      #pragma unroll
      for (int l_i = 0; l_i < 2; ++l_i)
        mask_l_1[l_i] = (offs_l_1[l_i] < L) | EVEN_L;
      int c_at_1 = 0;
      __syncthreads();
      int offs_c[8];
      bool mask_c[8];
      f16 w_ioc_next[o_n1][8];
      int offs_c_1[4];
      bool mask_c_1[4];
      f16 x_next[4][2];
      f16 part_1[2][4];
      #pragma unroll
      for (int c_stage_1 = 0; c_stage_1 < 1; ++c_stage_1) {
        if (c_at_1 < C) {
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
                  place(w_ioc_ptr, i_at * O * C + offs_o_1[o_i] * C + offs_c[c_i]),
                  mask_o_1[o_i] && mask_c[c_i]);
          #pragma unroll
          for (int c_i = 0; c_i < 4; ++c_i)
            offs_c_1[c_i] = c_at_1 + thread % 8 * 4 + c_i;
          #pragma unroll
          for (int c_i = 0; c_i < 4; ++c_i)
            mask_c_1[c_i] = (offs_c_1[c_i] < C) | EVEN_C;
          #pragma unroll
          for (int c_i = 0; c_i < 4; ++c_i)
            #pragma unroll
            for (int l_i = 0; l_i < 2; ++l_i)
              x_next[c_i][l_i] =
                  read(x_ptr, b_at * C * L + offs_c_1[c_i] * L + offs_l_1[l_i] + i_at - 1, mask_c_1[c_i] && mask_l_1[l_i] && offs_l_1[l_i] + i_at - 1 >= 0 && offs_l_1[l_i] + i_at - 1 < L);
          #pragma unroll
          for (int o_i = 0; o_i < o_n1; ++o_i)
            #pragma unroll
            for (int c_i = 0; c_i < 8; c_i += 8)
              store<8>(
                  &w_ioc_tile[c_stage_1 * 32 * O_WIDTH + swizzle<2, 3, 3>(panel<32>(O_WIDTH,
                  thread / 4 + o_i * 64, thread % 4 * 8 + c_i))],
                  &w_ioc_next[o_i][c_i]);
          #pragma unroll
          for (int l_i = 0; l_i < 2; ++l_i)
            #pragma unroll
            for (int c_i = 0; c_i < 4; ++c_i)
              part_1[l_i][c_i] = x_next[c_i][l_i];
          #pragma unroll
          for (int l_i = 0; l_i < 2; ++l_i)
            #pragma unroll
            for (int c_i = 0; c_i < 4; c_i += 4)
              store<4>(
                  &x_tile[c_stage_1 * 2048 + swizzle<2, 3, 3>(panel<32>(64, thread / 8 * 2 + l_i,
                  thread % 8 * 4 + c_i))],
                  &part_1[l_i][c_i]);
        }
        c_at_1 = c_at_1 + 32;
      }
      int c_read_1 = 0;
      int c_write_1 = 1;
      if (c_at_1 < C) {
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
                place(w_ioc_ptr, i_at * O * C + offs_o_1[o_i] * C + offs_c[c_i]),
                mask_o_1[o_i] && mask_c[c_i]);
        #pragma unroll
        for (int c_i = 0; c_i < 4; ++c_i)
          offs_c_1[c_i] = c_at_1 + thread % 8 * 4 + c_i;
        #pragma unroll
        for (int c_i = 0; c_i < 4; ++c_i)
          mask_c_1[c_i] = (offs_c_1[c_i] < C) | EVEN_C;
        #pragma unroll
        for (int c_i = 0; c_i < 4; ++c_i)
          #pragma unroll
          for (int l_i = 0; l_i < 2; ++l_i)
            x_next[c_i][l_i] =
                read(x_ptr, b_at * C * L + offs_c_1[c_i] * L + offs_l_1[l_i] + i_at - 1, mask_c_1[c_i] && mask_l_1[l_i] && offs_l_1[l_i] + i_at - 1 >= 0 && offs_l_1[l_i] + i_at - 1 < L);
      }
      c_at_1 = c_at_1 + 32;
      for (int c_at = 0; c_at < C; c_at += 32) {
        __syncthreads();
        if (c_at + 32 < C) {
          #pragma unroll
          for (int o_i = 0; o_i < o_n1; ++o_i)
            #pragma unroll
            for (int c_i = 0; c_i < 8; c_i += 8)
              store<8>(
                  &w_ioc_tile[c_write_1 * 32 * O_WIDTH + swizzle<2, 3, 3>(panel<32>(O_WIDTH,
                  thread / 4 + o_i * 64, thread % 4 * 8 + c_i))],
                  &w_ioc_next[o_i][c_i]);
          #pragma unroll
          for (int l_i = 0; l_i < 2; ++l_i)
            #pragma unroll
            for (int c_i = 0; c_i < 4; ++c_i)
              part_1[l_i][c_i] = x_next[c_i][l_i];
          #pragma unroll
          for (int l_i = 0; l_i < 2; ++l_i)
            #pragma unroll
            for (int c_i = 0; c_i < 4; c_i += 4)
              store<4>(
                  &x_tile[c_write_1 * 2048 + swizzle<2, 3, 3>(panel<32>(64, thread / 8 * 2 + l_i,
                  thread % 8 * 4 + c_i))],
                  &part_1[l_i][c_i]);
        }
        if (c_at_1 < C) {
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
                  place(w_ioc_ptr, i_at * O * C + offs_o_1[o_i] * C + offs_c[c_i]),
                  mask_o_1[o_i] && mask_c[c_i]);
          #pragma unroll
          for (int c_i = 0; c_i < 4; ++c_i)
            offs_c_1[c_i] = c_at_1 + thread % 8 * 4 + c_i;
          #pragma unroll
          for (int c_i = 0; c_i < 4; ++c_i)
            mask_c_1[c_i] = (offs_c_1[c_i] < C) | EVEN_C;
          #pragma unroll
          for (int c_i = 0; c_i < 4; ++c_i)
            #pragma unroll
            for (int l_i = 0; l_i < 2; ++l_i)
              x_next[c_i][l_i] =
                  read(x_ptr, b_at * C * L + offs_c_1[c_i] * L + offs_l_1[l_i] + i_at - 1, mask_c_1[c_i] && mask_l_1[l_i] && offs_l_1[l_i] + i_at - 1 >= 0 && offs_l_1[l_i] + i_at - 1 < L);
        }
        c_at_1 = c_at_1 + 32;
        c_write_1 = ((c_write_1 == 1) ? 0 : c_write_1 + 1);
        #pragma unroll
        for (int c_issue_1 = 0; c_issue_1 < 32; c_issue_1 += 16) {
          f16 part_2[o_n][4];
          #pragma unroll
          for (int o_i = 0; o_i < o_n; ++o_i)
            #pragma unroll
            for (int c_i = 0; c_i < 4; c_i += 4)
              load<4>(
                  &part_2[o_i][c_i],
                  &w_ioc_tile[c_read_1 * 32 * O_WIDTH + swizzle<2, 3, 3>(panel<32>(O_WIDTH,
                  thread % 16 + thread / 64 % 2 * 16 + o_i * 32,
                  c_issue_1 + thread / 16 % 4 * 4 + c_i))]);
          f16 part_4[2][4];
          #pragma unroll
          for (int l_i = 0; l_i < 2; ++l_i)
            #pragma unroll
            for (int c_i = 0; c_i < 4; c_i += 4)
              load<4>(
                  &part_4[l_i][c_i],
                  &x_tile[c_read_1 * 2048 + swizzle<2, 3, 3>(panel<32>(64,
                  thread % 16 + thread / 128 * 16 + l_i * 32,
                  c_issue_1 + thread / 16 % 4 * 4 + c_i))]);
          f16 part_3[4][2];
          #pragma unroll
          for (int c_i = 0; c_i < 4; ++c_i)
            #pragma unroll
            for (int l_i = 0; l_i < 2; ++l_i)
              part_3[c_i][l_i] = part_4[l_i][c_i];
          #pragma unroll
          for (int c_i = 0; c_i < 4; c_i += 4)
            #pragma unroll
            for (int o_i = 0; o_i < o_n; o_i += 1)
              #pragma unroll
              for (int l_i = 0; l_i < 8; l_i += 4)
                mfma_16x16x16(
                    acc[o_i][l_i], acc[o_i][l_i + 1], acc[o_i][l_i + 2], acc[o_i][l_i + 3],
                    part_2[o_i][c_i], part_2[o_i][c_i + 1], part_2[o_i][c_i + 2],
                    part_2[o_i][c_i + 3],
                    part_3[c_i][l_i / 4], part_3[c_i + 1][l_i / 4], part_3[c_i + 2][l_i / 4],
                    part_3[c_i + 3][l_i / 4]);
        }
        c_read_1 = ((c_read_1 == 1) ? 0 : c_read_1 + 1);
      }
    }
    f16 y[o_n][8];
    #pragma unroll
    for (int o_i = 0; o_i < o_n; ++o_i)
      #pragma unroll
      for (int l_i = 0; l_i < 8; ++l_i)
        y[o_i][l_i] = f16(acc[o_i][l_i] + float(bias[o_i]));
    #pragma unroll
    for (int o_i = 0; o_i < o_n; ++o_i)
      #pragma unroll
      for (int l_i = 0; l_i < 8; l_i += ALIGNED_Y ? 4 : 1)
        store<ALIGNED_Y ? 4 : 1>(
            place(y_ptr, b_at * O * L + offs_o[o_i] * L + offs_l[l_i]),
            &y[o_i][l_i],
            mask_o[o_i] && mask_l[l_i]);
  }
}
