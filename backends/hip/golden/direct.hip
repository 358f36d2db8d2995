// linear: Multiply by a transposed matrix.
// Generated from spec 7e821566191a36e6 and schedule 88bfded786d6ae15.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at M = 256, K = 256, N = 256.
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
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif

// y[m, n] = sum(f32(x[m, k]) * f32(w[n, k]), k)
extern "C" __global__ void __launch_bounds__(256, 4) linear_0(
    const bf16* __restrict__ x_ptr,
    const bf16* __restrict__ w_ptr,
    bf16* __restrict__ y_ptr,
    int M,
    int K,
    int N) {
  bf16* const x_tile = shared_at<bf16>(0);  // [2][64][32]
  bf16* const w_tile = shared_at<bf16>(8192);  // [2][64][32]
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
  const int offs_m_1 = m_at + thread / 4;
  const bool mask_m_1 = (offs_m_1 < M) | EVEN_M;
  const int offs_n_1 = n_at + thread / 4;
  const bool mask_n_1 = (offs_n_1 < N) | EVEN_N;
  int k_at_1 = 0;
  __syncthreads();
  int offs_k[8];
  bool mask_k[8];
  #pragma unroll
  for (int k_stage_1 = 0; k_stage_1 < 1; ++k_stage_1) {
    if (k_at_1 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        offs_k[k_i] = k_at_1 + thread % 4 * 2 + k_i % 2 + k_i / 2 * 8;
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 8; k_i += ALIGNED_X ? 2 : 1)
        copy_async<ALIGNED_X ? 2 : 1, 4>(
            &x_tile[k_stage_1 * 2048 + panel<8>(64, thread / 4,
            thread % 4 * 2 + k_i % 2 + k_i / 2 * 8)],
            place(x_ptr, offs_m_1 * K + offs_k[k_i]),
            mask_m_1 && mask_k[k_i]);
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        offs_k[k_i] = k_at_1 + thread % 4 * 2 + k_i % 2 + k_i / 2 * 8;
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 8; k_i += ALIGNED_X ? 2 : 1)
        copy_async<ALIGNED_X ? 2 : 1, 4>(
            &w_tile[k_stage_1 * 2048 + panel<8>(64, thread / 4,
            thread % 4 * 2 + k_i % 2 + k_i / 2 * 8)],
            place(w_ptr, offs_n_1 * K + offs_k[k_i]),
            mask_n_1 && mask_k[k_i]);
    }
    commit_copies();
    k_at_1 = k_at_1 + 32;
  }
  int k_read_1 = 0;
  int k_write_1 = 1;
  assume(K > 0);
  for (int k_at = 0; k_at < K; k_at += 32) {
    wait_copies<0>();
    __syncthreads();
    if (k_at_1 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        offs_k[k_i] = k_at_1 + thread % 4 * 2 + k_i % 2 + k_i / 2 * 8;
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 8; k_i += ALIGNED_X ? 2 : 1)
        copy_async<ALIGNED_X ? 2 : 1, 4>(
            &x_tile[k_write_1 * 2048 + panel<8>(64, thread / 4,
            thread % 4 * 2 + k_i % 2 + k_i / 2 * 8)],
            place(x_ptr, offs_m_1 * K + offs_k[k_i]),
            mask_m_1 && mask_k[k_i]);
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        offs_k[k_i] = k_at_1 + thread % 4 * 2 + k_i % 2 + k_i / 2 * 8;
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 8; k_i += ALIGNED_X ? 2 : 1)
        copy_async<ALIGNED_X ? 2 : 1, 4>(
            &w_tile[k_write_1 * 2048 + panel<8>(64, thread / 4,
            thread % 4 * 2 + k_i % 2 + k_i / 2 * 8)],
            place(w_ptr, offs_n_1 * K + offs_k[k_i]),
            mask_n_1 && mask_k[k_i]);
    }
    commit_copies();
    k_at_1 = k_at_1 + 32;
    k_write_1 = ((k_write_1 == 1) ? 0 : k_write_1 + 1);
    #pragma unroll
    for (int k_issue_1 = 0; k_issue_1 < 32; k_issue_1 += 16) {
      bf16 part_1[2][4];
      #pragma unroll
      for (int m_i = 0; m_i < 2; ++m_i)
        #pragma unroll
        for (int k_i = 0; k_i < 4; k_i += 4)
          load<4>(
              &part_1[m_i][k_i],
              &x_tile[k_read_1 * 2048 + panel<8>(64, thread % 16 + thread / 64 % 2 * 16 + m_i * 32,
              k_issue_1 + thread / 16 % 4 * 4 + k_i)]);
      bf16 part_3[2][4];
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        #pragma unroll
        for (int k_i = 0; k_i < 4; k_i += 4)
          load<4>(
              &part_3[n_i][k_i],
              &w_tile[k_read_1 * 2048 + panel<8>(64, thread % 16 + thread / 128 * 16 + n_i * 32,
              k_issue_1 + thread / 16 % 4 * 4 + k_i)]);
      bf16 part_2[4][2];
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        #pragma unroll
        for (int n_i = 0; n_i < 2; ++n_i)
          part_2[k_i][n_i] = part_3[n_i][k_i];
      #pragma unroll
      for (int k_i = 0; k_i < 4; k_i += 4)
        #pragma unroll
        for (int m_i = 0; m_i < 2; m_i += 1)
          #pragma unroll
          for (int n_i = 0; n_i < 8; n_i += 4)
            mfma_16x16x16(
                y[m_i][n_i], y[m_i][n_i + 1], y[m_i][n_i + 2], y[m_i][n_i + 3],
                part_1[m_i][k_i], part_1[m_i][k_i + 1], part_1[m_i][k_i + 2], part_1[m_i][k_i + 3],
                part_2[k_i][n_i / 4], part_2[k_i + 1][n_i / 4], part_2[k_i + 2][n_i / 4],
                part_2[k_i + 3][n_i / 4]);
    }
    k_read_1 = ((k_read_1 == 1) ? 0 : k_read_1 + 1);
    interleave<8, 1>();
  }
  bf16 y_out[2][8];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 8; ++n_i)
      y_out[m_i][n_i] = bf16(y[m_i][n_i]);
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 8; n_i += ALIGNED_Y ? 4 : 1)
      store<ALIGNED_Y ? 4 : 1>(
          place(y_ptr, offs_m[m_i] * N + offs_n[n_i]),
          &y_out[m_i][n_i],
          mask_m[m_i] && mask_n[n_i]);
}
