// product: A product of f32, each operand split in two of tf32.
// Generated from spec 4aa42b2db93ca105 and schedule 3aa4806e9c80c6b6.
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
#ifndef ALIGNED_W
#define ALIGNED_W 1
#endif

// acc_ah[m, k] = tf32(x[m, k])
// acc_al[m, k] = tf32(x[m, k] - f32(acc_ah[m, k]))
// acc_bh[n, k] = tf32(w[k, n])
// acc_bl[n, k] = tf32(w[k, n] - f32(acc_bh[n, k]))
// acc[m, n] = sum(acc_al[m, k] * acc_bh[n, k] + acc_ah[m, k] * acc_bl[n, k] + acc_ah[m, k] *
//     acc_bh[n, k], k)
extern "C" __global__ void __launch_bounds__(128, 1) product_0(
    const float* __restrict__ x_ptr,
    const float* __restrict__ w_ptr,
    float* __restrict__ acc_ptr,
    int M,
    int K,
    int N) {
  float* const x_tile = shared_at<float>(0);  // [2][64][32 + 4]
  float* const w_tile = shared_at<float>(18432);  // [2][32][64 + 4]
  float* const acc_bh_tile = shared_at<float>(35840);  // [64][32]
  float* const operand_tile_2 = shared_at<float>(44032);  // [64][32]
  float* const stored_tile_4 = shared_at<float>(0);  // [64][64 + 8]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  const int tiles_n = cdiv(N, 64);
  const int m_at = tile / tiles_n * 64;
  const int n_at = tile % tiles_n * 64;
  float acc[2][16];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      acc[m_i][n_i] = 0.0f;
  int offs_m_1[4];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    offs_m_1[m_i] = m_at + thread / 8 + m_i * 16;
  bool mask_m_1[4];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    mask_m_1[m_i] = (offs_m_1[m_i] < M) | EVEN_M;
  int offs_n_2[4];
  #pragma unroll
  for (int n_i = 0; n_i < 4; ++n_i)
    offs_n_2[n_i] = n_at + thread % 16 * 4 + n_i;
  bool mask_n_2[4];
  #pragma unroll
  for (int n_i = 0; n_i < 4; ++n_i)
    mask_n_2[n_i] = (offs_n_2[n_i] < N) | EVEN_N;
  int k_at_1 = 0;
  fence_shared();
  __syncthreads();
  int offs_k_2[4];
  bool mask_k_2[4];
  int offs_k_3[4];
  bool mask_k_3[4];
  #pragma unroll
  for (int k_stage_1 = 0; k_stage_1 < 1; ++k_stage_1) {
    if (k_at_1 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        offs_k_2[k_i] = k_at_1 + thread % 8 * 4 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        mask_k_2[k_i] = (offs_k_2[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int m_i = 0; m_i < 4; ++m_i)
        #pragma unroll
        for (int k_i = 0; k_i < 4; k_i += ALIGNED_X ? 4 : 1)
          copy_async<ALIGNED_X ? 4 : 1>(
              &x_tile[k_stage_1 * 2304 + (thread / 8 + m_i * 16) * 36 + thread % 8 * 4 + k_i],
              x_ptr + offs_m_1[m_i] * K + offs_k_2[k_i],
              mask_m_1[m_i] && mask_k_2[k_i]);
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        offs_k_3[k_i] = k_at_1 + thread / 16 + k_i * 8;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        mask_k_3[k_i] = (offs_k_3[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        #pragma unroll
        for (int n_i = 0; n_i < 4; n_i += ALIGNED_W ? 4 : 1)
          copy_async<ALIGNED_W ? 4 : 1>(
              &w_tile[k_stage_1 * 2176 + (thread / 16 + k_i * 8) * 68 + thread % 16 * 4 + n_i],
              w_ptr + offs_k_3[k_i] * N + offs_n_2[n_i],
              mask_k_3[k_i] && mask_n_2[n_i]);
    }
    commit_copies();
    k_at_1 = k_at_1 + 32;
  }
  int k_read_1 = 0;
  int k_write_1 = 1;
  assume(K > 0);
  for (int k_at = 0; k_at < K; k_at += 32) {
    wait_copies<0>();
    fence_shared();
    __syncthreads();
    if (k_at_1 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        offs_k_2[k_i] = k_at_1 + thread % 8 * 4 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        mask_k_2[k_i] = (offs_k_2[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int m_i = 0; m_i < 4; ++m_i)
        #pragma unroll
        for (int k_i = 0; k_i < 4; k_i += ALIGNED_X ? 4 : 1)
          copy_async<ALIGNED_X ? 4 : 1>(
              &x_tile[k_write_1 * 2304 + (thread / 8 + m_i * 16) * 36 + thread % 8 * 4 + k_i],
              x_ptr + offs_m_1[m_i] * K + offs_k_2[k_i],
              mask_m_1[m_i] && mask_k_2[k_i]);
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        offs_k_3[k_i] = k_at_1 + thread / 16 + k_i * 8;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        mask_k_3[k_i] = (offs_k_3[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        #pragma unroll
        for (int n_i = 0; n_i < 4; n_i += ALIGNED_W ? 4 : 1)
          copy_async<ALIGNED_W ? 4 : 1>(
              &w_tile[k_write_1 * 2176 + (thread / 16 + k_i * 8) * 68 + thread % 16 * 4 + n_i],
              w_ptr + offs_k_3[k_i] * N + offs_n_2[n_i],
              mask_k_3[k_i] && mask_n_2[n_i]);
    }
    commit_copies();
    k_at_1 = k_at_1 + 32;
    k_write_1 = ((k_write_1 == 1) ? 0 : k_write_1 + 1);
    int offs_k[8];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      offs_k[k_i] = k_at + thread % 4 + k_i * 4;
    int offs_k_1[8];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      offs_k_1[k_i] = k_at + thread / 32 * 4 + k_i % 4 + k_i / 4 * 16;
    bool mask_k[8];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
    bool mask_k_1[8];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
    float x[2][8];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        x[m_i][k_i] =
            x_tile[k_read_1 * 2304 + (thread / 4 % 8 + thread / 32 * 16 + m_i * 8) * 36 + thread % 4 + k_i * 4];
    float acc_ah[2][8];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        acc_ah[m_i][k_i] = fn::round_tf32(x[m_i][k_i]);
    float acc_al[2][8];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        acc_al[m_i][k_i] = fn::round_tf32(x[m_i][k_i] - acc_ah[m_i][k_i]);
    float w[8][2];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        w[k_i][n_i] =
            w_tile[k_read_1 * 2176 + (thread / 32 * 4 + k_i % 4 + k_i / 4 * 16) * 68 + thread % 32 + n_i * 32];
    float acc_bh[8][2];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        acc_bh[k_i][n_i] = fn::round_tf32(w[k_i][n_i]);
    float acc_step[2][16];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        acc_step[m_i][n_i] = 0.0f;
    float part_1[2][8];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        part_1[m_i][k_i] = (mask_k[k_i] ? acc_al[m_i][k_i] : 0.0f);
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        acc_bh_tile[swizzle<3, 2, 3>(panel<32>(64, thread % 32 + n_i * 32, thread / 32 * 4 + k_i % 4 + k_i / 4 * 16))] =
            acc_bh[k_i][n_i];
    fence_shared();
    __syncthreads();
    {
      u32 words[2 / 2][32 / 8][4];
      #pragma unroll
      for (int m_i = 0; m_i < 2; m_i += 2)
        #pragma unroll
        for (int k_from = 0; k_from < 32; k_from += 8)
          pack_words(
              words[m_i / 2][k_from / 8],
              part_1[m_i][k_from / 8 * 2], part_1[m_i + 1][k_from / 8 * 2],
              part_1[m_i][k_from / 8 * 2 + 1], part_1[m_i + 1][k_from / 8 * 2 + 1]);
      arrive_warpgroup();
      #pragma unroll
      for (int m_i = 0; m_i < 2; m_i += 2)
        #pragma unroll
        for (int n_i = 0; n_i < 16; n_i += 16)
          #pragma unroll
          for (int k_from = 0; k_from < 32; k_from += 8)
            wgmma<64, 0>(
                &acc_step[m_i][n_i], &acc_step[m_i + 1][n_i],
                matrix<32>(acc_bh_tile, 64, n_i % 2 + n_i / 2 * 8, k_from),
                words[m_i / 2][k_from / 8]);
      commit_warpgroup();
      wait_warpgroup<0>();
    }
    float acc_bl[8][2];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        acc_bl[k_i][n_i] = fn::round_tf32(w[k_i][n_i] - acc_bh[k_i][n_i]);
    float part_2[8][2];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        part_2[k_i][n_i] = (mask_k_1[k_i] ? acc_bl[k_i][n_i] : 0.0f);
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        operand_tile_2[swizzle<3, 2, 3>(panel<32>(64, thread % 32 + n_i * 32, thread / 32 * 4 + k_i % 4 + k_i / 4 * 16))] =
            part_2[k_i][n_i];
    fence_shared();
    __syncthreads();
    {
      u32 words[2 / 2][32 / 8][4];
      #pragma unroll
      for (int m_i = 0; m_i < 2; m_i += 2)
        #pragma unroll
        for (int k_from = 0; k_from < 32; k_from += 8)
          pack_words(
              words[m_i / 2][k_from / 8],
              acc_ah[m_i][k_from / 8 * 2], acc_ah[m_i + 1][k_from / 8 * 2],
              acc_ah[m_i][k_from / 8 * 2 + 1], acc_ah[m_i + 1][k_from / 8 * 2 + 1]);
      arrive_warpgroup();
      #pragma unroll
      for (int m_i = 0; m_i < 2; m_i += 2)
        #pragma unroll
        for (int n_i = 0; n_i < 16; n_i += 16)
          #pragma unroll
          for (int k_from = 0; k_from < 32; k_from += 8)
            wgmma<64, 0>(
                &acc_step[m_i][n_i], &acc_step[m_i + 1][n_i],
                matrix<32>(operand_tile_2, 64, n_i % 2 + n_i / 2 * 8, k_from),
                words[m_i / 2][k_from / 8]);
      commit_warpgroup();
      wait_warpgroup<1>();
    }
    {
      u32 words[2 / 2][32 / 8][4];
      #pragma unroll
      for (int m_i = 0; m_i < 2; m_i += 2)
        #pragma unroll
        for (int k_from = 0; k_from < 32; k_from += 8)
          pack_words(
              words[m_i / 2][k_from / 8],
              acc_ah[m_i][k_from / 8 * 2], acc_ah[m_i + 1][k_from / 8 * 2],
              acc_ah[m_i][k_from / 8 * 2 + 1], acc_ah[m_i + 1][k_from / 8 * 2 + 1]);
      arrive_warpgroup();
      #pragma unroll
      for (int m_i = 0; m_i < 2; m_i += 2)
        #pragma unroll
        for (int n_i = 0; n_i < 16; n_i += 16)
          #pragma unroll
          for (int k_from = 0; k_from < 32; k_from += 8)
            wgmma<64, 0>(
                &acc_step[m_i][n_i], &acc_step[m_i + 1][n_i],
                matrix<32>(acc_bh_tile, 64, n_i % 2 + n_i / 2 * 8, k_from),
                words[m_i / 2][k_from / 8]);
      commit_warpgroup();
      wait_warpgroup<0>();
    }
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        acc[m_i][n_i] += acc_step[m_i][n_i];
    k_read_1 = ((k_read_1 == 1) ? 0 : k_read_1 + 1);
  }
  fence_shared();
  __syncthreads();
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 16; n_i += 2)
      store<2>(
          &stored_tile_4[(thread / 4 % 8 + thread / 32 * 16 + m_i * 8) * 72 + thread % 4 * 2 + n_i % 2 + n_i / 2 * 8],
          &acc[m_i][n_i]);
  fence_shared();
  __syncthreads();
  float part_3[8][4];
  #pragma unroll
  for (int m_i = 0; m_i < 8; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 4; n_i += 4)
      load<4>(
          &part_3[m_i][n_i],
          &stored_tile_4[(thread / 16 + m_i * 8) * 72 + thread % 16 * 4 + n_i]);
  int offs_m_2[8];
  #pragma unroll
  for (int m_i = 0; m_i < 8; ++m_i)
    offs_m_2[m_i] = m_at + thread / 16 + m_i * 8;
  bool mask_m_2[8];
  #pragma unroll
  for (int m_i = 0; m_i < 8; ++m_i)
    mask_m_2[m_i] = (offs_m_2[m_i] < M) | EVEN_M;
  #pragma unroll
  for (int n_i = 0; n_i < 4; ++n_i)
    offs_n_2[n_i] = n_at + thread % 16 * 4 + n_i;
  #pragma unroll
  for (int n_i = 0; n_i < 4; ++n_i)
    mask_n_2[n_i] = (offs_n_2[n_i] < N) | EVEN_N;
  #pragma unroll
  for (int m_i = 0; m_i < 8; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 4; n_i += ALIGNED_W ? 4 : 1)
      store<ALIGNED_W ? 4 : 1>(
          acc_ptr + offs_m_2[m_i] * N + offs_n_2[n_i],
          &part_3[m_i][n_i],
          mask_m_2[m_i] && mask_n_2[n_i]);
}
