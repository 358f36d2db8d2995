// matmul_bias_gelu: Multiply two matrices, add a bias to each row and apply GELU.
// Generated from spec 035bab293e63640e and schedule a85c51a1f7f1f307.
#include <hip/hip_runtime.h>
#include "kernel.h"

// What a build sets; these are the values at M = 4096, K = 1024, N = 4096.
#ifndef EVEN_M
#define EVEN_M 1
#endif
#ifndef EVEN_N
#define EVEN_N 1
#endif
#ifndef EVEN_K
#define EVEN_K 1
#endif
#ifndef ALIGNED_X
#define ALIGNED_X 1
#endif
#ifndef ALIGNED_W
#define ALIGNED_W 1
#endif
#ifndef ALIGNED_B
#define ALIGNED_B 1
#endif

// acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)
// y[m, n] = gelu(acc[m, n] + f32(b[n]))
extern "C" __global__ void __launch_bounds__(256, 1) matmul_bias_gelu_0(
    const bf16* __restrict__ x_ptr,
    const bf16* __restrict__ w_ptr,
    const bf16* __restrict__ b_ptr,
    bf16* __restrict__ y_ptr,
    int M,
    int K,
    int N) {
  bf16* const x_tile = shared_at<bf16>(0);  // [2][128][32]
  bf16* const w_tile = shared_at<bf16>(16384);  // [2][256][32]
  const int thread = threadIdx.x;
  for (int tile = blockIdx.x; tile < cdiv(M, 128) * cdiv(N, 256); tile += gridDim.x) {
    const int tiles_n = cdiv(N, 256);
    const int m_at = tile / tiles_n * 128;
    const int n_at = tile % tiles_n * 256;
    int offs_m[8];
    #pragma unroll
    for (int m_i = 0; m_i < 8; ++m_i)
      offs_m[m_i] = m_at + thread % 16 + m_i * 16;
    bool mask_m[8];
    #pragma unroll
    for (int m_i = 0; m_i < 8; ++m_i)
      mask_m[m_i] = (offs_m[m_i] < M) | EVEN_M;
    int offs_n[16];
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      offs_n[n_i] = n_at + thread / 16 * 4 + n_i % 4 + n_i / 4 * 64;
    bool mask_n[16];
    #pragma unroll
    for (int n_i = 0; n_i < 16; ++n_i)
      mask_n[n_i] = (offs_n[n_i] < N) | EVEN_N;
    float acc[8][16];
    #pragma unroll
    for (int m_i = 0; m_i < 8; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        acc[m_i][n_i] = 0.0f;
    int offs_m_1[2];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      offs_m_1[m_i] = m_at + thread / 4 + m_i * 64;
    bool mask_m_1[2];
    #pragma unroll
    for (int m_i = 0; m_i < 2; ++m_i)
      mask_m_1[m_i] = (offs_m_1[m_i] < M) | EVEN_M;
    int offs_n_1[8];
    #pragma unroll
    for (int n_i = 0; n_i < 8; ++n_i)
      offs_n_1[n_i] = n_at + thread / 8 * 8 + n_i;
    bool mask_n_1[8];
    #pragma unroll
    for (int n_i = 0; n_i < 8; ++n_i)
      mask_n_1[n_i] = (offs_n_1[n_i] < N) | EVEN_N;
    int k_at_1 = 0;
    __syncthreads();
    int offs_k[8];
    bool mask_k[8];
    bf16 x_next[2][8];
    int offs_k_1[4];
    bool mask_k_1[4];
    bf16 w_next[4][8];
    bf16 part_1[8][4];
    #pragma unroll
    for (int k_stage_1 = 0; k_stage_1 < 1; ++k_stage_1) {
      if (k_at_1 < K) {
        #pragma unroll
        for (int k_i = 0; k_i < 8; ++k_i)
          offs_k[k_i] = k_at_1 + thread % 4 * 8 + k_i;
        #pragma unroll
        for (int k_i = 0; k_i < 8; ++k_i)
          mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
        #pragma unroll
        for (int m_i = 0; m_i < 2; ++m_i)
          #pragma unroll
          for (int k_i = 0; k_i < 8; k_i += ALIGNED_X ? 8 : 1)
            load<ALIGNED_X ? 8 : 1>(
                &x_next[m_i][k_i],
                place(x_ptr, offs_m_1[m_i] * K + offs_k[k_i]),
                mask_m_1[m_i] && mask_k[k_i]);
        #pragma unroll
        for (int k_i = 0; k_i < 4; ++k_i)
          offs_k_1[k_i] = k_at_1 + thread % 8 * 4 + k_i;
        #pragma unroll
        for (int k_i = 0; k_i < 4; ++k_i)
          mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
        #pragma unroll
        for (int k_i = 0; k_i < 4; ++k_i)
          #pragma unroll
          for (int n_i = 0; n_i < 8; n_i += ALIGNED_W ? 8 : 1)
            load<ALIGNED_W ? 8 : 1>(
                &w_next[k_i][n_i],
                place(w_ptr, offs_k_1[k_i] * N + offs_n_1[n_i]),
                mask_k_1[k_i] && mask_n_1[n_i]);
        #pragma unroll
        for (int m_i = 0; m_i < 2; ++m_i)
          #pragma unroll
          for (int k_i = 0; k_i < 8; k_i += 8)
            store<8>(
                &x_tile[k_stage_1 * 4096 + swizzle<2, 3, 3>(panel<32>(128, thread / 4 + m_i * 64,
                thread % 4 * 8 + k_i))],
                &x_next[m_i][k_i]);
        #pragma unroll
        for (int n_i = 0; n_i < 8; ++n_i)
          #pragma unroll
          for (int k_i = 0; k_i < 4; ++k_i)
            part_1[n_i][k_i] = w_next[k_i][n_i];
        #pragma unroll
        for (int n_i = 0; n_i < 8; ++n_i)
          #pragma unroll
          for (int k_i = 0; k_i < 4; k_i += 4)
            store<4>(
                &w_tile[k_stage_1 * 8192 + swizzle<2, 3, 3>(panel<32>(256, thread / 8 * 8 + n_i,
                thread % 8 * 4 + k_i))],
                &part_1[n_i][k_i]);
      }
      k_at_1 = k_at_1 + 32;
    }
    int k_read_1 = 0;
    int k_write_1 = 1;
    if (k_at_1 < K) {
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        offs_k[k_i] = k_at_1 + thread % 4 * 8 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 8; ++k_i)
        mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int m_i = 0; m_i < 2; ++m_i)
        #pragma unroll
        for (int k_i = 0; k_i < 8; k_i += ALIGNED_X ? 8 : 1)
          load<ALIGNED_X ? 8 : 1>(
              &x_next[m_i][k_i],
              place(x_ptr, offs_m_1[m_i] * K + offs_k[k_i]),
              mask_m_1[m_i] && mask_k[k_i]);
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        offs_k_1[k_i] = k_at_1 + thread % 8 * 4 + k_i;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
      #pragma unroll
      for (int k_i = 0; k_i < 4; ++k_i)
        #pragma unroll
        for (int n_i = 0; n_i < 8; n_i += ALIGNED_W ? 8 : 1)
          load<ALIGNED_W ? 8 : 1>(
              &w_next[k_i][n_i],
              place(w_ptr, offs_k_1[k_i] * N + offs_n_1[n_i]),
              mask_k_1[k_i] && mask_n_1[n_i]);
    }
    k_at_1 = k_at_1 + 32;
    for (int k_at = 0; k_at < K; k_at += 32) {
      __syncthreads();
      if (k_at + 32 < K) {
        #pragma unroll
        for (int m_i = 0; m_i < 2; ++m_i)
          #pragma unroll
          for (int k_i = 0; k_i < 8; k_i += 8)
            store<8>(
                &x_tile[k_write_1 * 4096 + swizzle<2, 3, 3>(panel<32>(128, thread / 4 + m_i * 64,
                thread % 4 * 8 + k_i))],
                &x_next[m_i][k_i]);
        #pragma unroll
        for (int n_i = 0; n_i < 8; ++n_i)
          #pragma unroll
          for (int k_i = 0; k_i < 4; ++k_i)
            part_1[n_i][k_i] = w_next[k_i][n_i];
        #pragma unroll
        for (int n_i = 0; n_i < 8; ++n_i)
          #pragma unroll
          for (int k_i = 0; k_i < 4; k_i += 4)
            store<4>(
                &w_tile[k_write_1 * 8192 + swizzle<2, 3, 3>(panel<32>(256, thread / 8 * 8 + n_i,
                thread % 8 * 4 + k_i))],
                &part_1[n_i][k_i]);
      }
      if (k_at_1 < K) {
        #pragma unroll
        for (int k_i = 0; k_i < 8; ++k_i)
          offs_k[k_i] = k_at_1 + thread % 4 * 8 + k_i;
        #pragma unroll
        for (int k_i = 0; k_i < 8; ++k_i)
          mask_k[k_i] = (offs_k[k_i] < K) | EVEN_K;
        #pragma unroll
        for (int m_i = 0; m_i < 2; ++m_i)
          #pragma unroll
          for (int k_i = 0; k_i < 8; k_i += ALIGNED_X ? 8 : 1)
            load<ALIGNED_X ? 8 : 1>(
                &x_next[m_i][k_i],
                place(x_ptr, offs_m_1[m_i] * K + offs_k[k_i]),
                mask_m_1[m_i] && mask_k[k_i]);
        #pragma unroll
        for (int k_i = 0; k_i < 4; ++k_i)
          offs_k_1[k_i] = k_at_1 + thread % 8 * 4 + k_i;
        #pragma unroll
        for (int k_i = 0; k_i < 4; ++k_i)
          mask_k_1[k_i] = (offs_k_1[k_i] < K) | EVEN_K;
        #pragma unroll
        for (int k_i = 0; k_i < 4; ++k_i)
          #pragma unroll
          for (int n_i = 0; n_i < 8; n_i += ALIGNED_W ? 8 : 1)
            load<ALIGNED_W ? 8 : 1>(
                &w_next[k_i][n_i],
                place(w_ptr, offs_k_1[k_i] * N + offs_n_1[n_i]),
                mask_k_1[k_i] && mask_n_1[n_i]);
      }
      k_at_1 = k_at_1 + 32;
      k_write_1 = ((k_write_1 == 1) ? 0 : k_write_1 + 1);
      #pragma unroll
      for (int k_issue_1 = 0; k_issue_1 < 32; k_issue_1 += 32) {
        bf16 part_2[8][8];
        #pragma unroll
        for (int m_i = 0; m_i < 8; ++m_i)
          #pragma unroll
          for (int k_i = 0; k_i < 8; k_i += 8)
            load<8>(
                &part_2[m_i][k_i],
                &x_tile[k_read_1 * 4096 + swizzle<2, 3, 3>(panel<32>(128, thread % 16 + m_i * 16,
                k_issue_1 + thread / 16 % 4 * 8 + k_i))]);
        bf16 part_4[4][8];
        #pragma unroll
        for (int n_i = 0; n_i < 4; ++n_i)
          #pragma unroll
          for (int k_i = 0; k_i < 8; k_i += 8)
            load<8>(
                &part_4[n_i][k_i],
                &w_tile[k_read_1 * 8192 + swizzle<2, 3, 3>(panel<32>(256,
                thread % 16 + thread / 64 * 16 + n_i * 64,
                k_issue_1 + thread / 16 % 4 * 8 + k_i))]);
        bf16 part_3[8][4];
        #pragma unroll
        for (int k_i = 0; k_i < 8; ++k_i)
          #pragma unroll
          for (int n_i = 0; n_i < 4; ++n_i)
            part_3[k_i][n_i] = part_4[n_i][k_i];
        #pragma unroll
        for (int k_i = 0; k_i < 8; k_i += 8)
          #pragma unroll
          for (int m_i = 0; m_i < 8; m_i += 1)
            #pragma unroll
            for (int n_i = 0; n_i < 16; n_i += 4)
              mfma_16x16x32(
                  acc[m_i][n_i], acc[m_i][n_i + 1], acc[m_i][n_i + 2], acc[m_i][n_i + 3],
                  part_2[m_i][k_i], part_2[m_i][k_i + 1], part_2[m_i][k_i + 2],
                  part_2[m_i][k_i + 3], part_2[m_i][k_i + 4], part_2[m_i][k_i + 5],
                  part_2[m_i][k_i + 6], part_2[m_i][k_i + 7],
                  part_3[k_i][n_i / 4], part_3[k_i + 1][n_i / 4], part_3[k_i + 2][n_i / 4],
                  part_3[k_i + 3][n_i / 4], part_3[k_i + 4][n_i / 4], part_3[k_i + 5][n_i / 4],
                  part_3[k_i + 6][n_i / 4], part_3[k_i + 7][n_i / 4]);
      }
      k_read_1 = ((k_read_1 == 1) ? 0 : k_read_1 + 1);
      interleave<12, 2>();
    }
    bf16 b[16];
    #pragma unroll
    for (int n_i = 0; n_i < 16; n_i += ALIGNED_B ? 4 : 1)
      load<ALIGNED_B ? 4 : 1>(&b[n_i], place(b_ptr, offs_n[n_i]), mask_n[n_i]);
    bf16 y[8][16];
    #pragma unroll
    for (int m_i = 0; m_i < 8; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; ++n_i)
        y[m_i][n_i] = bf16(fn::gelu(acc[m_i][n_i] + float(b[n_i])));
    #pragma unroll
    for (int m_i = 0; m_i < 8; ++m_i)
      #pragma unroll
      for (int n_i = 0; n_i < 16; n_i += ALIGNED_B ? 4 : 1)
        store<ALIGNED_B ? 4 : 1>(
            place(y_ptr, offs_m[m_i] * N + offs_n[n_i]),
            &y[m_i][n_i],
            mask_m[m_i] && mask_n[n_i]);
  }
}
