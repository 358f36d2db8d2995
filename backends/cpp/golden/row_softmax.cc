// softmax: Turn each row into probabilities: exponentials over their sum, the maximum taken off first.
// Generated from spec a9c8fdf53ea478e6 and schedule 5bac18c251ecb58c.
#include "kernel.h"

// mx[m] = max(x[m, k], k)
// e[m, k] = exp(x[m, k] - mx[m])
// s[m] = sum(e[m, k], k)
// y[m, k] = e[m, k] / s[m]
KERNEL(softmax_0_launch) {
  const Index M = args.size(0);
  const Index K = args.size(1);
  const Index m_tiles = tiles(M, 4);
  const Index count = m_tiles;
  const Index k_at = 0, k_n = K;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<float> x_g = args.array<float>(0);
    const Array<float> y_g = args.array<float>(1);
    const Array<float> x_t = arena.take<float>((4) * (K));
    const Array<float> mx_t = arena.take<float>((4));
    const Array<float> e_t = arena.take<float>((4) * (K));
    const Array<float> s_t = arena.take<float>((4));
    const Array<float> y_t = arena.take<float>((4) * (K));
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index m_at = rest % m_tiles * 4;
      const Index m_n = least(4, M - m_at);
      for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
        for (Index k_i = 0; k_i < k_n; ++k_i) {
          x_t(m_i * K + k_i) = x_g((m_at + m_i) * K + k_at + k_i);
        }
      }
      for (Index m_i = 0; m_i < m_n; ++m_i) {
        float acc = -fn::kInfinity;
#pragma omp simd reduction(larger : acc)
        for (Index k_i = 0; k_i < k_n; ++k_i) {
          acc = fn::maximum(acc, x_t(m_i * K + k_i));
        }
        mx_t(m_i) = float(acc);
      }
      for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
        for (Index k_i = 0; k_i < k_n; ++k_i) {
          e_t(m_i * K + k_i) = fn::exp((x_t(m_i * K + k_i) - mx_t(m_i)));
        }
      }
      for (Index m_i = 0; m_i < m_n; ++m_i) {
        float acc = float(0);
#pragma omp simd reduction(+ : acc)
        for (Index k_i = 0; k_i < k_n; ++k_i) {
          acc = acc + e_t(m_i * K + k_i);
        }
        s_t(m_i) = float(acc);
      }
      for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
        for (Index k_i = 0; k_i < k_n; ++k_i) {
          y_t(m_i * K + k_i) = (e_t(m_i * K + k_i) / s_t(m_i));
        }
      }
      for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
        for (Index k_i = 0; k_i < k_n; ++k_i) {
          y_g((m_at + m_i) * K + k_at + k_i) = y_t(m_i * K + k_i);
        }
      }
    }
  }
}
