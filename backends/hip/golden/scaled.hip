// scaled: Multiply two matrices of OCP's MXFP8, with a scale for each 32 numbers of a row.
// Generated from spec 6bad726ffe232734 and schedule 12060039a1a3f064.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at M = 128, B = 16, N = 128.
#ifndef EVEN_M
#define EVEN_M 1
#endif
#ifndef EVEN_N
#define EVEN_N 1
#endif
#ifndef EVEN_B
#define EVEN_B 1
#endif
#ifndef ALIGNED_S
#define ALIGNED_S 1
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif

// y[m, n] = sum(f32(x[m, b, k]) * f32(s[m, b]) * f32(w[n, b, k]) * f32(t[n, b]), b, k)
extern "C" __global__ void __launch_bounds__(256, 3) scaled_0(
    const f8e4m3* __restrict__ x_ptr,
    const f8e4m3* __restrict__ w_ptr,
    const f8e8m0* __restrict__ s_ptr,
    const f8e8m0* __restrict__ t_ptr,
    float* __restrict__ y_ptr,
    int M,
    int B,
    int N) {
  f8e4m3* const x_tile = shared_at<f8e4m3>(0);  // [64][4][32]
  f8e4m3* const w_tile = shared_at<f8e4m3>(8192);  // [64][4][32]
  f8e8m0* const s_tile = shared_at<f8e8m0>(16384);  // [64][4]
  f8e8m0* const t_tile = shared_at<f8e8m0>(17408);  // [64][4]
  f8e4m3* const x_tile0 = shared_at<f8e4m3>(0);  // [64][128]
  f8e4m3* const w_tile0 = shared_at<f8e4m3>(8192);  // [64][128]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  const int tiles_n = cdiv(N, 64);
  const int m_at = tile / tiles_n * 64;
  const int n_at = tile % tiles_n * 64;
  int offs_m[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    offs_m[m_i] = m_at + thread % 16 + thread / 64 % 2 * 16 + m_i * 32;
  bool mask_m[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    mask_m[m_i] = (offs_m[m_i] < M) | EVEN_M;
  int offs_n[8];
  #pragma unroll
  for (int n_i = 0; n_i < 8; ++n_i)
    offs_n[n_i] = n_at + thread / 16 % 4 * 4 + thread / 128 * 16 + n_i % 4 + n_i / 4 * 32;
  bool mask_n[8];
  #pragma unroll
  for (int n_i = 0; n_i < 8; ++n_i)
    mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
  float y[2][8];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 8; ++n_i)
      y[m_i][n_i] = 0.0f;
  int offs_m_1[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    offs_m_1[m_i] = m_at + thread / 8 + m_i * 32;
  bool mask_m_1[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    mask_m_1[m_i] = (offs_m_1[m_i] < M) | EVEN_M;
  int offs_k[16];
  #pragma unroll
  for (int k_i = 0; k_i < 16; ++k_i)
    offs_k[k_i] = thread % 2 * 16 + k_i;
  int offs_n_1[2];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    offs_n_1[n_i] = n_at + thread / 8 + n_i * 32;
  bool mask_n_1[2];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
  const int offs_m_2 = m_at + thread % 64;
  const bool mask_m_2 = (offs_m_2 < M) | EVEN_M;
  const int offs_n_2 = n_at + thread % 64;
  const bool mask_n_2 = (offs_n_2 < N) | EVEN_N;
  int b_at_1 = 0;
  __syncthreads();
  int offs_b;
  bool mask_b;
  f8e4m3 x_next[2][16];
  f8e4m3 w_next[2][16];
  int offs_b_1[4];
  bool mask_b_1[4];
  f8e8m0 s_next[4];
  f8e8m0 t_next[4];
  if (b_at_1 < B) {
    offs_b = b_at_1 + thread / 2 % 4;
    mask_b = (offs_b < B) | EVEN_B;
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int k_i = 0; k_i < 16; k_i += 16)
        load<16>(
            &x_next[m_i][k_i],
            place(x_ptr, offs_m_1[m_i] * B * 32 + offs_b * 32 + offs_k[k_i]),
            mask_m_1[m_i] && mask_b);
    offs_b = b_at_1 + thread / 2 % 4;
    mask_b = (offs_b < B) | EVEN_B;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int k_i = 0; k_i < 16; k_i += 16)
        load<16>(
            &w_next[n_i][k_i],
            place(w_ptr, offs_n_1[n_i] * B * 32 + offs_b * 32 + offs_k[k_i]),
            mask_n_1[n_i] && mask_b);
    #pragma unroll
    for (int b_i = 0; b_i < 4; ++b_i)
      offs_b_1[b_i] = b_at_1 + b_i;
    #pragma unroll
    for (int b_i = 0; b_i < 4; ++b_i)
      mask_b_1[b_i] = (offs_b_1[b_i] < B) | EVEN_B;
    #pragma unroll
    for (int b_i = 0; b_i < 4; b_i += ALIGNED_S ? 4 : 1)
      load<ALIGNED_S ? 4 : 1>(
          &s_next[b_i],
          place(s_ptr, offs_m_2 * B + offs_b_1[b_i]),
          mask_m_2 && mask_b_1[b_i]);
    #pragma unroll
    for (int b_i = 0; b_i < 4; ++b_i)
      offs_b_1[b_i] = b_at_1 + b_i;
    #pragma unroll
    for (int b_i = 0; b_i < 4; ++b_i)
      mask_b_1[b_i] = (offs_b_1[b_i] < B) | EVEN_B;
    #pragma unroll
    for (int b_i = 0; b_i < 4; b_i += ALIGNED_S ? 4 : 1)
      load<ALIGNED_S ? 4 : 1>(
          &t_next[b_i],
          place(t_ptr, offs_n_2 * B + offs_b_1[b_i]),
          mask_n_2 && mask_b_1[b_i]);
  }
  b_at_1 = b_at_1 + 4;
  for (int b_at = 0; b_at < B; b_at += 4) {
    __syncthreads();
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int k_i = 0; k_i < 16; k_i += 16)
        store<16>(
            &x_tile[swizzle<3, 4, 3>(panel<128>(64, thread / 8 + m_i * 32,
            thread / 2 % 4 * 32 + thread % 2 * 16 + k_i))],
            &x_next[m_i][k_i]);
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int k_i = 0; k_i < 16; k_i += 16)
        store<16>(
            &w_tile[swizzle<3, 4, 3>(panel<128>(64, thread / 8 + n_i * 32,
            thread / 2 % 4 * 32 + thread % 2 * 16 + k_i))],
            &w_next[n_i][k_i]);
    if ((thread & 192) == 0)
      #pragma unroll
      for (int b_i = 0; b_i < 4; b_i += 4)
        store<4>(&s_tile[panel<4>(64, thread % 64, b_i)], &s_next[b_i]);
    if ((thread & 192) == 0)
      #pragma unroll
      for (int b_i = 0; b_i < 4; b_i += 4)
        store<4>(&t_tile[panel<4>(64, thread % 64, b_i)], &t_next[b_i]);
    if (b_at_1 < B) {
      offs_b = b_at_1 + thread / 2 % 4;
      mask_b = (offs_b < B) | EVEN_B;
      #pragma unroll
      for (int m_i = 0; m_i < 2; ++m_i)
        #pragma unroll
        for (int k_i = 0; k_i < 16; k_i += 16)
          load<16>(
              &x_next[m_i][k_i],
              place(x_ptr, offs_m_1[m_i] * B * 32 + offs_b * 32 + offs_k[k_i]),
              mask_m_1[m_i] && mask_b);
      offs_b = b_at_1 + thread / 2 % 4;
      mask_b = (offs_b < B) | EVEN_B;
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        #pragma unroll
        for (int k_i = 0; k_i < 16; k_i += 16)
          load<16>(
              &w_next[n_i][k_i],
              place(w_ptr, offs_n_1[n_i] * B * 32 + offs_b * 32 + offs_k[k_i]),
              mask_n_1[n_i] && mask_b);
      #pragma unroll
      for (int b_i = 0; b_i < 4; ++b_i)
        offs_b_1[b_i] = b_at_1 + b_i;
      #pragma unroll
      for (int b_i = 0; b_i < 4; ++b_i)
        mask_b_1[b_i] = (offs_b_1[b_i] < B) | EVEN_B;
      #pragma unroll
      for (int b_i = 0; b_i < 4; b_i += ALIGNED_S ? 4 : 1)
        load<ALIGNED_S ? 4 : 1>(
            &s_next[b_i],
            place(s_ptr, offs_m_2 * B + offs_b_1[b_i]),
            mask_m_2 && mask_b_1[b_i]);
      #pragma unroll
      for (int b_i = 0; b_i < 4; ++b_i)
        offs_b_1[b_i] = b_at_1 + b_i;
      #pragma unroll
      for (int b_i = 0; b_i < 4; ++b_i)
        mask_b_1[b_i] = (offs_b_1[b_i] < B) | EVEN_B;
      #pragma unroll
      for (int b_i = 0; b_i < 4; b_i += ALIGNED_S ? 4 : 1)
        load<ALIGNED_S ? 4 : 1>(
            &t_next[b_i],
            place(t_ptr, offs_n_2 * B + offs_b_1[b_i]),
            mask_n_2 && mask_b_1[b_i]);
    }
    b_at_1 = b_at_1 + 4;
    float y_step[2][8];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 8; ++n_i)
        y_step[m_i][n_i] = 0.0f;
    __syncthreads();
    #pragma unroll
    for (int b_k_issue_1 = 0; b_k_issue_1 < 128; b_k_issue_1 += 128) {
      f8e4m3 part_1[2][32];
      #pragma unroll
      for (int m_i = 0; m_i < 2; ++m_i)
        #pragma unroll
        for (int b_k_i = 0; b_k_i < 32; b_k_i += 16)
          load<16>(
              &part_1[m_i][b_k_i],
              &x_tile0[swizzle<3, 4, 3>(panel<128>(64,
              thread % 16 + thread / 64 % 2 * 16 + m_i * 32,
              b_k_issue_1 + thread / 16 % 4 * 16 + b_k_i % 16 + b_k_i / 16 * 64))]);
      f8e4m3 part_3[2][32];
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        #pragma unroll
        for (int b_k_i = 0; b_k_i < 32; b_k_i += 16)
          load<16>(
              &part_3[n_i][b_k_i],
              &w_tile0[swizzle<3, 4, 3>(panel<128>(64, thread % 16 + thread / 128 * 16 + n_i * 32,
              b_k_issue_1 + thread / 16 % 4 * 16 + b_k_i % 16 + b_k_i / 16 * 64))]);
      f8e4m3 part_2[32][2];
      #pragma unroll
      for (int b_k_i = 0; b_k_i < 32; ++b_k_i)
        #pragma unroll
        for (int n_i = 0; n_i < 2; ++n_i)
          part_2[b_k_i][n_i] = part_3[n_i][b_k_i];
      f8e8m0 part_4[2];
      #pragma unroll
      for (int m_i = 0; m_i < 2; ++m_i)
        part_4[m_i] =
            s_tile[panel<4>(64, thread % 16 + thread / 64 % 2 * 16 + m_i * 32, b_k_issue_1 / 32 + thread / 16 % 4)];
      f8e8m0 part_6[2];
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        part_6[n_i] =
            t_tile[panel<4>(64, thread % 16 + thread / 128 * 16 + n_i * 32, b_k_issue_1 / 32 + thread / 16 % 4)];
      f8e8m0 part_5[2];
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        part_5[n_i] = part_6[n_i];
      #pragma unroll
      for (int b_k_i = 0; b_k_i < 32; b_k_i += 32)
        #pragma unroll
        for (int m_i = 0; m_i < 2; m_i += 1)
          #pragma unroll
          for (int n_i = 0; n_i < 8; n_i += 4)
            mfma_scaled_16x16x128(
                y_step[m_i][n_i], y_step[m_i][n_i + 1], y_step[m_i][n_i + 2], y_step[m_i][n_i + 3],
                part_1[m_i][b_k_i], part_1[m_i][b_k_i + 1], part_1[m_i][b_k_i + 2],
                part_1[m_i][b_k_i + 3], part_1[m_i][b_k_i + 4], part_1[m_i][b_k_i + 5],
                part_1[m_i][b_k_i + 6], part_1[m_i][b_k_i + 7], part_1[m_i][b_k_i + 8],
                part_1[m_i][b_k_i + 9], part_1[m_i][b_k_i + 10], part_1[m_i][b_k_i + 11],
                part_1[m_i][b_k_i + 12], part_1[m_i][b_k_i + 13], part_1[m_i][b_k_i + 14],
                part_1[m_i][b_k_i + 15], part_1[m_i][b_k_i + 16], part_1[m_i][b_k_i + 17],
                part_1[m_i][b_k_i + 18], part_1[m_i][b_k_i + 19], part_1[m_i][b_k_i + 20],
                part_1[m_i][b_k_i + 21], part_1[m_i][b_k_i + 22], part_1[m_i][b_k_i + 23],
                part_1[m_i][b_k_i + 24], part_1[m_i][b_k_i + 25], part_1[m_i][b_k_i + 26],
                part_1[m_i][b_k_i + 27], part_1[m_i][b_k_i + 28], part_1[m_i][b_k_i + 29],
                part_1[m_i][b_k_i + 30], part_1[m_i][b_k_i + 31],
                part_2[b_k_i][n_i / 4], part_2[b_k_i + 1][n_i / 4], part_2[b_k_i + 2][n_i / 4],
                part_2[b_k_i + 3][n_i / 4], part_2[b_k_i + 4][n_i / 4], part_2[b_k_i + 5][n_i / 4],
                part_2[b_k_i + 6][n_i / 4], part_2[b_k_i + 7][n_i / 4], part_2[b_k_i + 8][n_i / 4],
                part_2[b_k_i + 9][n_i / 4], part_2[b_k_i + 10][n_i / 4],
                part_2[b_k_i + 11][n_i / 4], part_2[b_k_i + 12][n_i / 4],
                part_2[b_k_i + 13][n_i / 4], part_2[b_k_i + 14][n_i / 4],
                part_2[b_k_i + 15][n_i / 4], part_2[b_k_i + 16][n_i / 4],
                part_2[b_k_i + 17][n_i / 4], part_2[b_k_i + 18][n_i / 4],
                part_2[b_k_i + 19][n_i / 4], part_2[b_k_i + 20][n_i / 4],
                part_2[b_k_i + 21][n_i / 4], part_2[b_k_i + 22][n_i / 4],
                part_2[b_k_i + 23][n_i / 4], part_2[b_k_i + 24][n_i / 4],
                part_2[b_k_i + 25][n_i / 4], part_2[b_k_i + 26][n_i / 4],
                part_2[b_k_i + 27][n_i / 4], part_2[b_k_i + 28][n_i / 4],
                part_2[b_k_i + 29][n_i / 4], part_2[b_k_i + 30][n_i / 4],
                part_2[b_k_i + 31][n_i / 4],
                part_4[m_i], part_5[n_i / 4]);
    }
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 8; ++n_i)
        y[m_i][n_i] += y_step[m_i][n_i];
  }
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 8; n_i += ALIGNED_Y ? 4 : 1)
      store<ALIGNED_Y ? 4 : 1>(
          place(y_ptr, offs_m[m_i] * N + offs_n[n_i]),
          &y[m_i][n_i],
          mask_m[m_i] && mask_n[n_i]);
}
