// conv2d: Convolve images with 3x3 kernels, padded by 1, and add a bias.
// Generated from spec c28c2ece5cecb63c and schedule ca139bc1e0caaafb.
#include "kernel.h"

// acc[b, o, p, q] = sum(f32(pad(x[b, c, p + i - 1, q + j - 1], 0.0)) * f32(w[o, c, i, j]), c, i, j)
// y[b, o, p, q] = acc[b, o, p, q] + f32(bias[o])
KERNEL(conv2d_0_launch) {
  const Index B = args.size(0);
  const Index C = args.size(1);
  const Index H = args.size(2);
  const Index W = args.size(3);
  const Index O = args.size(4);
  const Index p_tiles = tiles(H, 2);
  const Index count = p_tiles;
  const Index o_at = 0, o_n = O;
  const Index q_at = 0, q_n = W;
  const Index c_at = 0, c_n = C;
  const Index i_at = 0, i_n = 3;
  const Index j_at = 0, j_n = 3;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<f16> x_g = args.array<f16>(0);
    const Array<f16> w_g = args.array<f16>(1);
    const Array<f16> bias_g = args.array<f16>(2);
    const Array<f16> y_g = args.array<f16>(3);
    const Array<float> acc_t = arena.take<float>((8) * (O) * (2) * (W));
    const Array<f16> x_t = arena.take<f16>((8) * (C) * (4) * (2 + W - 1 + 1));
    const Array<f16> w_t = arena.take<f16>((O) * (C) * (3) * (3));
    const Array<f16> bias_t = arena.take<f16>((O));
    const Array<f16> y_t = arena.take<f16>((8) * (O) * (2) * (W));
    const bool first = first_thread();
    for (Index o_i = 0; o_i < o_n; ++o_i) {
      for (Index c_i = 0; c_i < c_n; ++c_i) {
        for (Index i_i = 0; i_i < i_n; ++i_i) {
#pragma omp simd
          for (Index j_i = 0; j_i < j_n; ++j_i) {
            w_t(((o_i * C + c_i) * 3 + i_i) * 3 + j_i) = w_g((((o_at + o_i) * C + c_at + c_i) * 3 + i_at + i_i) * 3 + j_at + j_i);
          }
        }
      }
    }
#pragma omp simd
    for (Index o_i = 0; o_i < o_n; ++o_i) {
      bias_t(o_i) = bias_g(o_at + o_i);
    }
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index p_at = rest % p_tiles * 2;
      const Index p_n = least(2, H - p_at);
      {
        const Index b_low = 0, b_high = B;
        for (Index b_at = b_low; b_at < b_high; b_at += 8) {
          const Index b_n = least(8, b_high - b_at);
          for (Index b_i = 0; b_i < b_n; ++b_i) {
            for (Index c_i = 0; c_i < c_n; ++c_i) {
              for (Index x_2_i = 0; x_2_i < (p_n - 1) + (i_n - 1) + 1; ++x_2_i) {
#pragma omp simd
                for (Index x_3_i = 0; x_3_i < (q_n - 1) + (j_n - 1) + 1; ++x_3_i) {
                  x_t(((b_i * C + c_i) * 4 + x_2_i) * (2 + W - 1 + 1) + x_3_i) = in_bounds(b_at + b_i, B) & in_bounds(c_at + c_i, C) & in_bounds(p_at + i_at - 1 + x_2_i, H) & in_bounds(q_at + j_at - 1 + x_3_i, W) ? x_g((((b_at + b_i) * C + c_at + c_i) * H + p_at + i_at - 1 + x_2_i) * W + q_at + j_at - 1 + x_3_i) : f16(float(0.0));
                }
              }
            }
          }
          {
            const Product<float> acc_p(o_n, b_n * p_n * q_n, c_n * i_n * j_n);
            for (Index o_i = 0; o_i < o_n; ++o_i) {
              for (Index c_i = 0; c_i < c_n; ++c_i) {
                for (Index i_i = 0; i_i < i_n; ++i_i) {
#pragma omp simd
                  for (Index j_i = 0; j_i < j_n; ++j_i) {
                    acc_p.a(o_i, (c_i * i_n + i_i) * j_n + j_i) = float(w_t(((o_i * C + c_i) * 3 + i_i) * 3 + j_i));
                  }
                }
              }
            }
            for (Index b_i = 0; b_i < b_n; ++b_i) {
              for (Index c_i = 0; c_i < c_n; ++c_i) {
                for (Index p_i = 0; p_i < p_n; ++p_i) {
                  for (Index i_i = 0; i_i < i_n; ++i_i) {
                    for (Index q_i = 0; q_i < q_n; ++q_i) {
#pragma omp simd
                      for (Index j_i = 0; j_i < j_n; ++j_i) {
                        acc_p.b((c_i * i_n + i_i) * j_n + j_i, (b_i * p_n + p_i) * q_n + q_i) = float(x_t(((b_i * C + c_i) * 4 + p_i + i_i) * (2 + W - 1 + 1) + q_i + j_i));
                      }
                    }
                  }
                }
              }
            }
            acc_p.run();
            for (Index o_i = 0; o_i < o_n; ++o_i) {
              for (Index b_i = 0; b_i < b_n; ++b_i) {
                for (Index p_i = 0; p_i < p_n; ++p_i) {
#pragma omp simd
                  for (Index q_i = 0; q_i < q_n; ++q_i) {
                    acc_t(((b_i * O + o_i) * 2 + p_i) * W + q_i) = acc_p.c(o_i, (b_i * p_n + p_i) * q_n + q_i);
                  }
                }
              }
            }
          }
          for (Index b_i = 0; b_i < b_n; ++b_i) {
            for (Index o_i = 0; o_i < o_n; ++o_i) {
              for (Index p_i = 0; p_i < p_n; ++p_i) {
#pragma omp simd
                for (Index q_i = 0; q_i < q_n; ++q_i) {
                  y_t(((b_i * O + o_i) * 2 + p_i) * W + q_i) = f16((acc_t(((b_i * O + o_i) * 2 + p_i) * W + q_i) + float(bias_t(o_i))));
                }
              }
            }
          }
          for (Index b_i = 0; b_i < b_n; ++b_i) {
            for (Index o_i = 0; o_i < o_n; ++o_i) {
              for (Index p_i = 0; p_i < p_n; ++p_i) {
#pragma omp simd
                for (Index q_i = 0; q_i < q_n; ++q_i) {
                  y_g((((b_at + b_i) * O + o_at + o_i) * H + p_at + p_i) * W + q_at + q_i) = y_t(((b_i * O + o_i) * 2 + p_i) * W + q_i);
                }
              }
            }
          }
        }
      }
    }
  }
}
