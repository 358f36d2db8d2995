// attention: Average the values v by the softmax of the scaled products of queries and keys.
// Generated from spec 0ff4dd0fe3eb9b35 and schedule 955dfd478aa7de27.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at H = 32, M = 2048, D = 64, N = 2048.
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
#ifndef ALIGNED_V
#define ALIGNED_V 1
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif

// s[h, m, n] = sum(f32(q[h, m, d]) * f32(k[h, n, d]), d)
// a[h, m, n] = s[h, m, n] * rsqrt(f32(D))
// mx[h, m] = max(a[h, m, n], n)
// p[h, m, n] = exp(a[h, m, n] - mx[h, m])
// l[h, m] = sum(p[h, m, n], n)
// o[h, m, d] = sum(p[h, m, n] * f32(v[h, n, d]), n)
// y[h, m, d] = o[h, m, d] / l[h, m]
extern "C" __global__ void __launch_bounds__(256, 1) attention_0(
    const bf16* __restrict__ q_ptr,
    const bf16* __restrict__ k_ptr,
    const bf16* __restrict__ v_ptr,
    bf16* __restrict__ y_ptr,
    int M,
    int D,
    int N) {
  constexpr int d_n = 4 * cdiv(D_WIDTH, 16);
  constexpr int d_n1 = 8 * cdiv(D_WIDTH, 64);
  constexpr int d_n2 = 4 * cdiv(D_WIDTH, 64);
  constexpr int d_n3 = 1 * cdiv(D_WIDTH, 16);
  constexpr int shared_1 = 0 + round_up(512 * D_WIDTH, 1024);
  constexpr int shared_2 = shared_1 + round_up(128 * D_WIDTH, 1024);
  constexpr int shared_3 = shared_2 + round_up(128 * D_WIDTH, 1024);
  bf16* const q_tile = shared_at<bf16>(0);  // [256][D_WIDTH]
  bf16* const k_tile = shared_at<bf16>(shared_1);  // [64][D_WIDTH]
  bf16* const v_tile = shared_at<bf16>(shared_2);  // [D_WIDTH][64]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  const float a_factor = fn::rsqrt(float(D));
  int offs_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    offs_d[d_i] = thread / 16 % 4 * 4 + d_i % 4 + d_i / 4 * 16;
  bool mask_d[d_n];
  #pragma unroll
  for (int d_i = 0; d_i < d_n; ++d_i)
    mask_d[d_i] = (offs_d[d_i] < D) | EVEN_D;
  const int tiles_m = cdiv(M, 256);
  const int h_at = tile / tiles_m;
  const int m_at = tile % tiles_m * 256;
  int offs_m[4];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    offs_m[m_i] = m_at + thread % 16 + thread / 64 * 16 + m_i * 64;
  bool mask_m[4];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    mask_m[m_i] = (offs_m[m_i] < M) | EVEN_M;
  float mx[4];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    mx[m_i] = -1e+38f;
  float l[4];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    l[m_i] = 0.0f;
  float o[4][d_n];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i)
      o[m_i][d_i] = 0.0f;
  int offs_m_2[8];
  #pragma unroll
  for (int m_i = 0; m_i < 8; ++m_i)
    offs_m_2[m_i] = m_at + thread / 8 + m_i * 32;
  bool mask_m_2[8];
  #pragma unroll
  for (int m_i = 0; m_i < 8; ++m_i)
    mask_m_2[m_i] = (offs_m_2[m_i] < M) | EVEN_M;
  int offs_d_1[d_n1];
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    offs_d_1[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
  bool mask_d_1[d_n1];
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
  bf16 q_next[8][d_n1];
  #pragma unroll
  for (int m_i = 0; m_i < 8; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_Q ? 8 : 1)
      load<ALIGNED_Q ? 8 : 1>(
          &q_next[m_i][d_i],
          place(q_ptr, h_at * M * D + offs_m_2[m_i] * D + offs_d_1[d_i]),
          mask_m_2[m_i] && mask_d_1[d_i]);
  #pragma unroll
  for (int m_i = 0; m_i < 8; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n1; d_i += 8)
      store<8>(
          &q_tile[swizzle<3, 3, 3>(panel<64>(256, thread / 8 + m_i * 32,
          thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
          &q_next[m_i][d_i]);
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    offs_d_1[d_i] = thread % 8 * 8 + d_i % 8 + d_i / 8 * 64;
  #pragma unroll
  for (int d_i = 0; d_i < d_n1; ++d_i)
    mask_d_1[d_i] = (offs_d_1[d_i] < D) | EVEN_D;
  int offs_d_2[d_n2];
  #pragma unroll
  for (int d_i = 0; d_i < d_n2; ++d_i)
    offs_d_2[d_i] = thread / 16 * 4 + d_i % 4 + d_i / 4 * 64;
  bool mask_d_2[d_n2];
  #pragma unroll
  for (int d_i = 0; d_i < d_n2; ++d_i)
    mask_d_2[d_i] = (offs_d_2[d_i] < D) | EVEN_D;
  int n_at_1 = 0;
  __syncthreads();
  int offs_n_2[2];
  bool mask_n_2[2];
  bf16 k_next[2][d_n1];
  int offs_n_1[4];
  bool mask_n_1[4];
  bf16 v_next[4][d_n2];
  if (n_at_1 < N) {
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      offs_n_2[n_i] = n_at_1 + thread / 8 + n_i * 32;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      mask_n_2[n_i] = (offs_n_2[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_K ? 8 : 1)
        load<ALIGNED_K ? 8 : 1>(
            &k_next[n_i][d_i],
            place(k_ptr, h_at * N * D + offs_n_2[n_i] * D + offs_d_1[d_i]),
            mask_n_2[n_i] && mask_d_1[d_i]);
    #pragma unroll
    for (int n_i = 0; n_i < 4; ++n_i)
      offs_n_1[n_i] = n_at_1 + thread % 16 * 4 + n_i;
    #pragma unroll
    for (int n_i = 0; n_i < 4; ++n_i)
      mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int n_i = 0; n_i < 4; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n2; d_i += ALIGNED_V ? 4 : 1)
        load<ALIGNED_V ? 4 : 1>(
            &v_next[n_i][d_i],
            place(v_ptr, h_at * N * D + offs_n_1[n_i] * D + offs_d_2[d_i]),
            mask_n_1[n_i] && mask_d_2[d_i]);
  }
  n_at_1 = n_at_1 + 64;
  for (int n_at = 0; n_at < N; n_at += 64) {
    __syncthreads();
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n1; d_i += 8)
        store<8>(
            &k_tile[swizzle<3, 3, 3>(panel<64>(64, thread / 8 + n_i * 32,
            thread % 8 * 8 + d_i % 8 + d_i / 8 * 64))],
            &k_next[n_i][d_i]);
    bf16 part_1[d_n2][4];
    #pragma unroll
    for (int d_i = 0; d_i < d_n2; ++d_i)
      #pragma unroll
      for (int n_i = 0; n_i < 4; ++n_i)
        part_1[d_i][n_i] = v_next[n_i][d_i];
    #pragma unroll
    for (int d_i = 0; d_i < d_n2; ++d_i)
      #pragma unroll
      for (int n_i = 0; n_i < 4; n_i += 4)
        store<4>(
            &v_tile[swizzle<3, 3, 3>(panel<64>(D_WIDTH, thread / 16 * 4 + d_i % 4 + d_i / 4 * 64,
            thread % 16 * 4 + n_i))],
            &part_1[d_i][n_i]);
    if (n_at_1 < N) {
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        offs_n_2[n_i] = n_at_1 + thread / 8 + n_i * 32;
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        mask_n_2[n_i] = (offs_n_2[n_i] < N) | EVEN_N;
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        #pragma unroll
        for (int d_i = 0; d_i < d_n1; d_i += ALIGNED_K ? 8 : 1)
          load<ALIGNED_K ? 8 : 1>(
              &k_next[n_i][d_i],
              place(k_ptr, h_at * N * D + offs_n_2[n_i] * D + offs_d_1[d_i]),
              mask_n_2[n_i] && mask_d_1[d_i]);
      #pragma unroll
      for (int n_i = 0; n_i < 4; ++n_i)
        offs_n_1[n_i] = n_at_1 + thread % 16 * 4 + n_i;
      #pragma unroll
      for (int n_i = 0; n_i < 4; ++n_i)
        mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
      #pragma unroll
      for (int n_i = 0; n_i < 4; ++n_i)
        #pragma unroll
        for (int d_i = 0; d_i < d_n2; d_i += ALIGNED_V ? 4 : 1)
          load<ALIGNED_V ? 4 : 1>(
              &v_next[n_i][d_i],
              place(v_ptr, h_at * N * D + offs_n_1[n_i] * D + offs_d_2[d_i]),
              mask_n_1[n_i] && mask_d_2[d_i]);
    }
    n_at_1 = n_at_1 + 64;
    int offs_n[16];
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      offs_n[n_i] = n_at + thread / 16 % 4 * 4 + n_i % 4 + n_i / 4 * 16;
    #pragma unroll
    for (int n_i = 0; n_i < 4; ++n_i)
      offs_n_1[n_i] = n_at + thread % 16 * 4 + n_i;
    bool mask_n[16];
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
    #pragma unroll
    for (int n_i = 0; n_i < 4; ++n_i)
      mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
    float mx_before[4];
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i)
      mx_before[m_i] = mx[m_i];
    float s[4][16];
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        s[m_i][n_i] = 0.0f;
    __syncthreads();
    for (int d_issue_1 = 0; d_issue_1 < D_WIDTH; d_issue_1 += 16) {
      bf16 part_2[4][4];
      #pragma unroll
      for (int m_i = 0; m_i < 4; ++m_i)
        #pragma unroll
        for (int d_i = 0; d_i < 4; d_i += 4)
          load<4>(
              &part_2[m_i][d_i],
              &q_tile[swizzle<3, 3, 3>(panel<64>(256, thread % 16 + thread / 64 * 16 + m_i * 64,
              d_issue_1 + thread / 16 % 4 * 4 + d_i))]);
      bf16 part_4[4][4];
      #pragma unroll
      for (int n_i = 0; n_i < 4; ++n_i)
        #pragma unroll
        for (int d_i = 0; d_i < 4; d_i += 4)
          load<4>(
              &part_4[n_i][d_i],
              &k_tile[swizzle<3, 3, 3>(panel<64>(64, thread % 16 + n_i * 16,
              d_issue_1 + thread / 16 % 4 * 4 + d_i))]);
      bf16 part_3[4][4];
      #pragma unroll
      for (int d_i = 0; d_i < 4; ++d_i)
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          part_3[d_i][n_i] = part_4[n_i][d_i];
      #pragma unroll
      for (int d_i = 0; d_i < 4; d_i += 4)
        #pragma unroll
        for (int m_i = 0; m_i < 4; m_i += 1)
          #pragma unroll
          for (int n_i = 0; n_i < 16; n_i += 4)
            mfma_16x16x16(
                s[m_i][n_i], s[m_i][n_i + 1], s[m_i][n_i + 2], s[m_i][n_i + 3],
                part_2[m_i][d_i], part_2[m_i][d_i + 1], part_2[m_i][d_i + 2], part_2[m_i][d_i + 3],
                part_3[d_i][n_i / 4], part_3[d_i + 1][n_i / 4], part_3[d_i + 2][n_i / 4],
                part_3[d_i + 3][n_i / 4]);
      interleave<8, 2>();
    }
    float part_5[4];
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i) {
      part_5[m_i] = least_of<float>();
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        part_5[m_i] = fn::larger(part_5[m_i], (mask_n[n_i] ? s[m_i][n_i] : -kInfinity));
    }
    #pragma unroll
    for (int distance = 16; distance <= 32; distance *= 2)
      #pragma unroll
      for (int m_i = 0; m_i < 4; ++m_i)
        part_5[m_i] = fn::larger(part_5[m_i], shuffle_xor(part_5[m_i], distance));
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i)
      mx[m_i] = fn::larger(mx[m_i], (part_5[m_i] * a_factor));
    float mx_scale[4];
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i)
      mx_scale[m_i] = fn::exp(mx_before[m_i] - mx[m_i]);
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i)
      l[m_i] = l[m_i] * mx_scale[m_i];
    float p[4][16];
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        p[m_i][n_i] = fn::exp2(s[m_i][n_i] * (a_factor * kLog2E) - mx[m_i] * kLog2E);
    float part_6[4];
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i) {
      part_6[m_i] = 0;
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        part_6[m_i] += (mask_n[n_i] ? p[m_i][n_i] : 0.0f);
    }
    #pragma unroll
    for (int distance = 16; distance <= 32; distance *= 2)
      #pragma unroll
      for (int m_i = 0; m_i < 4; ++m_i)
        part_6[m_i] += shuffle_xor(part_6[m_i], distance);
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i)
      l[m_i] += part_6[m_i];
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i)
      #pragma unroll
      for (int d_i = 0; d_i < d_n; ++d_i)
        o[m_i][d_i] = o[m_i][d_i] * mx_scale[m_i];
    bf16 o_a[4][16];
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        o_a[m_i][n_i] = bf16(p[m_i][n_i]);
    bf16 part_7[4][16];
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        part_7[m_i][n_i] = (mask_n[n_i] ? o_a[m_i][n_i] : bf16(0.0f));
    #pragma unroll
    for (int n_issue_2 = 0; n_issue_2 < 64; n_issue_2 += 16) {
      bf16 part_9[d_n3][4];
      #pragma unroll
      for (int d_i = 0; d_i < d_n3; ++d_i)
        #pragma unroll
        for (int n_i = 0; n_i < 4; n_i += 4)
          load<4>(
              &part_9[d_i][n_i],
              &v_tile[swizzle<3, 3, 3>(panel<64>(D_WIDTH, thread % 16 + d_i * 16,
              n_issue_2 + thread / 16 % 4 * 4 + n_i))]);
      bf16 part_8[4][d_n3];
      #pragma unroll
      for (int n_i = 0; n_i < 4; ++n_i)
        #pragma unroll
        for (int d_i = 0; d_i < d_n3; ++d_i)
          part_8[n_i][d_i] = part_9[d_i][n_i];
      #pragma unroll
      for (int n_i = 0; n_i < 4; n_i += 4)
        #pragma unroll
        for (int m_i = 0; m_i < 4; m_i += 1)
          #pragma unroll
          for (int d_i = 0; d_i < d_n; d_i += 4)
            mfma_16x16x16(
                o[m_i][d_i], o[m_i][d_i + 1], o[m_i][d_i + 2], o[m_i][d_i + 3],
                part_7[m_i][n_issue_2 / 16 * 4 + n_i], part_7[m_i][n_issue_2 / 16 * 4 + n_i + 1],
                part_7[m_i][n_issue_2 / 16 * 4 + n_i + 2],
                part_7[m_i][n_issue_2 / 16 * 4 + n_i + 3],
                part_8[n_i][d_i / 4], part_8[n_i + 1][d_i / 4], part_8[n_i + 2][d_i / 4],
                part_8[n_i + 3][d_i / 4]);
    }
  }
  bf16 y[4][d_n];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; ++d_i)
      y[m_i][d_i] = bf16(o[m_i][d_i] / l[m_i]);
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    #pragma unroll
    for (int d_i = 0; d_i < d_n; d_i += ALIGNED_Y ? 4 : 1)
      store<ALIGNED_Y ? 4 : 1>(
          place(y_ptr, h_at * M * D + offs_m[m_i] * D + offs_d[d_i]),
          &y[m_i][d_i],
          mask_m[m_i] && mask_d[d_i]);
}
