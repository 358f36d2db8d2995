// conv1d: Convolve each row with kernels of width 3, padded by 1, and add a bias.
// Generated from spec a9ddf1487adb2982 and schedule 97cc1b19ec3731a3.
#include "kernel.h"

// acc[b, o, l] = sum(f32(pad(x[b, c, l + i - 1], 0.0)) * f32(w[o, c, i]), c, i)
// y[b, o, l] = acc[b, o, l] + f32(bias[o])
KERNEL(conv1d_0_launch) {
  const Index B = args.size(0);
  const Index C = args.size(1);
  const Index L = args.size(2);
  const Index O = args.size(3);
  const Index b_tiles = tiles(B, 2);
  const Index count = b_tiles;
  const Index o_at = 0, o_n = O;
  const Index l_at = 0, l_n = L;
  const Index c_at = 0, c_n = C;
  const Index i_at = 0, i_n = 3;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<f16> x_g = args.array<f16>(0);
    const Array<f16> w_g = args.array<f16>(1);
    const Array<f16> bias_g = args.array<f16>(2);
    const Array<f16> y_g = args.array<f16>(3);
    const Array<float> acc_t = arena.take<float>((2) * (O) * (L));
    const Array<f16> x_t = arena.take<f16>((2) * (C) * (2 + L - 1 + 1));
    const Array<f16> w_t = arena.take<f16>((O) * (C) * (3));
    const Array<f16> bias_t = arena.take<f16>((O));
    const Array<f16> y_t = arena.take<f16>((2) * (O) * (L));
    const bool first = first_thread();
    for (Index o_i = 0; o_i < o_n; ++o_i) {
      for (Index c_i = 0; c_i < c_n; ++c_i) {
#pragma omp simd
        for (Index i_i = 0; i_i < i_n; ++i_i) {
          w_t((o_i * C + c_i) * 3 + i_i) = w_g(((o_at + o_i) * C + c_at + c_i) * 3 + i_at + i_i);
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
      const Index b_at = rest % b_tiles * 2;
      const Index b_n = least(2, B - b_at);
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index c_i = 0; c_i < c_n; ++c_i) {
#pragma omp simd
          for (Index x_2_i = 0; x_2_i < (l_n - 1) + (i_n - 1) + 1; ++x_2_i) {
            x_t((b_i * C + c_i) * (2 + L - 1 + 1) + x_2_i) = in_bounds(b_at + b_i, B) & in_bounds(c_at + c_i, C) & in_bounds(l_at + i_at - 1 + x_2_i, L) ? x_g(((b_at + b_i) * C + c_at + c_i) * L + l_at + i_at - 1 + x_2_i) : f16(float(0.0));
          }
        }
      }
      {
        const Product<float> acc_p(o_n, b_n * l_n, c_n * i_n);
        for (Index o_i = 0; o_i < o_n; ++o_i) {
          for (Index c_i = 0; c_i < c_n; ++c_i) {
#pragma omp simd
            for (Index i_i = 0; i_i < i_n; ++i_i) {
              acc_p.a(o_i, c_i * i_n + i_i) = float(w_t((o_i * C + c_i) * 3 + i_i));
            }
          }
        }
        for (Index b_i = 0; b_i < b_n; ++b_i) {
          for (Index c_i = 0; c_i < c_n; ++c_i) {
            for (Index l_i = 0; l_i < l_n; ++l_i) {
#pragma omp simd
              for (Index i_i = 0; i_i < i_n; ++i_i) {
                acc_p.b(c_i * i_n + i_i, b_i * l_n + l_i) = float(x_t((b_i * C + c_i) * (2 + L - 1 + 1) + l_i + i_i));
              }
            }
          }
        }
        acc_p.run();
        for (Index o_i = 0; o_i < o_n; ++o_i) {
          for (Index b_i = 0; b_i < b_n; ++b_i) {
#pragma omp simd
            for (Index l_i = 0; l_i < l_n; ++l_i) {
              acc_t((b_i * O + o_i) * L + l_i) = acc_p.c(o_i, b_i * l_n + l_i);
            }
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index o_i = 0; o_i < o_n; ++o_i) {
#pragma omp simd
          for (Index l_i = 0; l_i < l_n; ++l_i) {
            y_t((b_i * O + o_i) * L + l_i) = f16((acc_t((b_i * O + o_i) * L + l_i) + float(bias_t(o_i))));
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index o_i = 0; o_i < o_n; ++o_i) {
#pragma omp simd
          for (Index l_i = 0; l_i < l_n; ++l_i) {
            y_g(((b_at + b_i) * O + o_at + o_i) * L + l_at + l_i) = y_t((b_i * O + o_i) * L + l_i);
          }
        }
      }
    }
  }
}
