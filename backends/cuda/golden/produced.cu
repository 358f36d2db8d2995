// dense: Multiply two matrices, add a bias to each row and apply GELU.
// Generated from spec 3895edffde6ae393 and schedule 9c5860f49c3ecc8b.
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
#ifndef BULK
#define BULK 1
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
extern "C" __global__ void __launch_bounds__(384, 1) dense_0(
    const bf16* __restrict__ x_ptr,
    const bf16* __restrict__ w_ptr,
    const bf16* __restrict__ b_ptr,
    bf16* __restrict__ y_ptr,
    const __grid_constant__ TensorMap x_map,
    const __grid_constant__ TensorMap w_map,
    const __grid_constant__ TensorMap y_map,
    int M,
    int K,
    int N) {
  bf16* const x_tile = shared_at<bf16>(0);  // [3][64][32]
  bf16* const w_tile = shared_at<bf16>(12288);  // [3][32][64]
  bf16* const stored_tile_2 = shared_at<bf16>(0);  // [64][64]
  bf16* const stored_tile_3 = shared_at<bf16>(0);  // [64][64 + 8]
  u64* const k_full_1 = shared_at<u64>(24576);  // [3]
  u64* const k_empty_1 = shared_at<u64>(24600);  // [3]
  if (threadIdx.x == 0) {
    init_signals<3>(k_full_1, (BULK ? 1 : 128));
    init_signals<3>(k_empty_1, 8);
  }
  __syncthreads();
  if (threadIdx.x >= 256) {  // the threads that fill shared memory
    release_registers<(BULK ? 40 : 88)>();
    const int thread = threadIdx.x - 256;
    const int tile = blockIdx.x;
    int k_write_1 = 0;
    int k_write_parity_1 = 1;
    const int tiles_m = cdiv(M, 64);
    const int tiles_n = cdiv(N, 64);
    const int group_start = tile / (8 * tiles_n) * 8;
    const int group_size = least(tiles_m - group_start, 8);
    const int in_group = tile % (8 * tiles_n);
    const int m_at = (group_start + in_group % group_size) * 64;
    const int n_at = in_group / group_size * 64;
    for (int k_at = 0; k_at < K; k_at += 32) {
      await(k_empty_1 + k_write_1, k_write_parity_1);
      if (BULK) {
        if (thread == 0) {
          expect(k_full_1 + k_write_1, 2048 * 2 + 2048 * 2);
          copy_box(x_tile + k_write_1 * 2048, &x_map, k_at, m_at, k_full_1 + k_write_1);
          copy_box(w_tile + k_write_1 * 2048, &w_map, n_at, k_at, k_full_1 + k_write_1);
        }
      } else {
        int offs_m_1[2];
        #pragma unroll
        for (int m_i = 0; m_i < 2; ++m_i)
          offs_m_1[m_i] = m_at + thread / 4 + m_i * 32;
        bool mask_m_1[2];
        #pragma unroll
        for (int m_i = 0; m_i < 2; ++m_i)
          mask_m_1[m_i] = (offs_m_1[m_i] < M) | EVEN_M;
        int offs_k[8];
        #pragma unroll
        for (int k_i = 0; k_i < 8; ++k_i)
          offs_k[k_i] = k_at + thread % 4 * 8 + k_i;
        bool mask_k[8];
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
        int offs_k_1[2];
        #pragma unroll
        for (int k_i = 0; k_i < 2; ++k_i)
          offs_k_1[k_i] = k_at + thread / 8 + k_i * 16;
        bool mask_k_1[2];
        #pragma unroll
        for (int k_i = 0; k_i < 2; ++k_i)
          mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
        int offs_n_1[8];
        #pragma unroll
        for (int n_i = 0; n_i < 8; ++n_i)
          offs_n_1[n_i] = n_at + thread % 8 * 8 + n_i;
        bool mask_n_1[8];
        #pragma unroll
        for (int n_i = 0; n_i < 8; ++n_i)
          mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
        #pragma unroll
        for (int k_i = 0; k_i < 2; ++k_i)
          #pragma unroll
          for (int n_i = 0; n_i < 8; n_i += ALIGNED_W ? 8 : 1)
            copy_async<ALIGNED_W ? 8 : 1>(
                &w_tile[k_write_1 * 2048 + swizzle<3, 3, 3>(panel<64>(32, thread / 8 + k_i * 16,
                thread % 8 * 8 + n_i))],
                w_ptr + offs_k_1[k_i] * N + offs_n_1[n_i],
                mask_k_1[k_i] && mask_n_1[n_i]);
        commit_copies();
        wait_copies<0>();
        fence_shared();
        arrive_thread(k_full_1 + k_write_1);
      }
      k_write_parity_1 = ((k_write_1 == 2) ? 1 - k_write_parity_1 : k_write_parity_1);
      k_write_1 = ((k_write_1 == 2) ? 0 : k_write_1 + 1);
    }
    return;
  }
  take_registers<(BULK ? 232 : 208)>();
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int k_read_1 = 0;
  int k_read_parity_1 = 0;
  const int tiles_m = cdiv(M, 64);
  const int tiles_n = cdiv(N, 64);
  const int group_start = tile / (8 * tiles_n) * 8;
  const int group_size = least(tiles_m - group_start, 8);
  const int in_group = tile % (8 * tiles_n);
  const int m_at = (group_start + in_group % group_size) * 64;
  const int n_at = in_group / group_size * 64;
  int offs_n[8];
  #pragma unroll
  for (int n_i = 0; n_i < 8; ++n_i)
    offs_n[n_i] = n_at + thread % 4 * 2 + thread / 128 * 32 + n_i % 2 + n_i / 2 * 8;
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
  assume(K > 0);
  for (int k_at = 0; k_at < K; k_at += 32) {
    await(k_full_1 + k_read_1, k_read_parity_1);
    arrive_warpgroup();
    #pragma unroll
    for (int m_i = 0; m_i < 2; m_i += 2)
      #pragma unroll
      for (int n_i = 0; n_i < 8; n_i += 8)
        #pragma unroll
        for (int k_from = 0; k_from < 32; k_from += 16)
          wgmma<32, 0, 1>(
              &acc[m_i][n_i], &acc[m_i + 1][n_i],
              matrix<32>(x_tile + k_read_1 * 2048, 64, m_i * 8, k_from),
              matrix<64>(w_tile + k_read_1 * 2048, 32, k_from,
              thread / 128 * 32 + n_i % 2 + n_i / 2 * 8));
    commit_warpgroup();
    wait_warpgroup<1>();
    if (k_at > 0) {
      arrive_warp(k_empty_1 + ((k_read_1 == 0) ? 2 : k_read_1 - 1));
    }
    k_read_parity_1 = ((k_read_1 == 2) ? 1 - k_read_parity_1 : k_read_parity_1);
    k_read_1 = ((k_read_1 == 2) ? 0 : k_read_1 + 1);
  }
  wait_warpgroup<0>();
  arrive_warp(k_empty_1 + ((k_read_1 == 0) ? 2 : k_read_1 - 1));
  bf16 b[8];
  #pragma unroll
  for (int n_i = 0; n_i < 8; n_i += ALIGNED_B ? 2 : 1)
    load<ALIGNED_B ? 2 : 1>(&b[n_i], b_ptr + offs_n[n_i], mask_n[n_i], bf16(0.0f));
  bf16 y[2][8];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 8; ++n_i)
      y[m_i][n_i] = bf16(fn::short_gelu(acc[m_i][n_i] + float(b[n_i])));
  if (BULK) {
    fence_shared();
    sync_threads<256>();
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 8; n_i += 2)
        store<2>(
            &stored_tile_2[swizzle<3, 3, 3>(panel<64>(64,
            thread / 4 % 8 + thread / 32 % 4 * 16 + m_i * 8,
            thread % 4 * 2 + thread / 128 * 32 + n_i % 2 + n_i / 2 * 8))],
            &y[m_i][n_i]);
    fence_shared();
    sync_threads<256>();
    if (thread == 0) {
      store_box(&y_map, stored_tile_2, n_at, m_at);
      finish_boxes();
    }
  } else {
    fence_shared();
    sync_threads<256>();
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 8; n_i += 2)
        store<2>(
            &stored_tile_3[(thread / 4 % 8 + thread / 32 % 4 * 16 + m_i * 8) * 72 + thread % 4 * 2 + thread / 128 * 32 + n_i % 2 + n_i / 2 * 8],
            &y[m_i][n_i]);
    fence_shared();
    sync_threads<256>();
    bf16 part_1[2][8];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 8; n_i += 8)
        load<8>(
            &part_1[m_i][n_i],
            &stored_tile_3[(thread / 8 + m_i * 32) * 72 + thread % 8 * 8 + n_i]);
    int offs_m_2[2];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      offs_m_2[m_i] = m_at + thread / 8 + m_i * 32;
    bool mask_m_2[2];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      mask_m_2[m_i] = (offs_m_2[m_i] < M) | EVEN_M;
    int offs_n_2[8];
    #pragma unroll
    for (int n_i = 0; n_i < 8; ++n_i)
      offs_n_2[n_i] = n_at + thread % 8 * 8 + n_i;
    bool mask_n_2[8];
    #pragma unroll
    for (int n_i = 0; n_i < 8; ++n_i)
      mask_n_2[n_i] = (offs_n_2[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 8; n_i += ALIGNED_W ? 8 : 1)
        store<ALIGNED_W ? 8 : 1>(
            y_ptr + offs_m_2[m_i] * N + offs_n_2[n_i],
            &part_1[m_i][n_i],
            mask_m_2[m_i] && mask_n_2[n_i]);
  }
}
