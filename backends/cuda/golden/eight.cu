// eight: A product of 8-bit floats, the second operand by its columns, in two formats.
// Generated from spec 44c4d61ff93c4989 and schedule 2265e2cd83ba3566.
#include "kernel.h"

// What a build sets; these are the values at M = 128, K = 256, N = 128.
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
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif

// acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)
// y[m, n] = acc[m, n] + f32(b[n])
// z[m, n] = acc[m, n] * 0.125
extern "C" __global__ void __launch_bounds__(128, 1) eight_0(
    const f8e4m3* __restrict__ x_ptr,
    const f8e4m3* __restrict__ w_ptr,
    const f8e5m2* __restrict__ b_ptr,
    bf16* __restrict__ y_ptr,
    f8e5m2* __restrict__ z_ptr,
    int M,
    int K,
    int N) {
  f8e4m3* const x_tile = shared_at<f8e4m3>(0);  // [2][64][64]
  f8e4m3* const w_tile = shared_at<f8e4m3>(9216);  // [2][64][64 + 32]
  f8e4m3* const w_tile1 = shared_at<f8e4m3>(21504);  // [64][64]
  bf16* const stored_tile_3 = shared_at<bf16>(0);  // [64][64 + 8]
  f8e5m2* const stored_tile_4 = shared_at<f8e5m2>(0);  // [64][64 + 16]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  const int tiles_n = cdiv(N, 64);
  const int m_at = tile / tiles_n * 64;
  const int n_at = tile % tiles_n * 64;
  int offs_n[16];
  #pragma unroll
  for (int n_i = 0; n_i < 16; ++n_i)
    offs_n[n_i] = n_at + thread % 4 * 2 + n_i % 2 + n_i / 2 * 8;
  bool mask_n[16];
  #pragma unroll
  for (int n_i = 0; n_i < 16; ++n_i)
    mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
  float acc[2][16];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      acc[m_i][n_i] = 0.0f;
  int offs_m_1[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    offs_m_1[m_i] = m_at + thread / 4 + m_i * 32;
  bool mask_m_1[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    mask_m_1[m_i] = (offs_m_1[m_i] < M) | EVEN_M;
  int offs_n_2[16];
  #pragma unroll
  for (int n_i = 0; n_i < 16; ++n_i)
    offs_n_2[n_i] = n_at + thread % 4 * 16 + n_i;
  bool mask_n_2[16];
  #pragma unroll
  for (int n_i = 0; n_i < 16; ++n_i)
    mask_n_2[n_i] = (offs_n_2[n_i] < N) | EVEN_N;
  int k_at_1 = 0;
  fence_shared();
  __syncthreads();
  int offs_k_1[16];
  bool mask_k_1[16];
  int offs_k_2[2];
  bool mask_k_2[2];
  #pragma unroll
  for (int k_stage_1 = 0; k_stage_1 < 1; ++k_stage_1) {
    if (k_at_1 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 16; ++k_i)
        offs_k_1[k_i] = k_at_1 + thread % 4 * 16 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 16; ++k_i)
        mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int m_i = 0; m_i < 2; ++m_i)
        #pragma unroll
        for (int k_i = 0; k_i < 16; k_i += ALIGNED_X ? 16 : 1)
          copy_async<ALIGNED_X ? 16 : 1>(
              &x_tile[k_stage_1 * 4096 + swizzle<2, 4, 3>(panel<64>(64, thread / 4 + m_i * 32,
              thread % 4 * 16 + k_i))],
              x_ptr + offs_m_1[m_i] * K + offs_k_1[k_i],
              mask_m_1[m_i] && mask_k_1[k_i]);
      #pragma unroll
      for (int k_i = 0; k_i < 2; ++k_i)
        offs_k_2[k_i] = k_at_1 + thread / 4 + k_i * 32;
      #pragma unroll
      for (int k_i = 0; k_i < 2; ++k_i)
        mask_k_2[k_i] = (offs_k_2[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 2; ++k_i)
        #pragma unroll
        for (int n_i = 0; n_i < 16; n_i += ALIGNED_W ? 16 : 1)
          copy_async<ALIGNED_W ? 16 : 1>(
              &w_tile[k_stage_1 * 6144 + (thread / 4 + k_i * 32) * 96 + thread % 4 * 16 + n_i],
              w_ptr + offs_k_2[k_i] * N + offs_n_2[n_i],
              mask_k_2[k_i] && mask_n_2[n_i]);
    }
    commit_copies();
    k_at_1 = k_at_1 + 64;
  }
  int k_read_1 = 0;
  int k_write_1 = 1;
  assume(K > 0);
  for (int k_at = 0; k_at < K; k_at += 64) {
    wait_copies<0>();
    fence_shared();
    __syncthreads();
    if (k_at_1 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 16; ++k_i)
        offs_k_1[k_i] = k_at_1 + thread % 4 * 16 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 16; ++k_i)
        mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int m_i = 0; m_i < 2; ++m_i)
        #pragma unroll
        for (int k_i = 0; k_i < 16; k_i += ALIGNED_X ? 16 : 1)
          copy_async<ALIGNED_X ? 16 : 1>(
              &x_tile[k_write_1 * 4096 + swizzle<2, 4, 3>(panel<64>(64, thread / 4 + m_i * 32,
              thread % 4 * 16 + k_i))],
              x_ptr + offs_m_1[m_i] * K + offs_k_1[k_i],
              mask_m_1[m_i] && mask_k_1[k_i]);
      #pragma unroll
      for (int k_i = 0; k_i < 2; ++k_i)
        offs_k_2[k_i] = k_at_1 + thread / 4 + k_i * 32;
      #pragma unroll
      for (int k_i = 0; k_i < 2; ++k_i)
        mask_k_2[k_i] = (offs_k_2[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 2; ++k_i)
        #pragma unroll
        for (int n_i = 0; n_i < 16; n_i += ALIGNED_W ? 16 : 1)
          copy_async<ALIGNED_W ? 16 : 1>(
              &w_tile[k_write_1 * 6144 + (thread / 4 + k_i * 32) * 96 + thread % 4 * 16 + n_i],
              w_ptr + offs_k_2[k_i] * N + offs_n_2[n_i],
              mask_k_2[k_i] && mask_n_2[n_i]);
    }
    commit_copies();
    k_at_1 = k_at_1 + 64;
    k_write_1 = ((k_write_1 == 1) ? 0 : k_write_1 + 1);
    f8e4m3 w[16][2];
    #pragma unroll
    for (int k_i = 0; k_i < 16; ++k_i)
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        w[k_i][n_i] =
            w_tile[k_read_1 * 6144 + (thread / 32 * 16 + k_i) * 96 + thread % 32 + n_i * 32];
    float acc_step[2][16];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        acc_step[m_i][n_i] = 0.0f;
    #pragma unroll
    for (int k_i = 0; k_i < 16; ++k_i)
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        w_tile1[swizzle<2, 4, 3>(panel<64>(64, thread % 32 + n_i * 32, thread / 32 * 16 + k_i))] =
            w[k_i][n_i];
    fence_shared();
    __syncthreads();
    arrive_warpgroup();
    #pragma unroll
    for (int m_i = 0; m_i < 2; m_i += 2)
      #pragma unroll
      for (int n_i = 0; n_i < 16; n_i += 16)
        #pragma unroll
        for (int k_from = 0; k_from < 64; k_from += 32)
          wgmma<64, 0, 0>(
              &acc_step[m_i][n_i], &acc_step[m_i + 1][n_i],
              matrix<64>(x_tile + k_read_1 * 4096, 64, m_i * 8, k_from),
              matrix<64>(w_tile1, 64, n_i % 2 + n_i / 2 * 8, k_from));
    commit_warpgroup();
    wait_warpgroup<0>();
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        acc[m_i][n_i] += acc_step[m_i][n_i];
    k_read_1 = ((k_read_1 == 1) ? 0 : k_read_1 + 1);
  }
  f8e5m2 b[16];
  #pragma unroll
  for (int n_i = 0; n_i < 16; n_i += ALIGNED_B ? 2 : 1)
    load<ALIGNED_B ? 2 : 1>(&b[n_i], b_ptr + offs_n[n_i], mask_n[n_i], f8e5m2(0.0f));
  bf16 y[2][16];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      y[m_i][n_i] = bf16(acc[m_i][n_i] + float(b[n_i]));
  fence_shared();
  __syncthreads();
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 16; n_i += 2)
      store<2>(
          &stored_tile_3[(thread / 4 % 8 + thread / 32 * 16 + m_i * 8) * 72 + thread % 4 * 2 + n_i % 2 + n_i / 2 * 8],
          &y[m_i][n_i]);
  fence_shared();
  __syncthreads();
  bf16 part_1[4][8];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 8; n_i += 8)
      load<8>(
          &part_1[m_i][n_i],
          &stored_tile_3[(thread / 8 + m_i * 16) * 72 + thread % 8 * 8 + n_i]);
  int offs_m_2[4];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    offs_m_2[m_i] = m_at + thread / 8 + m_i * 16;
  bool mask_m_2[4];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    mask_m_2[m_i] = (offs_m_2[m_i] < M) | EVEN_M;
  int offs_n_3[8];
  #pragma unroll
  for (int n_i = 0; n_i < 8; ++n_i)
    offs_n_3[n_i] = n_at + thread % 8 * 8 + n_i;
  bool mask_n_3[8];
  #pragma unroll
  for (int n_i = 0; n_i < 8; ++n_i)
    mask_n_3[n_i] = (offs_n_3[n_i] < N) | EVEN_N;
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 8; n_i += ALIGNED_Y ? 8 : 1)
      store<ALIGNED_Y ? 8 : 1>(
          y_ptr + offs_m_2[m_i] * N + offs_n_3[n_i],
          &part_1[m_i][n_i],
          mask_m_2[m_i] && mask_n_3[n_i]);
  f8e5m2 z[2][16];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      z[m_i][n_i] = f8e5m2(acc[m_i][n_i] * 0.125f);
  fence_shared();
  __syncthreads();
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 16; n_i += 2)
      store<2>(
          &stored_tile_4[(thread / 4 % 8 + thread / 32 * 16 + m_i * 8) * 80 + thread % 4 * 2 + n_i % 2 + n_i / 2 * 8],
          &z[m_i][n_i]);
  fence_shared();
  __syncthreads();
  f8e5m2 part_2[2][16];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 16; n_i += 16)
      load<16>(
          &part_2[m_i][n_i],
          &stored_tile_4[(thread / 4 + m_i * 32) * 80 + thread % 4 * 16 + n_i]);
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    offs_m_1[m_i] = m_at + thread / 4 + m_i * 32;
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    mask_m_1[m_i] = (offs_m_1[m_i] < M) | EVEN_M;
  #pragma unroll
  for (int n_i = 0; n_i < 16; ++n_i)
    offs_n_2[n_i] = n_at + thread % 4 * 16 + n_i;
  #pragma unroll
  for (int n_i = 0; n_i < 16; ++n_i)
    mask_n_2[n_i] = (offs_n_2[n_i] < N) | EVEN_N;
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 16; n_i += ALIGNED_W ? 16 : 1)
      store<ALIGNED_W ? 16 : 1>(
          z_ptr + offs_m_1[m_i] * N + offs_n_2[n_i],
          &part_2[m_i][n_i],
          mask_m_1[m_i] && mask_n_2[n_i]);
}
