// matmul_bias_gelu: Multiply two matrices, add a bias to each row and apply GELU.
// Generated from spec 035bab293e63640e and schedule bd9a5d56335591a8.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace matmul_bias_gelu_0_axes {
namespace axis {
enum : Axis { m, n, k };
}
}  // namespace matmul_bias_gelu_0_axes

// acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)
// y[m, n] = gelu(acc[m, n] + f32(b[n]))
KERNEL(matmul_bias_gelu_0) {
  using namespace matmul_bias_gelu_0_axes;
  const Index M = args.size(0);
  const Index K = args.size(1);
  const Index N = args.size(2);
  const Tensor x_g = args.tensor(0);
  const Tensor w_g = args.tensor(1);
  const Tensor b_g = args.tensor(2);
  const Tensor y_g = args.tensor(3);
  const Index m_tiles = tiles(M, 64);
  const Index n_tiles = tiles(N, 64);
  const Index count = m_tiles * n_tiles;
  if (pe.id() >= count) co_return;
  const Index k_at = 0, k_n = K;

  Buffer acc_t = pe.buffer("acc", Dtype::f32, {{axis::m, 64}, {axis::n, 64}}, 1);
  Buffer x_t = pe.buffer("x", Dtype::bf16, {{axis::m, 64}, {axis::k, K}}, 2);
  Buffer w_t = pe.buffer("w", Dtype::bf16, {{axis::k, K}, {axis::n, 64}}, 2);
  Buffer b_t = pe.buffer("b", Dtype::bf16, {{axis::n, 64}}, 2);
  Buffer y_t = pe.buffer("y", Dtype::bf16, {{axis::m, 64}, {axis::n, 64}}, 2);
  Buffer f32_m_n_0_t = pe.buffer("f32_m_n_0", Dtype::f32, {{axis::m, 64}, {axis::n, 64}}, 1);

  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index n_at = rest % n_tiles * 64;
    rest /= n_tiles;
    const Index n_n = least(64, N - n_at);
    const Index m_at = rest % m_tiles * 64;
    const Index m_n = least(64, M - m_at);
    const Box box_m_n_k{{axis::m, m_n}, {axis::n, n_n}, {axis::k, k_n}};
    const Box box_m_n{{axis::m, m_n}, {axis::n, n_n}};
    co_await pe.load(x_t.next(), x_g, {Slice{m_at, axis::m, m_n}, Slice{k_at, axis::k, k_n}});
    co_await pe.load(w_t.next(), w_g, {Slice{k_at, axis::k, k_n}, Slice{n_at, axis::n, n_n}});
    co_await pe.matmul(acc_t.next(), x_t.tile(), w_t.tile(), box_m_n_k, afresh);
    co_await pe.load(b_t.next(), b_g, {Slice{n_at, axis::n, n_n}});
    co_await pe.map(Op::add, f32_m_n_0_t.tile(), {acc_t.tile(), b_t.tile()}, box_m_n);
    co_await pe.map(Op::gelu, y_t.next(), {f32_m_n_0_t.tile()}, box_m_n);
    co_await pe.store(y_g, {Slice{m_at, axis::m, m_n}, Slice{n_at, axis::n, n_n}}, y_t.tile());
  }
}
