// causal: Average values by a softmax over the keys up to each query's own place.
// Generated from spec 36ace2157074c073 and schedule f65bc72905c4dfb3.
#include "kernel.h"

// What a build sets; these are the values at H = 4, M = 256, N = 256, D = 64.
#ifndef EVEN_M
#define EVEN_M 1
#endif
#ifndef EVEN_N
#define EVEN_N 1
#endif
#ifndef D_WIDTH
#define D_WIDTH 64
#endif
#ifndef EVEN_D
#define EVEN_D 1
#endif
#ifndef BULK
#define BULK 1
#endif
#ifndef ALIGNED_Q
#define ALIGNED_Q 1
#endif
#ifndef ALIGNED_K
#define ALIGNED_K 1
#endif

// s[h, m, n] = sum(f32(q[h, m, d]) * f32(k[h, n, d]), d)
// a[h, m, n] = where(n <= m, s[h, m, n] * rsqrt(f32(D)), -inf)
// mx[h, m] = max(a[h, m, n], n)
// p[h, m, n] = exp(a[h, m, n] - mx[h, m])
// l[h, m] = sum(p[h, m, n], n)
// o[h, m, d] = sum(p[h, m, n] * f32(v[h, n, d]), n)
// y[h, m, d] = o[h, m, d] / l[h, m]
extern "C" __global__ void __launch_bounds__(256, 1) causal_0(
    const bf16* __restrict__ q_ptr,
    const bf16* __restrict__ k_ptr,
    const bf16* __restrict__ v_ptr,
    bf16* __restrict__ y_ptr,
    const __grid_constant__ TensorMap q_map,
    const __grid_constant__ TensorMap k_map,
    const __grid_constant__ TensorMap v_map,
    int M,
    int D,
    int N) {
  constexpr int d_n = 8 * cdiv(D_WIDTH, 32);
  constexpr int d_n1 = 8 * cdiv(D_WIDTH, 64);
  constexpr int d_n2 = 4 * cdiv(D_WIDTH, 64);
  constexpr int shared_3 = 18432 + round_up(128 * D_WIDTH, 1024);
  constexpr int shared_4 = shared_3 + round_up(256 * D_WIDTH, 1024);
  constexpr int shared_5 = shared_4 + round_up(256 * D_WIDTH, 1024);
  constexpr int shared_6 = shared_5 + round_up(256 * (D_WIDTH + 4), 1024);
  constexpr int shared_7 = shared_6 + round_up(most(256 * D_WIDTH, 256 * D_WIDTH), 1024);
  bf16* const q_tile = shared_at<bf16>(18432);  // [64][D_WIDTH]
  bf16* const k_tile = shared_at<bf16>(shared_3);  // [2][64][D_WIDTH]
  bf16* const v_tile = shared_at<bf16>(shared_4);  // [2][64][D_WIDTH]
  float* const operand_tile_3 = shared_at<float>(0);  // [64][64 + 4]
  float* const o_b_tile = shared_at<float>(shared_5);  // [64][D_WIDTH + 4]
  float* const converted_tile_6 = shared_at<float>(shared_6);  // [64][D_WIDTH]
  float* const converted_tile0_6 = shared_at<float>(shared_6);  // [64][D_WIDTH]
  u64* const q_full_1 = shared_at<u64>(17408);  // [1]
  u64* const q_empty_1 = shared_at<u64>(17416);  // [1]
  u64* const n_full_2 = shared_at<u64>(17424);  // [2]
  u64* const n_empty_2 = shared_at<u64>(17440);  // [2]
  if (threadIdx.x == 0) {
    init_signals<1>(q_full_1, (BULK ? 1 : 128));
    init_signals<1>(q_empty_1, 4);
    init_signals<2>(n_full_2, (BULK ? 1 : 128));
    init_signals<2>(n_empty_2, 4);
  }
  __syncthreads();
  if (threadIdx.x >= 128) {  // the threads that fill shared memory
    const int thread = threadIdx.x - 128;
    const int tile = blockIdx.x;
    int q_write_parity_1 = 1;
    int n_write_2 = 0;
    int n_write_parity_2 = 1;
    const int tiles_m = cdiv(M, 64);
    const int h_at = tile / tiles_m;
    const int m_at = tile % tiles_m * 64;
    await(q_empty_1, q_write_parity_1);
    int offs_d_1[d_n1];
    bool mask_d_1[d_n1];
    if (BULK) {
      if (thread == 0) {
        expect(q_full_1, 64 * D_WIDTH * 2);
        for (int d_from = 0; d_from < D_WIDTH; d_from += 64)
          copy_box(q_tile + d_from * 64, &q_map, d_from, m_at, h_at, q_full_1);
      }
    } else {
      int offs_m_1[4];
      #pragma unroll
      for (int m_i = 0; m_i < 4; ++m_i)
        offs_m_1[m_i] = m_at + thread / 8 + m_i * 16;
      bool mask_m_1[4];
      #pragma unroll
      for (int m_i = 0; m_i < 4; ++m_i)
        mask_m_1[m_i] = (offs_m_1[m_i] < M) | EVEN_M;
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; ++d_i)
        offs_d_1[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; ++d_i)
        mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
      #pragma unroll
      for (int m_i = 0; m_i < 4; ++m_i)
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_Q ? 8 : 1)
          copy_async<ALIGNED_Q ? 8 : 1>(
              &q_tile[swizzle<3, 3, 3>(panel<64>(64, thread / 8 + m_i * 16,
              thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
              q_ptr + h_at * M * D + offs_m_1[m_i] * D + offs_d_1[d_i],
              mask_m_1[m_i] && mask_d_1[d_i]);
      commit_copies();
      wait_copies<0>();
      fence_shared();
      arrive_thread(q_full_1);
    }
    q_write_parity_1 = 1 - q_write_parity_1;
    int offs_n_1[4];
    bool mask_n_1[4];
    for (int n_at = 0; n_at < N; n_at += 64) {
      await(n_empty_2 + n_write_2, n_write_parity_2);
      if (BULK) {
        if (thread == 0) {
          expect(n_full_2 + n_write_2, 64 * D_WIDTH * 2);
          for (int d_from = 0; d_from < D_WIDTH; d_from += 64)
            copy_box(
                k_tile + n_write_2 * 64 * D_WIDTH + d_from * 64,
                &k_map,
                d_from, n_at, h_at,
                n_full_2 + n_write_2);
        }
      } else {
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          offs_n_1[n_i] = n_at + thread / 8 + n_i * 16;
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; ++d_i)
          offs_d_1[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; ++d_i)
          mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          #pragma unroll
          for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_K ? 8 : 1)
            copy_async<ALIGNED_K ? 8 : 1>(
                &k_tile[n_write_2 * 64 * D_WIDTH + swizzle<3, 3, 3>(panel<64>(64,
                thread / 8 + n_i * 16, thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
                k_ptr + h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i],
                mask_n_1[n_i] && mask_d_1[d_i]);
        commit_copies();
        wait_copies<0>();
        fence_shared();
        arrive_thread(n_full_2 + n_write_2);
      }
      n_write_parity_2 = ((n_write_2 == 1) ? 1 - n_write_parity_2 : n_write_parity_2);
      n_write_2 = ((n_write_2 == 1) ? 0 : n_write_2 + 1);
    }
    for (int n_at = 0; n_at < N; n_at += 64) {
      await(n_empty_2 + n_write_2, n_write_parity_2);
      if (BULK) {
        if (thread == 0) {
          expect(n_full_2 + n_write_2, 64 * D_WIDTH * 2 + 64 * D_WIDTH * 2);
          for (int d_from = 0; d_from < D_WIDTH; d_from += 64)
            copy_box(
                k_tile + n_write_2 * 64 * D_WIDTH + d_from * 64,
                &k_map,
                d_from, n_at, h_at,
                n_full_2 + n_write_2);
          for (int d_from = 0; d_from < D_WIDTH; d_from += 64)
            copy_box(
                v_tile + n_write_2 * 64 * D_WIDTH + d_from * 64,
                &v_map,
                d_from, n_at, h_at,
                n_full_2 + n_write_2);
        }
      } else {
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          offs_n_1[n_i] = n_at + thread / 8 + n_i * 16;
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; ++d_i)
          offs_d_1[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; ++d_i)
          mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          #pragma unroll
          for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_K ? 8 : 1)
            copy_async<ALIGNED_K ? 8 : 1>(
                &k_tile[n_write_2 * 64 * D_WIDTH + swizzle<3, 3, 3>(panel<64>(64,
                thread / 8 + n_i * 16, thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
                k_ptr + h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i],
                mask_n_1[n_i] && mask_d_1[d_i]);
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          offs_n_1[n_i] = n_at + thread / 8 + n_i * 16;
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; ++d_i)
          offs_d_1[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; ++d_i)
          mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          #pragma unroll
          for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_K ? 8 : 1)
            copy_async<ALIGNED_K ? 8 : 1>(
                &v_tile[n_write_2 * 64 * D_WIDTH + swizzle<3, 3, 3>(panel<64>(64,
                thread / 8 + n_i * 16, thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
                v_ptr + h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i],
                mask_n_1[n_i] && mask_d_1[d_i]);
        commit_copies();
        wait_copies<0>();
        fence_shared();
        arrive_thread(n_full_2 + n_write_2);
      }
      n_write_parity_2 = ((n_write_2 == 1) ? 1 - n_write_parity_2 : n_write_parity_2);
      n_write_2 = ((n_write_2 == 1) ? 0 : n_write_2 + 1);
    }
    for (int n_at = 0; n_at < N; n_at += 64) {
      await(n_empty_2 + n_write_2, n_write_parity_2);
      if (BULK) {
        if (thread == 0) {
          expect(n_full_2 + n_write_2, 64 * D_WIDTH * 2);
          for (int d_from = 0; d_from < D_WIDTH; d_from += 64)
            copy_box(
                k_tile + n_write_2 * 64 * D_WIDTH + d_from * 64,
                &k_map,
                d_from, n_at, h_at,
                n_full_2 + n_write_2);
        }
      } else {
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          offs_n_1[n_i] = n_at + thread / 8 + n_i * 16;
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; ++d_i)
          offs_d_1[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; ++d_i)
          mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          #pragma unroll
          for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_K ? 8 : 1)
            copy_async<ALIGNED_K ? 8 : 1>(
                &k_tile[n_write_2 * 64 * D_WIDTH + swizzle<3, 3, 3>(panel<64>(64,
                thread / 8 + n_i * 16, thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
                k_ptr + h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i],
                mask_n_1[n_i] && mask_d_1[d_i]);
        commit_copies();
        wait_copies<0>();
        fence_shared();
        arrive_thread(n_full_2 + n_write_2);
      }
      n_write_parity_2 = ((n_write_2 == 1) ? 1 - n_write_parity_2 : n_write_parity_2);
      n_write_2 = ((n_write_2 == 1) ? 0 : n_write_2 + 1);
    }
    return;
  }
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int q_read_parity_1 = 0;
  int n_read_2 = 0;
  int n_read_parity_2 = 0;
  int offs_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    offs_d[d_i] = thread % 4 * 8 + d_i % 8 + d_i / 8 * 32;
  bool mask_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
  const int tiles_m = cdiv(M, 64);
  const int h_at = tile / tiles_m;
  const int m_at = tile % tiles_m * 64;
  int offs_m[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    offs_m[m_i] = m_at + thread / 4 % 8 + thread / 32 * 16 + m_i * 8;
  bool mask_m[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    mask_m[m_i] = (offs_m[m_i] < M) | EVEN_M;
  float o[2][d_n];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i)
      o[m_i][d_i] = 0.0f;
  await(q_full_1, q_read_parity_1);
  float mx[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    mx[m_i] = -kInfinity;
  int offs_n[16];
  bool mask_n[16];
  float a[2][16];
  assume(N > 0);
  for (int n_at = 0; n_at < N; n_at += 64) {
    await(n_full_2 + n_read_2, n_read_parity_2);
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      offs_n[n_i] = n_at + thread % 4 * 2 + n_i % 2 + n_i / 2 * 8;
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
    float s_2[2][16];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        s_2[m_i][n_i] = 0.0f;
    arrive_warpgroup();
    #pragma unroll
    for (int m_i = 0; m_i < 2; m_i += 2)
      #pragma unroll
      for (int n_i = 0; n_i < 16; n_i += 16)
        #pragma unroll
        for (int d_from = 0; d_from < D_WIDTH; d_from += 16)
          wgmma<64, 0, 0>(
              &s_2[m_i][n_i], &s_2[m_i + 1][n_i],
              matrix<64>(q_tile, 64, m_i * 8, d_from),
              matrix<64>(k_tile + n_read_2 * 64 * D_WIDTH, 64, n_i % 2 + n_i / 2 * 8, d_from));
    commit_warpgroup();
    wait_warpgroup<0>();
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        a[m_i][n_i] = ((offs_n[n_i] <= offs_m[m_i]) ? s_2[m_i][n_i] * fn::rsqrt(float(D)) : -kInfinity);
    float part_1[2];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i) {
      part_1[m_i] = least_of<float>();
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        part_1[m_i] = fn::larger(part_1[m_i], (mask_n[n_i] ? a[m_i][n_i] : -kInfinity));
    }
    #pragma unroll
    for (int distance = 1; distance <= 2; distance *= 2)
      #pragma unroll
      for (int m_i = 0; m_i < 2; ++m_i)
        part_1[m_i] = fn::larger(part_1[m_i], shuffle_xor(part_1[m_i], distance));
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      mx[m_i] = fn::larger(mx[m_i], part_1[m_i]);
    arrive_warp(n_empty_2 + n_read_2);
    n_read_parity_2 = ((n_read_2 == 1) ? 1 - n_read_parity_2 : n_read_parity_2);
    n_read_2 = ((n_read_2 == 1) ? 0 : n_read_2 + 1);
  }
  float p[2][16];
  assume(N > 0);
  for (int n_at = 0; n_at < N; n_at += 64) {
    await(n_full_2 + n_read_2, n_read_parity_2);
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      offs_n[n_i] = n_at + thread % 4 * 2 + n_i % 2 + n_i / 2 * 8;
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
    float s[2][16];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        s[m_i][n_i] = 0.0f;
    arrive_warpgroup();
    #pragma unroll
    for (int m_i = 0; m_i < 2; m_i += 2)
      #pragma unroll
      for (int n_i = 0; n_i < 16; n_i += 16)
        #pragma unroll
        for (int d_from = 0; d_from < D_WIDTH; d_from += 16)
          wgmma<64, 0, 0>(
              &s[m_i][n_i], &s[m_i + 1][n_i],
              matrix<64>(q_tile, 64, m_i * 8, d_from),
              matrix<64>(k_tile + n_read_2 * 64 * D_WIDTH, 64, n_i % 2 + n_i / 2 * 8, d_from));
    commit_warpgroup();
    wait_warpgroup<0>();
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        a[m_i][n_i] = ((offs_n[n_i] <= offs_m[m_i]) ? s[m_i][n_i] * fn::rsqrt(float(D)) : -kInfinity);
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        p[m_i][n_i] = fn::exp2_flushed(a[m_i][n_i] * kLog2E - mx[m_i] * kLog2E);
    bf16 v[4][d_n1];
    #pragma unroll
    for (int n_i = 0; n_i < 4; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; d_i += 8)
        load<8>(
            &v[n_i][d_i],
            &v_tile[n_read_2 * 64 * D_WIDTH + swizzle<3, 3, 3>(panel<64>(64, thread / 8 + n_i * 16,
            thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))]);
    float o_b[4][d_n1];
    #pragma unroll
    for (int n_i = 0; n_i < 4; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; ++d_i)
        o_b[n_i][d_i] = float(v[n_i][d_i]);
    float part_2[8][d_n2];
    #pragma unroll
    for (int m_i = 0; m_i < 8; ++m_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n2; ++d_i)
        part_2[m_i][d_i] = 0.0f;
    float part_3[2][16];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        part_3[m_i][n_i] = (mask_n[n_i] ? p[m_i][n_i] : 0.0f);
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; n_i += 2)
        store<2>(
            &operand_tile_3[(thread / 4 % 8 + thread / 32 * 16 + m_i * 8) * 68 + thread % 4 * 2 + n_i % 2 + n_i / 2 * 8],
            &part_3[m_i][n_i]);
    #pragma unroll
    for (int n_i = 0; n_i < 4; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; ++d_i)
        o_b_tile[(thread / 8 + n_i * 16) * (D_WIDTH + 4) + thread % 8 * 8 + d_i % 8 + d_i / 8 * 64] =
            o_b[n_i][d_i];
    fence_shared();
    sync_threads<128>();
    for (int n_issue_1 = 0; n_issue_1 < 64; n_issue_1 += 4) {
      float part_4[8][4];
      #pragma unroll
      for (int m_i = 0; m_i < 8; ++m_i)
        #pragma unroll
        for (int n_i = 0; n_i < 4; n_i += 4)
          load<4>(
              &part_4[m_i][n_i],
              &operand_tile_3[(thread / 16 * 4 + m_i % 4 + m_i / 4 * 32) * 68 + n_issue_1 + n_i]);
      float part_5[4][d_n2];
      #pragma unroll
      for (int n_i = 0; n_i < 4; ++n_i)
        #pragma unroll
        for (int d_i = 0; d_i < d_n2; ++d_i)
          part_5[n_i][d_i] =
              o_b_tile[(n_issue_1 + n_i) * (D_WIDTH + 4) + thread % 16 * 4 + d_i % 4 + d_i / 4 * 64];
      #pragma unroll
      for (int n_i = 0; n_i < 4; ++n_i)
        #pragma unroll
        for (int m_i = 0; m_i < 8; ++m_i)
          #pragma unroll
          for (int d_i = 0; d_i < d_n2; ++d_i)
            part_2[m_i][d_i] += part_4[m_i][n_i] * part_5[n_i][d_i];
    }
    #pragma unroll
    for (int m_i = 0; m_i < 8; ++m_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n2; ++d_i)
        converted_tile0_6[(thread / 16 * 4 + m_i % 4 + m_i / 4 * 32) * D_WIDTH + thread % 16 * 4 + d_i % 4 + d_i / 4 * 64] =
            part_2[m_i][d_i];
    fence_shared();
    sync_threads<128>();
    float part_6[2][d_n];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n; ++d_i)
        part_6[m_i][d_i] =
            converted_tile_6[(thread / 4 % 8 + thread / 32 * 16 + m_i * 8) * D_WIDTH + thread % 4 * 8 + d_i % 8 + d_i / 8 * 32];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n; ++d_i)
        o[m_i][d_i] += part_6[m_i][d_i];
    fence_shared();
    arrive_warp(n_empty_2 + n_read_2);
    n_read_parity_2 = ((n_read_2 == 1) ? 1 - n_read_parity_2 : n_read_parity_2);
    n_read_2 = ((n_read_2 == 1) ? 0 : n_read_2 + 1);
  }
  float l[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    l[m_i] = 0.0f;
  assume(N > 0);
  for (int n_at = 0; n_at < N; n_at += 64) {
    await(n_full_2 + n_read_2, n_read_parity_2);
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      offs_n[n_i] = n_at + thread % 4 * 2 + n_i % 2 + n_i / 2 * 8;
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
    float s_3[2][16];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        s_3[m_i][n_i] = 0.0f;
    arrive_warpgroup();
    #pragma unroll
    for (int m_i = 0; m_i < 2; m_i += 2)
      #pragma unroll
      for (int n_i = 0; n_i < 16; n_i += 16)
        #pragma unroll
        for (int d_from = 0; d_from < D_WIDTH; d_from += 16)
          wgmma<64, 0, 0>(
              &s_3[m_i][n_i], &s_3[m_i + 1][n_i],
              matrix<64>(q_tile, 64, m_i * 8, d_from),
              matrix<64>(k_tile + n_read_2 * 64 * D_WIDTH, 64, n_i % 2 + n_i / 2 * 8, d_from));
    commit_warpgroup();
    wait_warpgroup<0>();
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        a[m_i][n_i] = ((offs_n[n_i] <= offs_m[m_i]) ? s_3[m_i][n_i] * fn::rsqrt(float(D)) : -kInfinity);
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        p[m_i][n_i] = fn::exp2_flushed(a[m_i][n_i] * kLog2E - mx[m_i] * kLog2E);
    float part_7[2];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i) {
      part_7[m_i] = 0;
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        part_7[m_i] += (mask_n[n_i] ? p[m_i][n_i] : 0.0f);
    }
    #pragma unroll
    for (int distance = 1; distance <= 2; distance *= 2)
      #pragma unroll
      for (int m_i = 0; m_i < 2; ++m_i)
        part_7[m_i] += shuffle_xor(part_7[m_i], distance);
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      l[m_i] += part_7[m_i];
    arrive_warp(n_empty_2 + n_read_2);
    n_read_parity_2 = ((n_read_2 == 1) ? 1 - n_read_parity_2 : n_read_parity_2);
    n_read_2 = ((n_read_2 == 1) ? 0 : n_read_2 + 1);
  }
  bf16 y[2][d_n];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i)
      y[m_i][d_i] = bf16(o[m_i][d_i] / l[m_i]);
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += ALIGNED_Q ? 8 : 1)
      store<ALIGNED_Q ? 8 : 1>(
          y_ptr + h_at * M * D + offs_m[m_i] * D + offs_d[d_i],
          &y[m_i][d_i],
          mask_m[m_i] && mask_d[d_i]);
  fence_shared();
  arrive_warp(q_empty_1);
  q_read_parity_1 = 1 - q_read_parity_1;
}
