// pffn: Per-sample feed-forward: two batched products, each followed by an RMS normalisation.
// Generated from spec 3cc97ce2ceb59d96 and schedule 6edf8f8075006be0.
#include "kernel.h"

// u[b, n, k] = sum(f32(x[b, n, d]) * f32(w1[b, d, k]), d)
// h[b, n, k] = gelu(u[b, n, k] + f32(b1[b, k]))
// hs[b, n] = sum(h[b, n, k] ** 2, k)
KERNEL(pffn_0_launch) {
  const Index B = args.size(0);
  const Index N = args.size(1);
  const Index D = args.size(2);
  const Index K = args.size(3);
  const double eps = 1e-06;
  const Index b_tiles = tiles(B, 1);
  const Index n_tiles = tiles(N, 64);
  const Index count = b_tiles * n_tiles;
  const Index k_at = 0, k_n = K;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<f16> x_g = args.array<f16>(0);
    const Array<f16> w1_g = args.array<f16>(1);
    const Array<f16> b1_g = args.array<f16>(2);
    const Array<float> h_g = args.array<float>(3);
    const Array<float> hs_g = args.array<float>(4);
    const Array<float> u_t = arena.take<float>((1) * (64) * (K));
    const Array<f16> x_t = arena.take<f16>((1) * (64) * (8));
    const Array<f16> w1_t = arena.take<f16>((1) * (8) * (K));
    const Array<f16> b1_t = arena.take<f16>((1) * (K));
    const Array<float> h_t = arena.take<float>((1) * (64) * (K));
    const Array<float> hs_t = arena.take<float>((1) * (64));
    const Array<float> hs_term_t = arena.take<float>((1) * (64) * (K));
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index n_at = rest % n_tiles * 64;
      rest /= n_tiles;
      const Index n_n = least(64, N - n_at);
      const Index b_at = rest % b_tiles * 1;
      const Index b_n = least(1, B - b_at);
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
          for (Index k_i = 0; k_i < k_n; ++k_i) {
            u_t((b_i * 64 + n_i) * K + k_i) = 0.0;
          }
        }
      }
      {
        const Index d_low = 0, d_high = D;
        for (Index d_at = d_low; d_at < d_high; d_at += 8) {
          const Index d_n = least(8, d_high - d_at);
          for (Index b_i = 0; b_i < b_n; ++b_i) {
            for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
              for (Index d_i = 0; d_i < d_n; ++d_i) {
                x_t((b_i * 64 + n_i) * 8 + d_i) = x_g(((b_at + b_i) * N + n_at + n_i) * D + d_at + d_i);
              }
            }
          }
          for (Index b_i = 0; b_i < b_n; ++b_i) {
            for (Index d_i = 0; d_i < d_n; ++d_i) {
#pragma omp simd
              for (Index k_i = 0; k_i < k_n; ++k_i) {
                w1_t((b_i * 8 + d_i) * K + k_i) = w1_g(((b_at + b_i) * D + d_at + d_i) * K + k_at + k_i);
              }
            }
          }
          {
            for (Index b_i = 0; b_i < b_n; ++b_i) {
              const Product<float> u_p(n_n, k_n, d_n);
              for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
                for (Index d_i = 0; d_i < d_n; ++d_i) {
                  u_p.a(n_i, d_i) = float(x_t((b_i * 64 + n_i) * 8 + d_i));
                }
              }
              for (Index d_i = 0; d_i < d_n; ++d_i) {
#pragma omp simd
                for (Index k_i = 0; k_i < k_n; ++k_i) {
                  u_p.b(d_i, k_i) = float(w1_t((b_i * 8 + d_i) * K + k_i));
                }
              }
              u_p.run(u_t, (b_i * 64) * K, K, true);
            }
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
#pragma omp simd
        for (Index k_i = 0; k_i < k_n; ++k_i) {
          b1_t(b_i * K + k_i) = b1_g((b_at + b_i) * K + k_at + k_i);
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
          for (Index k_i = 0; k_i < k_n; ++k_i) {
            h_t((b_i * 64 + n_i) * K + k_i) = fn::gelu((u_t((b_i * 64 + n_i) * K + k_i) + float(b1_t(b_i * K + k_i))));
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
          for (Index k_i = 0; k_i < k_n; ++k_i) {
            h_g(((b_at + b_i) * N + n_at + n_i) * K + k_at + k_i) = h_t((b_i * 64 + n_i) * K + k_i);
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
          for (Index k_i = 0; k_i < k_n; ++k_i) {
            hs_term_t((b_i * 64 + n_i) * K + k_i) = fn::square(h_t((b_i * 64 + n_i) * K + k_i));
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
          float acc = float(0);
#pragma omp simd reduction(+ : acc)
          for (Index k_i = 0; k_i < k_n; ++k_i) {
            acc = acc + hs_term_t((b_i * 64 + n_i) * K + k_i);
          }
          hs_t(b_i * 64 + n_i) = float(acc);
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
#pragma omp simd
        for (Index n_i = 0; n_i < n_n; ++n_i) {
          hs_g((b_at + b_i) * N + n_at + n_i) = hs_t(b_i * 64 + n_i);
        }
      }
    }
  }
}

// h[b, n, k] = gelu(u[b, n, k] + f32(b1[b, k]))
// hs[b, n] = sum(h[b, n, k] ** 2, k)
// r1[b, n] = rsqrt(hs[b, n] / K + eps)
// hn[b, n, k] = h[b, n, k] * r1[b, n] * f32(g1[k])
// z[b, n, e] = sum(hn[b, n, k] * f32(w2[b, k, e]), k)
// zs[b, n] = sum(z[b, n, e] ** 2, e)
// r2[b, n] = rsqrt(zs[b, n] / D + eps)
// y[b, n, e] = z[b, n, e] * r2[b, n] * f32(g2[e])
KERNEL(pffn_1_launch) {
  const Index B = args.size(0);
  const Index N = args.size(1);
  const Index D = args.size(2);
  const Index K = args.size(3);
  const double eps = 1e-06;
  const Index b_tiles = tiles(B, 1);
  const Index n_tiles = tiles(N, 64);
  const Index count = b_tiles * n_tiles;
  const Index k_at = 0, k_n = K;
  const Index e_at = 0, e_n = D;
#pragma omp parallel num_threads(least(args.threads, count)) default(firstprivate)
  {
    Arena arena;
    const Array<f16> g1_g = args.array<f16>(0);
    const Array<f16> w2_g = args.array<f16>(1);
    const Array<f16> g2_g = args.array<f16>(2);
    const Array<float> h_g = args.array<float>(3);
    const Array<float> hs_g = args.array<float>(4);
    const Array<f16> y_g = args.array<f16>(5);
    const Array<float> z_t = arena.take<float>((1) * (64) * (D));
    const Array<float> h_t = arena.take<float>((1) * (64) * (K));
    const Array<float> hs_t = arena.take<float>((1) * (64));
    const Array<float> r1_t = arena.take<float>((1) * (64));
    const Array<f16> g1_t = arena.take<f16>((K));
    const Array<float> hn_t = arena.take<float>((1) * (64) * (K));
    const Array<f16> z_a_t = arena.take<f16>((1) * (64) * (K));
    const Array<f16> w2_t = arena.take<f16>((1) * (K) * (D));
    const Array<float> zs_t = arena.take<float>((1) * (64));
    const Array<float> zs_term_t = arena.take<float>((1) * (64) * (D));
    const Array<float> r2_t = arena.take<float>((1) * (64));
    const Array<f16> g2_t = arena.take<f16>((D));
    const Array<f16> y_t = arena.take<f16>((1) * (64) * (D));
    const bool first = first_thread();
#pragma omp simd
    for (Index k_i = 0; k_i < k_n; ++k_i) {
      g1_t(k_i) = g1_g(k_at + k_i);
    }
#pragma omp simd
    for (Index e_i = 0; e_i < e_n; ++e_i) {
      g2_t(e_i) = g2_g(e_at + e_i);
    }
#pragma omp for schedule(static)
    for (Index tile = 0; tile < count; ++tile) {
      Index rest = tile;
      const Index n_at = rest % n_tiles * 64;
      rest /= n_tiles;
      const Index n_n = least(64, N - n_at);
      const Index b_at = rest % b_tiles * 1;
      const Index b_n = least(1, B - b_at);
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
          for (Index k_i = 0; k_i < k_n; ++k_i) {
            h_t((b_i * 64 + n_i) * K + k_i) = h_g(((b_at + b_i) * N + n_at + n_i) * K + k_at + k_i);
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
#pragma omp simd
        for (Index n_i = 0; n_i < n_n; ++n_i) {
          hs_t(b_i * 64 + n_i) = hs_g((b_at + b_i) * N + n_at + n_i);
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
#pragma omp simd
        for (Index n_i = 0; n_i < n_n; ++n_i) {
          r1_t(b_i * 64 + n_i) = fn::rsqrt(((hs_t(b_i * 64 + n_i) / float(i32(K))) + float(eps)));
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
          for (Index k_i = 0; k_i < k_n; ++k_i) {
            hn_t((b_i * 64 + n_i) * K + k_i) = ((h_t((b_i * 64 + n_i) * K + k_i) * r1_t(b_i * 64 + n_i)) * float(g1_t(k_i)));
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
          for (Index k_i = 0; k_i < k_n; ++k_i) {
            z_a_t((b_i * 64 + n_i) * K + k_i) = f16(hn_t((b_i * 64 + n_i) * K + k_i));
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index k_i = 0; k_i < k_n; ++k_i) {
#pragma omp simd
          for (Index e_i = 0; e_i < e_n; ++e_i) {
            w2_t((b_i * K + k_i) * D + e_i) = w2_g(((b_at + b_i) * K + k_at + k_i) * D + e_at + e_i);
          }
        }
      }
      {
        for (Index b_i = 0; b_i < b_n; ++b_i) {
          const Product<float> z_p(n_n, e_n, k_n);
          for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
            for (Index k_i = 0; k_i < k_n; ++k_i) {
              z_p.a(n_i, k_i) = float(z_a_t((b_i * 64 + n_i) * K + k_i));
            }
          }
          for (Index k_i = 0; k_i < k_n; ++k_i) {
#pragma omp simd
            for (Index e_i = 0; e_i < e_n; ++e_i) {
              z_p.b(k_i, e_i) = float(w2_t((b_i * K + k_i) * D + e_i));
            }
          }
          z_p.run(z_t, (b_i * 64) * D, D, false);
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
          for (Index e_i = 0; e_i < e_n; ++e_i) {
            zs_term_t((b_i * 64 + n_i) * D + e_i) = fn::square(z_t((b_i * 64 + n_i) * D + e_i));
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
          float acc = float(0);
#pragma omp simd reduction(+ : acc)
          for (Index e_i = 0; e_i < e_n; ++e_i) {
            acc = acc + zs_term_t((b_i * 64 + n_i) * D + e_i);
          }
          zs_t(b_i * 64 + n_i) = float(acc);
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
#pragma omp simd
        for (Index n_i = 0; n_i < n_n; ++n_i) {
          r2_t(b_i * 64 + n_i) = fn::rsqrt(((zs_t(b_i * 64 + n_i) / float(i32(D))) + float(eps)));
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
          for (Index e_i = 0; e_i < e_n; ++e_i) {
            y_t((b_i * 64 + n_i) * D + e_i) = f16(((z_t((b_i * 64 + n_i) * D + e_i) * r2_t(b_i * 64 + n_i)) * float(g2_t(e_i))));
          }
        }
      }
      for (Index b_i = 0; b_i < b_n; ++b_i) {
        for (Index n_i = 0; n_i < n_n; ++n_i) {
#pragma omp simd
          for (Index e_i = 0; e_i < e_n; ++e_i) {
            y_g(((b_at + b_i) * N + n_at + n_i) * D + e_at + e_i) = y_t((b_i * 64 + n_i) * D + e_i);
          }
        }
      }
    }
  }
}
