// pffn: Per-sample feed-forward: two batched products, each followed by an RMS normalisation.
// Generated from spec 3cc97ce2ceb59d96 and schedule 517333d71c6cad02.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace pffn_0_axes {
namespace axis {
enum : Axis { b, n, d, k, e };
}
}  // namespace pffn_0_axes

// u[b, n, k] = sum(f32(x[b, n, d]) * f32(w1[b, d, k]), d)
// h[b, n, k] = gelu(u[b, n, k] + f32(b1[b, k]))
// hs[b, n] = sum(h[b, n, k] ** 2, k)
// r1[b, n] = rsqrt(hs[b, n] / K + eps)
// hn[b, n, k] = h[b, n, k] * r1[b, n] * f32(g1[k])
// z[b, n, e] = sum(hn[b, n, k] * f32(w2[b, k, e]), k)
// zs[b, n] = sum(z[b, n, e] ** 2, e)
// r2[b, n] = rsqrt(zs[b, n] / D + eps)
// y[b, n, e] = z[b, n, e] * r2[b, n] * f32(g2[e])
KERNEL(pffn_0) {
  using namespace pffn_0_axes;
  const Index B = args.size(0);
  const Index N = args.size(1);
  const Index D = args.size(2);
  const Index K = args.size(3);
  const double eps = 1e-06;
  const Tensor x_g = args.tensor(0);
  const Tensor w1_g = args.tensor(1);
  const Tensor b1_g = args.tensor(2);
  const Tensor g1_g = args.tensor(3);
  const Tensor w2_g = args.tensor(4);
  const Tensor g2_g = args.tensor(5);
  const Tensor y_g = args.tensor(6);
  const Index b_tiles = tiles(B, 1);
  const Index n_tiles = tiles(N, 32);
  const Index count = b_tiles * n_tiles;
  if (pe.id() >= count) co_return;
  const Index e_at = 0, e_n = D;

  Buffer z_t = pe.buffer("z", Dtype::f32, {{axis::b, 1}, {axis::n, 32}, {axis::e, D}}, 1);
  Buffer u_t = pe.buffer("u", Dtype::f32, {{axis::b, 1}, {axis::n, 32}, {axis::k, 64}}, 2);
  Buffer x_t = pe.buffer("x", Dtype::f16, {{axis::b, 1}, {axis::n, 32}, {axis::d, 128}}, 2);
  Buffer w1_t = pe.buffer("w1", Dtype::f16, {{axis::b, 1}, {axis::d, 128}, {axis::k, 64}}, 2);
  Buffer b1_t = pe.buffer("b1", Dtype::f16, {{axis::b, 1}, {axis::k, 64}}, 2);
  Buffer h_t = pe.buffer("h", Dtype::f32, {{axis::b, 1}, {axis::n, 32}, {axis::k, 64}}, 1);
  Buffer hs_t = pe.buffer("hs", Dtype::f32, {{axis::b, 1}, {axis::n, 32}}, 1);
  Buffer u_2_t = pe.buffer("u_2", Dtype::f32, {{axis::b, 1}, {axis::n, 32}, {axis::k, 64}}, 2);
  Buffer hs_term_t = pe.buffer("hs_term", Dtype::f32, {{axis::b, 1}, {axis::n, 32}, {axis::k, 64}}, 1);
  Buffer r1_t = pe.buffer("r1", Dtype::f32, {{axis::b, 1}, {axis::n, 32}}, 1);
  Buffer g1_t = pe.buffer("g1", Dtype::f16, {{axis::k, 64}}, 2);
  Buffer hn_t = pe.buffer("hn", Dtype::f32, {{axis::b, 1}, {axis::n, 32}, {axis::k, 64}}, 1);
  Buffer z_a_t = pe.buffer("z_a", Dtype::f16, {{axis::b, 1}, {axis::n, 32}, {axis::k, 64}}, 1);
  Buffer w2_t = pe.buffer("w2", Dtype::f16, {{axis::b, 1}, {axis::k, 64}, {axis::e, D}}, 2);
  Buffer zs_t = pe.buffer("zs", Dtype::f32, {{axis::b, 1}, {axis::n, 32}}, 1);
  Buffer zs_term_t = pe.buffer("zs_term", Dtype::f32, {{axis::b, 1}, {axis::n, 32}, {axis::e, D}}, 1);
  Buffer r2_t = pe.buffer("r2", Dtype::f32, {{axis::b, 1}, {axis::n, 32}}, 1);
  Buffer g2_t = pe.buffer("g2", Dtype::f16, {{axis::e, D}}, 1);
  Buffer y_t = pe.buffer("y", Dtype::f16, {{axis::b, 1}, {axis::n, 32}, {axis::e, D}}, 3);
  Buffer f32_b_n_e_0_t = pe.buffer("f32_b_n_e_0", Dtype::f32, {{axis::b, 1}, {axis::n, 32}, {axis::e, D}}, 1);

  co_await pe.load(g2_t.next(), g2_g, {Slice{e_at, axis::e, e_n}});
  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index n_at = rest % n_tiles * 32;
    rest /= n_tiles;
    const Index n_n = least(32, N - n_at);
    const Index b_at = rest % b_tiles * 1;
    const Index b_n = least(1, B - b_at);
    const Box box_b_n_e{{axis::b, b_n}, {axis::n, n_n}, {axis::e, e_n}};
    const Box box_b_n{{axis::b, b_n}, {axis::n, n_n}};
    co_await pe.fill(z_t.next(), 0.0, box_b_n_e);
    co_await pe.fill(hs_t.next(), 0.0, box_b_n);
    for (Index k_at = 0; k_at < K; k_at += 64) {
      const Index k_n = least(64, K - k_at);
      const Box box_b_n_k{{axis::b, b_n}, {axis::n, n_n}, {axis::k, k_n}};
      co_await pe.fill(u_2_t.next(), 0.0, box_b_n_k);
      for (Index d_at = 0; d_at < D; d_at += 128) {
        const Index d_n = least(128, D - d_at);
        const Box box_b_n_k_d{{axis::b, b_n}, {axis::n, n_n}, {axis::k, k_n}, {axis::d, d_n}};
        co_await pe.load(x_t.next(), x_g, {Slice{b_at, axis::b, b_n}, Slice{n_at, axis::n, n_n}, Slice{d_at, axis::d, d_n}});
        co_await pe.load(w1_t.next(), w1_g, {Slice{b_at, axis::b, b_n}, Slice{d_at, axis::d, d_n}, Slice{k_at, axis::k, k_n}});
        co_await pe.matmul(u_2_t.tile(), x_t.tile(), w1_t.tile(), box_b_n_k_d, accumulate);
      }
      co_await pe.load(b1_t.next(), b1_g, {Slice{b_at, axis::b, b_n}, Slice{k_at, axis::k, k_n}});
      co_await pe.map(Op::add, h_t.next(), {u_2_t.tile(), b1_t.tile()}, box_b_n_k);
      co_await pe.map(Op::gelu, h_t.tile(), {h_t.tile()}, box_b_n_k);
      co_await pe.map(Op::mul, hs_term_t.next(), {h_t.tile(), h_t.tile()}, box_b_n_k);
      co_await pe.reduce(Reduction::sum, hs_t.tile(), hs_term_t.tile(), box_b_n_k, accumulate);
    }
    co_await pe.map(Op::div, r1_t.next(), {hs_t.tile(), K}, box_b_n);
    co_await pe.map(Op::add, r1_t.tile(), {r1_t.tile(), eps}, box_b_n);
    co_await pe.map(Op::rsqrt, r1_t.tile(), {r1_t.tile()}, box_b_n);
    for (Index k_at = 0; k_at < K; k_at += 64) {
      const Index k_n = least(64, K - k_at);
      const Box box_b_n_k{{axis::b, b_n}, {axis::n, n_n}, {axis::k, k_n}};
      const Box box_b_n_e_k{{axis::b, b_n}, {axis::n, n_n}, {axis::e, e_n}, {axis::k, k_n}};
      co_await pe.fill(u_t.next(), 0.0, box_b_n_k);
      for (Index d_at = 0; d_at < D; d_at += 128) {
        const Index d_n = least(128, D - d_at);
        const Box box_b_n_k_d{{axis::b, b_n}, {axis::n, n_n}, {axis::k, k_n}, {axis::d, d_n}};
        co_await pe.load(x_t.next(), x_g, {Slice{b_at, axis::b, b_n}, Slice{n_at, axis::n, n_n}, Slice{d_at, axis::d, d_n}});
        co_await pe.load(w1_t.next(), w1_g, {Slice{b_at, axis::b, b_n}, Slice{d_at, axis::d, d_n}, Slice{k_at, axis::k, k_n}});
        co_await pe.matmul(u_t.tile(), x_t.tile(), w1_t.tile(), box_b_n_k_d, accumulate);
      }
      co_await pe.load(b1_t.next(), b1_g, {Slice{b_at, axis::b, b_n}, Slice{k_at, axis::k, k_n}});
      co_await pe.map(Op::add, h_t.next(), {u_t.tile(), b1_t.tile()}, box_b_n_k);
      co_await pe.map(Op::gelu, h_t.tile(), {h_t.tile()}, box_b_n_k);
      co_await pe.load(g1_t.next(), g1_g, {Slice{k_at, axis::k, k_n}});
      co_await pe.map(Op::mul, hn_t.next(), {h_t.tile(), r1_t.tile()}, box_b_n_k);
      co_await pe.map(Op::mul, hn_t.tile(), {hn_t.tile(), g1_t.tile()}, box_b_n_k);
      co_await pe.map(Op::copy, z_a_t.next(), {hn_t.tile()}, box_b_n_k);
      co_await pe.load(w2_t.next(), w2_g, {Slice{b_at, axis::b, b_n}, Slice{k_at, axis::k, k_n}, Slice{e_at, axis::e, e_n}});
      co_await pe.matmul(z_t.tile(), z_a_t.tile(), w2_t.tile(), box_b_n_e_k, accumulate);
    }
    co_await pe.map(Op::mul, zs_term_t.next(), {z_t.tile(), z_t.tile()}, box_b_n_e);
    co_await pe.reduce(Reduction::sum, zs_t.next(), zs_term_t.tile(), box_b_n_e, afresh);
    co_await pe.map(Op::div, r2_t.next(), {zs_t.tile(), D}, box_b_n);
    co_await pe.map(Op::add, r2_t.tile(), {r2_t.tile(), eps}, box_b_n);
    co_await pe.map(Op::rsqrt, r2_t.tile(), {r2_t.tile()}, box_b_n);
    co_await pe.map(Op::mul, f32_b_n_e_0_t.tile(), {z_t.tile(), r2_t.tile()}, box_b_n_e);
    co_await pe.map(Op::mul, y_t.next(), {f32_b_n_e_0_t.tile(), g2_t.tile()}, box_b_n_e);
    co_await pe.store(y_g, {Slice{b_at, axis::b, b_n}, Slice{n_at, axis::n, n_n}, Slice{e_at, axis::e, e_n}}, y_t.tile());
  }
}
