// pffn: Per-sample feed-forward: two batched products, each followed by an RMS normalisation.
// Generated from spec 3cc97ce2ceb59d96 and schedule 54a20e78d1b76c78.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at B = 1024, N = 200, D = 256, K = 160.
#ifndef SIZE_N
#define SIZE_N 200
#endif
#ifndef SIZE_D
#define SIZE_D 256
#endif
#ifndef SIZE_K
#define SIZE_K 160
#endif
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
#ifndef E_WIDTH
#define E_WIDTH 256
#endif
#ifndef EVEN_E
#define EVEN_E 1
#endif
#ifndef ALIGNED_G2
#define ALIGNED_G2 1
#endif
#ifndef ALIGNED_X
#define ALIGNED_X 1
#endif
#ifndef ALIGNED_W1
#define ALIGNED_W1 1
#endif
#ifndef ALIGNED_W2
#define ALIGNED_W2 1
#endif
#ifndef ALIGNED_B1
#define ALIGNED_B1 1
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif

// u[b, n, k] = sum(f32(x[b, n, d]) * f32(w1[b, d, k]), d)
// h[b, n, k] = gelu(u[b, n, k] + f32(b1[b, k]))
// hs[b, n] = sum(h[b, n, k] ** 2, k)
// r1[b, n] = rsqrt(hs[b, n] / K + eps)
// z[b, n, e] = sum(h[b, n, k] * f32(g1[k]) * f32(w2[b, k, e]), k)
// zs[b, n] = sum((z[b, n, e] * r1[b, n]) ** 2, e)
// r2[b, n] = rsqrt(zs[b, n] / D + eps)
// y[b, n, e] = z[b, n, e] * r1[b, n] * r2[b, n] * f32(g2[e])
extern "C" __global__ void __launch_bounds__(256, 1) pffn_0(
    const f16* __restrict__ x_ptr,
    const f16* __restrict__ w1_ptr,
    const f16* __restrict__ b1_ptr,
    const f16* __restrict__ g1_ptr,
    const f16* __restrict__ w2_ptr,
    const f16* __restrict__ g2_ptr,
    f16* __restrict__ y_ptr) {
  constexpr float eps = 1e-06f;
  constexpr int N = SIZE_N;
  constexpr int D = SIZE_D;
  constexpr int K = SIZE_K;
  constexpr int e_n = 4 * cdiv(E_WIDTH, 16);
  constexpr int d_n = 8 * cdiv(D_WIDTH, 256);
  constexpr int d_n1 = 4 * cdiv(D_WIDTH, 256);
  constexpr int e_n1 = 8 * cdiv(E_WIDTH, 256);
  constexpr int e_n2 = 1 * cdiv(E_WIDTH, 16);
  constexpr int shared_1 = 0 + round_up(128 * D_WIDTH, 1024);
  constexpr int shared_2 = shared_1 + round_up(most(64 * D_WIDTH, 8192), 1024);
  constexpr int shared_3 = shared_2 + round_up(64 * E_WIDTH, 1024);
  f16* const x_tile = shared_at<f16>(0);  // [64][D_WIDTH]
  f16* const w1_tile = shared_at<f16>(shared_1);  // [32][D_WIDTH]
  f16* const w2_tile = shared_at<f16>(shared_2);  // [E_WIDTH][32]
  float* const operand_tile_7 = shared_at<float>(shared_1);  // [64][32]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_e[e_n];
  #pragma unroll
  for (int e_i = 0; e_i < e_n; ++e_i)
    offs_e[e_i] = thread / 16 % 4 * 4 + e_i % 4 + e_i / 4 * 16;
  bool mask_e[e_n];
  #pragma unroll
  for (int e_i = 0; e_i < e_n; ++e_i)
    mask_e[e_i] = (offs_e[e_i] < D) | EVEN_E;
  f16 g2[e_n];
  #pragma unroll
  for (int e_i = 0; e_i < e_n; e_i += ALIGNED_G2 ? 4 : 1)
    load<ALIGNED_G2 ? 4 : 1>(&g2[e_i], place(g2_ptr, offs_e[e_i]), mask_e[e_i]);
  const int tiles_n = cdiv(N, 64);
  const int b_at = tile / tiles_n;
  const int n_at = tile % tiles_n * 64;
  const int offs_n = n_at + thread % 16 + thread / 64 * 16;
  const bool mask_n = (offs_n < N) | EVEN_N;
  float hs = 0.0f;
  float z[e_n];
  #pragma unroll
  for (int e_i = 0; e_i < e_n; ++e_i)
    z[e_i] = 0.0f;
  int offs_n_1[8];
  #pragma unroll
  for (int n_i = 0; n_i < 8; ++n_i)
    offs_n_1[n_i] = n_at + thread / 32 + n_i * 8;
  bool mask_n_1[8];
  #pragma unroll
  for (int n_i = 0; n_i < 8; ++n_i)
    mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
  int offs_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    offs_d[d_i] = thread % 32 * 8 + d_i % 8 + d_i / 8 * 256;
  bool mask_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
  f16 x_next[8][d_n];
  #pragma unroll
  for (int n_i = 0; n_i < 8; ++n_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += ALIGNED_X ? 8 : 1)
      load<ALIGNED_X ? 8 : 1>(
          &x_next[n_i][d_i],
          place(x_ptr, b_at * N * D + offs_n_1[n_i] * D + offs_d[d_i]),
          mask_n_1[n_i] && mask_d[d_i]);
  #pragma unroll
  for (int n_i = 0; n_i < 8; ++n_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += 8)
      store<8>(
          &x_tile[swizzle<3, 3, 3>(panel<64>(64, thread / 32 + n_i * 8,
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
  int offs_e_2[e_n1];
  #pragma unroll
  for (int e_i = 0; e_i < e_n1; ++e_i)
    offs_e_2[e_i] = thread / 8 * 8 + e_i % 8 + e_i / 8 * 256;
  bool mask_e_2[e_n1];
  #pragma unroll
  for (int e_i = 0; e_i < e_n1; ++e_i)
    mask_e_2[e_i] = (offs_e_2[e_i] < D) | EVEN_E;
  int k_at_1 = 0;
  __syncthreads();
  int offs_k_2[8];
  bool mask_k_2[8];
  f16 w1_next[d_n1][8];
  int offs_k_3[4];
  bool mask_k_3[4];
  f16 w2_next[4][e_n1];
  if (k_at_1 < K) {
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      offs_k_2[k_i] = k_at_1 + thread / 64 * 8 + k_i;
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      mask_k_2[k_i] = (offs_k_2[k_i] < K) | EVEN_K;
    #pragma unroll
    for (int d_i = 0; d_i < d_n1; ++d_i)
      #pragma unroll
      for (int k_i = 0; k_i < 8; k_i += ALIGNED_W1 ? 8 : 1)
        load<ALIGNED_W1 ? 8 : 1>(
            &w1_next[d_i][k_i],
            place(w1_ptr, b_at * D * K + offs_d_1[d_i] * K + offs_k_2[k_i]),
            mask_d_1[d_i] && mask_k_2[k_i]);
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      offs_k_3[k_i] = k_at_1 + thread % 8 * 4 + k_i;
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      mask_k_3[k_i] = (offs_k_3[k_i] < K) | EVEN_K;
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      #pragma unroll
      for (int e_i = 0; e_i < e_n1; e_i += ALIGNED_W2 ? 8 : 1)
        load<ALIGNED_W2 ? 8 : 1>(
            &w2_next[k_i][e_i],
            place(w2_ptr, b_at * K * D + offs_k_3[k_i] * D + offs_e_2[e_i]),
            mask_k_3[k_i] && mask_e_2[e_i]);
  }
  k_at_1 = k_at_1 + 32;
  for (int k_at = 0; k_at < K; k_at += 32) {
    __syncthreads();
    f16 part_1[8][d_n1];
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
            &w1_tile[swizzle<3, 3, 3>(panel<64>(32, thread / 64 * 8 + k_i,
            thread % 64 * 4 + d_i % 4 + d_i / 4 * 256))],
            &part_1[k_i][d_i]);
    f16 part_2[e_n1][4];
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
            &w2_tile[swizzle<2, 3, 3>(panel<32>(E_WIDTH, thread / 8 * 8 + e_i % 8 + e_i / 8 * 256,
            thread % 8 * 4 + k_i))],
            &part_2[e_i][k_i]);
    if (k_at_1 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        offs_k_2[k_i] = k_at_1 + thread / 64 * 8 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        mask_k_2[k_i] = (offs_k_2[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; ++d_i)
        #pragma unroll
        for (int k_i = 0; k_i < 8; k_i += ALIGNED_W1 ? 8 : 1)
          load<ALIGNED_W1 ? 8 : 1>(
              &w1_next[d_i][k_i],
              place(w1_ptr, b_at * D * K + offs_d_1[d_i] * K + offs_k_2[k_i]),
              mask_d_1[d_i] && mask_k_2[k_i]);
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        offs_k_3[k_i] = k_at_1 + thread % 8 * 4 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        mask_k_3[k_i] = (offs_k_3[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        #pragma unroll
        for (int e_i = 0; e_i < e_n1; e_i += ALIGNED_W2 ? 8 : 1)
          load<ALIGNED_W2 ? 8 : 1>(
              &w2_next[k_i][e_i],
              place(w2_ptr, b_at * K * D + offs_k_3[k_i] * D + offs_e_2[e_i]),
              mask_k_3[k_i] && mask_e_2[e_i]);
    }
    k_at_1 = k_at_1 + 32;
    int offs_k[8];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      offs_k[k_i] = k_at + thread / 16 % 4 * 4 + k_i % 4 + k_i / 4 * 16;
    bool mask_k[8];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
    float u[8];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      u[k_i] = 0.0f;
    __syncthreads();
    for (int d_issue_1 = 0; d_issue_1 < D_WIDTH; d_issue_1 += 16) {
      f16 part_3[4];
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        load<4>(
            &part_3[d_i],
            &x_tile[swizzle<3, 3, 3>(panel<64>(64, thread % 16 + thread / 64 * 16,
            d_issue_1 + thread / 16 % 4 * 4 + d_i))]);
      f16 part_5[2][4];
      #pragma unroll
      for (int k_i = 0; k_i < 2; ++k_i)
        #pragma unroll
        for (int d_i = 0; d_i < 4; d_i += 4)
          load<4>(
              &part_5[k_i][d_i],
              &w1_tile[swizzle<3, 3, 3>(panel<64>(32, thread % 16 + k_i * 16,
              d_issue_1 + thread / 16 % 4 * 4 + d_i))]);
      f16 part_4[4][2];
      #pragma unroll
      for (int d_i = 0; d_i < 4; ++d_i)
        #pragma unroll
        for (int k_i = 0; k_i < 2; ++k_i)
          part_4[d_i][k_i] = part_5[k_i][d_i];
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        #pragma unroll
        for (int k_i = 0; k_i < 8; k_i += 4)
          mfma_16x16x16(
              u[k_i], u[k_i + 1], u[k_i + 2], u[k_i + 3],
              part_3[d_i], part_3[d_i + 1], part_3[d_i + 2], part_3[d_i + 3],
              part_4[d_i][k_i / 4], part_4[d_i + 1][k_i / 4], part_4[d_i + 2][k_i / 4],
              part_4[d_i + 3][k_i / 4]);
    }
    f16 b1[8];
    #pragma unroll
    for (int k_i = 0; k_i < 8; k_i += ALIGNED_B1 ? 4 : 1)
      load<ALIGNED_B1 ? 4 : 1>(&b1[k_i], place(b1_ptr, b_at * K + offs_k[k_i]), mask_k[k_i]);
    float h[8];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      h[k_i] = fn::gelu(u[k_i] + float(b1[k_i]));
    float hs_term[8];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      hs_term[k_i] = fn::square(h[k_i]);
    float part_6;
    part_6 = 0;
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      part_6 += (mask_k[k_i] ? hs_term[k_i] : 0.0f);
    #pragma unroll
    for (int distance = 16; distance <= 32; distance *= 2)
      part_6 += shuffle_xor(part_6, distance);
    hs += part_6;
    f16 g1[8];
    #pragma unroll
    for (int k_i = 0; k_i < 8; k_i += ALIGNED_B1 ? 4 : 1)
      load<ALIGNED_B1 ? 4 : 1>(&g1[k_i], place(g1_ptr, offs_k[k_i]), mask_k[k_i]);
    float z_a[8];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      z_a[k_i] = fn::round_tf32(h[k_i] * float(g1[k_i]));
    float part_7[8];
    #pragma unroll
    for (int k_i = 0; k_i < 8; ++k_i)
      part_7[k_i] = (mask_k[k_i] ? z_a[k_i] : 0.0f);
    __syncthreads();
    #pragma unroll
    for (int k_i = 0; k_i < 8; k_i += 4)
      store<4>(
          &operand_tile_7[swizzle<3, 2, 3>(panel<32>(64, thread % 16 + thread / 64 * 16,
          thread / 16 % 4 * 4 + k_i % 4 + k_i / 4 * 16))],
          &part_7[k_i]);
    __syncthreads();
    #pragma unroll
    for (int k_issue_2 = 0; k_issue_2 < 32; k_issue_2 += 8) {
      float part_8[2];
      #pragma unroll
      for (int k_i = 0; k_i < 2; k_i += 2)
        load<2>(
            &part_8[k_i],
            &operand_tile_7[swizzle<3, 2, 3>(panel<32>(64, thread % 16 + thread / 64 * 16,
            k_issue_2 + thread / 16 % 4 * 2 + k_i))]);
      f16 part_10[e_n2][2];
      #pragma unroll
      for (int e_i = 0; e_i < e_n2; ++e_i)
        #pragma unroll
        for (int k_i = 0; k_i < 2; k_i += 2)
          load<2>(
              &part_10[e_i][k_i],
              &w2_tile[swizzle<2, 3, 3>(panel<32>(E_WIDTH, thread % 16 + e_i * 16,
              k_issue_2 + thread / 16 % 4 * 2 + k_i))]);
      f16 part_9[2][e_n2];
      #pragma unroll
      for (int k_i = 0; k_i < 2; ++k_i)
        #pragma unroll
        for (int e_i = 0; e_i < e_n2; ++e_i)
          part_9[k_i][e_i] = part_10[e_i][k_i];
      float part_11[2][e_n2];
      #pragma unroll
      for (int k_i = 0; k_i < 2; ++k_i)
        #pragma unroll
        for (int e_i = 0; e_i < e_n2; ++e_i)
          part_11[k_i][e_i] = float(part_9[k_i][e_i]);
      #pragma unroll
      for (int k_i = 0; k_i < 2; k_i += 2)
        #pragma unroll
        for (int e_i = 0; e_i < e_n; e_i += 4)
          mfma_16x16x8(
              z[e_i], z[e_i + 1], z[e_i + 2], z[e_i + 3],
              part_8[k_i], part_8[k_i + 1],
              part_11[k_i][e_i / 4], part_11[k_i + 1][e_i / 4]);
    }
  }
  const float r1 = fn::rsqrt((hs / K) + eps);
  float zs_term[e_n];
  #pragma unroll
  for (int e_i = 0; e_i < e_n; ++e_i)
    zs_term[e_i] = fn::square(z[e_i] * r1);
  float zs;
  zs = 0;
  #pragma unroll
  for (int e_i = 0; e_i < e_n; ++e_i)
    zs += (mask_e[e_i] ? zs_term[e_i] : 0.0f);
  #pragma unroll
  for (int distance = 16; distance <= 32; distance *= 2)
    zs += shuffle_xor(zs, distance);
  const float r2 = fn::rsqrt((zs / D) + eps);
  f16 y[e_n];
  #pragma unroll
  for (int e_i = 0; e_i < e_n; ++e_i)
    y[e_i] = f16(((z[e_i] * r1) * r2) * float(g2[e_i]));
  #pragma unroll
  for (int e_i = 0; e_i < e_n; e_i += ALIGNED_Y ? 4 : 1)
    store<ALIGNED_Y ? 4 : 1>(
        place(y_ptr, b_at * N * D + offs_n * D + offs_e[e_i]),
        &y[e_i],
        mask_n && mask_e[e_i]);
}
