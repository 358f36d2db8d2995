// causal: Average values by a softmax over the keys up to each query's own place.
// Generated from spec 36ace2157074c073 and schedule 62a70a43c84a2aca.
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
#ifndef ALIGNED_Q
#define ALIGNED_Q 1
#endif
#ifndef BULK
#define BULK 1
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
    const __grid_constant__ TensorMap k_map,
    const __grid_constant__ TensorMap v_map,
    int M,
    int D,
    int N) {
  constexpr int d_n = 16 * cdiv(D_WIDTH, 64);
  constexpr int d_n1 = 8 * cdiv(D_WIDTH, 64);
  constexpr int shared_2 = 1024 + round_up(128 * D_WIDTH, 1024);
  constexpr int shared_3 = shared_2 + round_up(most(384 * D_WIDTH, 128 * (D_WIDTH + 8)), 1024);
  constexpr int shared_4 = shared_3 + round_up(384 * D_WIDTH, 1024);
  bf16* const q_tile = shared_at<bf16>(1024);  // [64][D_WIDTH]
  bf16* const k_tile = shared_at<bf16>(shared_2);  // [3][64][D_WIDTH]
  bf16* const v_tile = shared_at<bf16>(shared_3);  // [3][64][D_WIDTH]
  bf16* const stored_tile_3 = shared_at<bf16>(shared_2);  // [64][D_WIDTH + 8]
  u64* const n_full_1 = shared_at<u64>(0);  // [3]
  u64* const n_empty_1 = shared_at<u64>(24);  // [3]
  if (threadIdx.x == 0) {
    init_signals<3>(n_full_1, (BULK ? 1 : 128));
    init_signals<3>(n_empty_1, 4);
  }
  __syncthreads();
  if (threadIdx.x >= 128) {  // the threads that fill shared memory
    const int thread = threadIdx.x - 128;
    const int tile = blockIdx.x;
    int n_write_1 = 0;
    int n_write_parity_1 = 1;
    const int tiles_m = cdiv(M, 64);
    const int h_at = tile / tiles_m;
    for (int n_at = 0; n_at < N; n_at += 64) {
      await(n_empty_1 + n_write_1, n_write_parity_1);
      if (BULK) {
        if (thread == 0) {
          expect(n_full_1 + n_write_1, 64 * D_WIDTH * 2 + 64 * D_WIDTH * 2);
          for (int d_from = 0; d_from < D_WIDTH; d_from += 64)
            copy_box(
                k_tile + n_write_1 * 64 * D_WIDTH + d_from * 64,
                &k_map,
                d_from, n_at, h_at,
                n_full_1 + n_write_1);
          for (int d_from = 0; d_from < D_WIDTH; d_from += 64)
            copy_box(
                v_tile + n_write_1 * 64 * D_WIDTH + d_from * 64,
                &v_map,
                d_from, n_at, h_at,
                n_full_1 + n_write_1);
        }
      } else {
        int offs_n_1[4];
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          offs_n_1[n_i] = n_at + thread / 8 + n_i * 16;
        bool mask_n_1[4];
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
        int offs_d_1[d_n1];
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; ++d_i)
          offs_d_1[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
        bool mask_d_1[d_n1];
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; ++d_i)
          mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          #pragma unroll
          for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_K ? 8 : 1)
            copy_async<ALIGNED_K ? 8 : 1>(
                &k_tile[n_write_1 * 64 * D_WIDTH + swizzle<3, 3, 3>(panel<64>(64,
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
                &v_tile[n_write_1 * 64 * D_WIDTH + swizzle<3, 3, 3>(panel<64>(64,
                thread / 8 + n_i * 16, thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
                v_ptr + h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i],
                mask_n_1[n_i] && mask_d_1[d_i]);
        commit_copies();
        wait_copies<0>();
        fence_shared();
        arrive_thread(n_full_1 + n_write_1);
      }
      n_write_parity_1 = ((n_write_1 == 2) ? 1 - n_write_parity_1 : n_write_parity_1);
      n_write_1 = ((n_write_1 == 2) ? 0 : n_write_1 + 1);
    }
    return;
  }
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int n_read_1 = 0;
  int n_read_parity_1 = 0;
  const float a_factor = fn::rsqrt(float(D));
  const int tiles_m = cdiv(M, 64);
  const int h_at = tile / tiles_m;
  const int m_at = tile % tiles_m * 64;
  int offs_m[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    offs_m[m_i] = m_at + thread / 4 % 8 + thread / 32 * 16 + m_i * 8;
  float mx[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    mx[m_i] = -1e+38f;
  float l[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    l[m_i] = 0.0f;
  float o[2][d_n];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i)
      o[m_i][d_i] = 0.0f;
  int offs_m_1[4];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    offs_m_1[m_i] = m_at + thread / 8 + m_i * 16;
  bool mask_m_1[4];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    mask_m_1[m_i] = (offs_m_1[m_i] < M) | EVEN_M;
  int offs_d_1[d_n1];
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    offs_d_1[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
  bool mask_d_1[d_n1];
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
  float part_4[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    part_4[m_i] = 0.0f;
  fence_shared();
  sync_threads<128>();
  int offs_n[16];
  bool mask_n[16];
  float mx_before[2];
  float s[2][16];
  float a[2][16];
  float part_1[2];
  float mx_scale[2];
  float p[2][16];
  float part_2[2];
  bf16 o_a[2][16];
  bf16 part_3[2][16];
  int n_ahead_1;
  int n_ahead_parity_1;
  for (int n_at = 0;;) {
    await(n_full_1 + n_read_1, n_read_parity_1);
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      offs_n[n_i] = n_at + thread % 4 * 2 + n_i % 2 + n_i / 2 * 8;
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      mx_before[m_i] = mx[m_i];
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
              matrix<64>(k_tile + n_read_1 * 64 * D_WIDTH, 64, n_i % 2 + n_i / 2 * 8, d_from));
    commit_warpgroup();
    wait_warpgroup<0>();
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        a[m_i][n_i] = ((offs_n[n_i] <= offs_m[m_i]) ? s[m_i][n_i] : -kInfinity);
    n_ahead_1 = ((n_at + 64 >= N) ? n_read_1 : ((n_read_1 == 2) ? 0 : n_read_1 + 1));
    n_ahead_parity_1 = ((n_at + 64 >= N) ? n_read_parity_1 : ((n_read_1 == 2) ? 1 - n_read_parity_1 : n_read_parity_1));
    await(n_full_1 + n_ahead_1, n_ahead_parity_1);
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
              matrix<64>(k_tile + n_ahead_1 * 64 * D_WIDTH, 64, n_i % 2 + n_i / 2 * 8, d_from));
    commit_warpgroup();
    wait_warpgroup<1>();
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
      mx[m_i] = fn::larger(mx[m_i], (part_1[m_i] * a_factor));
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      mx_scale[m_i] = fn::exp2_flushed((mx_before[m_i] - mx[m_i]) * kLog2E);
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      l[m_i] = l[m_i] * mx_scale[m_i];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      part_4[m_i] = part_4[m_i] * mx_scale[m_i];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        p[m_i][n_i] = fn::exp2_flushed(a[m_i][n_i] * (a_factor * kLog2E) - mx[m_i] * kLog2E);
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i) {
      part_2[m_i] = 0;
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        part_2[m_i] += (mask_n[n_i] ? p[m_i][n_i] : 0.0f);
    }
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      part_4[m_i] += part_2[m_i];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n; ++d_i)
        o[m_i][d_i] = o[m_i][d_i] * mx_scale[m_i];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        o_a[m_i][n_i] = bf16(p[m_i][n_i]);
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        part_3[m_i][n_i] = (mask_n[n_i] ? o_a[m_i][n_i] : bf16(0.0f));
    wait_warpgroup<0>();
    n_read_parity_1 = ((n_read_1 == 2) ? 1 - n_read_parity_1 : n_read_parity_1);
    n_read_1 = ((n_read_1 == 2) ? 0 : n_read_1 + 1);
    n_at += 64;
    if (n_at >= 64) break;
  }
  for (int n_at = 64; n_at < N; n_at += 64) {
    {
      u32 words[2 / 2][64 / 16][4];
      #pragma unroll
      for (int m_i = 0; m_i < 2; m_i += 2)
        #pragma unroll
        for (int n_from = 0; n_from < 64; n_from += 16)
          pack_words(
              words[m_i / 2][n_from / 16],
              part_3[m_i][n_from / 16 * 4], part_3[m_i][n_from / 16 * 4 + 1],
              part_3[m_i + 1][n_from / 16 * 4], part_3[m_i + 1][n_from / 16 * 4 + 1],
              part_3[m_i][n_from / 16 * 4 + 2], part_3[m_i][n_from / 16 * 4 + 3],
              part_3[m_i + 1][n_from / 16 * 4 + 2], part_3[m_i + 1][n_from / 16 * 4 + 3]);
      arrive_warpgroup();
      #pragma unroll
      for (int m_i = 0; m_i < 2; m_i += 2)
        #pragma unroll
        for (int d_i = 0; d_i < d_n; d_i += 16)
          #pragma unroll
          for (int n_from = 0; n_from < 64; n_from += 16)
            wgmma<64, 1>(
                &o[m_i][d_i], &o[m_i + 1][d_i],
                matrix<64>(v_tile + (((n_read_1 == 0) ? 2 : n_read_1 - 1)) * 64 * D_WIDTH, 64,
                n_from, d_i % 2 + d_i / 2 * 8),
                words[m_i / 2][n_from / 16]);
      commit_warpgroup();
      wait_warpgroup<1>();
    }
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      offs_n[n_i] = n_at + thread % 4 * 2 + n_i % 2 + n_i / 2 * 8;
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      mx_before[m_i] = mx[m_i];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        a[m_i][n_i] = ((offs_n[n_i] <= offs_m[m_i]) ? s[m_i][n_i] : -kInfinity);
    n_ahead_1 = ((n_at + 64 >= N) ? n_read_1 : ((n_read_1 == 2) ? 0 : n_read_1 + 1));
    n_ahead_parity_1 = ((n_at + 64 >= N) ? n_read_parity_1 : ((n_read_1 == 2) ? 1 - n_read_parity_1 : n_read_parity_1));
    await(n_full_1 + n_ahead_1, n_ahead_parity_1);
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
              matrix<64>(k_tile + n_ahead_1 * 64 * D_WIDTH, 64, n_i % 2 + n_i / 2 * 8, d_from));
    commit_warpgroup();
    wait_warpgroup<2>();
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
      mx[m_i] = fn::larger(mx[m_i], (part_1[m_i] * a_factor));
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      mx_scale[m_i] = fn::exp2_flushed((mx_before[m_i] - mx[m_i]) * kLog2E);
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      l[m_i] = l[m_i] * mx_scale[m_i];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      part_4[m_i] = part_4[m_i] * mx_scale[m_i];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        p[m_i][n_i] = fn::exp2_flushed(a[m_i][n_i] * (a_factor * kLog2E) - mx[m_i] * kLog2E);
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i) {
      part_2[m_i] = 0;
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        part_2[m_i] += (mask_n[n_i] ? p[m_i][n_i] : 0.0f);
    }
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      part_4[m_i] += part_2[m_i];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      keep_order(part_4[m_i]);
    wait_warpgroup<1>();
    arrive_warp(n_empty_1 + ((n_read_1 == 0) ? 2 : n_read_1 - 1));
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n; ++d_i)
        o[m_i][d_i] = o[m_i][d_i] * mx_scale[m_i];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        o_a[m_i][n_i] = bf16(p[m_i][n_i]);
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        part_3[m_i][n_i] = (mask_n[n_i] ? o_a[m_i][n_i] : bf16(0.0f));
    wait_warpgroup<0>();
    n_read_parity_1 = ((n_read_1 == 2) ? 1 - n_read_parity_1 : n_read_parity_1);
    n_read_1 = ((n_read_1 == 2) ? 0 : n_read_1 + 1);
  }
  {
    u32 words[2 / 2][64 / 16][4];
    #pragma unroll
    for (int m_i = 0; m_i < 2; m_i += 2)
      #pragma unroll
      for (int n_from = 0; n_from < 64; n_from += 16)
        pack_words(
            words[m_i / 2][n_from / 16],
            part_3[m_i][n_from / 16 * 4], part_3[m_i][n_from / 16 * 4 + 1],
            part_3[m_i + 1][n_from / 16 * 4], part_3[m_i + 1][n_from / 16 * 4 + 1],
            part_3[m_i][n_from / 16 * 4 + 2], part_3[m_i][n_from / 16 * 4 + 3],
            part_3[m_i + 1][n_from / 16 * 4 + 2], part_3[m_i + 1][n_from / 16 * 4 + 3]);
    arrive_warpgroup();
    #pragma unroll
    for (int m_i = 0; m_i < 2; m_i += 2)
      #pragma unroll
      for (int d_i = 0; d_i < d_n; d_i += 16)
        #pragma unroll
        for (int n_from = 0; n_from < 64; n_from += 16)
          wgmma<64, 1>(
              &o[m_i][d_i], &o[m_i + 1][d_i],
              matrix<64>(v_tile + (((n_read_1 == 0) ? 2 : n_read_1 - 1)) * 64 * D_WIDTH, 64,
              n_from, d_i % 2 + d_i / 2 * 8),
              words[m_i / 2][n_from / 16]);
    commit_warpgroup();
    wait_warpgroup<0>();
  }
  arrive_warp(n_empty_1 + ((n_read_1 == 0) ? 2 : n_read_1 - 1));
  #pragma unroll
  for (int distance = 1; distance <= 2; distance *= 2)
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      part_4[m_i] += shuffle_xor(part_4[m_i], distance);
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    l[m_i] += part_4[m_i];
  bf16 y[2][d_n];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i)
      y[m_i][d_i] = bf16(o[m_i][d_i] / l[m_i]);
  fence_shared();
  sync_threads<128>();
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i)
      stored_tile_3[(thread / 4 % 8 + thread / 32 * 16 + m_i * 8) * (D_WIDTH + 8) + thread % 4 * 2 + d_i % 2 + d_i / 2 * 8] =
          y[m_i][d_i];
  fence_shared();
  sync_threads<128>();
  bf16 part_5[4][d_n1];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n1; ++d_i)
      part_5[m_i][d_i] =
          stored_tile_3[(thread / 8 + m_i * 16) * (D_WIDTH + 8) + thread % 8 * 8 + d_i % 8 + d_i / 8 * 64];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    offs_m_1[m_i] = m_at + thread / 8 + m_i * 16;
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
      store<ALIGNED_Q ? 8 : 1>(
          y_ptr + h_at * M * D + offs_m_1[m_i] * D + offs_d_1[d_i],
          &part_5[m_i][d_i],
          mask_m_1[m_i] && mask_d_1[d_i]);
}
