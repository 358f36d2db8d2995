// rnn: One layer of a plain recurrent network, from a state of zeros.
// Generated from spec 17bd5e140578b3fd and schedule 33c7af1e7fbc7b16.
#include "kernel.h"

// What a build sets; these are the values at T = 16, B = 8, I = 64, H = 64.
#ifndef J_WIDTH
#define J_WIDTH 64
#endif
#ifndef EVEN_J
#define EVEN_J 1
#endif
#ifndef I_WIDTH
#define I_WIDTH 64
#endif
#ifndef EVEN_I
#define EVEN_I 1
#endif
#ifndef ALIGNED_WI
#define ALIGNED_WI 1
#endif
#ifndef ALIGNED_X
#define ALIGNED_X 1
#endif
#ifndef K_WIDTH
#define K_WIDTH 64
#endif
#ifndef EVEN_K
#define EVEN_K 1
#endif
#ifndef ALIGNED_WH
#define ALIGNED_WH 1
#endif
#ifndef ALIGNED_H
#define ALIGNED_H 1
#endif
#ifndef J_WIDTH_1
#define J_WIDTH_1 64
#endif
#ifndef EVEN_J_1
#define EVEN_J_1 1
#endif

// gx[t, b, j] = sum(x[t, b, i] * wi[j, i], i)
extern "C" __global__ void __launch_bounds__(128, 1) rnn_0(
    const float* __restrict__ x_ptr,
    const float* __restrict__ wi_ptr,
    float* __restrict__ gx_ptr,
    int B,
    int I,
    int H) {
  constexpr int j_n = 1 * cdiv(J_WIDTH, 8);
  constexpr int i_n = 4 * cdiv(I_WIDTH, 64);
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_j[j_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    offs_j[j_i] = thread / 16 + j_i * 8;
  bool mask_j[j_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    mask_j[j_i] = (offs_j[j_i] < H) | EVEN_J;
  int offs_i[i_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    offs_i[i_i] = thread % 16 * 4 + i_i % 4 + i_i / 4 * 64;
  bool mask_i[i_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; ++i_i)
    mask_i[i_i] = (offs_i[i_i] < I) | EVEN_I;
  float wi[j_n][i_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    #pragma unroll
    for (int i_i = 0; i_i < i_n; i_i += ALIGNED_WI ? 4 : 1)
      load<ALIGNED_WI ? 4 : 1>(
          &wi[j_i][i_i],
          wi_ptr + offs_j[j_i] * I + offs_i[i_i],
          mask_j[j_i] && mask_i[i_i], 0.0f);
  const int tiles_b = B;
  const int t_at = tile / tiles_b;
  const int b_at = tile % tiles_b;
  float x[i_n];
  #pragma unroll
  for (int i_i = 0; i_i < i_n; i_i += ALIGNED_X ? 4 : 1)
    load<ALIGNED_X ? 4 : 1>(
        &x[i_i],
        x_ptr + t_at * B * I + b_at * I + offs_i[i_i],
        mask_i[i_i], 0.0f);
  float gx_term[j_n][i_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    #pragma unroll
    for (int i_i = 0; i_i < i_n; ++i_i)
      gx_term[j_i][i_i] = x[i_i] * wi[j_i][i_i];
  float gx[j_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i) {
    gx[j_i] = 0;
    #pragma unroll
    for (int i_i = 0; i_i < i_n; ++i_i)
      gx[j_i] += gx_term[j_i][i_i];
  }
  #pragma unroll
  for (int distance = 1; distance <= 8; distance *= 2)
    #pragma unroll
    for (int j_i = 0; j_i < j_n; ++j_i)
      gx[j_i] += shuffle_xor(gx[j_i], distance);
  if ((thread & 15) == 0)
    #pragma unroll
    for (int j_i = 0; j_i < j_n; ++j_i)
      if (mask_j[j_i])
        gx_ptr[t_at * B * H + b_at * H + offs_j[j_i]] = gx[j_i];
}

// a[t, b, j] = sum(pad(h[t - 1, b, k], 0.0) * wh[j, k], k)
extern "C" __global__ void __launch_bounds__(128, 1) rnn_1(
    const float* __restrict__ wh_ptr,
    float* __restrict__ a_ptr,
    const float* __restrict__ h_ptr,
    int T,
    int B,
    int H,
    int t_at) {
  constexpr int j_n = 1 * cdiv(J_WIDTH, 8);
  constexpr int k_n = 4 * cdiv(K_WIDTH, 64);
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_j[j_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    offs_j[j_i] = thread / 16 + j_i * 8;
  bool mask_j[j_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    mask_j[j_i] = (offs_j[j_i] < H) | EVEN_J;
  int offs_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    offs_k[k_i] = thread % 16 * 4 + k_i % 4 + k_i / 4 * 64;
  bool mask_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    mask_k[k_i] = (offs_k[k_i] < H) | EVEN_K;
  float wh[j_n][k_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += ALIGNED_WH ? 4 : 1)
      load<ALIGNED_WH ? 4 : 1>(
          &wh[j_i][k_i],
          wh_ptr + offs_j[j_i] * H + offs_k[k_i],
          mask_j[j_i] && mask_k[k_i], 0.0f);
  const int b_at = tile;
  float h[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; k_i += ALIGNED_H ? 4 : 1)
    load<ALIGNED_H ? 4 : 1>(
        &h[k_i],
        h_ptr + (t_at - 1) * B * H + b_at * H + offs_k[k_i],
        mask_k[k_i] && t_at - 1 >= 0 && t_at - 1 < T, 0.0f);
  float a_term[j_n][k_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      a_term[j_i][k_i] = h[k_i] * wh[j_i][k_i];
  float a[j_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i) {
    a[j_i] = 0;
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      a[j_i] += a_term[j_i][k_i];
  }
  #pragma unroll
  for (int distance = 1; distance <= 8; distance *= 2)
    #pragma unroll
    for (int j_i = 0; j_i < j_n; ++j_i)
      a[j_i] += shuffle_xor(a[j_i], distance);
  if ((thread & 15) == 0)
    #pragma unroll
    for (int j_i = 0; j_i < j_n; ++j_i)
      if (mask_j[j_i])
        a_ptr[t_at * B * H + b_at * H + offs_j[j_i]] = a[j_i];
}

// h[t, b, j] = tanh(a[t, b, j] + gx[t, b, j] + bias[j])
extern "C" __global__ void __launch_bounds__(128, 1) rnn_2(
    const float* __restrict__ bias_ptr,
    const float* __restrict__ a_ptr,
    const float* __restrict__ gx_ptr,
    float* __restrict__ h_ptr,
    int B,
    int H,
    int t_at) {
  constexpr int j_n = 1 * cdiv(J_WIDTH_1, 64);
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_j[j_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    offs_j[j_i] = thread % 64 + j_i * 64;
  bool mask_j[j_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    mask_j[j_i] = (offs_j[j_i] < H) | EVEN_J_1;
  float bias[j_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    bias[j_i] = mask_j[j_i] ? bias_ptr[offs_j[j_i]] : 0.0f;
  const int b_at = tile;
  float a[j_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    a[j_i] = mask_j[j_i] ? a_ptr[t_at * B * H + b_at * H + offs_j[j_i]] : 0.0f;
  float gx[j_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    gx[j_i] = mask_j[j_i] ? gx_ptr[t_at * B * H + b_at * H + offs_j[j_i]] : 0.0f;
  float h[j_n];
  #pragma unroll
  for (int j_i = 0; j_i < j_n; ++j_i)
    h[j_i] = fn::tanh((a[j_i] + gx[j_i]) + bias[j_i]);
  if ((thread & 64) == 0)
    #pragma unroll
    for (int j_i = 0; j_i < j_n; ++j_i)
      if (mask_j[j_i])
        h_ptr[t_at * B * H + b_at * H + offs_j[j_i]] = h[j_i];
}
