// matmul_bias_gelu: Multiply two matrices, add a bias to each row and apply GELU.
// Generated from spec 035bab293e63640e and schedule 52c41995c175f533.
#include "kernel.h"

// acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)
// y[m, n] = gelu(acc[m, n] + f32(b[n]))
KERNEL(matmul_bias_gelu_0_launch) {
  const Index M = args.size(0);
  const Index K = args.size(1);
  const Index N = args.size(2);
  const Index m_tiles = tiles(M, 64);
  const Index count = m_tiles;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<bf16> x_g = args.array<bf16>(0);
    const Array<bf16> w_g = args.array<bf16>(1);
    const Array<bf16> b_g = args.array<bf16>(2);
    const Array<bf16> y_g = args.array<bf16>(3);
    const Array<float> acc_t = arena.take<float>((64) * (256));
    const Array<bf16> x_t = arena.take<bf16>((64) * (K));
    const Array<bf16> w_t = arena.take<bf16>((128) * (256));
    const Array<bf16> b_t = arena.take<bf16>((256));
    const Array<bf16> y_t = arena.take<bf16>((64) * (256));
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index m_at = rest % m_tiles * 64;
      const Index m_n = least(64, M - m_at);
      for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
        for (Index k_i = 0; k_i < K; ++k_i) {
          x_t(m_i * K + k_i) = x_g((m_at + m_i) * K + k_i);
        }
      }
      {
        const Index n_low = 0, n_high = N;
        for (Index n_at = n_low; n_at < n_high; n_at += 256) {
          const Index n_n = least(256, n_high - n_at);
          for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
            for (Index n_i = 0; n_i < n_n; ++n_i) {
              acc_t(m_i * 256 + n_i) = 0.0;
            }
          }
          {
            const Index k_low = 0, k_high = K;
            for (Index k_at = k_low; k_at < k_high; k_at += 128) {
              const Index k_n = least(128, k_high - k_at);
              for (Index k_i = 0; k_i < k_n; ++k_i) {
#pragma omp simd
                for (Index n_i = 0; n_i < n_n; ++n_i) {
                  w_t(k_i * 256 + n_i) = w_g((k_at + k_i) * N + n_at + n_i);
                }
              }
              {
                const Product<bf16> acc_p(m_n, n_n, k_n);
                for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
                  for (Index k_i = 0; k_i < k_n; ++k_i) {
                    acc_p.a(m_i, k_i) = x_t(m_i * K + k_at + k_i);
                  }
                }
                for (Index k_i = 0; k_i < k_n; ++k_i) {
#pragma omp simd
                  for (Index n_i = 0; n_i < n_n; ++n_i) {
                    acc_p.b(k_i, n_i) = w_t(k_i * 256 + n_i);
                  }
                }
                acc_p.run(acc_t, 0, 256, true);
              }
            }
          }
#pragma omp simd
          for (Index n_i = 0; n_i < n_n; ++n_i) {
            b_t(n_i) = b_g(n_at + n_i);
          }
          for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
            for (Index n_i = 0; n_i < n_n; ++n_i) {
              y_t(m_i * 256 + n_i) = bf16(fn::gelu((acc_t(m_i * 256 + n_i) + float(b_t(n_i)))));
            }
          }
          for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
            for (Index n_i = 0; n_i < n_n; ++n_i) {
              y_g((m_at + m_i) * N + n_at + n_i) = y_t(m_i * 256 + n_i);
            }
          }
        }
      }
    }
  }
}
