// rmsnorm_matmul: Project the RMS-normalised rows of x through w, then gate with SiLU.
// Generated from spec f5929ec91dac39fc and schedule e2b09703719877f3.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace rmsnorm_matmul_0_axes {
namespace axis {
enum : Axis { m, n, k };
}
}  // namespace rmsnorm_matmul_0_axes

// ss[m] = sum(f32(x[m, k]) ** 2, k)
// r[m] = rsqrt(ss[m] / K + 1e-06)
// acc[m, n] = sum(f32(x[m, k]) * f32(g[k]) * f32(w[k, n]), k)
// y[m, n] = silu(acc[m, n] * r[m])
KERNEL(rmsnorm_matmul_0) {
  using namespace rmsnorm_matmul_0_axes;
  const Index M = args.size(0);
  const Index K = args.size(1);
  const Index N = args.size(2);
  const Tensor x_g = args.tensor(0);
  const Tensor g_g = args.tensor(1);
  const Tensor w_g = args.tensor(2);
  const Tensor y_g = args.tensor(3);
  const Index m_tiles = tiles(M, 64);
  const Index n_tiles = tiles(N, 128);
  const Index count = m_tiles * n_tiles;
  if (pe.id() >= count) co_return;

  Buffer ss_t = pe.buffer("ss", Dtype::f32, {{axis::m, 64}}, 1);
  Buffer acc_t = pe.buffer("acc", Dtype::f32, {{axis::m, 64}, {axis::n, 128}}, 1);
  Buffer x_t = pe.buffer("x", Dtype::bf16, {{axis::m, 64}, {axis::k, 64}}, 3);
  Buffer ss_term_t = pe.buffer("ss_term", Dtype::f32, {{axis::m, 64}, {axis::k, 64}}, 1);
  Buffer g_t = pe.buffer("g", Dtype::bf16, {{axis::k, 64}}, 1);
  Buffer acc_a_t = pe.buffer("acc_a", Dtype::bf16, {{axis::m, 64}, {axis::k, 64}}, 1);
  Buffer w_t = pe.buffer("w", Dtype::bf16, {{axis::k, 64}, {axis::n, 128}}, 3);
  Buffer r_t = pe.buffer("r", Dtype::f32, {{axis::m, 64}}, 1);
  Buffer y_t = pe.buffer("y", Dtype::bf16, {{axis::m, 64}, {axis::n, 128}}, 1);
  Buffer f32_m_n_0_t = pe.buffer("f32_m_n_0", Dtype::f32, {{axis::m, 64}, {axis::n, 128}}, 1);

  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index n_at = rest % n_tiles * 128;
    rest /= n_tiles;
    const Index n_n = least(128, N - n_at);
    const Index m_at = rest % m_tiles * 64;
    const Index m_n = least(64, M - m_at);
    const Group n_group = run_of(pe, tile, n_tiles, count);
    const Box box_m{{axis::m, m_n}};
    const Box box_m_n{{axis::m, m_n}, {axis::n, n_n}};
    co_await pe.fill(ss_t.next(), 0.0, box_m);
    co_await pe.fill(acc_t.next(), 0.0, box_m_n);
    for (Index k_at = 0; k_at < K; k_at += 64) {
      const Index k_n = least(64, K - k_at);
      const Box box_m_k{{axis::m, m_n}, {axis::k, k_n}};
      const Box box_m_n_k{{axis::m, m_n}, {axis::n, n_n}, {axis::k, k_n}};
      co_await pe.load_shared(x_t.next(), x_g, {Slice{m_at, axis::m, m_n}, Slice{k_at, axis::k, k_n}}, n_group);
      co_await pe.map(Op::mul, ss_term_t.next(), {x_t.tile(), x_t.tile()}, box_m_k);
      co_await pe.reduce(Reduction::sum, ss_t.tile(), ss_term_t.tile(), box_m_k, accumulate);
      co_await pe.load(g_t.next(), g_g, {Slice{k_at, axis::k, k_n}});
      co_await pe.map(Op::mul, acc_a_t.next(), {x_t.tile(), g_t.tile()}, box_m_k);
      co_await pe.load(w_t.next(), w_g, {Slice{k_at, axis::k, k_n}, Slice{n_at, axis::n, n_n}});
      co_await pe.matmul(acc_t.tile(), acc_a_t.tile(), w_t.tile(), box_m_n_k, accumulate);
    }
    co_await pe.map(Op::div, r_t.next(), {ss_t.tile(), K}, box_m);
    co_await pe.map(Op::add, r_t.tile(), {r_t.tile(), 1e-06}, box_m);
    co_await pe.map(Op::rsqrt, r_t.tile(), {r_t.tile()}, box_m);
    co_await pe.map(Op::mul, f32_m_n_0_t.tile(), {acc_t.tile(), r_t.tile()}, box_m_n);
    co_await pe.map(Op::silu, y_t.next(), {f32_m_n_0_t.tile()}, box_m_n);
    co_await pe.store(y_g, {Slice{m_at, axis::m, m_n}, Slice{n_at, axis::n, n_n}}, y_t.tile());
  }
}
