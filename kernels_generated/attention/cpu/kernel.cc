// attention: Average the values v by the softmax of the scaled products of queries and keys.
// Generated from spec 0ff4dd0fe3eb9b35 and schedule 0fc437addea1329f.
#include "kernel.h"

// s[h, m, n] = sum(f32(q[h, m, d]) * f32(k[h, n, d]), d)
// a[h, m, n] = s[h, m, n] * rsqrt(f32(D))
// mx[h, m] = max(a[h, m, n], n)
// p[h, m, n] = exp(a[h, m, n] - mx[h, m])
// l[h, m] = sum(p[h, m, n], n)
// o[h, m, d] = sum(p[h, m, n] * f32(v[h, n, d]), n)
// y[h, m, d] = o[h, m, d] / l[h, m]
KERNEL(attention_0_launch) {
  const Index H = args.size(0);
  const Index M = args.size(1);
  const Index D = args.size(2);
  const Index N = args.size(3);
  const Index h_tiles = tiles(H, 1);
  const Index m_tiles = tiles(M, 64);
  const Index count = h_tiles * m_tiles;
  const Index n_at = 0, n_n = N;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<bf16> q_g = args.array<bf16>(0);
    const Array<bf16> k_g = args.array<bf16>(1);
    const Array<bf16> v_g = args.array<bf16>(2);
    const Array<bf16> y_g = args.array<bf16>(3);
    const Array<float> o_t = arena.take<float>((1) * (64) * (64));
    const Array<float> s_t = arena.take<float>((1) * (64) * (N));
    const Array<bf16> q_t = arena.take<bf16>((1) * (64) * (64));
    const Array<bf16> k_t = arena.take<bf16>((1) * (N) * (64));
    const Array<float> a_t = arena.take<float>((1) * (64) * (N));
    const Array<float> mx_t = arena.take<float>((1) * (64));
    const Array<float> p_t = arena.take<float>((1) * (64) * (N));
    const Array<bf16> o_a_t = arena.take<bf16>((1) * (64) * (N));
    const Array<bf16> v_t = arena.take<bf16>((1) * (N) * (64));
    const Array<float> l_t = arena.take<float>((1) * (64));
    const Array<bf16> y_t = arena.take<bf16>((1) * (64) * (64));
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index m_at = rest % m_tiles * 64;
      rest /= m_tiles;
      const Index m_n = least(64, M - m_at);
      const Index h_at = rest % h_tiles * 1;
      const Index h_n = least(1, H - h_at);
      for (Index h_i = 0; h_i < h_n; ++h_i) {
        for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
          for (Index n_i = 0; n_i < n_n; ++n_i) {
            s_t((h_i * 64 + m_i) * N + n_i) = 0.0;
          }
        }
      }
      {
        const Index d_low = 0, d_high = D;
        for (Index d_at = d_low; d_at < d_high; d_at += 64) {
          const Index d_n = least(64, d_high - d_at);
          for (Index h_i = 0; h_i < h_n; ++h_i) {
            for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
              for (Index d_i = 0; d_i < d_n; ++d_i) {
                q_t((h_i * 64 + m_i) * 64 + d_i) = q_g(((h_at + h_i) * M + m_at + m_i) * D + d_at + d_i);
              }
            }
          }
          for (Index h_i = 0; h_i < h_n; ++h_i) {
            for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
              for (Index d_i = 0; d_i < d_n; ++d_i) {
                k_t((h_i * N + n_i) * 64 + d_i) = k_g(((h_at + h_i) * N + n_at + n_i) * D + d_at + d_i);
              }
            }
          }
          {
            for (Index h_i = 0; h_i < h_n; ++h_i) {
              const Product<bf16> s_p(m_n, n_n, d_n);
              for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
                for (Index d_i = 0; d_i < d_n; ++d_i) {
                  s_p.a(m_i, d_i) = q_t((h_i * 64 + m_i) * 64 + d_i);
                }
              }
              for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
                for (Index d_i = 0; d_i < d_n; ++d_i) {
                  s_p.b(d_i, n_i) = k_t((h_i * N + n_i) * 64 + d_i);
                }
              }
              s_p.run(s_t, (h_i * 64) * N, N, true);
            }
          }
        }
      }
      for (Index h_i = 0; h_i < h_n; ++h_i) {
        for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
          for (Index n_i = 0; n_i < n_n; ++n_i) {
            a_t((h_i * 64 + m_i) * N + n_i) = (s_t((h_i * 64 + m_i) * N + n_i) * float(1.0 / __builtin_sqrt(double(D))));
          }
        }
      }
      for (Index h_i = 0; h_i < h_n; ++h_i) {
        for (Index m_i = 0; m_i < m_n; ++m_i) {
          float acc = -fn::kInfinity;
#pragma omp simd reduction(larger : acc)
          for (Index n_i = 0; n_i < n_n; ++n_i) {
            acc = fn::maximum(acc, a_t((h_i * 64 + m_i) * N + n_i));
          }
          mx_t(h_i * 64 + m_i) = float(acc);
        }
      }
      for (Index h_i = 0; h_i < h_n; ++h_i) {
        for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
          for (Index n_i = 0; n_i < n_n; ++n_i) {
            p_t((h_i * 64 + m_i) * N + n_i) = fn::exp((a_t((h_i * 64 + m_i) * N + n_i) - mx_t(h_i * 64 + m_i)));
          }
        }
      }
      for (Index h_i = 0; h_i < h_n; ++h_i) {
        for (Index m_i = 0; m_i < m_n; ++m_i) {
          float acc = float(0);
#pragma omp simd reduction(+ : acc)
          for (Index n_i = 0; n_i < n_n; ++n_i) {
            acc = acc + p_t((h_i * 64 + m_i) * N + n_i);
          }
          l_t(h_i * 64 + m_i) = float(acc);
        }
      }
      {
        const Index d_low = 0, d_high = D;
        for (Index d_at = d_low; d_at < d_high; d_at += 64) {
          const Index d_n = least(64, d_high - d_at);
          for (Index h_i = 0; h_i < h_n; ++h_i) {
            for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
              for (Index n_i = 0; n_i < n_n; ++n_i) {
                o_a_t((h_i * 64 + m_i) * N + n_i) = bf16(p_t((h_i * 64 + m_i) * N + n_i));
              }
            }
          }
          for (Index h_i = 0; h_i < h_n; ++h_i) {
            for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
              for (Index d_i = 0; d_i < d_n; ++d_i) {
                v_t((h_i * N + n_i) * 64 + d_i) = v_g(((h_at + h_i) * N + n_at + n_i) * D + d_at + d_i);
              }
            }
          }
          {
            for (Index h_i = 0; h_i < h_n; ++h_i) {
              const Product<bf16> o_p(m_n, d_n, n_n);
              for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
                for (Index n_i = 0; n_i < n_n; ++n_i) {
                  o_p.a(m_i, n_i) = o_a_t((h_i * 64 + m_i) * N + n_i);
                }
              }
              for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
                for (Index d_i = 0; d_i < d_n; ++d_i) {
                  o_p.b(n_i, d_i) = v_t((h_i * N + n_i) * 64 + d_i);
                }
              }
              o_p.run(o_t, (h_i * 64) * 64, 64, false);
            }
          }
          for (Index h_i = 0; h_i < h_n; ++h_i) {
            for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
              for (Index d_i = 0; d_i < d_n; ++d_i) {
                y_t((h_i * 64 + m_i) * 64 + d_i) = bf16((o_t((h_i * 64 + m_i) * 64 + d_i) / l_t(h_i * 64 + m_i)));
              }
            }
          }
          for (Index h_i = 0; h_i < h_n; ++h_i) {
            for (Index m_i = 0; m_i < m_n; ++m_i) {
#pragma omp simd
              for (Index d_i = 0; d_i < d_n; ++d_i) {
                y_g(((h_at + h_i) * M + m_at + m_i) * D + d_at + d_i) = y_t((h_i * 64 + m_i) * 64 + d_i);
              }
            }
          }
        }
      }
    }
  }
}
