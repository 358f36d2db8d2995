// dense: Multiply two matrices, add a bias to each row and apply GELU.
// Generated from spec 3895edffde6ae393 and schedule 6432d36eb4ed9ebb.
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

extern "C" __global__ void __launch_bounds__(128, 1) dense_0_clear(
    int* __restrict__ acc_flag_ptr) {
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_acc_flag_block[2];
  #pragma unroll
  for (int acc_flag_block_i = 0; acc_flag_block_i < 2; ++acc_flag_block_i)
    offs_acc_flag_block[acc_flag_block_i] = thread * 2 + acc_flag_block_i;
  bool mask_acc_flag_block[2];
  #pragma unroll
  for (int acc_flag_block_i = 0; acc_flag_block_i < 2; ++acc_flag_block_i)
    mask_acc_flag_block[acc_flag_block_i] = offs_acc_flag_block[acc_flag_block_i] < 133;
  int acc_flag[2];
  #pragma unroll
  for (int acc_flag_block_i = 0; acc_flag_block_i < 2; ++acc_flag_block_i)
    acc_flag[acc_flag_block_i] = fn::i32_from(0);
  #pragma unroll
  for (int acc_flag_block_i = 0; acc_flag_block_i < 2; ++acc_flag_block_i)
    if (mask_acc_flag_block[acc_flag_block_i])
      acc_flag_ptr[offs_acc_flag_block[acc_flag_block_i]] = acc_flag[acc_flag_block_i];
}

// acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)
// y[m, n] = gelu(acc[m, n] + f32(b[n]))
extern "C" __global__ void __launch_bounds__(128, 1) dense_0(
    const bf16* __restrict__ x_ptr,
    const bf16* __restrict__ w_ptr,
    const bf16* __restrict__ b_ptr,
    float* __restrict__ acc_partial_ptr,
    int* __restrict__ acc_flag_ptr,
    bf16* __restrict__ y_ptr,
    int M,
    int K,
    int N) {
  bf16* const x_tile = shared_at<bf16>(0);  // [4][64][32]
  bf16* const w_tile = shared_at<bf16>(16384);  // [4][32][64]
  bf16* const stored_tile_2 = shared_at<bf16>(0);  // [64][64 + 8]
  const int block = take_number(acc_flag_ptr + 132);
  const int thread = threadIdx.x;
  const int k_iterations = cdiv(K, 32);
  const int share = cdiv(cdiv(M, 64) * cdiv(N, 64) * cdiv(K, 32), 132);
  const int begin = block * share;
  const int end = least(begin + share, cdiv(M, 64) * cdiv(N, 64) * cdiv(K, 32));
  // What other blocks wait for is in the last tile of a share.
  for (int tile = (end - 1) / k_iterations; tile >= begin / k_iterations; --tile) {
    const int tiles_n = cdiv(N, 64);
    const int m_at = tile / tiles_n * 64;
    const int n_at = tile % tiles_n * 64;
    const int tile_begin = tile * k_iterations;
    const int k_low = most(begin - tile_begin, 0) * 32;
    const int k_high = least(end - tile_begin, k_iterations) * 32;
    int offs_m[2];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      offs_m[m_i] = m_at + thread / 4 % 8 + thread / 32 * 16 + m_i * 8;
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
    int offs_n_1[8];
    #pragma unroll
    for (int n_i = 0; n_i < 8; ++n_i)
      offs_n_1[n_i] = n_at + thread % 8 * 8 + n_i;
    bool mask_n_1[8];
    #pragma unroll
    for (int n_i = 0; n_i < 8; ++n_i)
      mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
    int k_at_1 = k_low;
    fence_shared();
    __syncthreads();
    int offs_k[8];
    bool mask_k[8];
    int offs_k_1[2];
    bool mask_k_1[2];
    #pragma unroll
    for (int k_stage_1 = 0; k_stage_1 < 2; ++k_stage_1) {
      if (k_at_1 < k_high) {
        #pragma unroll
        for (int k_i = 0; k_i < 8; ++k_i)
          offs_k[k_i] = k_at_1 + thread % 4 * 8 + k_i;
        #pragma unroll
        for (int k_i = 0; k_i < 8; ++k_i)
          mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
        #pragma unroll
        for (int m_i = 0; m_i < 2; ++m_i)
          #pragma unroll
          for (int k_i = 0; k_i < 8; k_i += ALIGNED_X ? 8 : 1)
            copy_async<ALIGNED_X ? 8 : 1>(
                &x_tile[k_stage_1 * 2048 + swizzle<2, 3, 3>(panel<32>(64, thread / 4 + m_i * 32,
                thread % 4 * 8 + k_i))],
                x_ptr + offs_m_1[m_i] * K + offs_k[k_i],
                mask_m_1[m_i] && mask_k[k_i]);
        #pragma unroll
        for (int k_i = 0; k_i < 2; ++k_i)
          offs_k_1[k_i] = k_at_1 + thread / 8 + k_i * 16;
        #pragma unroll
        for (int k_i = 0; k_i < 2; ++k_i)
          mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
        #pragma unroll
        for (int k_i = 0; k_i < 2; ++k_i)
          #pragma unroll
          for (int n_i = 0; n_i < 8; n_i += ALIGNED_W ? 8 : 1)
            copy_async<ALIGNED_W ? 8 : 1>(
                &w_tile[k_stage_1 * 2048 + swizzle<3, 3, 3>(panel<64>(32, thread / 8 + k_i * 16,
                thread % 8 * 8 + n_i))],
                w_ptr + offs_k_1[k_i] * N + offs_n_1[n_i],
                mask_k_1[k_i] && mask_n_1[n_i]);
      }
      commit_copies();
      k_at_1 = k_at_1 + 32;
    }
    int k_read_1 = 0;
    int k_write_1 = 2;
    for (int k_at = k_low;;) {
      wait_copies<1>();
      fence_shared();
      __syncthreads();
      if (k_at_1 < k_high) {
        #pragma unroll
        for (int k_i = 0; k_i < 8; ++k_i)
          offs_k[k_i] = k_at_1 + thread % 4 * 8 + k_i;
        #pragma unroll
        for (int k_i = 0; k_i < 8; ++k_i)
          mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
        #pragma unroll
        for (int m_i = 0; m_i < 2; ++m_i)
          #pragma unroll
          for (int k_i = 0; k_i < 8; k_i += ALIGNED_X ? 8 : 1)
            copy_async<ALIGNED_X ? 8 : 1>(
                &x_tile[k_write_1 * 2048 + swizzle<2, 3, 3>(panel<32>(64, thread / 4 + m_i * 32,
                thread % 4 * 8 + k_i))],
                x_ptr + offs_m_1[m_i] * K + offs_k[k_i],
                mask_m_1[m_i] && mask_k[k_i]);
        #pragma unroll
        for (int k_i = 0; k_i < 2; ++k_i)
          offs_k_1[k_i] = k_at_1 + thread / 8 + k_i * 16;
        #pragma unroll
        for (int k_i = 0; k_i < 2; ++k_i)
          mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
        #pragma unroll
        for (int k_i = 0; k_i < 2; ++k_i)
          #pragma unroll
          for (int n_i = 0; n_i < 8; n_i += ALIGNED_W ? 8 : 1)
            copy_async<ALIGNED_W ? 8 : 1>(
                &w_tile[k_write_1 * 2048 + swizzle<3, 3, 3>(panel<64>(32, thread / 8 + k_i * 16,
                thread % 8 * 8 + n_i))],
                w_ptr + offs_k_1[k_i] * N + offs_n_1[n_i],
                mask_k_1[k_i] && mask_n_1[n_i]);
      }
      commit_copies();
      k_at_1 = k_at_1 + 32;
      k_write_1 = ((k_write_1 == 3) ? 0 : k_write_1 + 1);
      arrive_warpgroup();
      #pragma unroll
      for (int m_i = 0; m_i < 2; m_i += 2)
        #pragma unroll
        for (int n_i = 0; n_i < 16; n_i += 16)
          #pragma unroll
          for (int k_from = 0; k_from < 32; k_from += 16)
            wgmma<64, 0, 1>(
                &acc[m_i][n_i], &acc[m_i + 1][n_i],
                matrix<32>(x_tile + k_read_1 * 2048, 64, m_i * 8, k_from),
                matrix<64>(w_tile + k_read_1 * 2048, 32, k_from, n_i % 2 + n_i / 2 * 8));
      commit_warpgroup();
      wait_warpgroup<1>();
      k_read_1 = ((k_read_1 == 3) ? 0 : k_read_1 + 1);
      k_at += 32;
      if (k_at >= k_high) break;
    }
    wait_warpgroup<0>();
    if (end - tile_begin >= k_iterations) {
      for (int peer = tile_begin / share; peer < block; ++peer) {
        if (thread == 0) {
          await_raised(acc_flag_ptr + peer);
          fence_device();
        }
        fence_shared();
        __syncthreads();
        float acc_partial[2][16];
        #pragma unroll
        for (int m_i = 0; m_i < 2; ++m_i)
          #pragma unroll
          for (int n_i = 0; n_i < 16; n_i += 2)
            load<2>(
                &acc_partial[m_i][n_i],
                acc_partial_ptr + peer * 64 * 64 - (m_at * 64) - n_at + offs_m[m_i] * 64 + offs_n[n_i]);
        #pragma unroll
        for (int m_i = 0; m_i < 2; ++m_i)
          #pragma unroll
          for (int n_i = 0; n_i < 16; ++n_i)
            acc[m_i][n_i] += acc_partial[m_i][n_i];
      }
      bf16 b[16];
      #pragma unroll
      for (int n_i = 0; n_i < 16; n_i += ALIGNED_B ? 2 : 1)
        load<ALIGNED_B ? 2 : 1>(&b[n_i], b_ptr + offs_n[n_i], mask_n[n_i], bf16(0.0f));
      bf16 y[2][16];
      #pragma unroll
      for (int m_i = 0; m_i < 2; ++m_i)
        #pragma unroll
        for (int n_i = 0; n_i < 16; ++n_i)
          y[m_i][n_i] = bf16(fn::short_gelu(acc[m_i][n_i] + float(b[n_i])));
      fence_shared();
      __syncthreads();
      #pragma unroll
      for (int m_i = 0; m_i < 2; ++m_i)
        #pragma unroll
        for (int n_i = 0; n_i < 16; n_i += 2)
          store<2>(
              &stored_tile_2[(thread / 4 % 8 + thread / 32 * 16 + m_i * 8) * 72 + thread % 4 * 2 + n_i % 2 + n_i / 2 * 8],
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
              &stored_tile_2[(thread / 8 + m_i * 16) * 72 + thread % 8 * 8 + n_i]);
      int offs_m_2[4];
      #pragma unroll
      for (int m_i = 0; m_i < 4; ++m_i)
        offs_m_2[m_i] = m_at + thread / 8 + m_i * 16;
      bool mask_m_2[4];
      #pragma unroll
      for (int m_i = 0; m_i < 4; ++m_i)
        mask_m_2[m_i] = (offs_m_2[m_i] < M) | EVEN_M;
      #pragma unroll
      for (int n_i = 0; n_i < 8; ++n_i)
        offs_n_1[n_i] = n_at + thread % 8 * 8 + n_i;
      #pragma unroll
      for (int n_i = 0; n_i < 8; ++n_i)
        mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
      #pragma unroll
      for (int m_i = 0; m_i < 4; ++m_i)
        #pragma unroll
        for (int n_i = 0; n_i < 8; n_i += ALIGNED_W ? 8 : 1)
          store<ALIGNED_W ? 8 : 1>(
              y_ptr + offs_m_2[m_i] * N + offs_n_1[n_i],
              &part_1[m_i][n_i],
              mask_m_2[m_i] && mask_n_1[n_i]);
    } else {
      #pragma unroll
      for (int m_i = 0; m_i < 2; ++m_i)
        #pragma unroll
        for (int n_i = 0; n_i < 16; n_i += 2)
          store<2>(
              acc_partial_ptr + block * 64 * 64 - (m_at * 64) - n_at + offs_m[m_i] * 64 + offs_n[n_i],
              &acc[m_i][n_i]);
      fence_shared();
      __syncthreads();
      if (thread == 0) {
        fence_device();
        raise_flag(acc_flag_ptr + block);
      }
    }
  }
}
