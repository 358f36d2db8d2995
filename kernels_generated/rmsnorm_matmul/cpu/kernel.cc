// rmsnorm_matmul: Project the RMS-normalised rows of x through w, then gate with SiLU.
// Generated from spec f5929ec91dac39fc and schedule 77dfe7064c5af057.
#include "kernel.h"

// ss[m] = sum(f32(x[m, k]) ** 2, k)
// r[m] = rsqrt(ss[m] / K + 1e-06)
KERNEL(rmsnorm_matmul_0_launch) {
  const Index M = args.size(0);
  const Index K = args.size(1);
  const Index N = args.size(2);
  const Index m_tiles = tiles(M, 64);
  const Index count = m_tiles;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<bf16> x_g = args.array<bf16>(0);
    const Array<float> r_g = args.array<float>(1);
    const Array<float> ss_t = arena.take<float>((64));
    const Array<bf16> x_t = arena.take<bf16>((64) * (128));
    const Array<float> ss_term_t = arena.take<float>((64) * (128));
    const Array<float> r_t = arena.take<float>((64));
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index m_at = rest % m_tiles * 64;
      const Index m_n = least(64, M - m_at);
#pragma omp simd
      for (Index m_i = 0; m_i < m_n; ++m_i) {
        ss_t(m_i) = 0.0;
      }
      {
        const Index k_low = 0, k_high = K;
        for (Index k_at = k_low; k_at < k_high; k_at += 128) {
          const Index k_n = least(128, k_high - k_at);
          for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              x_t(m_i * 128 + k_i) = x_g((m_at + m_i) * K + k_at + k_i);
            }
          }
          for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              ss_term_t(m_i * 128 + k_i) = fn::square(float(x_t(m_i * 128 + k_i)));
            }
          }
          for (Index m_i = 0; m_i < m_n; ++m_i) {
            float acc = float(0);
#pragma omp simd reduction(+ : acc)
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              acc = acc + ss_term_t(m_i * 128 + k_i);
            }
            ss_t(m_i) = float(float(ss_t(m_i)) + acc);
          }
        }
      }
#pragma omp simd
      for (Index m_i = 0; m_i < m_n; ++m_i) {
        r_t(m_i) = fn::rsqrt(((ss_t(m_i) / float(i32(K))) + 1e-06f));
      }
#pragma omp simd
      for (Index m_i = 0; m_i < m_n; ++m_i) {
        r_g(m_at + m_i) = r_t(m_i);
      }
    }
  }
}

// r[m] = rsqrt(ss[m] / K + 1e-06)
// xn[m, k] = f32(x[m, k]) * r[m] * f32(g[k])
// acc[m, n] = sum(xn[m, k] * f32(w[k, n]), k)
// y[m, n] = silu(acc[m, n])
KERNEL(rmsnorm_matmul_1_launch) {
  const Index M = args.size(0);
  const Index K = args.size(1);
  const Index N = args.size(2);
  const Index m_tiles = tiles(M, 64);
  const Index n_tiles = tiles(N, 256);
  const Index count = m_tiles * n_tiles;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<bf16> x_g = args.array<bf16>(0);
    const Array<bf16> g_g = args.array<bf16>(1);
    const Array<bf16> w_g = args.array<bf16>(2);
    const Array<float> r_g = args.array<float>(3);
    const Array<bf16> y_g = args.array<bf16>(4);
    const Array<float> acc_t = arena.take<float>((64) * (256));
    const Array<bf16> x_t = arena.take<bf16>((64) * (128));
    const Array<float> r_t = arena.take<float>((64));
    const Array<bf16> g_t = arena.take<bf16>((128));
    const Array<float> xn_t = arena.take<float>((64) * (128));
    const Array<bf16> acc_a_t = arena.take<bf16>((64) * (128));
    const Array<bf16> w_t = arena.take<bf16>((128) * (256));
    const Array<bf16> y_t = arena.take<bf16>((64) * (256));
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index n_at = rest % n_tiles * 256;
      rest /= n_tiles;
      const Index n_n = least(256, N - n_at);
      const Index m_at = rest % m_tiles * 64;
      const Index m_n = least(64, M - m_at);
      for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
        for (Index n_i = 0; n_i < n_n; ++n_i) {
          acc_t(m_i * 256 + n_i) = 0.0;
        }
      }
#pragma omp simd
      for (Index m_i = 0; m_i < m_n; ++m_i) {
        r_t(m_i) = r_g(m_at + m_i);
      }
      {
        const Index k_low = 0, k_high = K;
        for (Index k_at = k_low; k_at < k_high; k_at += 128) {
          const Index k_n = least(128, k_high - k_at);
          for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              x_t(m_i * 128 + k_i) = x_g((m_at + m_i) * K + k_at + k_i);
            }
          }
#pragma omp simd
          for (Index k_i = 0; k_i < k_n; ++k_i) {
            g_t(k_i) = g_g(k_at + k_i);
          }
          for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              xn_t(m_i * 128 + k_i) = ((float(x_t(m_i * 128 + k_i)) * r_t(m_i)) * float(g_t(k_i)));
            }
          }
          for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              acc_a_t(m_i * 128 + k_i) = bf16(xn_t(m_i * 128 + k_i));
            }
          }
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
                acc_p.a(m_i, k_i) = acc_a_t(m_i * 128 + k_i);
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
      for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
        for (Index n_i = 0; n_i < n_n; ++n_i) {
          y_t(m_i * 256 + n_i) = bf16(fn::silu(acc_t(m_i * 256 + n_i)));
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
