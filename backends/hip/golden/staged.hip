// dense: Multiply two matrices, add a bias to each row and apply GELU.
// Generated from spec 3895edffde6ae393 and schedule ba34fbbfa65f52d2.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at M = 1024, K = 512, N = 512.
#ifndef EVEN_M
#define EVEN_M 1
#endif
#ifndef EVEN_N
#define EVEN_N 1
#endif
#ifndef EVEN_K
#define EVEN_K 1
#endif
#ifndef ALIGNED_X
#define ALIGNED_X 1
#endif
#ifndef ALIGNED_W
#define ALIGNED_W 1
#endif
#ifndef ALIGNED_B
#define ALIGNED_B 1
#endif

// acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)
// y[m, n] = gelu(acc[m, n] + f32(b[n]))
extern "C" __global__ void __launch_bounds__(256, 4) dense_0(
    const bf16* __restrict__ x_ptr,
    const bf16* __restrict__ w_ptr,
    const bf16* __restrict__ b_ptr,
    bf16* __restrict__ y_ptr,
    int M,
    int K,
    int N) {
  bf16* const x_tile = shared_at<bf16>(0);  // [64][32]
  bf16* const w_tile = shared_at<bf16>(4096);  // [64][32]
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
  float acc[2][8];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 8; ++n_i)
      acc[m_i][n_i] = 0.0f;
  const int offs_m_1 = m_at + thread / 4;
  const bool mask_m_1 = (offs_m_1 < M) | EVEN_M;
  int offs_n_1[2];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    offs_n_1[n_i] = n_at + thread / 8 * 2 + n_i;
  bool mask_n_1[2];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
  int k_at_1 = 0;
  __syncthreads();
  int offs_k[8];
  bool mask_k[8];
  bf16 x_next[8];
  int offs_k_1[4];
  bool mask_k_1[4];
  bf16 w_next[4][2];
  if (k_at_1 < K) {
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      offs_k[k_i] = k_at_1 + thread % 4 * 8 + k_i;
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
    #pragma unroll
    for (int k_i = 0; k_i < 8; k_i += ALIGNED_X ? 8 : 1)
      load<ALIGNED_X ? 8 : 1>(
          &x_next[k_i],
          place(x_ptr, offs_m_1 * K + offs_k[k_i]),
          mask_m_1 && mask_k[k_i]);
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      offs_k_1[k_i] = k_at_1 + thread % 8 * 4 + k_i;
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      #pragma unroll
      for (int n_i = 0; n_i < 2; n_i += ALIGNED_W ? 2 : 1)
        load<ALIGNED_W ? 2 : 1>(
            &w_next[k_i][n_i],
            place(w_ptr, offs_k_1[k_i] * N + offs_n_1[n_i]),
            mask_k_1[k_i] && mask_n_1[n_i]);
  }
  k_at_1 = k_at_1 + 32;
  for (int k_at = 0; k_at < K; k_at += 32) {
    __syncthreads();
    #pragma unroll
    for (int k_i = 0; k_i < 8; k_i += 8)
      store<8>(
          &x_tile[swizzle<2, 3, 3>(panel<32>(64, thread / 4, thread % 4 * 8 + k_i))],
          &x_next[k_i]);
    bf16 part_1[2][4];
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        part_1[n_i][k_i] = w_next[k_i][n_i];
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int k_i = 0; k_i < 4; k_i += 4)
        store<4>(
            &w_tile[swizzle<2, 3, 3>(panel<32>(64, thread / 8 * 2 + n_i, thread % 8 * 4 + k_i))],
            &part_1[n_i][k_i]);
    if (k_at_1 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        offs_k[k_i] = k_at_1 + thread % 4 * 8 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 8; k_i += ALIGNED_X ? 8 : 1)
        load<ALIGNED_X ? 8 : 1>(
            &x_next[k_i],
            place(x_ptr, offs_m_1 * K + offs_k[k_i]),
            mask_m_1 && mask_k[k_i]);
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        offs_k_1[k_i] = k_at_1 + thread % 8 * 4 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        #pragma unroll
        for (int n_i = 0; n_i < 2; n_i += ALIGNED_W ? 2 : 1)
          load<ALIGNED_W ? 2 : 1>(
              &w_next[k_i][n_i],
              place(w_ptr, offs_k_1[k_i] * N + offs_n_1[n_i]),
              mask_k_1[k_i] && mask_n_1[n_i]);
    }
    k_at_1 = k_at_1 + 32;
    __syncthreads();
    #pragma unroll
    for (int k_issue_1 = 0; k_issue_1 < 32; k_issue_1 += 16) {
      bf16 part_2[2][4];
      #pragma unroll
      for (int m_i = 0; m_i < 2; ++m_i)
        #pragma unroll
        for (int k_i = 0; k_i < 4; k_i += 4)
          load<4>(
              &part_2[m_i][k_i],
              &x_tile[swizzle<2, 3, 3>(panel<32>(64, thread % 16 + thread / 64 % 2 * 16 + m_i * 32,
              k_issue_1 + thread / 16 % 4 * 4 + k_i))]);
      bf16 part_4[2][4];
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        #pragma unroll
        for (int k_i = 0; k_i < 4; k_i += 4)
          load<4>(
              &part_4[n_i][k_i],
              &w_tile[swizzle<2, 3, 3>(panel<32>(64, thread % 16 + thread / 128 * 16 + n_i * 32,
              k_issue_1 + thread / 16 % 4 * 4 + k_i))]);
      bf16 part_3[4][2];
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        #pragma unroll
        for (int n_i = 0; n_i < 2; ++n_i)
          part_3[k_i][n_i] = part_4[n_i][k_i];
      #pragma unroll
      for (int k_i = 0; k_i < 4; k_i += 4)
        #pragma unroll
        for (int m_i = 0; m_i < 2; m_i += 1)
          #pragma unroll
          for (int n_i = 0; n_i < 8; n_i += 4)
            mfma_16x16x16(
                acc[m_i][n_i], acc[m_i][n_i + 1], acc[m_i][n_i + 2], acc[m_i][n_i + 3],
                part_2[m_i][k_i], part_2[m_i][k_i + 1], part_2[m_i][k_i + 2], part_2[m_i][k_i + 3],
                part_3[k_i][n_i / 4], part_3[k_i + 1][n_i / 4], part_3[k_i + 2][n_i / 4],
                part_3[k_i + 3][n_i / 4]);
    }
    interleave<8, 1>();
  }
  bf16 b[8];
  #pragma unroll
  for (int n_i = 0; n_i < 8; n_i += ALIGNED_B ? 4 : 1)
    load<ALIGNED_B ? 4 : 1>(&b[n_i], place(b_ptr, offs_n[n_i]), mask_n[n_i]);
  bf16 y[2][8];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 8; ++n_i)
      y[m_i][n_i] = bf16(fn::gelu(acc[m_i][n_i] + float(b[n_i])));
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 8; n_i += ALIGNED_B ? 4 : 1)
      store<ALIGNED_B ? 4 : 1>(
          place(y_ptr, offs_m[m_i] * N + offs_n[n_i]),
          &y[m_i][n_i],
          mask_m[m_i] && mask_n[n_i]);
}
