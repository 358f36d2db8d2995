// lstm: A layer of an LSTM from states of zeros. x: what inputs and biases add to the gates.
// Generated from spec 4774cccaf14837da and schedule fbe4fa7ecf5cfd2d.
#include "kernel.h"

// What a build sets; these are the values at T = 16, B = 64, H = 128.
#ifndef EVEN_HI_MET_NUMBER
#define EVEN_HI_MET_NUMBER 0
#endif
#ifndef EVEN_B
#define EVEN_B 1
#endif
#ifndef EVEN_J
#define EVEN_J 1
#endif
#ifndef K_WIDTH
#define K_WIDTH 128
#endif
#ifndef EVEN_K
#define EVEN_K 1
#endif
#ifndef ALIGNED_W
#define ALIGNED_W 1
#endif
#ifndef ALIGNED_W_1
#define ALIGNED_W_1 1
#endif
#ifndef ALIGNED_X
#define ALIGNED_X 1
#endif
#ifndef ALIGNED_C
#define ALIGNED_C 1
#endif
#ifndef ALIGNED_H
#define ALIGNED_H 1
#endif

extern "C" __global__ void __launch_bounds__(128, 1) lstm_0_clear(
    int* __restrict__ hi_met_ptr,
    int T) {
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  const int hi_met_number_at = tile * 1024;
  int offs_hi_met_number[8];
  #pragma unroll
  for (int hi_met_number_i = 0; hi_met_number_i < 8; ++hi_met_number_i)
    offs_hi_met_number[hi_met_number_i] = hi_met_number_at + thread * 4 + hi_met_number_i % 4 + hi_met_number_i / 4 * 512;
  bool mask_hi_met_number[8];
  #pragma unroll
  for (int hi_met_number_i = 0; hi_met_number_i < 8; ++hi_met_number_i)
    mask_hi_met_number[hi_met_number_i] = (offs_hi_met_number[hi_met_number_i] < T * 132) | EVEN_HI_MET_NUMBER;
  int hi_met[8];
  #pragma unroll
  for (int hi_met_number_i = 0; hi_met_number_i < 8; ++hi_met_number_i)
    hi_met[hi_met_number_i] = fn::i32_from(0);
  #pragma unroll
  for (int hi_met_number_i = 0; hi_met_number_i < 8; hi_met_number_i += 4)
    store<4>(
        hi_met_ptr + offs_hi_met_number[hi_met_number_i],
        &hi_met[hi_met_number_i],
        mask_hi_met_number[hi_met_number_i]);
}

// hi[t, b, j] = sum(f32(pad(h[t - 1, b, k], 0.0)) * f32(w[0, j, k]), k)
// hf[t, b, j] = sum(f32(pad(h[t - 1, b, k], 0.0)) * f32(w[1, j, k]), k)
// hg[t, b, j] = sum(f32(pad(h[t - 1, b, k], 0.0)) * f32(w[2, j, k]), k)
// ho[t, b, j] = sum(f32(pad(h[t - 1, b, k], 0.0)) * f32(w[3, j, k]), k)
// i[t, b, j] = sigmoid(x[t, b, 0, j] + hi[t, b, j])
// f[t, b, j] = sigmoid(x[t, b, 1, j] + hf[t, b, j])
// g[t, b, j] = tanh(x[t, b, 2, j] + hg[t, b, j])
// o[t, b, j] = sigmoid(x[t, b, 3, j] + ho[t, b, j])
// c[t, b, j] = f[t, b, j] * pad(c[t - 1, b, j], 0.0) + i[t, b, j] * g[t, b, j]
// h[t, b, j] = f16(o[t, b, j] * tanh(c[t, b, j]))
extern "C" __global__ void __launch_bounds__(128, 1) lstm_0(
    const float* __restrict__ x_ptr,
    const f16* __restrict__ w_ptr,
    int* between_blocks hi_met_ptr,
    float* between_blocks c_ptr,
    f16* between_blocks h_ptr,
    int T,
    int B,
    int H) {
  constexpr int k_n = 8 * cdiv(K_WIDTH, 128);
  constexpr int shared_1 = 0 + round_up(32 * K_WIDTH, 1024);
  constexpr int shared_2 = shared_1 + round_up(32 * K_WIDTH, 1024);
  constexpr int shared_3 = shared_2 + round_up(32 * K_WIDTH, 1024);
  constexpr int shared_4 = shared_3 + round_up(32 * K_WIDTH, 1024);
  constexpr int shared_5 = shared_4 + round_up(32 * K_WIDTH, 1024);
  f16* const w_tile = shared_at<f16>(0);  // [16][K_WIDTH]
  f16* const w_2_tile = shared_at<f16>(shared_1);  // [16][K_WIDTH]
  f16* const w_3_tile = shared_at<f16>(shared_2);  // [16][K_WIDTH]
  f16* const w_4_tile = shared_at<f16>(shared_3);  // [16][K_WIDTH]
  f16* const h_tile = shared_at<f16>(shared_4);  // [16][K_WIDTH]
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  const int tiles_j = cdiv(H, 16);
  const int b_at = tile / tiles_j * 16;
  const int j_at = tile % tiles_j * 16;
  int offs_b[2];
  #pragma unroll
  for (int b_i = 0; b_i < 2; ++b_i)
    offs_b[b_i] = b_at + thread / 4 % 8 + b_i * 8;
  bool mask_b[2];
  #pragma unroll
  for (int b_i = 0; b_i < 2; ++b_i)
    mask_b[b_i] = (offs_b[b_i] < B) | EVEN_B;
  int offs_j[2];
  #pragma unroll
  for (int j_i = 0; j_i < 2; ++j_i)
    offs_j[j_i] = j_at + thread % 4 * 2 + thread / 32 % 2 * 8 + j_i;
  bool mask_j[2];
  #pragma unroll
  for (int j_i = 0; j_i < 2; ++j_i)
    mask_j[j_i] = (offs_j[j_i] < H) | EVEN_J;
  int offs_j_1[2];
  #pragma unroll
  for (int j_i = 0; j_i < 2; ++j_i)
    offs_j_1[j_i] = j_at + thread / 16 + j_i * 8;
  bool mask_j_1[2];
  #pragma unroll
  for (int j_i = 0; j_i < 2; ++j_i)
    mask_j_1[j_i] = (offs_j_1[j_i] < H) | EVEN_J;
  int offs_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    offs_k[k_i] = thread % 16 * 8 + k_i % 8 + k_i / 8 * 128;
  bool mask_k[k_n];
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    mask_k[k_i] = (offs_k[k_i] < H) | EVEN_K;
  #pragma unroll
  for (int j_i = 0; j_i < 2; ++j_i)
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += ALIGNED_W ? 8 : 1)
      copy_async<ALIGNED_W ? 8 : 1>(
          &w_tile[swizzle<3, 3, 3>(panel<64>(16, thread / 16 + j_i * 8,
          thread % 16 * 8 + k_i % 8 + k_i / 8 * 128))],
          w_ptr + H * H + offs_j_1[j_i] * H + offs_k[k_i],
          mask_j_1[j_i] && mask_k[k_i]);
  #pragma unroll
  for (int j_i = 0; j_i < 2; ++j_i)
    offs_j_1[j_i] = j_at + thread / 16 + j_i * 8;
  #pragma unroll
  for (int j_i = 0; j_i < 2; ++j_i)
    mask_j_1[j_i] = (offs_j_1[j_i] < H) | EVEN_J;
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    offs_k[k_i] = thread % 16 * 8 + k_i % 8 + k_i / 8 * 128;
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    mask_k[k_i] = (offs_k[k_i] < H) | EVEN_K;
  #pragma unroll
  for (int j_i = 0; j_i < 2; ++j_i)
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += ALIGNED_W_1 ? 8 : 1)
      copy_async<ALIGNED_W_1 ? 8 : 1>(
          &w_2_tile[swizzle<3, 3, 3>(panel<64>(16, thread / 16 + j_i * 8,
          thread % 16 * 8 + k_i % 8 + k_i / 8 * 128))],
          w_ptr + offs_j_1[j_i] * H + offs_k[k_i],
          mask_j_1[j_i] && mask_k[k_i]);
  #pragma unroll
  for (int j_i = 0; j_i < 2; ++j_i)
    offs_j_1[j_i] = j_at + thread / 16 + j_i * 8;
  #pragma unroll
  for (int j_i = 0; j_i < 2; ++j_i)
    mask_j_1[j_i] = (offs_j_1[j_i] < H) | EVEN_J;
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    offs_k[k_i] = thread % 16 * 8 + k_i % 8 + k_i / 8 * 128;
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    mask_k[k_i] = (offs_k[k_i] < H) | EVEN_K;
  #pragma unroll
  for (int j_i = 0; j_i < 2; ++j_i)
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += ALIGNED_W ? 8 : 1)
      copy_async<ALIGNED_W ? 8 : 1>(
          &w_3_tile[swizzle<3, 3, 3>(panel<64>(16, thread / 16 + j_i * 8,
          thread % 16 * 8 + k_i % 8 + k_i / 8 * 128))],
          w_ptr + 2 * H * H + offs_j_1[j_i] * H + offs_k[k_i],
          mask_j_1[j_i] && mask_k[k_i]);
  #pragma unroll
  for (int j_i = 0; j_i < 2; ++j_i)
    offs_j_1[j_i] = j_at + thread / 16 + j_i * 8;
  #pragma unroll
  for (int j_i = 0; j_i < 2; ++j_i)
    mask_j_1[j_i] = (offs_j_1[j_i] < H) | EVEN_J;
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    offs_k[k_i] = thread % 16 * 8 + k_i % 8 + k_i / 8 * 128;
  #pragma unroll
  for (int k_i = 0; k_i < k_n; ++k_i)
    mask_k[k_i] = (offs_k[k_i] < H) | EVEN_K;
  #pragma unroll
  for (int j_i = 0; j_i < 2; ++j_i)
    #pragma unroll
    for (int k_i = 0; k_i < k_n; k_i += ALIGNED_W ? 8 : 1)
      copy_async<ALIGNED_W ? 8 : 1>(
          &w_4_tile[swizzle<3, 3, 3>(panel<64>(16, thread / 16 + j_i * 8,
          thread % 16 * 8 + k_i % 8 + k_i / 8 * 128))],
          w_ptr + 3 * H * H + offs_j_1[j_i] * H + offs_k[k_i],
          mask_j_1[j_i] && mask_k[k_i]);
  for (int t_step = 0; t_step < T; ++t_step) {
    commit_copies();
    wait_copies<0>();
    const int t_at = t_step;
    float x[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; j_i += ALIGNED_X ? 2 : 1)
        load<ALIGNED_X ? 2 : 1>(
            &x[b_i][j_i],
            x_ptr + t_at * B * 4 * H + H + offs_b[b_i] * 4 * H + offs_j[j_i],
            mask_b[b_i] && mask_j[j_i], 0.0f);
    float x_2[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; j_i += ALIGNED_X ? 2 : 1)
        load<ALIGNED_X ? 2 : 1>(
            &x_2[b_i][j_i],
            x_ptr + t_at * B * 4 * H + offs_b[b_i] * 4 * H + offs_j[j_i],
            mask_b[b_i] && mask_j[j_i], 0.0f);
    float x_3[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; j_i += ALIGNED_X ? 2 : 1)
        load<ALIGNED_X ? 2 : 1>(
            &x_3[b_i][j_i],
            x_ptr + t_at * B * 4 * H + 2 * H + offs_b[b_i] * 4 * H + offs_j[j_i],
            mask_b[b_i] && mask_j[j_i], 0.0f);
    float x_4[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; j_i += ALIGNED_X ? 2 : 1)
        load<ALIGNED_X ? 2 : 1>(
            &x_4[b_i][j_i],
            x_ptr + t_at * B * 4 * H + 3 * H + offs_b[b_i] * 4 * H + offs_j[j_i],
            mask_b[b_i] && mask_j[j_i], 0.0f);
    if (t_step > 0) {
      acquire_all<128>(hi_met_ptr + (t_step - 1) * (cdiv(B, 16) * cdiv(H, 16)) + tile / cdiv(H, 16) * cdiv(H, 16), cdiv(H, 16));
      __syncthreads();
    }
    float c[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; j_i += ALIGNED_C ? 2 : 1)
        load<ALIGNED_C ? 2 : 1>(
            &c[b_i][j_i],
            c_ptr + (t_at - 1) * B * H + offs_b[b_i] * H + offs_j[j_i],
            mask_b[b_i] && mask_j[j_i] && t_at - 1 >= 0 && t_at - 1 < T, 0.0f);
    int offs_b_1[2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      offs_b_1[b_i] = b_at + thread / 16 + b_i * 8;
    bool mask_b_1[2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      mask_b_1[b_i] = (offs_b_1[b_i] < B) | EVEN_B;
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      offs_k[k_i] = thread % 16 * 8 + k_i % 8 + k_i / 8 * 128;
    #pragma unroll
    for (int k_i = 0; k_i < k_n; ++k_i)
      mask_k[k_i] = (offs_k[k_i] < H) | EVEN_K;
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int k_i = 0; k_i < k_n; k_i += ALIGNED_H ? 8 : 1)
        copy_async<ALIGNED_H ? 8 : 1>(
            &h_tile[swizzle<3, 3, 3>(panel<64>(16, thread / 16 + b_i * 8,
            thread % 16 * 8 + k_i % 8 + k_i / 8 * 128))],
            h_ptr + (t_at - 1) * B * H + offs_b_1[b_i] * H + offs_k[k_i],
            mask_b_1[b_i] && mask_k[k_i] && t_at - 1 >= 0 && t_at - 1 < T);
    commit_copies();
    wait_copies<0>();
    float hf[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; ++j_i)
        hf[b_i][j_i] = 0.0f;
    float hi[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; ++j_i)
        hi[b_i][j_i] = 0.0f;
    float hg[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; ++j_i)
        hg[b_i][j_i] = 0.0f;
    float ho[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; ++j_i)
        ho[b_i][j_i] = 0.0f;
    __syncthreads();
    for (int k_issue_1 = 0; k_issue_1 < K_WIDTH; k_issue_1 += 16) {
      f16 part_1[2][4];
      #pragma unroll
      for (int b_i = 0; b_i < 2; b_i += 2)
        #pragma unroll
        for (int k_i = 0; k_i < 4; k_i += 4)
          load_matrices(
              &h_tile[swizzle<3, 3, 3>(panel<64>(16, b_i * 8 + thread % 8 + thread / 16 % 2 * 8,
              k_issue_1 + k_i % 2 + k_i / 2 * 8 + thread / 8 % 2 * 8))],
              part_1[b_i][k_i], part_1[b_i][k_i + 1], part_1[b_i][k_i + 2], part_1[b_i][k_i + 3],
              part_1[b_i + 1][k_i], part_1[b_i + 1][k_i + 1], part_1[b_i + 1][k_i + 2],
              part_1[b_i + 1][k_i + 3]);
      f16 part_2[4];
      #pragma unroll
      for (int k_i = 0; k_i < 4; k_i += 4)
        load_matrices(
            &w_tile[swizzle<3, 3, 3>(panel<64>(16, thread / 32 % 2 * 8 + thread % 8,
            k_issue_1 + k_i % 2 + k_i / 2 * 8 + thread / 8 % 2 * 8))],
            part_2[k_i], part_2[k_i + 1], part_2[k_i + 2], part_2[k_i + 3]);
      f16 part_4[4];
      #pragma unroll
      for (int k_i = 0; k_i < 4; k_i += 4)
        load_matrices(
            &w_2_tile[swizzle<3, 3, 3>(panel<64>(16, thread / 32 % 2 * 8 + thread % 8,
            k_issue_1 + k_i % 2 + k_i / 2 * 8 + thread / 8 % 2 * 8))],
            part_4[k_i], part_4[k_i + 1], part_4[k_i + 2], part_4[k_i + 3]);
      f16 part_6[4];
      #pragma unroll
      for (int k_i = 0; k_i < 4; k_i += 4)
        load_matrices(
            &w_3_tile[swizzle<3, 3, 3>(panel<64>(16, thread / 32 % 2 * 8 + thread % 8,
            k_issue_1 + k_i % 2 + k_i / 2 * 8 + thread / 8 % 2 * 8))],
            part_6[k_i], part_6[k_i + 1], part_6[k_i + 2], part_6[k_i + 3]);
      f16 part_8[4];
      #pragma unroll
      for (int k_i = 0; k_i < 4; k_i += 4)
        load_matrices(
            &w_4_tile[swizzle<3, 3, 3>(panel<64>(16, thread / 32 % 2 * 8 + thread % 8,
            k_issue_1 + k_i % 2 + k_i / 2 * 8 + thread / 8 % 2 * 8))],
            part_8[k_i], part_8[k_i + 1], part_8[k_i + 2], part_8[k_i + 3]);
      #pragma unroll
      for (int k_i = 0; k_i < 4; k_i += 4)
        #pragma unroll
        for (int b_i = 0; b_i < 2; b_i += 2)
          #pragma unroll
          for (int j_i = 0; j_i < 2; j_i += 2)
            mma_m16n8k16(
                hf[b_i][j_i], hf[b_i][j_i + 1], hf[b_i + 1][j_i], hf[b_i + 1][j_i + 1],
                part_1[b_i][k_i], part_1[b_i][k_i + 1], part_1[b_i + 1][k_i],
                part_1[b_i + 1][k_i + 1], part_1[b_i][k_i + 2], part_1[b_i][k_i + 3],
                part_1[b_i + 1][k_i + 2], part_1[b_i + 1][k_i + 3],
                part_2[k_i], part_2[k_i + 1], part_2[k_i + 2], part_2[k_i + 3]);
      #pragma unroll
      for (int k_i = 0; k_i < 4; k_i += 4)
        #pragma unroll
        for (int b_i = 0; b_i < 2; b_i += 2)
          #pragma unroll
          for (int j_i = 0; j_i < 2; j_i += 2)
            mma_m16n8k16(
                hi[b_i][j_i], hi[b_i][j_i + 1], hi[b_i + 1][j_i], hi[b_i + 1][j_i + 1],
                part_1[b_i][k_i], part_1[b_i][k_i + 1], part_1[b_i + 1][k_i],
                part_1[b_i + 1][k_i + 1], part_1[b_i][k_i + 2], part_1[b_i][k_i + 3],
                part_1[b_i + 1][k_i + 2], part_1[b_i + 1][k_i + 3],
                part_4[k_i], part_4[k_i + 1], part_4[k_i + 2], part_4[k_i + 3]);
      #pragma unroll
      for (int k_i = 0; k_i < 4; k_i += 4)
        #pragma unroll
        for (int b_i = 0; b_i < 2; b_i += 2)
          #pragma unroll
          for (int j_i = 0; j_i < 2; j_i += 2)
            mma_m16n8k16(
                hg[b_i][j_i], hg[b_i][j_i + 1], hg[b_i + 1][j_i], hg[b_i + 1][j_i + 1],
                part_1[b_i][k_i], part_1[b_i][k_i + 1], part_1[b_i + 1][k_i],
                part_1[b_i + 1][k_i + 1], part_1[b_i][k_i + 2], part_1[b_i][k_i + 3],
                part_1[b_i + 1][k_i + 2], part_1[b_i + 1][k_i + 3],
                part_6[k_i], part_6[k_i + 1], part_6[k_i + 2], part_6[k_i + 3]);
      #pragma unroll
      for (int k_i = 0; k_i < 4; k_i += 4)
        #pragma unroll
        for (int b_i = 0; b_i < 2; b_i += 2)
          #pragma unroll
          for (int j_i = 0; j_i < 2; j_i += 2)
            mma_m16n8k16(
                ho[b_i][j_i], ho[b_i][j_i + 1], ho[b_i + 1][j_i], ho[b_i + 1][j_i + 1],
                part_1[b_i][k_i], part_1[b_i][k_i + 1], part_1[b_i + 1][k_i],
                part_1[b_i + 1][k_i + 1], part_1[b_i][k_i + 2], part_1[b_i][k_i + 3],
                part_1[b_i + 1][k_i + 2], part_1[b_i + 1][k_i + 3],
                part_8[k_i], part_8[k_i + 1], part_8[k_i + 2], part_8[k_i + 3]);
    }
    float f[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; ++j_i)
        f[b_i][j_i] = fn::sigmoid(x[b_i][j_i] + hf[b_i][j_i]);
    float i[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; ++j_i)
        i[b_i][j_i] = fn::sigmoid(x_2[b_i][j_i] + hi[b_i][j_i]);
    float g[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; ++j_i)
        g[b_i][j_i] = fn::tanh(x_3[b_i][j_i] + hg[b_i][j_i]);
    float c_2[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; ++j_i)
        c_2[b_i][j_i] = (f[b_i][j_i] * c[b_i][j_i]) + (i[b_i][j_i] * g[b_i][j_i]);
    if ((thread & 64) == 0)
      #pragma unroll
      for (int b_i = 0; b_i < 2; ++b_i)
        #pragma unroll
        for (int j_i = 0; j_i < 2; j_i += ALIGNED_C ? 2 : 1)
          store<ALIGNED_C ? 2 : 1>(
              c_ptr + t_at * B * H + offs_b[b_i] * H + offs_j[j_i],
              &c_2[b_i][j_i],
              mask_b[b_i] && mask_j[j_i]);
    float o[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; ++j_i)
        o[b_i][j_i] = fn::sigmoid(x_4[b_i][j_i] + ho[b_i][j_i]);
    float h_2[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; ++j_i)
        h_2[b_i][j_i] = float(f16(o[b_i][j_i] * fn::tanh(c_2[b_i][j_i])));
    f16 h_out[2][2];
    #pragma unroll
    for (int b_i = 0; b_i < 2; ++b_i)
      #pragma unroll
      for (int j_i = 0; j_i < 2; ++j_i)
        h_out[b_i][j_i] = f16(h_2[b_i][j_i]);
    if ((thread & 64) == 0)
      #pragma unroll
      for (int b_i = 0; b_i < 2; ++b_i)
        #pragma unroll
        for (int j_i = 0; j_i < 2; j_i += ALIGNED_C ? 2 : 1)
          store<ALIGNED_C ? 2 : 1>(
              h_ptr + t_at * B * H + offs_b[b_i] * H + offs_j[j_i],
              &h_out[b_i][j_i],
              mask_b[b_i] && mask_j[j_i]);
    __syncthreads();
    if (thread == 0) {
      fence_device();
      raise_flag(hi_met_ptr + t_step * (cdiv(B, 16) * cdiv(H, 16)) + tile);
    }
  }
}
