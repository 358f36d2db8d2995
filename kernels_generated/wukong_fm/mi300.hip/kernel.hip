// wukong_fm: Interact the N embeddings of each sample: x times its transpose times y.
// Generated from spec 52228c1f379b2f9f and schedule 31ab03b58057ce17.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at B = 1024, N = 40, D = 224, K = 448.
#ifndef EVEN_K
#define EVEN_K 0
#endif
#ifndef N_WIDTH
#define N_WIDTH 64
#endif
#ifndef EVEN_N
#define EVEN_N 0
#endif
#ifndef I_WIDTH
#define I_WIDTH 64
#endif
#ifndef EVEN_I
#define EVEN_I 0
#endif
#ifndef D_WIDTH
#define D_WIDTH 256
#endif
#ifndef EVEN_D
#define EVEN_D 0
#endif
#ifndef ALIGNED_X
#define ALIGNED_X 1
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif

// t_again[b, n, i] = sum(f32(x[b, n, d]) * f32(x[b, i, d]), d)
// out[b, n, k] = sum(t_again[b, n, i] * f32(y[b, i, k]), i)
extern "C" __global__ void __launch_bounds__(1024, 4) wukong_fm_0(
    const f16* __restrict__ x_ptr,
    const f16* __restrict__ y_ptr,
    f16* __restrict__ out_ptr,
    int N,
    int D,
    int K) {
  constexpr int n_n = 1 * cdiv(N_WIDTH, 64);
  constexpr int i_n = 4 * cdiv(I_WIDTH, 64);
  constexpr int i_n1 = 1 * cdiv(I_WIDTH, 32);
  constexpr int n_n1 = 1 * cdiv(N_WIDTH, 32);
  constexpr int d_n = 8 * cdiv(D_WIDTH, 256);
  constexpr int i_n2 = 1 * cdiv(I_WIDTH, 64);
  constexpr int shared_1 = 0 + round_up(most(2 * N_WIDTH * D_WIDTH, 512 * I_WIDTH), 1024);
  constexpr int shared_2 = shared_1 + round_up(most(2 * I_WIDTH * D_WIDTH, 4 * N_WIDTH * I_WIDTH), 1024);
  f16* const x_tile = shared_at<f16>(0);  // [N_WIDTH][D_WIDTH]
  f16* const x_2_tile = shared_at<f16>(shared_1);  // [I_WIDTH][D_WIDTH]
  f16* const y_tile = shared_at<f16>(0);  // [256][I_WIDTH]
  float* const operand_tile_5 = shared_at<float>(shared_1);  // [N_WIDTH][I_WIDTH]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_n[n_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    offs_n[n_i] = thread % 16 + thread / 64 % 4 * 16 + n_i * 64;
  bool mask_n[n_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
  int offs_i[i_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    offs_i[i_i] = thread / 16 % 4 * 4 + thread / 256 * 16 + i_i % 4 + i_i / 4 * 64;
  int offs_i_1[i_n1];
  #pragma unroll
  for (int i_i = 0; i_i < i_n1; ++i_i)
    offs_i_1[i_i] = thread / 32 + i_i * 32;
  bool mask_i[i_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    mask_i[i_i] = (offs_i[i_i] < N) | EVEN_I;
  bool mask_i_1[i_n1];
  #pragma unroll
  for (int i_i = 0; i_i < i_n1; ++i_i)
    mask_i_1[i_i] = (offs_i_1[i_i] < N) | EVEN_I;
  const int tiles_k = cdiv(K, 256);
  const int b_at = tile / tiles_k;
  const int k_at = tile % tiles_k * 256;
  int offs_k[16];
  #pragma unroll
  for (int k_i = 0; k_i < 16; ++k_i)
    offs_k[k_i] = k_at + thread / 16 % 4 * 4 + thread / 256 * 16 + k_i % 4 + k_i / 4 * 64;
  bool mask_k[16];
  #pragma unroll
  for (int k_i = 0; k_i < 16; ++k_i)
    mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
  int offs_n_1[n_n1];
  #pragma unroll
  for (int n_i = 0; n_i < n_n1; ++n_i)
    offs_n_1[n_i] = thread / 32 + n_i * 32;
  bool mask_n_1[n_n1];
  #pragma unroll
  for (int n_i = 0; n_i < n_n1; ++n_i)
    mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
  int offs_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    offs_d[d_i] = thread % 32 * 8 + d_i % 8 + d_i / 8 * 256;
  bool mask_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
  f16 x_next[n_n1][d_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n1; ++n_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += ALIGNED_X ? 8 : 1)
      load<ALIGNED_X ? 8 : 1>(
          &x_next[n_i][d_i],
          place(x_ptr, b_at * N * D + offs_n_1[n_i] * D + offs_d[d_i]),
          mask_n_1[n_i] && mask_d[d_i]);
  #pragma unroll
  for (int n_i = 0; n_i < n_n1; ++n_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += 8)
      store<8>(
          &x_tile[swizzle<3, 3, 3>(panel<64>(N_WIDTH, thread / 32 + n_i * 32,
          thread % 32 * 8 + d_i % 8 + d_i / 8 * 256))],
          &x_next[n_i][d_i]);
  #pragma unroll
  for (int i_i = 0; i_i < i_n1; ++i_i)
    offs_i_1[i_i] = thread / 32 + i_i * 32;
  #pragma unroll
  for (int i_i = 0; i_i < i_n1; ++i_i)
    mask_i_1[i_i] = (offs_i_1[i_i] < N) | EVEN_I;
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    offs_d[d_i] = thread % 32 * 8 + d_i % 8 + d_i / 8 * 256;
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
  f16 x_2_next[i_n1][d_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n1; ++i_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += ALIGNED_X ? 8 : 1)
      load<ALIGNED_X ? 8 : 1>(
          &x_2_next[i_i][d_i],
          place(x_ptr, b_at * N * D + offs_i_1[i_i] * D + offs_d[d_i]),
          mask_i_1[i_i] && mask_d[d_i]);
  #pragma unroll
  for (int i_i = 0; i_i < i_n1; ++i_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += 8)
      store<8>(
          &x_2_tile[swizzle<3, 3, 3>(panel<64>(I_WIDTH, thread / 32 + i_i * 32,
          thread % 32 * 8 + d_i % 8 + d_i / 8 * 256))],
          &x_2_next[i_i][d_i]);
  float t_again[n_n][i_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    #pragma unroll
    for (int i_i = 0; i_i < i_n; ++i_i)
      t_again[n_i][i_i] = 0.0f;
  __syncthreads();
  for (int d_issue_1 = 0; d_issue_1 < D_WIDTH; d_issue_1 += 16) {
    f16 part_1[n_n][4];
    #pragma unroll
    for (int n_i = 0; n_i < n_n; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        load<4>(
            &part_1[n_i][d_i],
            &x_tile[swizzle<3, 3, 3>(panel<64>(N_WIDTH,
            thread % 16 + thread / 64 % 4 * 16 + n_i * 64,
            d_issue_1 + thread / 16 % 4 * 4 + d_i))]);
    f16 part_3[i_n2][4];
    #pragma unroll
    for (int i_i = 0; i_i < i_n2; ++i_i)
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        load<4>(
            &part_3[i_i][d_i],
            &x_2_tile[swizzle<3, 3, 3>(panel<64>(I_WIDTH,
            thread % 16 + thread / 256 * 16 + i_i * 64, d_issue_1 + thread / 16 % 4 * 4 + d_i))]);
    f16 part_2[4][i_n2];
    #pragma unroll
    for (int d_i = 0; d_i < 4; ++d_i)
      #pragma unroll
      for (int i_i = 0; i_i < i_n2; ++i_i)
        part_2[d_i][i_i] = part_3[i_i][d_i];
    #pragma unroll
    for (int d_i = 0; d_i < 4; d_i += 4)
      #pragma unroll
      for (int n_i = 0; n_i < n_n; n_i += 1)
        #pragma unroll
        for (int i_i = 0; i_i < i_n; i_i += 4)
          mfma_16x16x16(
              t_again[n_i][i_i], t_again[n_i][i_i + 1], t_again[n_i][i_i + 2],
              t_again[n_i][i_i + 3],
              part_1[n_i][d_i], part_1[n_i][d_i + 1], part_1[n_i][d_i + 2], part_1[n_i][d_i + 3],
              part_2[d_i][i_i / 4], part_2[d_i + 1][i_i / 4], part_2[d_i + 2][i_i / 4],
              part_2[d_i + 3][i_i / 4]);
  }
  float out_a[n_n][i_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    #pragma unroll
    for (int i_i = 0; i_i < i_n; ++i_i)
      out_a[n_i][i_i] = fn::round_tf32(t_again[n_i][i_i]);
  int offs_i_2[i_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    offs_i_2[i_i] = thread % 16 * 4 + i_i % 4 + i_i / 4 * 64;
  bool mask_i_2[i_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    mask_i_2[i_i] = (offs_i_2[i_i] < N) | EVEN_I;
  int offs_k_2[4];
  #pragma unroll
  for (int k_i = 0; k_i < 4; ++k_i)
    offs_k_2[k_i] = k_at + thread / 16 * 4 + k_i;
  bool mask_k_2[4];
  #pragma unroll
  for (int k_i = 0; k_i < 4; ++k_i)
    mask_k_2[k_i] = (offs_k_2[k_i] < K) | EVEN_K;
  f16 y_next[i_n][4];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    #pragma unroll
    for (int k_i = 0; k_i < 4; k_i += ALIGNED_Y ? 4 : 1)
      load<ALIGNED_Y ? 4 : 1>(
          &y_next[i_i][k_i],
          place(y_ptr, b_at * N * K + offs_i_2[i_i] * K + offs_k_2[k_i]),
          mask_i_2[i_i] && mask_k_2[k_i]);
  f16 part_4[4][i_n];
  #pragma unroll
  for (int k_i = 0; k_i < 4; ++k_i)
    #pragma unroll
    for (int i_i = 0; i_i < i_n; ++i_i)
      part_4[k_i][i_i] = y_next[i_i][k_i];
  __syncthreads();
  #pragma unroll
  for (int k_i = 0; k_i < 4; ++k_i)
    #pragma unroll
    for (int i_i = 0; i_i < i_n; i_i += 4)
      store<4>(
          &y_tile[swizzle<3, 3, 3>(panel<64>(256, thread / 16 * 4 + k_i,
          thread % 16 * 4 + i_i % 4 + i_i / 4 * 64))],
          &part_4[k_i][i_i]);
  float out[n_n][16];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    #pragma unroll
    for (int k_i = 0; k_i < 16; ++k_i)
      out[n_i][k_i] = 0.0f;
  float part_5[n_n][i_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    #pragma unroll
    for (int i_i = 0; i_i < i_n; ++i_i)
      part_5[n_i][i_i] = (mask_i[i_i] ? out_a[n_i][i_i] : 0.0f);
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    #pragma unroll
    for (int i_i = 0; i_i < i_n; i_i += 4)
      store<4>(
          &operand_tile_5[swizzle<3, 2, 3>(panel<32>(N_WIDTH,
          thread % 16 + thread / 64 % 4 * 16 + n_i * 64,
          thread / 16 % 4 * 4 + thread / 256 * 16 + i_i % 4 + i_i / 4 * 64))],
          &part_5[n_i][i_i]);
  __syncthreads();
  for (int i_issue_2 = 0; i_issue_2 < I_WIDTH; i_issue_2 += 8) {
    float part_6[n_n][2];
    #pragma unroll
    for (int n_i = 0; n_i < n_n; ++n_i)
      #pragma unroll
      for (int i_i = 0; i_i < 2; i_i += 2)
        load<2>(
            &part_6[n_i][i_i],
            &operand_tile_5[swizzle<3, 2, 3>(panel<32>(N_WIDTH,
            thread % 16 + thread / 64 % 4 * 16 + n_i * 64,
            i_issue_2 + thread / 16 % 4 * 2 + i_i))]);
    f16 part_8[4][2];
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      #pragma unroll
      for (int i_i = 0; i_i < 2; i_i += 2)
        load<2>(
            &part_8[k_i][i_i],
            &y_tile[swizzle<3, 3, 3>(panel<64>(256, thread % 16 + thread / 256 * 16 + k_i * 64,
            i_issue_2 + thread / 16 % 4 * 2 + i_i))]);
    f16 part_7[2][4];
    #pragma unroll
    for (int i_i = 0; i_i < 2; ++i_i)
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        part_7[i_i][k_i] = part_8[k_i][i_i];
    float part_9[2][4];
    #pragma unroll
    for (int i_i = 0; i_i < 2; ++i_i)
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        part_9[i_i][k_i] = float(part_7[i_i][k_i]);
    #pragma unroll
    for (int i_i = 0; i_i < 2; i_i += 2)
      #pragma unroll
      for (int n_i = 0; n_i < n_n; n_i += 1)
        #pragma unroll
        for (int k_i = 0; k_i < 16; k_i += 4)
          mfma_16x16x8(
              out[n_i][k_i], out[n_i][k_i + 1], out[n_i][k_i + 2], out[n_i][k_i + 3],
              part_6[n_i][i_i], part_6[n_i][i_i + 1],
              part_9[i_i][k_i / 4], part_9[i_i + 1][k_i / 4]);
  }
  f16 out_out[n_n][16];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    #pragma unroll
    for (int k_i = 0; k_i < 16; ++k_i)
      out_out[n_i][k_i] = f16(out[n_i][k_i]);
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    #pragma unroll
    for (int k_i = 0; k_i < 16; k_i += ALIGNED_Y ? 4 : 1)
      store<ALIGNED_Y ? 4 : 1>(
          place(out_ptr, b_at * N * K + offs_n[n_i] * K + offs_k[k_i]),
          &out_out[n_i][k_i],
          mask_n[n_i] && mask_k[k_i]);
}
