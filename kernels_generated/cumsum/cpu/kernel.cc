// cumsum: Add up each row from its start to every place.
// Generated from spec 66c4a252b85db64e and schedule acb4cdaf2f535730.
#include "kernel.h"

// y[m, k] = cumsum(x[m, k], k)
KERNEL(cumsum_0_launch) {
  const Index M = args.size(0);
  const Index K = args.size(1);
  const Index m_tiles = tiles(M, 8);
  const Index count = m_tiles;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<float> x_g = args.array<float>(0);
    const Array<float> y_g = args.array<float>(1);
    const Array<float> y_carry_t = arena.take<float>((8));
    const Array<float> x_t = arena.take<float>((8) * (16));
    const Array<float> y_t = arena.take<float>((8) * (16));
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index m_at = rest % m_tiles * 8;
      const Index m_n = least(8, M - m_at);
#pragma omp simd
      for (Index m_i = 0; m_i < m_n; ++m_i) {
        y_carry_t(m_i) = 0.0;
      }
      {
        const Index k_low = 0, k_high = K;
        for (Index k_at = k_low; k_at < k_high; k_at += 16) {
          const Index k_n = least(16, k_high - k_at);
          for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              x_t(m_i * 16 + k_i) = x_g((m_at + m_i) * K + k_at + k_i);
            }
          }
          for (Index m_i = 0; m_i < m_n; ++m_i) {
            float run = float(y_carry_t(m_i));
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              run = run + x_t(m_i * 16 + k_i);
              y_t(m_i * 16 + k_i) = float(run);
            }
            y_carry_t(m_i) = float(run);
          }
          for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              y_g((m_at + m_i) * K + k_at + k_i) = y_t(m_i * 16 + k_i);
            }
          }
        }
      }
    }
  }
}
