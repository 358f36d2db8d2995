// max_pool2d: Take the maximum of every 3x3 window, two steps apart, padded by 1.
// Generated from spec 8157973b6de032a1 and schedule bcaee3d365547313.
#include "kernel.h"

// y[n, c, p, q] = max(pad(x[n, c, 2 * p + i - 1, 2 * q + j - 1], -inf), i=3, j=3)
KERNEL(max_pool2d_0_launch) {
  const Index N = args.size(0);
  const Index C = args.size(1);
  const Index H = args.size(2);
  const Index W = args.size(3);
  const Index P = args.size(4);
  const Index Q = args.size(5);
  const Index c_tiles = tiles(C, 2);
  const Index count = c_tiles;
  const Index i_at = 0, i_n = 3;
  const Index j_at = 0, j_n = 3;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<float> x_g = args.array<float>(0);
    const Array<float> y_g = args.array<float>(1);
    const Array<float> y_t = arena.take<float>((4) * (2) * (32) * (32));
    const Array<float> x_t = arena.take<float>((4) * (2) * (65) * (65));
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index c_at = rest % c_tiles * 2;
      const Index c_n = least(2, C - c_at);
      {
        const Index n_low = 0, n_high = N;
        for (Index n_at = n_low; n_at < n_high; n_at += 4) {
          const Index n_n = least(4, n_high - n_at);
          {
            const Index p_low = 0, p_high = P;
            for (Index p_at = p_low; p_at < p_high; p_at += 32) {
              const Index p_n = least(32, p_high - p_at);
              {
                const Index q_low = 0, q_high = Q;
                for (Index q_at = q_low; q_at < q_high; q_at += 32) {
                  const Index q_n = least(32, q_high - q_at);
                  for (Index n_i = 0; n_i < n_n; ++n_i) {
                    for (Index c_i = 0; c_i < c_n; ++c_i) {
                      for (Index x_2_i = 0; x_2_i < 2 * (p_n - 1) + (i_n - 1) + 1; ++x_2_i) {
#pragma omp simd
                        for (Index x_3_i = 0; x_3_i < 2 * (q_n - 1) + (j_n - 1) + 1; ++x_3_i) {
                          x_t(((n_i * 2 + c_i) * 65 + x_2_i) * 65 + x_3_i) = in_bounds(n_at + n_i, N) & in_bounds(c_at + c_i, C) & in_bounds(2 * p_at + i_at - 1 + x_2_i, H) & in_bounds(2 * q_at + j_at - 1 + x_3_i, W) ? x_g((((n_at + n_i) * C + c_at + c_i) * H + 2 * p_at + i_at - 1 + x_2_i) * W + 2 * q_at + j_at - 1 + x_3_i) : float(-inf);
                        }
                      }
                    }
                  }
                  for (Index n_i = 0; n_i < n_n; ++n_i) {
                    for (Index c_i = 0; c_i < c_n; ++c_i) {
                      for (Index p_i = 0; p_i < p_n; ++p_i) {
#pragma omp simd
                        for (Index q_i = 0; q_i < q_n; ++q_i) {
                          y_t(((n_i * 2 + c_i) * 32 + p_i) * 32 + q_i) = -fn::kInfinity;
                        }
                      }
                    }
                  }
                  for (Index n_i = 0; n_i < n_n; ++n_i) {
                    for (Index c_i = 0; c_i < c_n; ++c_i) {
                      for (Index p_i = 0; p_i < p_n; ++p_i) {
                        for (Index i_i = 0; i_i < i_n; ++i_i) {
                          for (Index j_i = 0; j_i < j_n; ++j_i) {
#pragma omp simd
                            for (Index q_i = 0; q_i < q_n; ++q_i) {
                              y_t(((n_i * 2 + c_i) * 32 + p_i) * 32 + q_i) = float(fn::maximum(float(y_t(((n_i * 2 + c_i) * 32 + p_i) * 32 + q_i)), x_t(((n_i * 2 + c_i) * 65 + 2 * p_i + i_i) * 65 + 2 * q_i + j_i)));
                            }
                          }
                        }
                      }
                    }
                  }
                  for (Index n_i = 0; n_i < n_n; ++n_i) {
                    for (Index c_i = 0; c_i < c_n; ++c_i) {
                      for (Index p_i = 0; p_i < p_n; ++p_i) {
#pragma omp simd
                        for (Index q_i = 0; q_i < q_n; ++q_i) {
                          y_g((((n_at + n_i) * C + c_at + c_i) * P + p_at + p_i) * Q + q_at + q_i) = y_t(((n_i * 2 + c_i) * 32 + p_i) * 32 + q_i);
                        }
                      }
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}
