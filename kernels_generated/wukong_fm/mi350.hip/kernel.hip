// wukong_fm: Interact the N embeddings of each sample: x times its transpose times y.
// Generated from spec 52228c1f379b2f9f and schedule d14327c71f53b42e.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at B = 1024, N = 40, D = 224, K = 448.
#ifndef EVEN_K
#define EVEN_K 1
#endif
#ifndef EVEN_D
#define EVEN_D 0
#endif
#ifndef I_WIDTH
#define I_WIDTH 64
#endif
#ifndef EVEN_I
#define EVEN_I 0
#endif
#ifndef N_WIDTH
#define N_WIDTH 48
#endif
#ifndef EVEN_N
#define EVEN_N 0
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif
#ifndef ALIGNED_X
#define ALIGNED_X 1
#endif
#ifndef ALIGNED_OUT
#define ALIGNED_OUT 1
#endif

// t[b, d, k] = sum(f32(x[b, i, d]) * f32(y[b, i, k]), i)
// out[b, n, k] = sum(f32(x[b, n, d]) * t[b, d, k], d)
extern "C" __global__ void __launch_bounds__(128, 1) wukong_fm_0(
    const f16* __restrict__ x_ptr,
    const f16* __restrict__ y_ptr,
    f16* __restrict__ out_ptr,
    int N,
    int D,
    int K) {
  constexpr int n_n = 1 * cdiv(N_WIDTH, 16);
  constexpr int i_n = 4 * cdiv(I_WIDTH, 64);
  constexpr int shared_2 = 8192 + round_up(128 * I_WIDTH, 1024);
  constexpr int shared_3 = shared_2 + round_up(256 * N_WIDTH, 1024);
  constexpr int shared_4 = shared_3 + round_up(256 * I_WIDTH, 1024);
  f16* const y_tile = shared_at<f16>(8192);  // [64][I_WIDTH]
  f16* const x_tile = shared_at<f16>(shared_2);  // [2][N_WIDTH][64]
  f16* const x_2_tile = shared_at<f16>(shared_3);  // [2][64][I_WIDTH]
  f16* const operand_tile_6 = shared_at<f16>(0);  // [64][64]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_n[n_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    offs_n[n_i] = thread % 16 + n_i * 16;
  bool mask_n[n_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
  const int tiles_k = cdiv(K, 64);
  const int b_at = tile / tiles_k;
  const int k_at = tile % tiles_k * 64;
  int offs_k[8];
  #pragma unroll
  for (int k_i = 0; k_i < 8; ++k_i)
    offs_k[k_i] = k_at + thread / 16 * 4 + k_i % 4 + k_i / 4 * 32;
  bool mask_k[8];
  #pragma unroll
  for (int k_i = 0; k_i < 8; ++k_i)
    mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
  float out[n_n][8];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      out[n_i][k_i] = 0.0f;
  int offs_i[i_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    offs_i[i_i] = thread % 16 * 4 + i_i % 4 + i_i / 4 * 64;
  bool mask_i[i_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    mask_i[i_i] = (offs_i[i_i] < N) | EVEN_I;
  int offs_k_2[8];
  #pragma unroll
  for (int k_i = 0; k_i < 8; ++k_i)
    offs_k_2[k_i] = k_at + thread / 16 * 8 + k_i;
  bool mask_k_2[8];
  #pragma unroll
  for (int k_i = 0; k_i < 8; ++k_i)
    mask_k_2[k_i] = (offs_k_2[k_i] < K) | EVEN_K;
  f16 y_next[i_n][8];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    #pragma unroll
    for (int k_i = 0; k_i < 8; k_i += ALIGNED_Y ? 8 : 1)
      load<ALIGNED_Y ? 8 : 1>(
          &y_next[i_i][k_i],
          place(y_ptr, b_at * N * K + offs_i[i_i] * K + offs_k_2[k_i]),
          mask_i[i_i] && mask_k_2[k_i]);
  f16 part_1[8][i_n];
  #pragma unroll
  for (int k_i = 0; k_i < 8; ++k_i)
    #pragma unroll
    for (int i_i = 0; i_i < i_n; ++i_i)
      part_1[k_i][i_i] = y_next[i_i][k_i];
  #pragma unroll
  for (int k_i = 0; k_i < 8; ++k_i)
    #pragma unroll
    for (int i_i = 0; i_i < i_n; i_i += 4)
      store<4>(
          &y_tile[swizzle<3, 3, 3>(panel<64>(64, thread / 16 * 8 + k_i,
          thread % 16 * 4 + i_i % 4 + i_i / 4 * 64))],
          &part_1[k_i][i_i]);
  int offs_n_1[n_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    offs_n_1[n_i] = thread / 8 + n_i * 16;
  bool mask_n_1[n_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    offs_i[i_i] = thread % 16 * 4 + i_i % 4 + i_i / 4 * 64;
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    mask_i[i_i] = (offs_i[i_i] < N) | EVEN_I;
  int d_at_1 = 0;
  __syncthreads();
  int offs_d_1[8];
  bool mask_d_1[8];
  f16 x_next[n_n][8];
  int offs_d_2[8];
  bool mask_d_2[8];
  f16 x_2_next[i_n][8];
  f16 part_2[8][i_n];
  #pragma unroll
  for (int d_stage_1 = 0; d_stage_1 < 1; ++d_stage_1) {
    if (d_at_1 < D) {
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        offs_d_1[d_i] = d_at_1 + thread % 8 * 8 + d_i;
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
      #pragma unroll
      for (int n_i = 0; n_i < n_n; ++n_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += ALIGNED_X ? 8 : 1)
          load<ALIGNED_X ? 8 : 1>(
              &x_next[n_i][d_i],
              place(x_ptr, b_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i]),
              mask_n_1[n_i] && mask_d_1[d_i]);
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        offs_d_2[d_i] = d_at_1 + thread / 16 * 8 + d_i;
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        mask_d_2[d_i] = (offs_d_2[d_i] < D) | EVEN_D;
      #pragma unroll
      for (int i_i = 0; i_i < i_n; ++i_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += ALIGNED_X ? 8 : 1)
          load<ALIGNED_X ? 8 : 1>(
              &x_2_next[i_i][d_i],
              place(x_ptr, b_at * N * D + offs_i[i_i] * D + offs_d_2[d_i]),
              mask_i[i_i] && mask_d_2[d_i]);
      #pragma unroll
      for (int n_i = 0; n_i < n_n; ++n_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += 8)
          store<8>(
              &x_tile[d_stage_1 * 64 * N_WIDTH + swizzle<3, 3, 3>(panel<64>(N_WIDTH,
              thread / 8 + n_i * 16, thread % 8 * 8 + d_i))],
              &x_next[n_i][d_i]);
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        #pragma unroll
        for (int i_i = 0; i_i < i_n; ++i_i)
          part_2[d_i][i_i] = x_2_next[i_i][d_i];
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        #pragma unroll
        for (int i_i = 0; i_i < i_n; i_i += 4)
          store<4>(
              &x_2_tile[d_stage_1 * 64 * I_WIDTH + swizzle<3, 3, 3>(panel<64>(64,
              thread / 16 * 8 + d_i, thread % 16 * 4 + i_i % 4 + i_i / 4 * 64))],
              &part_2[d_i][i_i]);
    }
    d_at_1 = d_at_1 + 64;
  }
  int d_read_1 = 0;
  int d_write_1 = 1;
  if (d_at_1 < D) {
    #pragma unroll
    for (int d_i = 0; d_i < 8; ++d_i)
      offs_d_1[d_i] = d_at_1 + thread % 8 * 8 + d_i;
    #pragma unroll
    for (int d_i = 0; d_i < 8; ++d_i)
      mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
    #pragma unroll
    for (int n_i = 0; n_i < n_n; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < 8; d_i += ALIGNED_X ? 8 : 1)
        load<ALIGNED_X ? 8 : 1>(
            &x_next[n_i][d_i],
            place(x_ptr, b_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i]),
            mask_n_1[n_i] && mask_d_1[d_i]);
    #pragma unroll
    for (int d_i = 0; d_i < 8; ++d_i)
      offs_d_2[d_i] = d_at_1 + thread / 16 * 8 + d_i;
    #pragma unroll
    for (int d_i = 0; d_i < 8; ++d_i)
      mask_d_2[d_i] = (offs_d_2[d_i] < D) | EVEN_D;
    #pragma unroll
    for (int i_i = 0; i_i < i_n; ++i_i)
      #pragma unroll
      for (int d_i = 0; d_i < 8; d_i += ALIGNED_X ? 8 : 1)
        load<ALIGNED_X ? 8 : 1>(
            &x_2_next[i_i][d_i],
            place(x_ptr, b_at * N * D + offs_i[i_i] * D + offs_d_2[d_i]),
            mask_i[i_i] && mask_d_2[d_i]);
  }
  d_at_1 = d_at_1 + 64;
  for (int d_at = 0; d_at < D; d_at += 64) {
    __syncthreads();
    if (d_at + 64 < D) {
      #pragma unroll
      for (int n_i = 0; n_i < n_n; ++n_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += 8)
          store<8>(
              &x_tile[d_write_1 * 64 * N_WIDTH + swizzle<3, 3, 3>(panel<64>(N_WIDTH,
              thread / 8 + n_i * 16, thread % 8 * 8 + d_i))],
              &x_next[n_i][d_i]);
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        #pragma unroll
        for (int i_i = 0; i_i < i_n; ++i_i)
          part_2[d_i][i_i] = x_2_next[i_i][d_i];
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        #pragma unroll
        for (int i_i = 0; i_i < i_n; i_i += 4)
          store<4>(
              &x_2_tile[d_write_1 * 64 * I_WIDTH + swizzle<3, 3, 3>(panel<64>(64,
              thread / 16 * 8 + d_i, thread % 16 * 4 + i_i % 4 + i_i / 4 * 64))],
              &part_2[d_i][i_i]);
    }
    if (d_at_1 < D) {
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        offs_d_1[d_i] = d_at_1 + thread % 8 * 8 + d_i;
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
      #pragma unroll
      for (int n_i = 0; n_i < n_n; ++n_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += ALIGNED_X ? 8 : 1)
          load<ALIGNED_X ? 8 : 1>(
              &x_next[n_i][d_i],
              place(x_ptr, b_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i]),
              mask_n_1[n_i] && mask_d_1[d_i]);
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        offs_d_2[d_i] = d_at_1 + thread / 16 * 8 + d_i;
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        mask_d_2[d_i] = (offs_d_2[d_i] < D) | EVEN_D;
      #pragma unroll
      for (int i_i = 0; i_i < i_n; ++i_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += ALIGNED_X ? 8 : 1)
          load<ALIGNED_X ? 8 : 1>(
              &x_2_next[i_i][d_i],
              place(x_ptr, b_at * N * D + offs_i[i_i] * D + offs_d_2[d_i]),
              mask_i[i_i] && mask_d_2[d_i]);
    }
    d_at_1 = d_at_1 + 64;
    d_write_1 = ((d_write_1 == 1) ? 0 : d_write_1 + 1);
    int offs_d[2];
    #pragma unroll
    for (int d_i = 0; d_i < 2; ++d_i)
      offs_d[d_i] = d_at + thread % 16 + thread / 64 * 16 + d_i * 32;
    bool mask_d[2];
    #pragma unroll
    for (int d_i = 0; d_i < 2; ++d_i)
      mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
    float t[2][16];
    #pragma unroll
    for (int d_i = 0; d_i < 2; ++d_i)
      #pragma unroll
      for (int k_i = 0; k_i < 16; ++k_i)
        t[d_i][k_i] = 0.0f;
    for (int i_issue_1 = 0; i_issue_1 < I_WIDTH; i_issue_1 += 32) {
      f16 part_3[2][8];
      #pragma unroll
      for (int d_i = 0; d_i < 2; ++d_i)
        #pragma unroll
        for (int i_i = 0; i_i < 8; i_i += 8)
          load<8>(
              &part_3[d_i][i_i],
              &x_2_tile[d_read_1 * 64 * I_WIDTH + swizzle<3, 3, 3>(panel<64>(64,
              thread % 16 + thread / 64 * 16 + d_i * 32, i_issue_1 + thread / 16 % 4 * 8 + i_i))]);
      f16 part_5[4][8];
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        #pragma unroll
        for (int i_i = 0; i_i < 8; i_i += 8)
          load<8>(
              &part_5[k_i][i_i],
              &y_tile[swizzle<3, 3, 3>(panel<64>(64, thread % 16 + k_i * 16,
              i_issue_1 + thread / 16 % 4 * 8 + i_i))]);
      f16 part_4[8][4];
      #pragma unroll
      for (int i_i = 0; i_i < 8; ++i_i)
        #pragma unroll
        for (int k_i = 0; k_i < 4; ++k_i)
          part_4[i_i][k_i] = part_5[k_i][i_i];
      #pragma unroll
      for (int i_i = 0; i_i < 8; i_i += 8)
        #pragma unroll
        for (int d_i = 0; d_i < 2; d_i += 1)
          #pragma unroll
          for (int k_i = 0; k_i < 16; k_i += 4)
            mfma_16x16x32(
                t[d_i][k_i], t[d_i][k_i + 1], t[d_i][k_i + 2], t[d_i][k_i + 3],
                part_3[d_i][i_i], part_3[d_i][i_i + 1], part_3[d_i][i_i + 2], part_3[d_i][i_i + 3],
                part_3[d_i][i_i + 4], part_3[d_i][i_i + 5], part_3[d_i][i_i + 6],
                part_3[d_i][i_i + 7],
                part_4[i_i][k_i / 4], part_4[i_i + 1][k_i / 4], part_4[i_i + 2][k_i / 4],
                part_4[i_i + 3][k_i / 4], part_4[i_i + 4][k_i / 4], part_4[i_i + 5][k_i / 4],
                part_4[i_i + 6][k_i / 4], part_4[i_i + 7][k_i / 4]);
      interleave<6, 1>();
    }
    f16 out_b[2][16];
    #pragma unroll
    for (int d_i = 0; d_i < 2; ++d_i)
      #pragma unroll
      for (int k_i = 0; k_i < 16; ++k_i)
        out_b[d_i][k_i] = f16(t[d_i][k_i]);
    f16 part_6[2][16];
    #pragma unroll
    for (int d_i = 0; d_i < 2; ++d_i)
      #pragma unroll
      for (int k_i = 0; k_i < 16; ++k_i)
        part_6[d_i][k_i] = (mask_d[d_i] ? out_b[d_i][k_i] : f16(0.0f));
    #pragma unroll
    for (int d_i = 0; d_i < 2; ++d_i)
      #pragma unroll
      for (int k_i = 0; k_i < 16; k_i += 4)
        store<4>(
            &operand_tile_6[swizzle<3, 3, 3>(panel<64>(64,
            thread % 16 + thread / 64 * 16 + d_i * 32,
            thread / 16 % 4 * 4 + k_i % 4 + k_i / 4 * 16))],
            &part_6[d_i][k_i]);
    __syncthreads();
    #pragma unroll
    for (int d_issue_2 = 0; d_issue_2 < 64; d_issue_2 += 32) {
      f16 part_7[n_n][8];
      #pragma unroll
      for (int n_i = 0; n_i < n_n; ++n_i)
        #pragma unroll
        for (int d_i = 0; d_i < 8; d_i += 8)
          load<8>(
              &part_7[n_i][d_i],
              &x_tile[d_read_1 * 64 * N_WIDTH + swizzle<3, 3, 3>(panel<64>(N_WIDTH,
              thread % 16 + n_i * 16, d_issue_2 + thread / 16 % 4 * 8 + d_i))]);
      f16 part_8[8][2];
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        #pragma unroll
        for (int k_i = 0; k_i < 2; ++k_i)
          part_8[d_i][k_i] =
              operand_tile_6[swizzle<3, 3, 3>(panel<64>(64, d_issue_2 + thread / 16 % 4 * 8 + d_i, thread % 16 + thread / 64 * 16 + k_i * 32))];
      #pragma unroll
      for (int d_i = 0; d_i < 8; d_i += 8)
        #pragma unroll
        for (int n_i = 0; n_i < n_n; n_i += 1)
          #pragma unroll
          for (int k_i = 0; k_i < 8; k_i += 4)
            mfma_16x16x32(
                out[n_i][k_i], out[n_i][k_i + 1], out[n_i][k_i + 2], out[n_i][k_i + 3],
                part_7[n_i][d_i], part_7[n_i][d_i + 1], part_7[n_i][d_i + 2], part_7[n_i][d_i + 3],
                part_7[n_i][d_i + 4], part_7[n_i][d_i + 5], part_7[n_i][d_i + 6],
                part_7[n_i][d_i + 7],
                part_8[d_i][k_i / 4], part_8[d_i + 1][k_i / 4], part_8[d_i + 2][k_i / 4],
                part_8[d_i + 3][k_i / 4], part_8[d_i + 4][k_i / 4], part_8[d_i + 5][k_i / 4],
                part_8[d_i + 6][k_i / 4], part_8[d_i + 7][k_i / 4]);
    }
    d_read_1 = ((d_read_1 == 1) ? 0 : d_read_1 + 1);
  }
  f16 out_out[n_n][8];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      out_out[n_i][k_i] = f16(out[n_i][k_i]);
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    #pragma unroll
    for (int k_i = 0; k_i < 8; k_i += ALIGNED_OUT ? 4 : 1)
      store<ALIGNED_OUT ? 4 : 1>(
          place(out_ptr, b_at * N * K + offs_n[n_i] * K + offs_k[k_i]),
          &out_out[n_i][k_i],
          mask_n[n_i] && mask_k[k_i]);
}
