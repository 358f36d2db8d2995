// conv2d: Convolve images with 3x3 kernels, padded by 1, and add a bias.
// Generated from spec c28c2ece5cecb63c and schedule e263c2c112f454a9.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace conv2d_0_axes {
namespace axis {
enum : Axis { b, p, o, q, c, i, j, x_2, x_3 };
}
}  // namespace conv2d_0_axes

// acc[b, o, p, q] = sum(f32(pad(x[b, c, p + i - 1, q + j - 1], 0.0)) * f32(w[o, c, i, j]), c, i, j)
// y[b, o, p, q] = acc[b, o, p, q] + f32(bias[o])
KERNEL(conv2d_0) {
  using namespace conv2d_0_axes;
  const Index B = args.size(0);
  const Index C = args.size(1);
  const Index H = args.size(2);
  const Index W = args.size(3);
  const Index O = args.size(4);
  const Tensor x_g = args.tensor(0);
  const Tensor w_g = args.tensor(1);
  const Tensor bias_g = args.tensor(2);
  const Tensor y_g = args.tensor(3);
  const Index b_tiles = tiles(B, 1);
  const Index p_tiles = tiles(H, 1);
  const Index count = b_tiles * p_tiles;
  if (pe.id() >= count) co_return;
  const Index o_at = 0, o_n = O;
  const Index q_at = 0, q_n = W;
  const Index c_at = 0, c_n = C;
  const Index i_at = 0, i_n = 3;
  const Index j_at = 0, j_n = 3;

  Buffer acc_t = pe.buffer("acc", Dtype::f32, {{axis::b, 1}, {axis::o, O}, {axis::p, 1}, {axis::q, W}}, 1);
  Buffer x_t = pe.buffer("x", Dtype::f16, {{axis::b, 1}, {axis::c, C}, {axis::x_2, 3}, {axis::x_3, 2 + W - 1 + 1}}, 2);
  Buffer w_t = pe.buffer("w", Dtype::f16, {{axis::o, O}, {axis::c, C}, {axis::i, 3}, {axis::j, 3}}, 1);
  Buffer bias_t = pe.buffer("bias", Dtype::f16, {{axis::o, O}}, 1);
  Buffer y_t = pe.buffer("y", Dtype::f16, {{axis::b, 1}, {axis::o, O}, {axis::p, 1}, {axis::q, W}}, 2);

  co_await pe.load(w_t.next(), w_g, {Slice{o_at, axis::o, o_n}, Slice{c_at, axis::c, c_n}, Slice{i_at, axis::i, i_n}, Slice{j_at, axis::j, j_n}});
  co_await pe.load(bias_t.next(), bias_g, {Slice{o_at, axis::o, o_n}});
  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index p_at = rest % p_tiles * 1;
    rest /= p_tiles;
    const Index p_n = least(1, H - p_at);
    const Index b_at = rest % b_tiles * 1;
    const Index b_n = least(1, B - b_at);
    const Box box_b_o_p_q_c_i_j{{axis::b, b_n}, {axis::o, o_n}, {axis::p, p_n}, {axis::q, q_n}, {axis::c, c_n}, {axis::i, i_n}, {axis::j, j_n}};
    const Box box_b_o_p_q{{axis::b, b_n}, {axis::o, o_n}, {axis::p, p_n}, {axis::q, q_n}};
    co_await pe.load(x_t.next(), x_g, {Slice{b_at, axis::b, b_n}, Slice{c_at, axis::c, c_n}, Slice{p_at + i_at - 1, axis::x_2, (p_n - 1) + (i_n - 1) + 1}, Slice{q_at + j_at - 1, axis::x_3, (q_n - 1) + (j_n - 1) + 1}}, pad(0.0));
    co_await pe.matmul(acc_t.next(), x_t.tile().window(axis::x_2, {Step{axis::p, 1}, Step{axis::i, 1}}).window(axis::x_3, {Step{axis::q, 1}, Step{axis::j, 1}}), w_t.tile(), box_b_o_p_q_c_i_j, afresh);
    co_await pe.map(Op::add, y_t.next(), {acc_t.tile(), bias_t.tile()}, box_b_o_p_q);
    co_await pe.store(y_g, {Slice{b_at, axis::b, b_n}, Slice{o_at, axis::o, o_n}, Slice{p_at, axis::p, p_n}, Slice{q_at, axis::q, q_n}}, y_t.tile());
  }
}
