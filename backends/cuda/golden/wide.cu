// wide: Project the softmax of rows through w, all in 64 bits.
// Generated from spec 6364ff7ddce8e350 and schedule 01d14f008559095d.
#include "kernel.h"

// What a build sets; these are the values at M = 64, K = 64, N = 64.
#ifndef EVEN_M
#define EVEN_M 1
#endif
#ifndef EVEN_N
#define EVEN_N 1
#endif
#ifndef K_WIDTH
#define K_WIDTH 64
#endif
#ifndef EVEN_K
#define EVEN_K 1
#endif
#ifndef ALIGNED_X
#define ALIGNED_X 1
#endif

// mx[m] = max(x[m, k], k)
// p[m, k] = exp(x[m, k] - mx[m]) * 0.1
// s[m] = sum(p[m, k], k)
// acc[m, n] = sum(p[m, k] * w[k, n], k)
// y[m, n] = sigmoid(acc[m, n] / (s[m] + eps)) ** 1.5
extern "C" __global__ void __launch_bounds__(128, 1) wide_0(
    const double* __restrict__ x_ptr,
    const double* __restrict__ w_ptr,
    double* __restrict__ y_ptr,
    int M,
    int K,
    int N) {
  constexpr double eps = 1e-10;
  constexpr int k_n = 2 * cdiv(K_WIDTH, 64);
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    offs_k[k_i] = thread % 32 * 2 + k_i % 2 + k_i / 2 * 64;
  bool mask_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
  const int tiles_n = cdiv(N, 8);
  const int m_at = tile / tiles_n * 4;
  const int n_at = tile % tiles_n * 8;
  int offs_m[4];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    offs_m[m_i] = m_at + m_i;
  bool mask_m[4];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    mask_m[m_i] = (offs_m[m_i] < M) | EVEN_M;
  int offs_n[2];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    offs_n[n_i] = n_at + thread / 32 + n_i * 4;
  bool mask_n[2];
  #pragma unroll
  for (int n_i = 0; n_i < 2; ++n_i)
    mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
  double x[4][k_n];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += ALIGNED_X ? 2 : 1)
      load<ALIGNED_X ? 2 : 1>(
          &x[m_i][k_i],
          x_ptr + offs_m[m_i] * K + offs_k[k_i],
          mask_m[m_i] && mask_k[k_i], 0.0f);
  double mx[4];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i) {
    mx[m_i] = least_of<double>();
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      mx[m_i] = fn::larger(mx[m_i], (mask_k[k_i] ? x[m_i][k_i] : -kInfinity));
  }
  #pragma unroll
  for (int distance = 1; distance <= 16; distance *= 2)
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i)
      mx[m_i] = fn::larger(mx[m_i], shuffle_xor(mx[m_i], distance));
  double p[4][k_n];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      p[m_i][k_i] = fn::exp(x[m_i][k_i] - mx[m_i]) * 0.1;
  double w[k_n][2];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      w[k_i][n_i] = mask_k[k_i] && mask_n[n_i] ? w_ptr[offs_k[k_i] * N + offs_n[n_i]] : 0.0f;
  double acc_term[4][2][k_n];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      #pragma unroll
      for (int k_i = 0; k_i < k_n; ++k_i)
        acc_term[m_i][n_i][k_i] = p[m_i][k_i] * w[k_i][n_i];
  double acc[4][2];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i) {
      acc[m_i][n_i] = 0;
      #pragma unroll
      for (int k_i = 0; k_i < k_n; ++k_i)
        acc[m_i][n_i] += (mask_k[k_i] ? acc_term[m_i][n_i][k_i] : 0.0);
    }
  #pragma unroll
  for (int distance = 1; distance <= 16; distance *= 2)
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        acc[m_i][n_i] += shuffle_xor(acc[m_i][n_i], distance);
  double s[4];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i) {
    s[m_i] = 0;
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      s[m_i] += (mask_k[k_i] ? p[m_i][k_i] : 0.0);
  }
  #pragma unroll
  for (int distance = 1; distance <= 16; distance *= 2)
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i)
      s[m_i] += shuffle_xor(s[m_i], distance);
  double y[4][2];
  #pragma unroll
  for (int m_i = 0; m_i < 4; ++m_i)
    #pragma unroll
    for (int n_i = 0; n_i < 2; ++n_i)
      y[m_i][n_i] = fn::pow(fn::sigmoid(acc[m_i][n_i] / (s[m_i] + eps)), 1.5);
  if ((thread & 31) == 0)
    #pragma unroll
    for (int m_i = 0; m_i < 4; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 2; ++n_i)
        if (mask_m[m_i] && mask_n[n_i])
          y_ptr[offs_m[m_i] * N + offs_n[n_i]] = y[m_i][n_i];
}
