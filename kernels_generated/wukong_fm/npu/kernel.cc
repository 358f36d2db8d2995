// wukong_fm: Interact the N embeddings of each sample: x times its transpose times y.
// Generated from spec 52228c1f379b2f9f and schedule a59b3a18950e855e.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace wukong_fm_0_axes {
namespace axis {
enum : Axis { b, k, d, i, n };
}
}  // namespace wukong_fm_0_axes

// t[b, d, k] = sum(f32(x[b, i, d]) * f32(y[b, i, k]), i)
// out[b, n, k] = sum(f32(x[b, n, d]) * t[b, d, k], d)
KERNEL(wukong_fm_0) {
  using namespace wukong_fm_0_axes;
  const Index B = args.size(0);
  const Index N = args.size(1);
  const Index D = args.size(2);
  const Index K = args.size(3);
  const Tensor x_g = args.tensor(0);
  const Tensor y_g = args.tensor(1);
  const Tensor out_g = args.tensor(2);
  const Index b_tiles = tiles(B, 4);
  const Index k_tiles = tiles(K, 64);
  const Index count = b_tiles * k_tiles;
  if (pe.id() >= count) co_return;
  const Index i_at = 0, i_n = N;
  const Index n_at = 0, n_n = N;

  Buffer out_t = pe.buffer("out", Dtype::f32, {{axis::b, 4}, {axis::n, N}, {axis::k, 64}}, 2);
  Buffer x_t = pe.buffer("x", Dtype::f16, {{axis::b, 4}, {axis::n, N}, {axis::d, D}}, 2);
  Buffer t_t = pe.buffer("t", Dtype::f32, {{axis::b, 4}, {axis::d, 32}, {axis::k, 64}}, 1);
  Buffer x_2_t = pe.buffer("x_2", Dtype::f16, {{axis::b, 4}, {axis::i, N}, {axis::d, D}}, 2);
  Buffer y_t = pe.buffer("y", Dtype::f16, {{axis::b, 4}, {axis::i, N}, {axis::k, 64}}, 2);
  Buffer out_b_t = pe.buffer("out_b", Dtype::f16, {{axis::b, 4}, {axis::k, 64}, {axis::d, 32}}, 1);
  Buffer out_out_t = pe.buffer("out_out", Dtype::f16, {{axis::b, 4}, {axis::n, N}, {axis::k, 64}}, 2);

  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index k_at = rest % k_tiles * 64;
    rest /= k_tiles;
    const Index k_n = least(64, K - k_at);
    const Index b_at = rest % b_tiles * 4;
    const Index b_n = least(4, B - b_at);
    const Box box_b_n_k{{axis::b, b_n}, {axis::n, n_n}, {axis::k, k_n}};
    co_await pe.fill(out_t.next(), 0.0, box_b_n_k);
    co_await pe.load(x_t.next(), x_g, {Slice{b_at, axis::b, b_n}, Slice{n_at, axis::n, n_n}, Slice{0, axis::d, D}});
    co_await pe.load(x_2_t.next(), x_g, {Slice{b_at, axis::b, b_n}, Slice{i_at, axis::i, i_n}, Slice{0, axis::d, D}});
    co_await pe.load(y_t.next(), y_g, {Slice{b_at, axis::b, b_n}, Slice{i_at, axis::i, i_n}, Slice{k_at, axis::k, k_n}});
    for (Index d_at = 0; d_at < D; d_at += 32) {
      const Index d_n = least(32, D - d_at);
      const Box box_b_d_k_i{{axis::b, b_n}, {axis::d, d_n}, {axis::k, k_n}, {axis::i, i_n}};
      const Box box_b_k_d{{axis::b, b_n}, {axis::k, k_n}, {axis::d, d_n}};
      const Box box_b_n_k_d{{axis::b, b_n}, {axis::n, n_n}, {axis::k, k_n}, {axis::d, d_n}};
      co_await pe.matmul(t_t.next(), x_2_t.tile().shift(axis::d, d_at), y_t.tile(), box_b_d_k_i, afresh);
      co_await pe.map(Op::copy, out_b_t.next(), {t_t.tile()}, box_b_k_d);
      co_await pe.matmul(out_t.tile(), x_t.tile().shift(axis::d, d_at), out_b_t.tile(), box_b_n_k_d, accumulate);
    }
    co_await pe.map(Op::copy, out_out_t.next(), {out_t.tile()}, box_b_n_k);
    co_await pe.store(out_g, {Slice{b_at, axis::b, b_n}, Slice{n_at, axis::n, n_n}, Slice{k_at, axis::k, k_n}}, out_out_t.tile());
  }
}
