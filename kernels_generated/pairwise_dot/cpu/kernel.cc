// pairwise_dot: Multiply every two features of a sample; keep the products below the diagonal.
// Generated from spec f1630f2e12cffdbd and schedule 84ee9b01ff943b36.
#include "kernel.h"

// z[b, i, j] = sum(f32(x[b, i, d]) * f32(x[b, j, d]), d)
// y[b, i, j] = where(i > j, z[b, i, j], 0.0)
KERNEL(pairwise_dot_0_launch) {
  const Index B = args.size(0);
  const Index F = args.size(1);
  const Index D = args.size(2);
  const Index b_tiles = tiles(B, 1);
  const Index j_tiles = tiles(F, 32);
  const Index count = b_tiles * j_tiles;
  const Index i_at = 0, i_n = F;
  const Index d_at = 0, d_n = D;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<f16> x_g = args.array<f16>(0);
    const Array<f16> y_g = args.array<f16>(1);
    const Array<float> z_t = arena.take<float>((1) * (F) * (32));
    const Array<f16> x_t = arena.take<f16>((1) * (F) * (D));
    const Array<f16> x_2_t = arena.take<f16>((1) * (32) * (D));
    const Array<f16> y_t = arena.take<f16>((1) * (F) * (32));
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index j_at = rest % j_tiles * 32;
      rest /= j_tiles;
      const Index j_n = least(32, F - j_at);
      const Index b_at = rest % b_tiles * 1;
      const Index b_n = least(1, B - b_at);
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index i_i = 0; i_i < i_n; ++i_i) {
#pragma omp simd
          for (Index d_i = 0; d_i < d_n; ++d_i) {
            x_t((b_i * F + i_i) * D + d_i) = x_g(((b_at + b_i) * F + i_at + i_i) * D + d_at + d_i);
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index j_i = 0; j_i < j_n; ++j_i) {
#pragma omp simd
          for (Index d_i = 0; d_i < d_n; ++d_i) {
            x_2_t((b_i * 32 + j_i) * D + d_i) = x_g(((b_at + b_i) * F + j_at + j_i) * D + d_at + d_i);
          }
        }
      }
      {
        for (Index b_i = 0; b_i < b_n; ++b_i) {
          const Product<float> z_p(i_n, j_n, d_n);
          for (Index i_i = 0; i_i < i_n; ++i_i) {
#pragma omp simd
            for (Index d_i = 0; d_i < d_n; ++d_i) {
              z_p.a(i_i, d_i) = float(x_t((b_i * F + i_i) * D + d_i));
            }
          }
          for (Index j_i = 0; j_i < j_n; ++j_i) {
#pragma omp simd
            for (Index d_i = 0; d_i < d_n; ++d_i) {
              z_p.b(d_i, j_i) = float(x_2_t((b_i * 32 + j_i) * D + d_i));
            }
          }
          z_p.run(z_t, (b_i * F) * 32, 32, false);
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index i_i = 0; i_i < i_n; ++i_i) {
#pragma omp simd
          for (Index j_i = 0; j_i < j_n; ++j_i) {
            y_t((b_i * F + i_i) * 32 + j_i) = f16(((i32(i_at + i_i) > i32(j_at + j_i)) ? z_t((b_i * F + i_i) * 32 + j_i) : 0.0f));
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index i_i = 0; i_i < i_n; ++i_i) {
#pragma omp simd
          for (Index j_i = 0; j_i < j_n; ++j_i) {
            y_g(((b_at + b_i) * F + i_at + i_i) * F + j_at + j_i) = y_t((b_i * F + i_i) * 32 + j_i);
          }
        }
      }
    }
  }
}
