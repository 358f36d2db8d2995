// embedding_bag: Add up the rows of table that each bag names; bag b holds idx[offsets[b]:offsets[b + 1]].
// Generated from spec a43c77321c1f0d91 and schedule 82b3b7a35804485d.
#include "kernel.h"

// y[b, d] = sum(table[idx[l], d], l=range(offsets[b], offsets[b + 1]))
KERNEL(embedding_bag_0_launch) {
  const Index V = args.size(0);
  const Index D = args.size(1);
  const Index L = args.size(2);
  const Index B = args.size(3);
  const Index b_tiles = tiles(B, 1);
  const Index count = b_tiles;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<i32> idx_g = args.array<i32>(0);
    const Array<float> table_g = args.array<float>(1);
    const Array<i32> offsets_g = args.array<i32>(2);
    const Array<float> y_g = args.array<float>(3);
    const Array<float> y_t = arena.take<float>((1) * (64));
    const Array<i32> idx_t = arena.take<i32>((8));
    const Array<float> table_t = arena.take<float>((8) * (64));
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index b_at = rest % b_tiles * 1;
      const Index b_n = least(1, B - b_at);
      {
        const Index d_low = 0, d_high = D;
        for (Index d_at = d_low; d_at < d_high; d_at += 64) {
          const Index d_n = least(64, d_high - d_at);
          for (Index b_i = 0; b_i < b_n; ++b_i) {
#pragma omp simd
            for (Index d_i = 0; d_i < d_n; ++d_i) {
              y_t(b_i * 64 + d_i) = 0.0;
            }
          }
          {
            const Index l_low = Index(offsets_g(b_at)), l_high = Index(offsets_g(b_at + 1));
            for (Index l_at = l_low; l_at < l_high; l_at += 8) {
              const Index l_n = least(8, l_high - l_at);
#pragma omp simd
              for (Index l_i = 0; l_i < l_n; ++l_i) {
                idx_t(l_i) = idx_g(l_at + l_i);
              }
              for (Index l_i = 0; l_i < l_n; ++l_i) {
#pragma omp simd
                for (Index d_i = 0; d_i < d_n; ++d_i) {
                  table_t(l_i * 64 + d_i) = table_g(Index(idx_t(l_i)) * D + d_at + d_i);
                }
              }
              for (Index b_i = 0; b_i < b_n; ++b_i) {
                for (Index l_i = 0; l_i < l_n; ++l_i) {
#pragma omp simd
                  for (Index d_i = 0; d_i < d_n; ++d_i) {
                    y_t(b_i * 64 + d_i) = float(float(y_t(b_i * 64 + d_i)) + table_t(l_i * 64 + d_i));
                  }
                }
              }
            }
          }
          for (Index b_i = 0; b_i < b_n; ++b_i) {
#pragma omp simd
            for (Index d_i = 0; d_i < d_n; ++d_i) {
              y_g((b_at + b_i) * D + d_at + d_i) = y_t(b_i * 64 + d_i);
            }
          }
        }
      }
    }
  }
}
