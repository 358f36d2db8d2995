// conv: Convolve images with channels last, in steps of 2, padded by 1.
// Generated from spec 72b944386bd2b755 and schedule 2be3ff6f31b1ccac.
#include "kernel.h"

// What a build sets; these are the values at B = 4, H = 64, W = 64, C = 64, O = 128, P = 32, Q = 32.
#ifndef EVEN_P
#define EVEN_P 1
#endif
#ifndef EVEN_Q
#define EVEN_Q 1
#endif
#ifndef EVEN_O
#define EVEN_O 1
#endif
#ifndef EVEN_C
#define EVEN_C 1
#endif
#ifndef BULK
#define BULK 1
#endif
#ifndef CLUSTER_O
#define CLUSTER_O 2
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

// acc[b, p, q, o] = sum(f32(pad(x[b, 2 * p + i - 1, 2 * q + j - 1, c], 0.0)) * f32(w[i, j, c, o]),
//     i, j, c)
// y[b, p, q, o] = acc[b, p, q, o]
extern "C" __global__ void __launch_bounds__(256, 1) conv_0(
    const bf16* __restrict__ x_ptr,
    const bf16* __restrict__ w_ptr,
    bf16* __restrict__ y_ptr,
    const __grid_constant__ TensorMap w_map,
    const __grid_constant__ TensorMap x_map,
    int H,
    int W,
    int C,
    int O,
    int P,
    int Q) {
  bf16* const w_tile = shared_at<bf16>(0);  // [3][64][64]
  bf16* const x_tile = shared_at<bf16>(24576);  // [3][4][16][64]
  bf16* const x_tile0 = shared_at<bf16>(24576);  // [3][64][64]
  bf16* const stored_tile_3 = shared_at<bf16>(0);  // [4][16][64 + 8]
  u64* const j_full_1 = shared_at<u64>(49152);  // [3]
  u64* const j_empty_1 = shared_at<u64>(49176);  // [3]
  if (threadIdx.x == 0) {
    init_signals<3>(j_full_1, (BULK ? 1 : 128));
    init_signals<3>(j_empty_1, 4 * CLUSTER_O);
  }
  __syncthreads();
  if (threadIdx.x >= 128) {  // the threads that fill shared memory
    const int thread = threadIdx.x - 128;
    const int tile = blockIdx.x;
    sync_cluster();
    int j_write_1 = 0;
    int j_write_parity_1 = 1;
    const int tiles_p = cdiv(P, 4);
    const int tiles_q = cdiv(Q, 16);
    const int tiles_o = (cdiv(O, 64) / (CLUSTER_O));
    const int b_at = (tile / (CLUSTER_O)) / (tiles_p * tiles_q * tiles_o);
    const int p_at = (tile / (CLUSTER_O)) / (tiles_q * tiles_o) % tiles_p * 4;
    const int q_at = (tile / (CLUSTER_O)) / tiles_o % tiles_q * 16;
    const int o_at = ((tile / (CLUSTER_O)) % tiles_o * CLUSTER_O + tile % CLUSTER_O) * 64;
    for (int j_step = 0; j_step < cdiv(C, 64) * 9; ++j_step) {
      await(j_empty_1 + j_write_1, j_write_parity_1);
      const int c_at = j_step / 9 * 64;
      const int i_at = j_step / 3 % 3;
      const int j_at = j_step % 3;
      if (BULK) {
        if (thread == 0) {
          expect(j_full_1 + j_write_1, 4096 * 2 + 4096 * 2);
          copy_box(w_tile + j_write_1 * 4096, &w_map, o_at, c_at, j_at, i_at, j_full_1 + j_write_1);
          copy_box<CLUSTER_O>(
              x_tile + j_write_1 * 4096 + tile % CLUSTER_O * (64 / CLUSTER_O) * 64,
              &x_map,
              c_at, q_at * 2 + j_at - 1,
              p_at * 2 + i_at - 1 + tile % CLUSTER_O * (4 / CLUSTER_O) * 2, b_at,
              j_full_1 + j_write_1);
        }
      } else {
        int offs_c[4];
        #pragma unroll
        for (int c_i = 0; c_i < 4; ++c_i)
          offs_c[c_i] = c_at + thread / 8 + c_i * 16;
        bool mask_c[4];
        #pragma unroll
        for (int c_i = 0; c_i < 4; ++c_i)
          mask_c[c_i] = (offs_c[c_i] < C) | EVEN_C;
        int offs_o_1[8];
        #pragma unroll
        for (int o_i = 0; o_i < 8; ++o_i)
          offs_o_1[o_i] = o_at + thread % 8 * 8 + o_i;
        bool mask_o_1[8];
        #pragma unroll
        for (int o_i = 0; o_i < 8; ++o_i)
          mask_o_1[o_i] = (offs_o_1[o_i] < O) | EVEN_O;
        #pragma unroll
        for (int c_i = 0; c_i < 4; ++c_i)
          #pragma unroll
          for (int o_i = 0; o_i < 8; o_i += ALIGNED_W ? 8 : 1)
            copy_async<ALIGNED_W ? 8 : 1>(
                &w_tile[j_write_1 * 4096 + swizzle<3, 3, 3>(panel<64>(64, thread / 8 + c_i * 16,
                thread % 8 * 8 + o_i))],
                w_ptr + i_at * 3 * C * O + j_at * C * O + offs_c[c_i] * O + offs_o_1[o_i],
                mask_c[c_i] && mask_o_1[o_i]);
        int offs_p_1[4];
        #pragma unroll
        for (int p_i = 0; p_i < 4; ++p_i)
          offs_p_1[p_i] = p_at + p_i;
        bool mask_p_1[4];
        #pragma unroll
        for (int p_i = 0; p_i < 4; ++p_i)
          mask_p_1[p_i] = (offs_p_1[p_i] < P) | EVEN_P;
        const int offs_q_1 = q_at + thread / 8;
        const bool mask_q_1 = (offs_q_1 < Q) | EVEN_Q;
        int offs_c_1[8];
        #pragma unroll
        for (int c_i = 0; c_i < 8; ++c_i)
          offs_c_1[c_i] = c_at + thread % 8 * 8 + c_i;
        bool mask_c_1[8];
        #pragma unroll
        for (int c_i = 0; c_i < 8; ++c_i)
          mask_c_1[c_i] = (offs_c_1[c_i] < C) | EVEN_C;
        #pragma unroll
        for (int p_i = 0; p_i < 4; ++p_i)
          #pragma unroll
          for (int c_i = 0; c_i < 8; c_i += ALIGNED_X ? 8 : 1)
            copy_async<ALIGNED_X ? 8 : 1>(
                &x_tile[j_write_1 * 4096 + swizzle<3, 3, 3>(panel<64>(64, p_i * 16 + thread / 8,
                thread % 8 * 8 + c_i))],
                x_ptr + b_at * H * W * C + (offs_p_1[p_i] * 2 + i_at - 1) * W * C + (offs_q_1 * 2 + j_at - 1) * C + offs_c_1[c_i],
                mask_p_1[p_i] && mask_q_1 && mask_c_1[c_i] && offs_p_1[p_i] * 2 + i_at - 1 >= 0 && offs_p_1[p_i] * 2 + i_at - 1 < H && offs_q_1 * 2 + j_at - 1 >= 0 && offs_q_1 * 2 + j_at - 1 < W);
        commit_copies();
        wait_copies<0>();
        fence_shared();
        arrive_thread(j_full_1 + j_write_1);
      }
      j_write_parity_1 = ((j_write_1 == 2) ? 1 - j_write_parity_1 : j_write_parity_1);
      j_write_1 = ((j_write_1 == 2) ? 0 : j_write_1 + 1);
    }
    sync_cluster();
    return;
  }
  const int thread = threadIdx.x;
  const int tile = blockIdx.x;
  sync_cluster();
  int j_read_1 = 0;
  int j_read_parity_1 = 0;
  const int tiles_p = cdiv(P, 4);
  const int tiles_q = cdiv(Q, 16);
  const int tiles_o = (cdiv(O, 64) / (CLUSTER_O));
  const int b_at = (tile / (CLUSTER_O)) / (tiles_p * tiles_q * tiles_o);
  const int p_at = (tile / (CLUSTER_O)) / (tiles_q * tiles_o) % tiles_p * 4;
  const int q_at = (tile / (CLUSTER_O)) / tiles_o % tiles_q * 16;
  const int o_at = ((tile / (CLUSTER_O)) % tiles_o * CLUSTER_O + tile % CLUSTER_O) * 64;
  float acc[2][16];
  #pragma unroll
  for (int q_i = 0; q_i < 2; ++q_i)
    #pragma unroll
    for (int o_i = 0; o_i < 16; ++o_i)
      acc[q_i][o_i] = 0.0f;
  float part_1[2][16];
  #pragma unroll
  for (int q_i = 0; q_i < 2; ++q_i)
    #pragma unroll
    for (int o_i = 0; o_i < 16; ++o_i)
      part_1[0 * 2 + q_i][o_i] = acc[q_i][o_i];
  for (int j_step = 0;;) {
    await(j_full_1 + j_read_1, j_read_parity_1);
    arrive_warpgroup();
    #pragma unroll
    for (int p_q_i = 0; p_q_i < 2; p_q_i += 2)
      #pragma unroll
      for (int o_i = 0; o_i < 16; o_i += 16)
        #pragma unroll
        for (int c_from = 0; c_from < 64; c_from += 16)
          wgmma<64, 0, 1>(
              &part_1[p_q_i][o_i], &part_1[p_q_i + 1][o_i],
              matrix<64>(x_tile0 + j_read_1 * 4096, 64, p_q_i * 8, c_from),
              matrix<64>(w_tile + j_read_1 * 4096, 64, c_from, o_i % 2 + o_i / 2 * 8));
    commit_warpgroup();
    wait_warpgroup<1>();
    if (j_step > 0) {
      arrive_cluster<CLUSTER_O>(j_empty_1 + ((j_read_1 == 0) ? 2 : j_read_1 - 1));
    }
    j_read_parity_1 = ((j_read_1 == 2) ? 1 - j_read_parity_1 : j_read_parity_1);
    j_read_1 = ((j_read_1 == 2) ? 0 : j_read_1 + 1);
    ++j_step;
    if (j_step >= cdiv(C, 64) * 9) break;
  }
  wait_warpgroup<0>();
  arrive_cluster<CLUSTER_O>(j_empty_1 + ((j_read_1 == 0) ? 2 : j_read_1 - 1));
  #pragma unroll
  for (int q_i = 0; q_i < 2; ++q_i)
    #pragma unroll
    for (int o_i = 0; o_i < 16; ++o_i)
      acc[q_i][o_i] = part_1[0 * 2 + q_i][o_i];
  bf16 y[2][16];
  #pragma unroll
  for (int q_i = 0; q_i < 2; ++q_i)
    #pragma unroll
    for (int o_i = 0; o_i < 16; ++o_i)
      y[q_i][o_i] = bf16(acc[q_i][o_i]);
  fence_shared();
  sync_threads<128>();
  #pragma unroll
  for (int q_i = 0; q_i < 2; ++q_i)
    #pragma unroll
    for (int o_i = 0; o_i < 16; o_i += 2)
      store<2>(
          &stored_tile_3[thread / 32 * 1152 + (thread / 4 % 8 + q_i * 8) * 72 + thread % 4 * 2 + o_i % 2 + o_i / 2 * 8],
          &y[q_i][o_i]);
  fence_shared();
  sync_threads<128>();
  bf16 part_2[4][8];
  #pragma unroll
  for (int p_i = 0; p_i < 4; ++p_i)
    #pragma unroll
    for (int o_i = 0; o_i < 8; o_i += 8)
      load<8>(
          &part_2[p_i][o_i],
          &stored_tile_3[p_i * 1152 + thread / 8 * 72 + thread % 8 * 8 + o_i]);
  int offs_p_1[4];
  #pragma unroll
  for (int p_i = 0; p_i < 4; ++p_i)
    offs_p_1[p_i] = p_at + p_i;
  bool mask_p_1[4];
  #pragma unroll
  for (int p_i = 0; p_i < 4; ++p_i)
    mask_p_1[p_i] = (offs_p_1[p_i] < P) | EVEN_P;
  const int offs_q_1 = q_at + thread / 8;
  const bool mask_q_1 = (offs_q_1 < Q) | EVEN_Q;
  int offs_o_1[8];
  #pragma unroll
  for (int o_i = 0; o_i < 8; ++o_i)
    offs_o_1[o_i] = o_at + thread % 8 * 8 + o_i;
  bool mask_o_1[8];
  #pragma unroll
  for (int o_i = 0; o_i < 8; ++o_i)
    mask_o_1[o_i] = (offs_o_1[o_i] < O) | EVEN_O;
  #pragma unroll
  for (int p_i = 0; p_i < 4; ++p_i)
    #pragma unroll
    for (int o_i = 0; o_i < 8; o_i += ALIGNED_Y ? 8 : 1)
      store<ALIGNED_Y ? 8 : 1>(
          y_ptr + b_at * P * Q * O + offs_p_1[p_i] * Q * O + offs_q_1 * O + offs_o_1[o_i],
          &part_2[p_i][o_i],
          mask_p_1[p_i] && mask_q_1 && mask_o_1[o_i]);
  sync_cluster();
}
