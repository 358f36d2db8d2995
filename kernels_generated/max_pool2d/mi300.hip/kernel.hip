// max_pool2d: Take the maximum of every 3x3 window, two steps apart, padded by 1.
// Generated from spec 8157973b6de032a1 and schedule c2e5bad631910c8b.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at N = 1024, C = 16, H = 56, W = 56.
#ifndef EVEN_P
#define EVEN_P 0
#endif
#ifndef Q_WIDTH
#define Q_WIDTH 32
#endif
#ifndef EVEN_Q
#define EVEN_Q 0
#endif
#ifndef ALIGNED_Y
#define ALIGNED_Y 1
#endif

// y[n, c, p, q] = max(pad(x[n, c, 2 * p + i - 1, 2 * q + j - 1], -inf), i=3, j=3)
extern "C" __global__ void __launch_bounds__(64, 1) max_pool2d_0(
    const float* __restrict__ x_ptr,
    float* __restrict__ y_ptr,
    int C,
    int H,
    int W,
    int P,
    int Q) {
  constexpr int q_n = 1 * cdiv(Q_WIDTH, 32);
  constexpr int q_n1 = 4 * cdiv(Q_WIDTH, 32);
  constexpr int shared_1 = 0 + round_up(64 * (Q_WIDTH + 4), 1024);
  float* const stored_tile = shared_at<float>(0);  // [16][Q_WIDTH + 4]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  int offs_q[q_n];
  #pragma unroll
  for (int q_i = 0; q_i < q_n; ++q_i)
    offs_q[q_i] = thread % 32 + q_i * 32;
  bool mask_q[q_n];
  #pragma unroll
  for (int q_i = 0; q_i < q_n; ++q_i)
    mask_q[q_i] = (offs_q[q_i] < Q) | EVEN_Q;
  const int tiles_c = C;
  const int tiles_p = cdiv(P, 16);
  const int n_at = tile / (tiles_c * tiles_p);
  const int c_at = tile / tiles_p % tiles_c;
  const int p_at = tile % tiles_p * 16;
  int offs_p[8];
  #pragma unroll
  for (int p_i = 0; p_i < 8; ++p_i)
    offs_p[p_i] = p_at + thread / 32 + p_i * 2;
  bool mask_p[8];
  #pragma unroll
  for (int p_i = 0; p_i < 8; ++p_i)
    mask_p[p_i] = (offs_p[p_i] < P) | EVEN_P;
  float y[8][q_n];
  #pragma unroll
  for (int p_i = 0; p_i < 8; ++p_i)
    #pragma unroll
    for (int q_i = 0; q_i < q_n; ++q_i)
      y[p_i][q_i] = -kInfinity;
  for (int i_at = 0; i_at < 3; ++i_at) {
    #pragma unroll
    for (int j_at = 0; j_at < 3; ++j_at) {
      float x[8][q_n];
      #pragma unroll
      for (int p_i = 0; p_i < 8; ++p_i)
        #pragma unroll
        for (int q_i = 0; q_i < q_n; ++q_i)
          x[p_i][q_i] =
              read(x_ptr, n_at * C * H * W + c_at * H * W + (offs_p[p_i] * 2 + i_at - 1) * W + offs_q[q_i] * 2 + j_at - 1, mask_p[p_i] && mask_q[q_i] && offs_p[p_i] * 2 + i_at - 1 >= 0 && offs_p[p_i] * 2 + i_at - 1 < H && offs_q[q_i] * 2 + j_at - 1 >= 0 && offs_q[q_i] * 2 + j_at - 1 < W, -kInfinity);
      #pragma unroll
      for (int p_i = 0; p_i < 8; ++p_i)
        #pragma unroll
        for (int q_i = 0; q_i < q_n; ++q_i)
          y[p_i][q_i] = fn::maximum(y[p_i][q_i], x[p_i][q_i]);
    }
  }
  #pragma unroll
  for (int p_i = 0; p_i < 8; ++p_i)
    #pragma unroll
    for (int q_i = 0; q_i < q_n; ++q_i)
      stored_tile[(thread / 32 + p_i * 2) * (Q_WIDTH + 4) + thread % 32 + q_i * 32] = y[p_i][q_i];
  __syncthreads();
  float part_1[2][q_n1];
  #pragma unroll
  for (int p_i = 0; p_i < 2; ++p_i)
    #pragma unroll
    for (int q_i = 0; q_i < q_n1; ++q_i)
      part_1[p_i][q_i] =
          stored_tile[(thread / 8 + p_i * 8) * (Q_WIDTH + 4) + thread % 8 * 4 + q_i % 4 + q_i / 4 * 32];
  int offs_p_1[2];
  #pragma unroll
  for (int p_i = 0; p_i < 2; ++p_i)
    offs_p_1[p_i] = p_at + thread / 8 + p_i * 8;
  bool mask_p_1[2];
  #pragma unroll
  for (int p_i = 0; p_i < 2; ++p_i)
    mask_p_1[p_i] = (offs_p_1[p_i] < P) | EVEN_P;
  int offs_q_1[q_n1];
  #pragma unroll
  for (int q_i = 0; q_i < q_n1; ++q_i)
    offs_q_1[q_i] = thread % 8 * 4 + q_i % 4 + q_i / 4 * 32;
  bool mask_q_1[q_n1];
  #pragma unroll
  for (int q_i = 0; q_i < q_n1; ++q_i)
    mask_q_1[q_i] = (offs_q_1[q_i] < Q) | EVEN_Q;
  #pragma unroll
  for (int p_i = 0; p_i < 2; ++p_i)
    #pragma unroll
    for (int q_i = 0; q_i < q_n1; q_i += ALIGNED_Y ? 4 : 1)
      store<ALIGNED_Y ? 4 : 1>(
          place(y_ptr, n_at * C * P * Q + c_at * P * Q + offs_p_1[p_i] * Q + offs_q_1[q_i]),
          &part_1[p_i][q_i],
          mask_p_1[p_i] && mask_q_1[q_i]);
}
