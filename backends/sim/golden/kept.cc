// attention: Average the values v by the softmax of the scaled products of queries and keys.
// Generated from spec 0ff4dd0fe3eb9b35 and schedule 038cc9bf1f6ef84a.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace attention_0_axes {
namespace axis {
enum : Axis { h, m, n, d };
}
}  // namespace attention_0_axes

// s[h, m, n] = sum(f32(q[h, m, d]) * f32(k[h, n, d]), d)
// a[h, m, n] = s[h, m, n] * rsqrt(f32(D))
// mx[h, m] = max(a[h, m, n], n)
// p[h, m, n] = exp(a[h, m, n] - mx[h, m])
// l[h, m] = sum(p[h, m, n], n)
// o[h, m, d] = sum(p[h, m, n] * f32(v[h, n, d]), n)
// y[h, m, d] = o[h, m, d] / l[h, m]
KERNEL(attention_0) {
  using namespace attention_0_axes;
  const Index H = args.size(0);
  const Index M = args.size(1);
  const Index D = args.size(2);
  const Index N = args.size(3);
  const Tensor q_g = args.tensor(0);
  const Tensor k_g = args.tensor(1);
  const Tensor v_g = args.tensor(2);
  const Tensor y_g = args.tensor(3);
  const Index h_tiles = tiles(H, 1);
  const Index m_tiles = tiles(M, 16);
  const Index count = h_tiles * m_tiles;
  if (pe.id() >= count) co_return;
  const Index d_at = 0, d_n = D;

  Buffer mx_t = pe.buffer("mx", Dtype::f32, {{axis::h, 1}, {axis::m, 16}}, 1);
  Buffer s_t = pe.buffer("s", Dtype::f32, {{axis::h, 1}, {axis::m, 16}, {axis::n, 64}}, 1);
  Buffer q_t = pe.buffer("q", Dtype::bf16, {{axis::h, 1}, {axis::m, 16}, {axis::d, D}}, 1);
  Buffer k_t = pe.buffer("k", Dtype::bf16, {{axis::h, 1}, {axis::n, 64}, {axis::d, D}}, 1);
  Buffer a_t = pe.buffer("a", Dtype::f32, {{axis::h, 1}, {axis::m, 16}, {axis::n, 64}}, (N + 63) / 64);
  Buffer l_t = pe.buffer("l", Dtype::f32, {{axis::h, 1}, {axis::m, 16}}, 1);
  Buffer o_t = pe.buffer("o", Dtype::f32, {{axis::h, 1}, {axis::m, 16}, {axis::d, D}}, 1);
  Buffer p_t = pe.buffer("p", Dtype::f32, {{axis::h, 1}, {axis::m, 16}, {axis::n, 64}}, 2);
  Buffer o_a_t = pe.buffer("o_a", Dtype::bf16, {{axis::h, 1}, {axis::m, 16}, {axis::n, 64}}, 2);
  Buffer v_t = pe.buffer("v", Dtype::bf16, {{axis::h, 1}, {axis::n, 64}, {axis::d, D}}, 1);
  Buffer y_t = pe.buffer("y", Dtype::bf16, {{axis::h, 1}, {axis::m, 16}, {axis::d, D}}, 1);

  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index m_at = rest % m_tiles * 16;
    rest /= m_tiles;
    const Index m_n = least(16, M - m_at);
    const Index h_at = rest % h_tiles * 1;
    const Index h_n = least(1, H - h_at);
    const Group m_group = run_of(pe, tile, m_tiles, count);
    const Box box_h_m{{axis::h, h_n}, {axis::m, m_n}};
    const Box box_h_m_d{{axis::h, h_n}, {axis::m, m_n}, {axis::d, d_n}};
    co_await pe.fill(mx_t.next(), -inf, box_h_m);
    co_await pe.load(q_t.next(), q_g, {Slice{h_at, axis::h, h_n}, Slice{m_at, axis::m, m_n}, Slice{d_at, axis::d, d_n}});
    for (Index n_at = 0; n_at < N; n_at += 64) {
      const Index n_n = least(64, N - n_at);
      const Box box_h_m_n_d{{axis::h, h_n}, {axis::m, m_n}, {axis::n, n_n}, {axis::d, d_n}};
      const Box box_h_m_n{{axis::h, h_n}, {axis::m, m_n}, {axis::n, n_n}};
      co_await pe.load_shared(k_t.next(), k_g, {Slice{h_at, axis::h, h_n}, Slice{n_at, axis::n, n_n}, Slice{d_at, axis::d, d_n}}, m_group);
      co_await pe.matmul(s_t.next(), q_t.tile(), k_t.tile(), box_h_m_n_d, afresh);
      co_await pe.map(Op::mul, a_t.next(), {s_t.tile(), 1.0 / __builtin_sqrt(double(D))}, box_h_m_n);
      co_await pe.reduce(Reduction::max, mx_t.tile(), a_t.tile(), box_h_m_n, accumulate);
    }
    co_await pe.fill(l_t.next(), 0.0, box_h_m);
    co_await pe.fill(o_t.next(), 0.0, box_h_m_d);
    for (Index n_at = 0; n_at < N; n_at += 64) {
      const Index n_n = least(64, N - n_at);
      const Box box_h_m_n{{axis::h, h_n}, {axis::m, m_n}, {axis::n, n_n}};
      const Box box_h_m_d_n{{axis::h, h_n}, {axis::m, m_n}, {axis::d, d_n}, {axis::n, n_n}};
      a_t.next();  // kept at n
      co_await pe.map(Op::sub, p_t.next(), {a_t.tile(), mx_t.tile()}, box_h_m_n);
      co_await pe.map(Op::exp, p_t.tile(), {p_t.tile()}, box_h_m_n);
      co_await pe.reduce(Reduction::sum, l_t.tile(), p_t.tile(), box_h_m_n, accumulate);
      co_await pe.map(Op::copy, o_a_t.next(), {p_t.tile()}, box_h_m_n);
      co_await pe.load(v_t.next(), v_g, {Slice{h_at, axis::h, h_n}, Slice{n_at, axis::n, n_n}, Slice{d_at, axis::d, d_n}});
      co_await pe.matmul(o_t.tile(), o_a_t.tile(), v_t.tile(), box_h_m_d_n, accumulate);
    }
    co_await pe.map(Op::div, y_t.next(), {o_t.tile(), l_t.tile()}, box_h_m_d);
    co_await pe.store(y_g, {Slice{h_at, axis::h, h_n}, Slice{m_at, axis::m, m_n}, Slice{d_at, axis::d, d_n}}, y_t.tile());
  }
}
