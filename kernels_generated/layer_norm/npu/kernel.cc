// layer_norm: Bring each row to mean 0 and variance 1, then scale it by g and shift it by b.
// Generated from spec f12a38eb734fdc36 and schedule 67913257778154ae.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace layer_norm_0_axes {
namespace axis {
enum : Axis { m, k };
}
}  // namespace layer_norm_0_axes

// s[m] = sum(x[m, k], k)
// mean[m] = s[m] / K
// ss[m] = sum((x[m, k] - mean[m]) ** 2, k)
// r[m] = rsqrt(ss[m] / K + eps)
// y[m, k] = (x[m, k] - mean[m]) * r[m] * g[k] + b[k]
KERNEL(layer_norm_0) {
  using namespace layer_norm_0_axes;
  const Index M = args.size(0);
  const Index K = args.size(1);
  const double eps = 1e-05;
  const Tensor x_g = args.tensor(0);
  const Tensor g_g = args.tensor(1);
  const Tensor b_g = args.tensor(2);
  const Tensor y_g = args.tensor(3);
  const Index m_tiles = tiles(M, 1);
  const Index count = m_tiles;
  if (pe.id() >= count) co_return;
  const Index k_at = 0, k_n = K;

  Buffer x_t = pe.buffer("x", Dtype::f32, {{axis::m, 1}, {axis::k, K}}, 2);
  Buffer s_t = pe.buffer("s", Dtype::f32, {{axis::m, 1}}, 1);
  Buffer mean_t = pe.buffer("mean", Dtype::f32, {{axis::m, 1}}, 1);
  Buffer ss_t = pe.buffer("ss", Dtype::f32, {{axis::m, 1}}, 1);
  Buffer ss_term_t = pe.buffer("ss_term", Dtype::f32, {{axis::m, 1}, {axis::k, K}}, 1);
  Buffer r_t = pe.buffer("r", Dtype::f32, {{axis::m, 1}}, 1);
  Buffer g_t = pe.buffer("g", Dtype::f32, {{axis::k, K}}, 1);
  Buffer b_t = pe.buffer("b", Dtype::f32, {{axis::k, K}}, 1);
  Buffer y_t = pe.buffer("y", Dtype::f32, {{axis::m, 1}, {axis::k, K}}, 2);

  co_await pe.load(g_t.next(), g_g, {Slice{k_at, axis::k, k_n}});
  co_await pe.load(b_t.next(), b_g, {Slice{k_at, axis::k, k_n}});
  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index m_at = rest % m_tiles * 1;
    const Index m_n = least(1, M - m_at);
    const Box box_m_k{{axis::m, m_n}, {axis::k, k_n}};
    const Box box_m{{axis::m, m_n}};
    co_await pe.load(x_t.next(), x_g, {Slice{m_at, axis::m, m_n}, Slice{k_at, axis::k, k_n}});
    co_await pe.reduce(Reduction::sum, s_t.next(), x_t.tile(), box_m_k, afresh);
    co_await pe.map(Op::div, mean_t.next(), {s_t.tile(), K}, box_m);
    co_await pe.map(Op::sub, ss_term_t.next(), {x_t.tile(), mean_t.tile()}, box_m_k);
    co_await pe.map(Op::mul, ss_term_t.tile(), {ss_term_t.tile(), ss_term_t.tile()}, box_m_k);
    co_await pe.reduce(Reduction::sum, ss_t.next(), ss_term_t.tile(), box_m_k, afresh);
    co_await pe.map(Op::div, r_t.next(), {ss_t.tile(), K}, box_m);
    co_await pe.map(Op::add, r_t.tile(), {r_t.tile(), eps}, box_m);
    co_await pe.map(Op::rsqrt, r_t.tile(), {r_t.tile()}, box_m);
    co_await pe.map(Op::sub, y_t.next(), {x_t.tile(), mean_t.tile()}, box_m_k);
    co_await pe.map(Op::mul, y_t.tile(), {y_t.tile(), r_t.tile()}, box_m_k);
    co_await pe.map(Op::mul, y_t.tile(), {y_t.tile(), g_t.tile()}, box_m_k);
    co_await pe.map(Op::add, y_t.tile(), {y_t.tile(), b_t.tile()}, box_m_k);
    co_await pe.store(y_g, {Slice{m_at, axis::m, m_n}, Slice{k_at, axis::k, k_n}}, y_t.tile());
  }
}
