// rmsnorm_matmul: Project the RMS-normalised rows of x through w, then gate with SiLU.
// Generated from spec f5929ec91dac39fc and schedule 4d8b2c125423cd7b.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at M = 4096, K = 2048, N = 2048.
#ifndef SIZE_M
#define SIZE_M 4096
#endif
#ifndef SIZE_K
#define SIZE_K 2048
#endif
#ifndef SIZE_N
#define SIZE_N 2048
#endif
#ifndef EVEN_M
#define EVEN_M 1
#endif
#ifndef EVEN_N
#define EVEN_N 1
#endif
#ifndef EVEN_K
#define EVEN_K 1
#endif
#ifndef ALIGNED_W
#define ALIGNED_W 1
#endif
#ifndef ALIGNED_X
#define ALIGNED_X 1
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif

// ss[m] = sum(f32(x[m, k]) ** 2, k)
// r[m] = rsqrt(ss[m] / K + 1e-06)
// acc[m, n] = sum(f32(x[m, k]) * f32(g[k]) * f32(w[k, n]), k)
// y[m, n] = silu(acc[m, n] * r[m])
extern "C" __global__ void __launch_bounds__(256, 1) rmsnorm_matmul_0(
    const bf16* __restrict__ x_ptr,
    const bf16* __restrict__ g_ptr,
    const bf16* __restrict__ w_ptr,
    bf16* __restrict__ y_ptr) {
  constexpr int M = SIZE_M;
  constexpr int K = SIZE_K;
  constexpr int N = SIZE_N;
  bf16* const w_tile = shared_at<bf16>(0);  // [256][64 + 16]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  const int tiles_n = cdiv(N, 256);
  const int m_at = tile / tiles_n * 128;
  const int n_at = tile % tiles_n * 256;
  int offs_m[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    offs_m[m_i] = m_at + thread % 16 + thread / 64 * 16 + m_i * 64;
  bool mask_m[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    mask_m[m_i] = (offs_m[m_i] < M) | EVEN_M;
  int offs_n[64];
  #pragma unroll
  for (int n_i = 0; n_i < 64; ++n_i)
    offs_n[n_i] = n_at + thread / 16 % 4 * 4 + n_i % 4 + n_i / 4 * 16;
  bool mask_n[64];
  #pragma unroll
  for (int n_i = 0; n_i < 64; ++n_i)
    mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
  float ss[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    ss[m_i] = 0.0f;
  float acc[2][64];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 64; ++n_i)
      acc[m_i][n_i] = 0.0f;
  int offs_n_1[16];
  #pragma unroll
  for (int n_i = 0; n_i < 16; ++n_i)
    offs_n_1[n_i] = n_at + thread / 16 * 8 + n_i % 8 + n_i / 8 * 128;
  bool mask_n_1[16];
  #pragma unroll
  for (int n_i = 0; n_i < 16; ++n_i)
    mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
  int k_at_1 = 0;
  __syncthreads();
  int offs_k_1[4];
  bool mask_k_1[4];
  bf16 w_next[4][16];
  if (k_at_1 < K) {
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      offs_k_1[k_i] = k_at_1 + thread % 16 * 4 + k_i;
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
    #pragma unroll
    for (int k_i = 0; k_i < 4; ++k_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; n_i += ALIGNED_W ? 8 : 1)
        load<ALIGNED_W ? 8 : 1>(
            &w_next[k_i][n_i],
            place(w_ptr, offs_k_1[k_i] * N + offs_n_1[n_i]),
            mask_k_1[k_i] && mask_n_1[n_i]);
  }
  k_at_1 = k_at_1 + 64;
  for (int k_at = 0; k_at < K; k_at += 64) {
    __syncthreads();
    bf16 part_1[16][4];
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        part_1[n_i][k_i] = w_next[k_i][n_i];
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      #pragma unroll
      for (int k_i = 0; k_i < 4; k_i += 4)
        store<4>(
            &w_tile[(thread / 16 * 8 + n_i % 8 + n_i / 8 * 128) * 80 + thread % 16 * 4 + k_i],
            &part_1[n_i][k_i]);
    if (k_at_1 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        offs_k_1[k_i] = k_at_1 + thread % 16 * 4 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        #pragma unroll
        for (int n_i = 0; n_i < 16; n_i += ALIGNED_W ? 8 : 1)
          load<ALIGNED_W ? 8 : 1>(
              &w_next[k_i][n_i],
              place(w_ptr, offs_k_1[k_i] * N + offs_n_1[n_i]),
              mask_k_1[k_i] && mask_n_1[n_i]);
    }
    k_at_1 = k_at_1 + 64;
    int offs_k[16];
    #pragma unroll
    for (int k_i = 0; k_i < 16; ++k_i)
      offs_k[k_i] = k_at + thread / 16 % 4 * 4 + k_i % 4 + k_i / 4 * 16;
    bool mask_k[16];
    #pragma unroll
    for (int k_i = 0; k_i < 16; ++k_i)
      mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
    bf16 x[2][16];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int k_i = 0; k_i < 16; k_i += ALIGNED_X ? 4 : 1)
        load<ALIGNED_X ? 4 : 1>(
            &x[m_i][k_i],
            place(x_ptr, offs_m[m_i] * K + offs_k[k_i]),
            mask_m[m_i] && mask_k[k_i]);
    float ss_term[2][16];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int k_i = 0; k_i < 16; ++k_i)
        ss_term[m_i][k_i] = fn::square(float(x[m_i][k_i]));
    float part_2[2];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i) {
      part_2[m_i] = 0;
      #pragma unroll
      for (int k_i = 0; k_i < 16; ++k_i)
        part_2[m_i] += ss_term[m_i][k_i];
    }
    #pragma unroll
    for (int distance = 16; distance <= 32; distance *= 2)
      #pragma unroll
      for (int m_i = 0; m_i < 2; ++m_i)
        part_2[m_i] += shuffle_xor(part_2[m_i], distance);
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      ss[m_i] += part_2[m_i];
    bf16 g[16];
    #pragma unroll
    for (int k_i = 0; k_i < 16; k_i += ALIGNED_X ? 4 : 1)
      load<ALIGNED_X ? 4 : 1>(&g[k_i], place(g_ptr, offs_k[k_i]), mask_k[k_i]);
    bf16 acc_a[2][16];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      #pragma unroll
      for (int k_i = 0; k_i < 16; ++k_i)
        acc_a[m_i][k_i] = bf16(float(x[m_i][k_i]) * float(g[k_i]));
    __syncthreads();
    #pragma unroll
    for (int k_issue_1 = 0; k_issue_1 < 64; k_issue_1 += 16) {
      bf16 part_4[16][4];
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        #pragma unroll
        for (int k_i = 0; k_i < 4; k_i += 4)
          load<4>(
              &part_4[n_i][k_i],
              &w_tile[(thread % 16 + n_i * 16) * 80 + k_issue_1 + thread / 16 % 4 * 4 + k_i]);
      bf16 part_3[4][16];
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        #pragma unroll
        for (int n_i = 0; n_i < 16; ++n_i)
          part_3[k_i][n_i] = part_4[n_i][k_i];
      #pragma unroll
      for (int k_i = 0; k_i < 4; k_i += 4)
        #pragma unroll
        for (int m_i = 0; m_i < 2; m_i += 1)
          #pragma unroll
          for (int n_i = 0; n_i < 64; n_i += 4)
            mfma_16x16x16(
                acc[m_i][n_i], acc[m_i][n_i + 1], acc[m_i][n_i + 2], acc[m_i][n_i + 3],
                acc_a[m_i][k_issue_1 / 16 * 4 + k_i], acc_a[m_i][k_issue_1 / 16 * 4 + k_i + 1],
                acc_a[m_i][k_issue_1 / 16 * 4 + k_i + 2], acc_a[m_i][k_issue_1 / 16 * 4 + k_i + 3],
                part_3[k_i][n_i / 4], part_3[k_i + 1][n_i / 4], part_3[k_i + 2][n_i / 4],
                part_3[k_i + 3][n_i / 4]);
    }
    interleave<64, 2>();
  }
  float r[2];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    r[m_i] = fn::rsqrt((ss[m_i] / K) + 1e-06f);
  bf16 y[2][64];
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 64; ++n_i)
      y[m_i][n_i] = bf16(fn::silu(acc[m_i][n_i] * r[m_i]));
  #pragma unroll
  for (int m_i = 0; m_i < 2; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 64; n_i += ALIGNED_Y ? 4 : 1)
      store<ALIGNED_Y ? 4 : 1>(
          place(y_ptr, offs_m[m_i] * N + offs_n[n_i]),
          &y[m_i][n_i],
          mask_m[m_i] && mask_n[n_i]);
}
