// layer_norm: Bring each row to mean 0 and variance 1, then scale it by g and shift it by b.
// Generated from spec f12a38eb734fdc36 and schedule c516df0ab88d6d6c.
#include "kernel.h"

// s[m] = sum(x[m, k], k)
// mean[m] = s[m] / K
// ss[m] = sum((x[m, k] - mean[m]) ** 2, k)
// r[m] = rsqrt(ss[m] / K + eps)
// y[m, k] = (x[m, k] - mean[m]) * r[m] * g[k] + b[k]
KERNEL(layer_norm_0_launch) {
  const Index M = args.size(0);
  const Index K = args.size(1);
  const double eps = 1e-05;
  const Index m_tiles = tiles(M, 1);
  const Index count = m_tiles;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<float> x_g = args.array<float>(0);
    const Array<float> g_g = args.array<float>(1);
    const Array<float> b_g = args.array<float>(2);
    const Array<float> y_g = args.array<float>(3);
    const Array<float> x_t = arena.take<float>((1) * (K));
    const Array<float> s_t = arena.take<float>((1));
    const Array<float> mean_t = arena.take<float>((1));
    const Array<float> ss_t = arena.take<float>((1));
    const Array<float> ss_term_t = arena.take<float>((1) * (512));
    const Array<float> r_t = arena.take<float>((1));
    const Array<float> g_t = arena.take<float>((K));
    const Array<float> b_t = arena.take<float>((K));
    const Array<float> y_t = arena.take<float>((1) * (512));
    const bool first = first_thread();
#pragma omp simd
    for (Index k_i = 0; k_i < K; ++k_i) {
      g_t(k_i) = g_g(k_i);
    }
#pragma omp simd
    for (Index k_i = 0; k_i < K; ++k_i) {
      b_t(k_i) = b_g(k_i);
    }
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index m_at = rest % m_tiles * 1;
      const Index m_n = least(1, M - m_at);
      for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
        for (Index k_i = 0; k_i < K; ++k_i) {
          x_t(m_i * K + k_i) = x_g((m_at + m_i) * K + k_i);
        }
      }
#pragma omp simd
      for (Index m_i = 0; m_i < m_n; ++m_i) {
        s_t(m_i) = 0.0;
      }
      {
        const Index k_low = 0, k_high = K;
        for (Index k_at = k_low; k_at < k_high; k_at += 512) {
          const Index k_n = least(512, k_high - k_at);
          for (Index m_i = 0; m_i < m_n; ++m_i) {
            float acc = float(0);
#pragma omp simd reduction(+ : acc)
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              acc = acc + x_t(m_i * K + k_at + k_i);
            }
            s_t(m_i) = float(float(s_t(m_i)) + acc);
          }
        }
      }
#pragma omp simd
      for (Index m_i = 0; m_i < m_n; ++m_i) {
        mean_t(m_i) = (s_t(m_i) / float(i32(K)));
      }
#pragma omp simd
      for (Index m_i = 0; m_i < m_n; ++m_i) {
        ss_t(m_i) = 0.0;
      }
      {
        const Index k_low = 0, k_high = K;
        for (Index k_at = k_low; k_at < k_high; k_at += 512) {
          const Index k_n = least(512, k_high - k_at);
          for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              ss_term_t(m_i * 512 + k_i) = fn::square((x_t(m_i * K + k_at + k_i) - mean_t(m_i)));
            }
          }
          for (Index m_i = 0; m_i < m_n; ++m_i) {
            float acc = float(0);
#pragma omp simd reduction(+ : acc)
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              acc = acc + ss_term_t(m_i * 512 + k_i);
            }
            ss_t(m_i) = float(float(ss_t(m_i)) + acc);
          }
        }
      }
#pragma omp simd
      for (Index m_i = 0; m_i < m_n; ++m_i) {
        r_t(m_i) = fn::rsqrt(((ss_t(m_i) / float(i32(K))) + float(eps)));
      }
      {
        const Index k_low = 0, k_high = K;
        for (Index k_at = k_low; k_at < k_high; k_at += 512) {
          const Index k_n = least(512, k_high - k_at);
          for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              y_t(m_i * 512 + k_i) = ((((x_t(m_i * K + k_at + k_i) - mean_t(m_i)) * r_t(m_i)) * g_t(k_at + k_i)) + b_t(k_at + k_i));
            }
          }
          for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              y_g((m_at + m_i) * K + k_at + k_i) = y_t(m_i * 512 + k_i);
            }
          }
        }
      }
    }
  }
}
