// softmax: Turn each row into probabilities: exponentials over their sum, the maximum taken off first.
// Generated from spec a9c8fdf53ea478e6 and schedule 55a9c24af16588f7.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace softmax_0_axes {
namespace axis {
enum : Axis { m, k };
}
}  // namespace softmax_0_axes

// mx[m] = max(x[m, k], k)
// e[m, k] = exp(x[m, k] - mx[m])
// s[m] = sum(e[m, k], k)
// y[m, k] = e[m, k] / s[m]
KERNEL(softmax_0) {
  using namespace softmax_0_axes;
  const Index M = args.size(0);
  const Index K = args.size(1);
  const Tensor x_g = args.tensor(0);
  const Tensor y_g = args.tensor(1);
  const Index m_tiles = tiles(M, 4);
  const Index count = m_tiles;
  if (pe.id() >= count) co_return;

  Buffer x_t = pe.buffer("x", Dtype::f32, {{axis::m, 4}, {axis::k, K}}, 1);
  Buffer mx_t = pe.buffer("mx", Dtype::f32, {{axis::m, 4}}, 1);
  Buffer e_t = pe.buffer("e", Dtype::f32, {{axis::m, 4}, {axis::k, 128}}, 1);
  Buffer s_t = pe.buffer("s", Dtype::f32, {{axis::m, 4}}, 1);
  Buffer y_t = pe.buffer("y", Dtype::f32, {{axis::m, 4}, {axis::k, 128}}, 1);

  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index m_at = rest % m_tiles * 4;
    const Index m_n = least(4, M - m_at);
    const Box box_m{{axis::m, m_n}};
    co_await pe.load(x_t.next(), x_g, {Slice{m_at, axis::m, m_n}, Slice{0, axis::k, K}});
    co_await pe.fill(mx_t.next(), -inf, box_m);
    for (Index k_at = 0; k_at < K; k_at += 128) {
      const Index k_n = least(128, K - k_at);
      const Box box_m_k{{axis::m, m_n}, {axis::k, k_n}};
      co_await pe.reduce(Reduction::max, mx_t.tile(), x_t.tile().shift(axis::k, k_at), box_m_k, accumulate);
    }
    co_await pe.fill(s_t.next(), 0.0, box_m);
    for (Index k_at = 0; k_at < K; k_at += 128) {
      const Index k_n = least(128, K - k_at);
      const Box box_m_k{{axis::m, m_n}, {axis::k, k_n}};
      co_await pe.map(Op::sub, e_t.next(), {x_t.tile().shift(axis::k, k_at), mx_t.tile()}, box_m_k);
      co_await pe.map(Op::exp, e_t.tile(), {e_t.tile()}, box_m_k);
      co_await pe.reduce(Reduction::sum, s_t.tile(), e_t.tile(), box_m_k, accumulate);
    }
    for (Index k_at = 0; k_at < K; k_at += 128) {
      const Index k_n = least(128, K - k_at);
      const Box box_m_k{{axis::m, m_n}, {axis::k, k_n}};
      co_await pe.map(Op::sub, e_t.next(), {x_t.tile().shift(axis::k, k_at), mx_t.tile()}, box_m_k);
      co_await pe.map(Op::exp, e_t.tile(), {e_t.tile()}, box_m_k);
      co_await pe.map(Op::div, y_t.next(), {e_t.tile(), s_t.tile()}, box_m_k);
      co_await pe.store(y_g, {Slice{m_at, axis::m, m_n}, Slice{k_at, axis::k, k_n}}, y_t.tile());
    }
  }
}
