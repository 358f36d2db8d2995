// pffn: Per-sample feed-forward: two batched products, each followed by an RMS normalisation.
// Generated from spec 3cc97ce2ceb59d96 and schedule 3ce4499ceabf4d47.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at B = 1024, N = 200, D = 256, K = 160.
#ifndef EVEN_N
#define EVEN_N 0
#endif
#ifndef EVEN_K
#define EVEN_K 1
#endif
#ifndef D_WIDTH
#define D_WIDTH 256
#endif
#ifndef EVEN_D
#define EVEN_D 1
#endif
#ifndef ALIGNED_X
#define ALIGNED_X 1
#endif
#ifndef ALIGNED_W1
#define ALIGNED_W1 1
#endif
#ifndef ALIGNED_B1
#define ALIGNED_B1 1
#endif
#ifndef ALIGNED_H
#define ALIGNED_H 1
#endif
#ifndef E_WIDTH
#define E_WIDTH 256
#endif
#ifndef EVEN_E
#define EVEN_E 1
#endif
#ifndef ALIGNED_G2
#define ALIGNED_G2 1
#endif
#ifndef ALIGNED_W2
#define ALIGNED_W2 1
#endif
#ifndef ALIGNED_G1
#define ALIGNED_G1 1
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif

// u[b, n, k] = sum(f32(x[b, n, d]) * f32(w1[b, d, k]), d)
// h[b, n, k] = gelu(u[b, n, k] + f32(b1[b, k]))
extern "C" __global__ void __launch_bounds__(256, 3) pffn_0(
    const f16* __restrict__ x_ptr,
    const f16* __restrict__ w1_ptr,
    const f16* __restrict__ b1_ptr,
    float* __restrict__ h_ptr,
    int N,
    int D,
    int K) {
  constexpr int d_n = 8 * cdiv(D_WIDTH, 256);
  constexpr int d_n1 = 4 * cdiv(D_WIDTH, 256);
  constexpr int shared_1 = 0 + round_up(64 * D_WIDTH, 1024);
  constexpr int shared_2 = shared_1 + round_up(128 * D_WIDTH, 1024);
  f16* const x_tile = shared_at<f16>(0);  // [32][D_WIDTH]
  f16* const w1_tile = shared_at<f16>(shared_1);  // [2][32][D_WIDTH]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  const int tiles_n = cdiv(N, 32);
  const int b_at = tile / tiles_n;
  const int n_at = tile % tiles_n * 32;
  const int offs_n = n_at + thread % 16 + thread / 64 % 2 * 16;
  const bool mask_n = (offs_n < N) | EVEN_N;
  int offs_n_1[4];
  #pragma unroll
  for (int n_i = 0; n_i < 4; ++n_i)
    offs_n_1[n_i] = n_at + thread / 32 + n_i * 8;
  bool mask_n_1[4];
  #pragma unroll
  for (int n_i = 0; n_i < 4; ++n_i)
    mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
  int offs_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    offs_d[d_i] = thread % 32 * 8 + d_i % 8 + d_i / 8 * 256;
  bool mask_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
  f16 x_next[4][d_n];
  #pragma unroll
  for (int n_i = 0; n_i < 4; ++n_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += ALIGNED_X ? 8 : 1)
      load<ALIGNED_X ? 8 : 1>(
          &x_next[n_i][d_i],
          place(x_ptr, b_at * N * D + offs_n_1[n_i] * D + offs_d[d_i]),
          mask_n_1[n_i] && mask_d[d_i]);
  #pragma unroll
  for (int n_i = 0; n_i < 4; ++n_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += 8)
      store<8>(
          &x_tile[swizzle<3, 3, 3>(panel<64>(32, thread / 32 + n_i * 8,
          thread % 32 * 8 + d_i % 8 + d_i / 8 * 256))],
          &x_next[n_i][d_i]);
  int offs_d_1[d_n1];
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    offs_d_1[d_i] = thread % 64 * 4 + d_i % 4 + d_i / 4 * 256;
  bool mask_d_1[d_n1];
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
  int k_at_1 = 0;
  __syncthreads();
  int offs_k_1[8];
  bool mask_k_1[8];
  f16 w1_next[d_n1][8];
  f16 part_1[8][d_n1];
  #pragma unroll
  for (int k_stage_1 = 0; k_stage_1 < 1; ++k_stage_1) {
    if (k_at_1 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        offs_k_1[k_i] = k_at_1 + thread / 64 * 8 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; ++d_i)
        #pragma unroll
        for (int k_i = 0; k_i < 8; k_i += ALIGNED_W1 ? 8 : 1)
          load<ALIGNED_W1 ? 8 : 1>(
              &w1_next[d_i][k_i],
              place(w1_ptr, b_at * D * K + offs_d_1[d_i] * K + offs_k_1[k_i]),
              mask_d_1[d_i] && mask_k_1[k_i]);
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; ++d_i)
          part_1[k_i][d_i] = w1_next[d_i][k_i];
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; d_i += 4)
          store<4>(
              &w1_tile[k_stage_1 * 32 * D_WIDTH + swizzle<3, 3, 3>(panel<64>(32,
              thread / 64 * 8 + k_i, thread % 64 * 4 + d_i % 4 + d_i / 4 * 256))],
              &part_1[k_i][d_i]);
    }
    k_at_1 = k_at_1 + 32;
  }
  int k_read_1 = 0;
  int k_write_1 = 1;
  if (k_at_1 < K) {
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      offs_k_1[k_i] = k_at_1 + thread / 64 * 8 + k_i;
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
    #pragma unroll
    for (int d_i = 0; d_i < d_n1; ++d_i)
      #pragma unroll
      for (int k_i = 0; k_i < 8; k_i += ALIGNED_W1 ? 8 : 1)
        load<ALIGNED_W1 ? 8 : 1>(
            &w1_next[d_i][k_i],
            place(w1_ptr, b_at * D * K + offs_d_1[d_i] * K + offs_k_1[k_i]),
            mask_d_1[d_i] && mask_k_1[k_i]);
  }
  k_at_1 = k_at_1 + 32;
  for (int k_at = 0; k_at < K; k_at += 32) {
    __syncthreads();
    if (k_at + 32 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; ++d_i)
          part_1[k_i][d_i] = w1_next[d_i][k_i];
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; d_i += 4)
          store<4>(
              &w1_tile[k_write_1 * 32 * D_WIDTH + swizzle<3, 3, 3>(panel<64>(32,
              thread / 64 * 8 + k_i, thread % 64 * 4 + d_i % 4 + d_i / 4 * 256))],
              &part_1[k_i][d_i]);
    }
    if (k_at_1 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        offs_k_1[k_i] = k_at_1 + thread / 64 * 8 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; ++d_i)
        #pragma unroll
        for (int k_i = 0; k_i < 8; k_i += ALIGNED_W1 ? 8 : 1)
          load<ALIGNED_W1 ? 8 : 1>(
              &w1_next[d_i][k_i],
              place(w1_ptr, b_at * D * K + offs_d_1[d_i] * K + offs_k_1[k_i]),
              mask_d_1[d_i] && mask_k_1[k_i]);
    }
    k_at_1 = k_at_1 + 32;
    k_write_1 = ((k_write_1 == 1) ? 0 : k_write_1 + 1);
    int offs_k[4];
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      offs_k[k_i] = k_at + thread / 16 % 4 * 4 + thread / 128 * 16 + k_i;
    bool mask_k[4];
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
    float u[4];
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      u[k_i] = 0.0f;
    for (int d_issue_1 = 0; d_issue_1 < D_WIDTH; d_issue_1 += 32) {
      f16 part_2[8];
      #pragma unroll
      for (int d_i = 0; d_i < 8; d_i += 8)
        load<8>(
            &part_2[d_i],
            &x_tile[swizzle<3, 3, 3>(panel<64>(32, thread % 16 + thread / 64 % 2 * 16,
            d_issue_1 + thread / 16 % 4 * 8 + d_i))]);
      f16 part_4[8];
      #pragma unroll
      for (int d_i = 0; d_i < 8; d_i += 8)
        load<8>(
            &part_4[d_i],
            &w1_tile[k_read_1 * 32 * D_WIDTH + swizzle<3, 3, 3>(panel<64>(32,
            thread % 16 + thread / 128 * 16, d_issue_1 + thread / 16 % 4 * 8 + d_i))]);
      f16 part_3[8];
      #pragma unroll
      for (int d_i = 0; d_i < 8; ++d_i)
        part_3[d_i] = part_4[d_i];
      #pragma unroll
      for (int d_i = 0; d_i < 8; d_i += 8)
        #pragma unroll
        for (int k_i = 0; k_i < 4; k_i += 4)
          mfma_16x16x32(
              u[k_i], u[k_i + 1], u[k_i + 2], u[k_i + 3],
              part_2[d_i], part_2[d_i + 1], part_2[d_i + 2], part_2[d_i + 3], part_2[d_i + 4],
              part_2[d_i + 5], part_2[d_i + 6], part_2[d_i + 7],
              part_3[d_i], part_3[d_i + 1], part_3[d_i + 2], part_3[d_i + 3], part_3[d_i + 4],
              part_3[d_i + 5], part_3[d_i + 6], part_3[d_i + 7]);
    }
    f16 b1[4];
    #pragma unroll
    for (int k_i = 0; k_i < 4; k_i += ALIGNED_B1 ? 4 : 1)
      load<ALIGNED_B1 ? 4 : 1>(&b1[k_i], place(b1_ptr, b_at * K + offs_k[k_i]), mask_k[k_i]);
    float h[4];
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      h[k_i] = fn::gelu(u[k_i] + float(b1[k_i]));
    #pragma unroll
    for (int k_i = 0; k_i < 4; k_i += ALIGNED_H ? 4 : 1)
      store<ALIGNED_H ? 4 : 1>(
          place(h_ptr, b_at * N * K + offs_n * K + offs_k[k_i]),
          &h[k_i],
          mask_n && mask_k[k_i]);
    k_read_1 = ((k_read_1 == 1) ? 0 : k_read_1 + 1);
  }
}

// hs[b, n] = sum(h[b, n, k] ** 2, k)
// r1[b, n] = rsqrt(hs[b, n] / K + eps)
// hn[b, n, k] = h[b, n, k] * r1[b, n] * f32(g1[k])
// z[b, n, e] = sum(hn[b, n, k] * f32(w2[b, k, e]), k)
// zs[b, n] = sum(z[b, n, e] ** 2, e)
// r2[b, n] = rsqrt(zs[b, n] / D + eps)
// y[b, n, e] = z[b, n, e] * r2[b, n] * f32(g2[e])
extern "C" __global__ void __launch_bounds__(256, 1) pffn_1(
    const f16* __restrict__ g1_ptr,
    const f16* __restrict__ w2_ptr,
    const f16* __restrict__ g2_ptr,
    const float* __restrict__ h_ptr,
    f16* __restrict__ y_ptr,
    int N,
    int D,
    int K) {
  constexpr float eps = 1e-06f;
  constexpr int e_n = 4 * cdiv(E_WIDTH, 64);
  constexpr int e_n1 = 8 * cdiv(E_WIDTH, 256);
  constexpr int e_n2 = 1 * cdiv(E_WIDTH, 64);
  constexpr int shared_1 = 0 + round_up(most(128 * E_WIDTH, 512), 1024);
  f16* const w2_tile = shared_at<f16>(0);  // [2][E_WIDTH][32]
  float* const part_tile_4 = shared_at<float>(0);  // [4][32]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_e[e_n];
  #pragma unroll
  for (int e_i = 0; e_i < e_n; ++e_i)
    offs_e[e_i] = thread / 16 * 4 + e_i % 4 + e_i / 4 * 64;
  bool mask_e[e_n];
  #pragma unroll
  for (int e_i = 0; e_i < e_n; ++e_i)
    mask_e[e_i] = (offs_e[e_i] < D) | EVEN_E;
  f16 g2[e_n];
  #pragma unroll
  for (int e_i = 0; e_i < e_n; e_i += ALIGNED_G2 ? 4 : 1)
    load<ALIGNED_G2 ? 4 : 1>(&g2[e_i], place(g2_ptr, offs_e[e_i]), mask_e[e_i]);
  const int tiles_n = cdiv(N, 32);
  const int b_at = tile / tiles_n;
  const int n_at = tile % tiles_n * 32;
  int offs_n[2];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    offs_n[n_i] = n_at + thread % 16 + n_i * 16;
  bool mask_n[2];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
  float z[2][e_n];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    #pragma unroll
    for (int e_i = 0; e_i < e_n; ++e_i)
      z[n_i][e_i] = 0.0f;
  float hs[2];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    hs[n_i] = 0.0f;
  int offs_k[8];
  bool mask_k[8];
  float h[2][8];
  for (int k_at = 0; k_at < K; k_at += 32) {
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      offs_k[k_i] = k_at + thread / 16 % 4 * 8 + k_i;
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int k_i = 0; k_i < 8; k_i += ALIGNED_H ? 4 : 1)
        load<ALIGNED_H ? 4 : 1>(
            &h[n_i][k_i],
            place(h_ptr, b_at * N * K + offs_n[n_i] * K + offs_k[k_i]),
            mask_n[n_i] && mask_k[k_i]);
    float hs_term[2][8];
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        hs_term[n_i][k_i] = fn::square(h[n_i][k_i]);
    float part_1[2];
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i) {
      part_1[n_i] = 0;
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        part_1[n_i] += hs_term[n_i][k_i];
    }
    #pragma unroll
    for (int distance = 16; distance <= 32; distance *= 2)
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        part_1[n_i] += shuffle_xor(part_1[n_i], distance);
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      hs[n_i] += part_1[n_i];
  }
  float r1[2];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    r1[n_i] = fn::rsqrt((hs[n_i] / K) + eps);
  int offs_e_1[e_n1];
  #pragma unroll
  for (int e_i = 0; e_i < e_n1; ++e_i)
    offs_e_1[e_i] = thread / 8 * 8 + e_i % 8 + e_i / 8 * 256;
  bool mask_e_1[e_n1];
  #pragma unroll
  for (int e_i = 0; e_i < e_n1; ++e_i)
    mask_e_1[e_i] = (offs_e_1[e_i] < D) | EVEN_E;
  int k_at_1 = 0;
  __syncthreads();
  int offs_k_1[4];
  bool mask_k_1[4];
  f16 w2_next[4][e_n1];
  f16 part_2[e_n1][4];
  #pragma unroll
  for (int k_stage_1 = 0; k_stage_1 < 1; ++k_stage_1) {
    if (k_at_1 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        offs_k_1[k_i] = k_at_1 + thread % 8 * 4 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        #pragma unroll
        for (int e_i = 0; e_i < e_n1; e_i += ALIGNED_W2 ? 8 : 1)
          load<ALIGNED_W2 ? 8 : 1>(
              &w2_next[k_i][e_i],
              place(w2_ptr, b_at * K * D + offs_k_1[k_i] * D + offs_e_1[e_i]),
              mask_k_1[k_i] && mask_e_1[e_i]);
      #pragma unroll
      for (int e_i = 0; e_i < e_n1; ++e_i)
        #pragma unroll
        for (int k_i = 0; k_i < 4; ++k_i)
          part_2[e_i][k_i] = w2_next[k_i][e_i];
      #pragma unroll
      for (int e_i = 0; e_i < e_n1; ++e_i)
        #pragma unroll
        for (int k_i = 0; k_i < 4; k_i += 4)
          store<4>(
              &w2_tile[k_stage_1 * 32 * E_WIDTH + swizzle<2, 3, 3>(panel<32>(E_WIDTH,
              thread / 8 * 8 + e_i % 8 + e_i / 8 * 256, thread % 8 * 4 + k_i))],
              &part_2[e_i][k_i]);
    }
    k_at_1 = k_at_1 + 32;
  }
  int k_read_1 = 0;
  int k_write_1 = 1;
  if (k_at_1 < K) {
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      offs_k_1[k_i] = k_at_1 + thread % 8 * 4 + k_i;
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      #pragma unroll
      for (int e_i = 0; e_i < e_n1; e_i += ALIGNED_W2 ? 8 : 1)
        load<ALIGNED_W2 ? 8 : 1>(
            &w2_next[k_i][e_i],
            place(w2_ptr, b_at * K * D + offs_k_1[k_i] * D + offs_e_1[e_i]),
            mask_k_1[k_i] && mask_e_1[e_i]);
  }
  k_at_1 = k_at_1 + 32;
  for (int k_at = 0; k_at < K; k_at += 32) {
    __syncthreads();
    if (k_at + 32 < K) {
      #pragma unroll
      for (int e_i = 0; e_i < e_n1; ++e_i)
        #pragma unroll
        for (int k_i = 0; k_i < 4; ++k_i)
          part_2[e_i][k_i] = w2_next[k_i][e_i];
      #pragma unroll
      for (int e_i = 0; e_i < e_n1; ++e_i)
        #pragma unroll
        for (int k_i = 0; k_i < 4; k_i += 4)
          store<4>(
              &w2_tile[k_write_1 * 32 * E_WIDTH + swizzle<2, 3, 3>(panel<32>(E_WIDTH,
              thread / 8 * 8 + e_i % 8 + e_i / 8 * 256, thread % 8 * 4 + k_i))],
              &part_2[e_i][k_i]);
    }
    if (k_at_1 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        offs_k_1[k_i] = k_at_1 + thread % 8 * 4 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        #pragma unroll
        for (int e_i = 0; e_i < e_n1; e_i += ALIGNED_W2 ? 8 : 1)
          load<ALIGNED_W2 ? 8 : 1>(
              &w2_next[k_i][e_i],
              place(w2_ptr, b_at * K * D + offs_k_1[k_i] * D + offs_e_1[e_i]),
              mask_k_1[k_i] && mask_e_1[e_i]);
    }
    k_at_1 = k_at_1 + 32;
    k_write_1 = ((k_write_1 == 1) ? 0 : k_write_1 + 1);
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      offs_k[k_i] = k_at + thread / 16 % 4 * 8 + k_i;
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int k_i = 0; k_i < 8; k_i += ALIGNED_H ? 4 : 1)
        load<ALIGNED_H ? 4 : 1>(
            &h[n_i][k_i],
            place(h_ptr, b_at * N * K + offs_n[n_i] * K + offs_k[k_i]),
            mask_n[n_i] && mask_k[k_i]);
    f16 g1[8];
    #pragma unroll
    for (int k_i = 0; k_i < 8; k_i += ALIGNED_G1 ? 8 : 1)
      load<ALIGNED_G1 ? 8 : 1>(&g1[k_i], place(g1_ptr, offs_k[k_i]), mask_k[k_i]);
    float hn[2][8];
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        hn[n_i][k_i] = (h[n_i][k_i] * r1[n_i]) * float(g1[k_i]);
    f16 z_a[2][8];
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        z_a[n_i][k_i] = f16(hn[n_i][k_i]);
    #pragma unroll
    for (int k_issue_1 = 0; k_issue_1 < 32; k_issue_1 += 32) {
      f16 part_4[e_n2][8];
      #pragma unroll
      for (int e_i = 0; e_i < e_n2; ++e_i)
        #pragma unroll
        for (int k_i = 0; k_i < 8; k_i += 8)
          load<8>(
              &part_4[e_i][k_i],
              &w2_tile[k_read_1 * 32 * E_WIDTH + swizzle<2, 3, 3>(panel<32>(E_WIDTH,
              thread % 16 + thread / 64 * 16 + e_i * 64, k_issue_1 + thread / 16 % 4 * 8 + k_i))]);
      f16 part_3[8][e_n2];
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        #pragma unroll
        for (int e_i = 0; e_i < e_n2; ++e_i)
          part_3[k_i][e_i] = part_4[e_i][k_i];
      #pragma unroll
      for (int k_i = 0; k_i < 8; k_i += 8)
        #pragma unroll
        for (int n_i = 0; n_i < 2; n_i += 1)
          #pragma unroll
          for (int e_i = 0; e_i < e_n; e_i += 4)
            mfma_16x16x32(
                z[n_i][e_i], z[n_i][e_i + 1], z[n_i][e_i + 2], z[n_i][e_i + 3],
                z_a[n_i][k_issue_1 / 32 * 8 + k_i], z_a[n_i][k_issue_1 / 32 * 8 + k_i + 1],
                z_a[n_i][k_issue_1 / 32 * 8 + k_i + 2], z_a[n_i][k_issue_1 / 32 * 8 + k_i + 3],
                z_a[n_i][k_issue_1 / 32 * 8 + k_i + 4], z_a[n_i][k_issue_1 / 32 * 8 + k_i + 5],
                z_a[n_i][k_issue_1 / 32 * 8 + k_i + 6], z_a[n_i][k_issue_1 / 32 * 8 + k_i + 7],
                part_3[k_i][e_i / 4], part_3[k_i + 1][e_i / 4], part_3[k_i + 2][e_i / 4],
                part_3[k_i + 3][e_i / 4], part_3[k_i + 4][e_i / 4], part_3[k_i + 5][e_i / 4],
                part_3[k_i + 6][e_i / 4], part_3[k_i + 7][e_i / 4]);
    }
    k_read_1 = ((k_read_1 == 1) ? 0 : k_read_1 + 1);
  }
  float zs_term[2][e_n];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    #pragma unroll
    for (int e_i = 0; e_i < e_n; ++e_i)
      zs_term[n_i][e_i] = fn::square(z[n_i][e_i]);
  float zs[2];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i) {
    zs[n_i] = 0;
    #pragma unroll
    for (int e_i = 0; e_i < e_n; ++e_i)
      zs[n_i] += (mask_e[e_i] ? zs_term[n_i][e_i] : 0.0f);
  }
  #pragma unroll
  for (int distance = 16; distance <= 32; distance *= 2)
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      zs[n_i] += shuffle_xor(zs[n_i], distance);
  float part_5[2];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    part_5[n_i] = zs[n_i];
  __syncthreads();
  if ((thread & 48) == 0)
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      part_tile_4[thread / 64 * 32 + thread % 16 + n_i * 16] = part_5[n_i];
  __syncthreads();
  float part_6[4][2];
  #pragma unroll
  for (int part_i = 0; part_i < 4; ++part_i)
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      part_6[part_i][n_i] = part_tile_4[part_i * 32 + thread % 16 + n_i * 16];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i) {
    zs[n_i] = 0;
    #pragma unroll
    for (int part_i = 0; part_i < 4; ++part_i)
      zs[n_i] += part_6[part_i][n_i];
  }
  float r2[2];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    r2[n_i] = fn::rsqrt((zs[n_i] / D) + eps);
  f16 y[2][e_n];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    #pragma unroll
    for (int e_i = 0; e_i < e_n; ++e_i)
      y[n_i][e_i] = f16((z[n_i][e_i] * r2[n_i]) * float(g2[e_i]));
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    #pragma unroll
    for (int e_i = 0; e_i < e_n; e_i += ALIGNED_Y ? 4 : 1)
      store<ALIGNED_Y ? 4 : 1>(
          place(y_ptr, b_at * N * D + offs_n[n_i] * D + offs_e[e_i]),
          &y[n_i][e_i],
          mask_n[n_i] && mask_e[e_i]);
}
