// wukong_fm: Interact the N embeddings of each sample: x times its transpose times y.
// Generated from spec 52228c1f379b2f9f and schedule 3a694c6559fd3d31.
#include "kernel.h"

// t[b, d, k] = sum(f32(x[b, i, d]) * f32(y[b, i, k]), i)
// out[b, n, k] = sum(f32(x[b, n, d]) * t[b, d, k], d)
KERNEL(wukong_fm_0_launch) {
  const Index B = args.size(0);
  const Index N = args.size(1);
  const Index D = args.size(2);
  const Index K = args.size(3);
  const Index b_tiles = tiles(B, 2);
  const Index k_tiles = tiles(K, 64);
  const Index count = b_tiles * k_tiles;
  const Index i_at = 0, i_n = N;
  const Index n_at = 0, n_n = N;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<f16> x_g = args.array<f16>(0);
    const Array<f16> y_g = args.array<f16>(1);
    const Array<f16> out_g = args.array<f16>(2);
    const Array<float> out_t = arena.take<float>((2) * (N) * (64));
    const Array<f16> x_t = arena.take<f16>((2) * (N) * (256));
    const Array<float> out_a_t = arena.take<float>((2) * (256) * (N));
    const Array<float> t_t = arena.take<float>((2) * (256) * (64));
    const Array<f16> x_2_t = arena.take<f16>((2) * (N) * (256));
    const Array<f16> y_t = arena.take<f16>((2) * (N) * (64));
    const Array<f16> out_out_t = arena.take<f16>((2) * (N) * (64));
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index k_at = rest % k_tiles * 64;
      rest /= k_tiles;
      const Index k_n = least(64, K - k_at);
      const Index b_at = rest % b_tiles * 2;
      const Index b_n = least(2, B - b_at);
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
          for (Index k_i = 0; k_i < k_n; ++k_i) {
            out_t((b_i * N + n_i) * 64 + k_i) = 0.0;
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index i_i = 0; i_i < i_n; ++i_i) {
#pragma omp simd
          for (Index k_i = 0; k_i < k_n; ++k_i) {
            y_t((b_i * N + i_i) * 64 + k_i) = y_g(((b_at + b_i) * N + i_at + i_i) * K + k_at + k_i);
          }
        }
      }
      {
        const Index d_low = 0, d_high = D;
        for (Index d_at = d_low; d_at < d_high; d_at += 256) {
          const Index d_n = least(256, d_high - d_at);
          for (Index b_i = 0; b_i < b_n; ++b_i) {
            for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
              for (Index d_i = 0; d_i < d_n; ++d_i) {
                x_t((b_i * N + n_i) * 256 + d_i) = x_g(((b_at + b_i) * N + n_at + n_i) * D + d_at + d_i);
              }
            }
          }
          for (Index b_i = 0; b_i < b_n; ++b_i) {
            for (Index d_i = 0; d_i < d_n; ++d_i) {
#pragma omp simd
              for (Index n_i = 0; n_i < n_n; ++n_i) {
                out_a_t((b_i * 256 + d_i) * N + n_i) = float(x_t((b_i * N + n_i) * 256 + d_i));
              }
            }
          }
          for (Index b_i = 0; b_i < b_n; ++b_i) {
            for (Index i_i = 0; i_i < i_n; ++i_i) {
#pragma omp simd
              for (Index d_i = 0; d_i < d_n; ++d_i) {
                x_2_t((b_i * N + i_i) * 256 + d_i) = x_g(((b_at + b_i) * N + i_at + i_i) * D + d_at + d_i);
              }
            }
          }
          {
            for (Index b_i = 0; b_i < b_n; ++b_i) {
              const Product<float> t_p(d_n, k_n, i_n);
              for (Index i_i = 0; i_i < i_n; ++i_i) {
#pragma omp simd
                for (Index d_i = 0; d_i < d_n; ++d_i) {
                  t_p.a(d_i, i_i) = float(x_2_t((b_i * N + i_i) * 256 + d_i));
                }
              }
              for (Index i_i = 0; i_i < i_n; ++i_i) {
#pragma omp simd
                for (Index k_i = 0; k_i < k_n; ++k_i) {
                  t_p.b(i_i, k_i) = float(y_t((b_i * N + i_i) * 64 + k_i));
                }
              }
              t_p.run(t_t, (b_i * 256) * 64, 64, false);
            }
          }
          {
            for (Index b_i = 0; b_i < b_n; ++b_i) {
              const Product<float> out_p(n_n, k_n, d_n);
              for (Index d_i = 0; d_i < d_n; ++d_i) {
#pragma omp simd
                for (Index n_i = 0; n_i < n_n; ++n_i) {
                  out_p.a(n_i, d_i) = out_a_t((b_i * 256 + d_i) * N + n_i);
                }
              }
              for (Index d_i = 0; d_i < d_n; ++d_i) {
#pragma omp simd
                for (Index k_i = 0; k_i < k_n; ++k_i) {
                  out_p.b(d_i, k_i) = t_t((b_i * 256 + d_i) * 64 + k_i);
                }
              }
              out_p.run(out_t, (b_i * N) * 64, 64, true);
            }
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
          for (Index k_i = 0; k_i < k_n; ++k_i) {
            out_out_t((b_i * N + n_i) * 64 + k_i) = f16(float(f16(out_t((b_i * N + n_i) * 64 + k_i))));
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
          for (Index k_i = 0; k_i < k_n; ++k_i) {
            out_g(((b_at + b_i) * N + n_at + n_i) * K + k_at + k_i) = out_out_t((b_i * N + n_i) * 64 + k_i);
          }
        }
      }
    }
  }
}
