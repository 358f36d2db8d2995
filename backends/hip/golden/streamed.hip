// causal: Average values by a softmax over the keys up to each query's own place.
// Generated from spec 36ace2157074c073 and schedule b312bb56a204d204.
#include <hip/hip_runtime.h>
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
#ifndef ALIGNED_K
#define ALIGNED_K 1
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
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
    int M,
    int D,
    int N) {
  constexpr int d_n = 4 * cdiv(D_WIDTH, 16);
  constexpr int d_n1 = 8 * cdiv(D_WIDTH, 64);
  constexpr int d_n2 = 1 * cdiv(D_WIDTH, 16);
  constexpr int shared_2 = 16384 + round_up(128 * D_WIDTH, 1024);
  constexpr int shared_3 = shared_2 + round_up(128 * D_WIDTH, 1024);
  constexpr int shared_4 = shared_3 + round_up(256 * D_WIDTH, 1024);
  bf16* const q_tile = shared_at<bf16>(16384);  // [64][D_WIDTH]
  bf16* const k_tile = shared_at<bf16>(shared_2);  // [64][D_WIDTH]
  float* const operand_tile_8 = shared_at<float>(0);  // [64][64]
  float* const o_b_tile = shared_at<float>(shared_3);  // [64][D_WIDTH]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    offs_d[d_i] = thread / 16 % 4 * 4 + d_i % 4 + d_i / 4 * 16;
  int offs_d_1[d_n1];
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    offs_d_1[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
  bool mask_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
  bool mask_d_1[d_n1];
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
  const int tiles_m = cdiv(M, 64);
  const int h_at = tile / tiles_m;
  const int m_at = tile % tiles_m * 64;
  const int offs_m = m_at + thread % 16 + thread / 64 * 16;
  const bool mask_m = (offs_m < M) | EVEN_M;
  float o[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    o[d_i] = 0.0f;
  int offs_m_1[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    offs_m_1[m_i] = m_at + thread / 8 + m_i * 32;
  bool mask_m_1[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    mask_m_1[m_i] = (offs_m_1[m_i] < M) | EVEN_M;
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    offs_d_1[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
  bf16 q_next[2][d_n1];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_Q ? 8 : 1)
      load<ALIGNED_Q ? 8 : 1>(
          &q_next[m_i][d_i],
          place(q_ptr, h_at * M * D + offs_m_1[m_i] * D + offs_d_1[d_i]),
          mask_m_1[m_i] && mask_d_1[d_i]);
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n1; d_i += 8)
      store<8>(
          &q_tile[swizzle<3, 3, 3>(panel<64>(64, thread / 8 + m_i * 32,
          thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
          &q_next[m_i][d_i]);
  float mx = -kInfinity;
  __syncthreads();
  int offs_n[16];
  int offs_n_1[2];
  bool mask_n[16];
  bool mask_n_1[2];
  bf16 k_next[2][d_n1];
  float a[16];
  for (int n_at = 0; n_at < N; n_at += 64) {
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      offs_n[n_i] = n_at + thread / 16 % 4 * 4 + n_i % 4 + n_i / 4 * 16;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      offs_n_1[n_i] = n_at + thread / 8 + n_i * 32;
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      offs_n_1[n_i] = n_at + thread / 8 + n_i * 32;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int d_i = 0; d_i < d_n1; ++d_i)
      offs_d_1[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
    #pragma unroll
    for (int d_i = 0; d_i < d_n1; ++d_i)
      mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_K ? 8 : 1)
        load<ALIGNED_K ? 8 : 1>(
            &k_next[n_i][d_i],
            place(k_ptr, h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i]),
            mask_n_1[n_i] && mask_d_1[d_i]);
    __syncthreads();
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; d_i += 8)
        store<8>(
            &k_tile[swizzle<3, 3, 3>(panel<64>(64, thread / 8 + n_i * 32,
            thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
            &k_next[n_i][d_i]);
    float s_2[16];
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      s_2[n_i] = 0.0f;
    __syncthreads();
    for (int d_issue_1 = 0; d_issue_1 < D_WIDTH; d_issue_1 += 16) {
      bf16 part_1[4];
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        load<4>(
            &part_1[d_i],
            &q_tile[swizzle<3, 3, 3>(panel<64>(64, thread % 16 + thread / 64 * 16,
            d_issue_1 + thread / 16 % 4 * 4 + d_i))]);
      bf16 part_3[4][4];
      #pragma unroll
      for (int n_i = 0; n_i < 4; ++n_i)
        #pragma unroll
        for (int d_i = 0; d_i < 4; d_i += 4)
          load<4>(
              &part_3[n_i][d_i],
              &k_tile[swizzle<3, 3, 3>(panel<64>(64, thread % 16 + n_i * 16,
              d_issue_1 + thread / 16 % 4 * 4 + d_i))]);
      bf16 part_2[4][4];
      #pragma unroll
      for (int d_i = 0; d_i < 4; ++d_i)
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          part_2[d_i][n_i] = part_3[n_i][d_i];
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        #pragma unroll
        for (int n_i = 0; n_i < 16; n_i += 4)
          mfma_16x16x16(
              s_2[n_i], s_2[n_i + 1], s_2[n_i + 2], s_2[n_i + 3],
              part_1[d_i], part_1[d_i + 1], part_1[d_i + 2], part_1[d_i + 3],
              part_2[d_i][n_i / 4], part_2[d_i + 1][n_i / 4], part_2[d_i + 2][n_i / 4],
              part_2[d_i + 3][n_i / 4]);
    }
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      a[n_i] = ((offs_n[n_i] <= offs_m) ? s_2[n_i] * fn::rsqrt(float(D)) : -kInfinity);
    float part_4;
    part_4 = least_of<float>();
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      part_4 = fn::larger(part_4, (mask_n[n_i] ? a[n_i] : -kInfinity));
    #pragma unroll
    for (int distance = 16; distance <= 32; distance *= 2)
      part_4 = fn::larger(part_4, shuffle_xor(part_4, distance));
    mx = fn::larger(mx, part_4);
  }
  __syncthreads();
  float p[16];
  for (int n_at = 0; n_at < N; n_at += 64) {
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      offs_n[n_i] = n_at + thread / 16 % 4 * 4 + n_i % 4 + n_i / 4 * 16;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      offs_n_1[n_i] = n_at + thread / 8 + n_i * 32;
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      offs_n_1[n_i] = n_at + thread / 8 + n_i * 32;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int d_i = 0; d_i < d_n1; ++d_i)
      offs_d_1[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
    #pragma unroll
    for (int d_i = 0; d_i < d_n1; ++d_i)
      mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_K ? 8 : 1)
        load<ALIGNED_K ? 8 : 1>(
            &k_next[n_i][d_i],
            place(k_ptr, h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i]),
            mask_n_1[n_i] && mask_d_1[d_i]);
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; d_i += 8)
        store<8>(
            &k_tile[swizzle<3, 3, 3>(panel<64>(64, thread / 8 + n_i * 32,
            thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
            &k_next[n_i][d_i]);
    float s[16];
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      s[n_i] = 0.0f;
    __syncthreads();
    for (int d_issue_2 = 0; d_issue_2 < D_WIDTH; d_issue_2 += 16) {
      bf16 part_5[4];
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        load<4>(
            &part_5[d_i],
            &q_tile[swizzle<3, 3, 3>(panel<64>(64, thread % 16 + thread / 64 * 16,
            d_issue_2 + thread / 16 % 4 * 4 + d_i))]);
      bf16 part_7[4][4];
      #pragma unroll
      for (int n_i = 0; n_i < 4; ++n_i)
        #pragma unroll
        for (int d_i = 0; d_i < 4; d_i += 4)
          load<4>(
              &part_7[n_i][d_i],
              &k_tile[swizzle<3, 3, 3>(panel<64>(64, thread % 16 + n_i * 16,
              d_issue_2 + thread / 16 % 4 * 4 + d_i))]);
      bf16 part_6[4][4];
      #pragma unroll
      for (int d_i = 0; d_i < 4; ++d_i)
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          part_6[d_i][n_i] = part_7[n_i][d_i];
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        #pragma unroll
        for (int n_i = 0; n_i < 16; n_i += 4)
          mfma_16x16x16(
              s[n_i], s[n_i + 1], s[n_i + 2], s[n_i + 3],
              part_5[d_i], part_5[d_i + 1], part_5[d_i + 2], part_5[d_i + 3],
              part_6[d_i][n_i / 4], part_6[d_i + 1][n_i / 4], part_6[d_i + 2][n_i / 4],
              part_6[d_i + 3][n_i / 4]);
    }
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      a[n_i] = ((offs_n[n_i] <= offs_m) ? s[n_i] * fn::rsqrt(float(D)) : -kInfinity);
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      p[n_i] = fn::exp2(a[n_i] * kLog2E - mx * kLog2E);
    bf16 v[2][d_n1];
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_K ? 8 : 1)
        load<ALIGNED_K ? 8 : 1>(
            &v[n_i][d_i],
            place(v_ptr, h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i]),
            mask_n_1[n_i] && mask_d_1[d_i]);
    float o_b[2][d_n1];
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; ++d_i)
        o_b[n_i][d_i] = float(v[n_i][d_i]);
    float part_8[16];
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      part_8[n_i] = (mask_n[n_i] ? p[n_i] : 0.0f);
    #pragma unroll
    for (int n_i = 0; n_i < 16; n_i += 4)
      store<4>(
          &operand_tile_8[swizzle<3, 2, 3>(panel<32>(64, thread % 16 + thread / 64 * 16,
          thread / 16 % 4 * 4 + n_i % 4 + n_i / 4 * 16))],
          &part_8[n_i]);
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; d_i += 4)
        store<4>(
            &o_b_tile[swizzle<3, 2, 3>(panel<32>(64, thread / 8 + n_i * 32,
            thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
            &o_b[n_i][d_i]);
    __syncthreads();
    for (int n_issue_3 = 0; n_issue_3 < 64; n_issue_3 += 4) {
      float part_9;
      part_9 =
          operand_tile_8[swizzle<3, 2, 3>(panel<32>(64, thread % 16 + thread / 64 * 16, n_issue_3 + thread / 16 % 4))];
      float part_10[d_n2];
      #pragma unroll
      for (int d_i = 0; d_i < d_n2; ++d_i)
        part_10[d_i] =
            o_b_tile[swizzle<3, 2, 3>(panel<32>(64, n_issue_3 + thread / 16 % 4, thread % 16 + d_i * 16))];
      #pragma unroll
      for (int d_i = 0; d_i < d_n; d_i += 4)
        mfma_16x16x4(o[d_i], o[d_i + 1], o[d_i + 2], o[d_i + 3], part_9, part_10[d_i / 4]);
    }
  }
  float l = 0.0f;
  for (int n_at = 0; n_at < N; n_at += 64) {
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      offs_n[n_i] = n_at + thread / 16 % 4 * 4 + n_i % 4 + n_i / 4 * 16;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      offs_n_1[n_i] = n_at + thread / 8 + n_i * 32;
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      offs_n_1[n_i] = n_at + thread / 8 + n_i * 32;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int d_i = 0; d_i < d_n1; ++d_i)
      offs_d_1[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
    #pragma unroll
    for (int d_i = 0; d_i < d_n1; ++d_i)
      mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_K ? 8 : 1)
        load<ALIGNED_K ? 8 : 1>(
            &k_next[n_i][d_i],
            place(k_ptr, h_at * N * D + offs_n_1[n_i] * D + offs_d_1[d_i]),
            mask_n_1[n_i] && mask_d_1[d_i]);
    __syncthreads();
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; d_i += 8)
        store<8>(
            &k_tile[swizzle<3, 3, 3>(panel<64>(64, thread / 8 + n_i * 32,
            thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
            &k_next[n_i][d_i]);
    float s_3[16];
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      s_3[n_i] = 0.0f;
    __syncthreads();
    for (int d_issue_4 = 0; d_issue_4 < D_WIDTH; d_issue_4 += 16) {
      bf16 part_11[4];
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        load<4>(
            &part_11[d_i],
            &q_tile[swizzle<3, 3, 3>(panel<64>(64, thread % 16 + thread / 64 * 16,
            d_issue_4 + thread / 16 % 4 * 4 + d_i))]);
      bf16 part_13[4][4];
      #pragma unroll
      for (int n_i = 0; n_i < 4; ++n_i)
        #pragma unroll
        for (int d_i = 0; d_i < 4; d_i += 4)
          load<4>(
              &part_13[n_i][d_i],
              &k_tile[swizzle<3, 3, 3>(panel<64>(64, thread % 16 + n_i * 16,
              d_issue_4 + thread / 16 % 4 * 4 + d_i))]);
      bf16 part_12[4][4];
      #pragma unroll
      for (int d_i = 0; d_i < 4; ++d_i)
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          part_12[d_i][n_i] = part_13[n_i][d_i];
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        #pragma unroll
        for (int n_i = 0; n_i < 16; n_i += 4)
          mfma_16x16x16(
              s_3[n_i], s_3[n_i + 1], s_3[n_i + 2], s_3[n_i + 3],
              part_11[d_i], part_11[d_i + 1], part_11[d_i + 2], part_11[d_i + 3],
              part_12[d_i][n_i / 4], part_12[d_i + 1][n_i / 4], part_12[d_i + 2][n_i / 4],
              part_12[d_i + 3][n_i / 4]);
    }
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      a[n_i] = ((offs_n[n_i] <= offs_m) ? s_3[n_i] * fn::rsqrt(float(D)) : -kInfinity);
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      p[n_i] = fn::exp2(a[n_i] * kLog2E - mx * kLog2E);
    float part_14;
    part_14 = 0;
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      part_14 += (mask_n[n_i] ? p[n_i] : 0.0f);
    #pragma unroll
    for (int distance = 16; distance <= 32; distance *= 2)
      part_14 += shuffle_xor(part_14, distance);
    l += part_14;
  }
  bf16 y[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    y[d_i] = bf16(o[d_i] / l);
  #pragma unroll
  for (int d_i = 0; d_i < d_n; d_i += ALIGNED_Y ? 4 : 1)
    store<ALIGNED_Y ? 4 : 1>(
        place(y_ptr, h_at * M * D + offs_m * D + offs_d[d_i]),
        &y[d_i],
        mask_m && mask_d[d_i]);
}
