// causal: Average values by a softmax over the keys up to each query's own place.
// Generated from spec 36ace2157074c073 and schedule 949ea7de4d1c2f41.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at H = 4, M = 256, N = 256, D = 64.
#ifndef EVEN_M
#define EVEN_M 1
#endif
#ifndef N_WIDTH
#define N_WIDTH 256
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
#ifndef ALIGNED_K
#define ALIGNED_K 1
#endif
#ifndef N_WIDTH_1
#define N_WIDTH_1 256
#endif
#ifndef EVEN_N_1
#define EVEN_N_1 1
#endif
#ifndef ALIGNED_V
#define ALIGNED_V 1
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif

// s[h, m, n] = sum(f32(q[h, m, d]) * f32(k[h, n, d]), d)
// a[h, m, n] = where(n <= m, s[h, m, n] * rsqrt(f32(D)), -inf)
// mx[h, m] = max(a[h, m, n], n)
// p[h, n, m] = exp(a[h, m, n] - mx[h, m])
// l[h, m] = sum(p[h, n, m], n)
extern "C" __global__ void __launch_bounds__(256, 1) causal_0(
    const bf16* __restrict__ q_ptr,
    const bf16* __restrict__ k_ptr,
    float* __restrict__ p_ptr,
    float* __restrict__ l_ptr,
    int M,
    int D,
    int N) {
  constexpr int n_n = 4 * cdiv(N_WIDTH, 64);
  constexpr int d_n = 8 * cdiv(D_WIDTH, 64);
  constexpr int n_n1 = 1 * cdiv(N_WIDTH, 32);
  constexpr int n_n2 = 1 * cdiv(N_WIDTH, 64);
  constexpr int shared_1 = 0 + round_up(64 * D_WIDTH, 1024);
  constexpr int shared_2 = shared_1 + round_up(most(2 * N_WIDTH * D_WIDTH, most(512, 512)), 1024);
  bf16* const q_tile = shared_at<bf16>(0);  // [32][D_WIDTH]
  bf16* const k_tile = shared_at<bf16>(shared_1);  // [N_WIDTH][D_WIDTH]
  float* const part_tile_4 = shared_at<float>(shared_1);  // [4][32]
  float* const part_tile_6 = shared_at<float>(shared_1);  // [4][32]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  const float a_factor = fn::rsqrt(float(D));
  int offs_n[n_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    offs_n[n_i] = thread / 16 * 4 + n_i % 4 + n_i / 4 * 64;
  bool mask_n[n_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
  const int tiles_m = cdiv(M, 32);
  const int h_at = tile / tiles_m;
  const int m_at = tile % tiles_m * 32;
  int offs_m[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    offs_m[m_i] = m_at + thread % 16 + m_i * 16;
  bool mask_m[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    mask_m[m_i] = (offs_m[m_i] < M) | EVEN_M;
  const int offs_m_1 = m_at + thread / 8;
  const bool mask_m_1 = (offs_m_1 < M) | EVEN_M;
  int offs_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    offs_d[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
  bool mask_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
  bf16 q_next[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; d_i += ALIGNED_Q ? 8 : 1)
    load<ALIGNED_Q ? 8 : 1>(
        &q_next[d_i],
        place(q_ptr, h_at * M * D + offs_m_1 * D + offs_d[d_i]),
        mask_m_1 && mask_d[d_i]);
  #pragma unroll
  for (int d_i = 0; d_i < d_n; d_i += 8)
    store<8>(
        &q_tile[swizzle<3, 3, 3>(panel<64>(32, thread / 8,
        thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
        &q_next[d_i]);
  int offs_n_1[n_n1];
  #pragma unroll
  for (int n_i = 0; n_i < n_n1; ++n_i)
    offs_n_1[n_i] = thread / 8 + n_i * 32;
  bool mask_n_1[n_n1];
  #pragma unroll
  for (int n_i = 0; n_i < n_n1; ++n_i)
    mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    offs_d[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
  bf16 k_next[n_n1][d_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n1; ++n_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += ALIGNED_K ? 8 : 1)
      load<ALIGNED_K ? 8 : 1>(
          &k_next[n_i][d_i],
          place(k_ptr, h_at * N * D + offs_n_1[n_i] * D + offs_d[d_i]),
          mask_n_1[n_i] && mask_d[d_i]);
  #pragma unroll
  for (int n_i = 0; n_i < n_n1; ++n_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += 8)
      store<8>(
          &k_tile[swizzle<3, 3, 3>(panel<64>(N_WIDTH, thread / 8 + n_i * 32,
          thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
          &k_next[n_i][d_i]);
  float s[2][n_n];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < n_n; ++n_i)
      s[m_i][n_i] = 0.0f;
  __syncthreads();
  for (int d_issue_1 = 0; d_issue_1 < D_WIDTH; d_issue_1 += 16) {
    bf16 part_1[2][4];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        load<4>(
            &part_1[m_i][d_i],
            &q_tile[swizzle<3, 3, 3>(panel<64>(32, thread % 16 + m_i * 16,
            d_issue_1 + thread / 16 % 4 * 4 + d_i))]);
    bf16 part_3[n_n2][4];
    #pragma unroll
    for (int n_i = 0; n_i < n_n2; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        load<4>(
            &part_3[n_i][d_i],
            &k_tile[swizzle<3, 3, 3>(panel<64>(N_WIDTH, thread % 16 + thread / 64 * 16 + n_i * 64,
            d_issue_1 + thread / 16 % 4 * 4 + d_i))]);
    bf16 part_2[4][n_n2];
    #pragma unroll
    for (int d_i = 0; d_i < 4; ++d_i)
      #pragma unroll
      for (int n_i = 0; n_i < n_n2; ++n_i)
        part_2[d_i][n_i] = part_3[n_i][d_i];
    #pragma unroll
    for (int d_i = 0; d_i < 4; d_i += 4)
      #pragma unroll
      for (int m_i = 0; m_i < 2; m_i += 1)
        #pragma unroll
        for (int n_i = 0; n_i < n_n; n_i += 4)
          mfma_16x16x16(
              s[m_i][n_i], s[m_i][n_i + 1], s[m_i][n_i + 2], s[m_i][n_i + 3],
              part_1[m_i][d_i], part_1[m_i][d_i + 1], part_1[m_i][d_i + 2], part_1[m_i][d_i + 3],
              part_2[d_i][n_i / 4], part_2[d_i + 1][n_i / 4], part_2[d_i + 2][n_i / 4],
              part_2[d_i + 3][n_i / 4]);
  }
  float a[2][n_n];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < n_n; ++n_i)
      a[m_i][n_i] = ((offs_n[n_i] <= offs_m[m_i]) ? s[m_i][n_i] : -kInfinity);
  float part_4[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i) {
    part_4[m_i] = least_of<float>();
    #pragma unroll
    for (int n_i = 0; n_i < n_n; ++n_i)
      part_4[m_i] = fn::maximum(part_4[m_i], (mask_n[n_i] ? a[m_i][n_i] : -kInfinity));
  }
  #pragma unroll
  for (int distance = 16; distance <= 32; distance *= 2)
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      part_4[m_i] = fn::maximum(part_4[m_i], shuffle_xor(part_4[m_i], distance));
  float part_5[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    part_5[m_i] = part_4[m_i];
  __syncthreads();
  if ((thread & 48) == 0)
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      part_tile_4[thread / 64 * 32 + thread % 16 + m_i * 16] = part_5[m_i];
  __syncthreads();
  float part_6[4][2];
  #pragma unroll
  for (int part_i = 0; part_i < 4; ++part_i)
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      part_6[part_i][m_i] = part_tile_4[part_i * 32 + thread % 16 + m_i * 16];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i) {
    part_4[m_i] = least_of<float>();
    #pragma unroll
    for (int part_i = 0; part_i < 4; ++part_i)
      part_4[m_i] = fn::maximum(part_4[m_i], part_6[part_i][m_i]);
  }
  float mx[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    mx[m_i] = part_4[m_i] * a_factor;
  float p[n_n][2];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      p[n_i][m_i] = fn::exp2(a[m_i][n_i] * (a_factor * kLog2E) - mx[m_i] * kLog2E);
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      write(p_ptr, h_at * N * M + offs_n[n_i] * M + offs_m[m_i], mask_n[n_i] && mask_m[m_i], p[n_i][m_i]);
  float l[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i) {
    l[m_i] = 0;
    #pragma unroll
    for (int n_i = 0; n_i < n_n; ++n_i)
      l[m_i] += (mask_n[n_i] ? p[n_i][m_i] : 0.0f);
  }
  #pragma unroll
  for (int distance = 16; distance <= 32; distance *= 2)
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      l[m_i] += shuffle_xor(l[m_i], distance);
  float part_7[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    part_7[m_i] = l[m_i];
  __syncthreads();
  if ((thread & 48) == 0)
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      part_tile_6[thread / 64 * 32 + thread % 16 + m_i * 16] = part_7[m_i];
  __syncthreads();
  float part_8[4][2];
  #pragma unroll
  for (int part_i = 0; part_i < 4; ++part_i)
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      part_8[part_i][m_i] = part_tile_6[part_i * 32 + thread % 16 + m_i * 16];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i) {
    l[m_i] = 0;
    #pragma unroll
    for (int part_i = 0; part_i < 4; ++part_i)
      l[m_i] += part_8[part_i][m_i];
  }
  if ((thread & 240) == 0)
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      write(l_ptr, h_at * M + offs_m[m_i], mask_m[m_i], l[m_i]);
}

// o[h, m, d] = sum(p[h, n, m] * f32(v[h, n, d]), n)
// y[h, m, d] = o[h, m, d] / l[h, m]
extern "C" __global__ void __launch_bounds__(256, 1) causal_1(
    const bf16* __restrict__ v_ptr,
    const float* __restrict__ p_ptr,
    const float* __restrict__ l_ptr,
    bf16* __restrict__ y_ptr,
    int M,
    int D,
    int N) {
  constexpr int d_n = 4 * cdiv(D_WIDTH, 64);
  constexpr int n_n = 4 * cdiv(N_WIDTH_1, 16);
  constexpr int n_n1 = 4 * cdiv(N_WIDTH_1, 256);
  constexpr int d_n1 = 8 * cdiv(D_WIDTH, 32);
  constexpr int d_n2 = 1 * cdiv(D_WIDTH, 64);
  constexpr int shared_1 = 0 + round_up(2 * D_WIDTH * N_WIDTH_1, 1024);
  bf16* const v_tile = shared_at<bf16>(0);  // [D_WIDTH][N_WIDTH_1]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    offs_d[d_i] = thread / 16 * 4 + d_i % 4 + d_i / 4 * 64;
  bool mask_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
  int offs_n[n_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    offs_n[n_i] = thread / 16 % 4 * 4 + n_i % 4 + n_i / 4 * 16;
  bool mask_n[n_n];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N_1;
  const int tiles_m = cdiv(M, 32);
  const int h_at = tile / tiles_m;
  const int m_at = tile % tiles_m * 32;
  int offs_m[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    offs_m[m_i] = m_at + thread % 16 + m_i * 16;
  bool mask_m[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    mask_m[m_i] = (offs_m[m_i] < M) | EVEN_M;
  float p[n_n][2];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      p[n_i][m_i] =
          read(p_ptr, h_at * N * M + offs_n[n_i] * M + offs_m[m_i], mask_n[n_i] && mask_m[m_i]);
  bf16 o_a[n_n][2];
  #pragma unroll
  for (int n_i = 0; n_i < n_n; ++n_i)
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      o_a[n_i][m_i] = bf16(p[n_i][m_i]);
  int offs_n_1[n_n1];
  #pragma unroll
  for (int n_i = 0; n_i < n_n1; ++n_i)
    offs_n_1[n_i] = thread % 64 * 4 + n_i % 4 + n_i / 4 * 256;
  bool mask_n_1[n_n1];
  #pragma unroll
  for (int n_i = 0; n_i < n_n1; ++n_i)
    mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N_1;
  int offs_d_1[d_n1];
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    offs_d_1[d_i] = thread / 64 * 8 + d_i % 8 + d_i / 8 * 32;
  bool mask_d_1[d_n1];
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
  bf16 v_next[n_n1][d_n1];
  #pragma unroll
  for (int n_i = 0; n_i < n_n1; ++n_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_V ? 8 : 1)
      load<ALIGNED_V ? 8 : 1>(
          &v_next[n_i][d_i],
          place(v_ptr, h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i]),
          mask_n_1[n_i] && mask_d_1[d_i]);
  bf16 part_1[d_n1][n_n1];
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    #pragma unroll
    for (int n_i = 0; n_i < n_n1; ++n_i)
      part_1[d_i][n_i] = v_next[n_i][d_i];
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    #pragma unroll
    for (int n_i = 0; n_i < n_n1; n_i += 4)
      store<4>(
          &v_tile[swizzle<3, 3, 3>(panel<64>(D_WIDTH, thread / 64 * 8 + d_i % 8 + d_i / 8 * 32,
          thread % 64 * 4 + n_i % 4 + n_i / 4 * 256))],
          &part_1[d_i][n_i]);
  float o[2][d_n];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i)
      o[m_i][d_i] = 0.0f;
  bf16 part_2[2][n_n];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < n_n; ++n_i)
      part_2[m_i][n_i] = o_a[n_i][m_i];
  __syncthreads();
  #pragma unroll
  for (int n_issue_1 = 0; n_issue_1 < N_WIDTH_1; n_issue_1 += 16) {
    bf16 part_4[d_n2][4];
    #pragma unroll
    for (int d_i = 0; d_i < d_n2; ++d_i)
      #pragma unroll
      for (int n_i = 0; n_i < 4; n_i += 4)
        load<4>(
            &part_4[d_i][n_i],
            &v_tile[swizzle<3, 3, 3>(panel<64>(D_WIDTH, thread % 16 + thread / 64 * 16 + d_i * 64,
            n_issue_1 + thread / 16 % 4 * 4 + n_i))]);
    bf16 part_3[4][d_n2];
    #pragma unroll
    for (int n_i = 0; n_i < 4; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n2; ++d_i)
        part_3[n_i][d_i] = part_4[d_i][n_i];
    #pragma unroll
    for (int n_i = 0; n_i < 4; n_i += 4)
      #pragma unroll
      for (int m_i = 0; m_i < 2; m_i += 1)
        #pragma unroll
        for (int d_i = 0; d_i < d_n; d_i += 4)
          mfma_16x16x16(
              o[m_i][d_i], o[m_i][d_i + 1], o[m_i][d_i + 2], o[m_i][d_i + 3],
              part_2[m_i][n_issue_1 / 16 * 4 + n_i], part_2[m_i][n_issue_1 / 16 * 4 + n_i + 1],
              part_2[m_i][n_issue_1 / 16 * 4 + n_i + 2], part_2[m_i][n_issue_1 / 16 * 4 + n_i + 3],
              part_3[n_i][d_i / 4], part_3[n_i + 1][d_i / 4], part_3[n_i + 2][d_i / 4],
              part_3[n_i + 3][d_i / 4]);
  }
  float l[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    l[m_i] = read(l_ptr, h_at * M + offs_m[m_i], mask_m[m_i]);
  bf16 y[2][d_n];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i)
      y[m_i][d_i] = bf16(o[m_i][d_i] / l[m_i]);
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += ALIGNED_Y ? 4 : 1)
      store<ALIGNED_Y ? 4 : 1>(
          place(y_ptr, h_at * M * D + offs_m[m_i] * D + offs_d[d_i]),
          &y[m_i][d_i],
          mask_m[m_i] && mask_d[d_i]);
}
