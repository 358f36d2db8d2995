// rnn: One layer of a plain recurrent network, from a state of zeros.
// Generated from spec 17bd5e140578b3fd and schedule 0d6ed821af88a374.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace rnn_0_axes {
namespace axis {
enum : Axis { t, j, i, b };
}
}  // namespace rnn_0_axes

// gx[t, b, j] = sum(x[t, b, i] * wi[j, i], i)
KERNEL(rnn_0) {
  using namespace rnn_0_axes;
  const Index T = args.size(0);
  const Index B = args.size(1);
  const Index I = args.size(2);
  const Index H = args.size(3);
  const Tensor x_g = args.tensor(0);
  const Tensor wi_g = args.tensor(1);
  const Tensor gx_g = args.tensor(2);
  const Index t_tiles = tiles(T, 4);
  const Index j_tiles = tiles(H, 32);
  const Index count = t_tiles * j_tiles;
  if (pe.id() >= count) co_return;
  const Index b_at = 0, b_n = B;

  Buffer gx_t = pe.buffer("gx", Dtype::f32, {{axis::t, 4}, {axis::b, B}, {axis::j, 32}}, 1);
  Buffer x_t = pe.buffer("x", Dtype::f32, {{axis::t, 4}, {axis::b, B}, {axis::i, 128}}, 1);
  Buffer wi_t = pe.buffer("wi", Dtype::f32, {{axis::j, 32}, {axis::i, 128}}, 1);

  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index j_at = rest % j_tiles * 32;
    rest /= j_tiles;
    const Index j_n = least(32, H - j_at);
    const Index t_at = rest % t_tiles * 4;
    const Index t_n = least(4, T - t_at);
    const Box box_t_b_j{{axis::t, t_n}, {axis::b, b_n}, {axis::j, j_n}};
    co_await pe.fill(gx_t.next(), 0.0, box_t_b_j);
    for (Index i_at = 0; i_at < I; i_at += 128) {
      const Index i_n = least(128, I - i_at);
      const Box box_t_b_j_i{{axis::t, t_n}, {axis::b, b_n}, {axis::j, j_n}, {axis::i, i_n}};
      co_await pe.load(x_t.next(), x_g, {Slice{t_at, axis::t, t_n}, Slice{b_at, axis::b, b_n}, Slice{i_at, axis::i, i_n}});
      co_await pe.load(wi_t.next(), wi_g, {Slice{j_at, axis::j, j_n}, Slice{i_at, axis::i, i_n}});
      co_await pe.matmul(gx_t.tile(), x_t.tile(), wi_t.tile(), box_t_b_j_i, accumulate);
    }
    co_await pe.store(gx_g, {Slice{t_at, axis::t, t_n}, Slice{b_at, axis::b, b_n}, Slice{j_at, axis::j, j_n}}, gx_t.tile());
  }
}

namespace rnn_1_axes {
namespace axis {
enum : Axis { t, j, k, b };
}
}  // namespace rnn_1_axes

// gx[t, b, j] = sum(x[t, b, i] * wi[j, i], i)
// a[t, b, j] = sum(pad(h[t - 1, b, k], 0.0) * wh[j, k], k)
// h[t, b, j] = tanh(a[t, b, j] + gx[t, b, j] + bias[j])
KERNEL(rnn_1) {
  using namespace rnn_1_axes;
  const Index T = args.size(0);
  const Index B = args.size(1);
  const Index I = args.size(2);
  const Index H = args.size(3);
  const Index t_at = args.size(4), t_n = 1;
  const Tensor wh_g = args.tensor(0);
  const Tensor bias_g = args.tensor(1);
  const Tensor gx_g = args.tensor(2);
  const Tensor h_g = args.tensor(3);
  const Index j_tiles = tiles(H, 32);
  const Index count = j_tiles;
  if (pe.id() >= count) co_return;
  const Index b_at = 0, b_n = B;

  Buffer a_t = pe.buffer("a", Dtype::f32, {{axis::t, 1}, {axis::b, B}, {axis::j, 32}}, 1);
  Buffer h_t = pe.buffer("h", Dtype::f32, {{axis::t, 1}, {axis::b, B}, {axis::k, 64}}, 1);
  Buffer wh_t = pe.buffer("wh", Dtype::f32, {{axis::j, 32}, {axis::k, 64}}, 1);
  Buffer gx_t = pe.buffer("gx", Dtype::f32, {{axis::t, 1}, {axis::b, B}, {axis::j, 32}}, 1);
  Buffer bias_t = pe.buffer("bias", Dtype::f32, {{axis::j, 32}}, 1);
  Buffer h_2_t = pe.buffer("h_2", Dtype::f32, {{axis::t, 1}, {axis::b, B}, {axis::j, 32}}, 1);

  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index j_at = rest % j_tiles * 32;
    const Index j_n = least(32, H - j_at);
    const Box box_t_b_j{{axis::t, t_n}, {axis::b, b_n}, {axis::j, j_n}};
    co_await pe.fill(a_t.next(), 0.0, box_t_b_j);
    for (Index k_at = 0; k_at < H; k_at += 64) {
      const Index k_n = least(64, H - k_at);
      const Box box_t_b_j_k{{axis::t, t_n}, {axis::b, b_n}, {axis::j, j_n}, {axis::k, k_n}};
      co_await pe.load(h_t.next(), h_g, {Slice{t_at - 1, axis::t, t_n}, Slice{b_at, axis::b, b_n}, Slice{k_at, axis::k, k_n}}, pad(0.0));
      co_await pe.load(wh_t.next(), wh_g, {Slice{j_at, axis::j, j_n}, Slice{k_at, axis::k, k_n}});
      co_await pe.matmul(a_t.tile(), h_t.tile(), wh_t.tile(), box_t_b_j_k, accumulate);
    }
    co_await pe.load(gx_t.next(), gx_g, {Slice{t_at, axis::t, t_n}, Slice{b_at, axis::b, b_n}, Slice{j_at, axis::j, j_n}});
    co_await pe.load(bias_t.next(), bias_g, {Slice{j_at, axis::j, j_n}});
    co_await pe.map(Op::add, h_2_t.next(), {a_t.tile(), gx_t.tile()}, box_t_b_j);
    co_await pe.map(Op::add, h_2_t.tile(), {h_2_t.tile(), bias_t.tile()}, box_t_b_j);
    co_await pe.map(Op::tanh, h_2_t.tile(), {h_2_t.tile()}, box_t_b_j);
    co_await pe.store(h_g, {Slice{t_at, axis::t, t_n}, Slice{b_at, axis::b, b_n}, Slice{j_at, axis::j, j_n}}, h_2_t.tile());
  }
}
