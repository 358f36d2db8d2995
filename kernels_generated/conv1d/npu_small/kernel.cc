// conv1d: Convolve each row with kernels of width 3, padded by 1, and add a bias.
// Generated from spec a9ddf1487adb2982 and schedule 451cd74454448511.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace conv1d_0_axes {
namespace axis {
enum : Axis { b, l, o, c, i, x_2 };
}
}  // namespace conv1d_0_axes

// acc[b, o, l] = sum(f32(pad(x[b, c, l + i - 1], 0.0)) * f32(w[o, c, i]), c, i)
// y[b, o, l] = acc[b, o, l] + f32(bias[o])
KERNEL(conv1d_0) {
  using namespace conv1d_0_axes;
  const Index B = args.size(0);
  const Index C = args.size(1);
  const Index L = args.size(2);
  const Index O = args.size(3);
  const Tensor x_g = args.tensor(0);
  const Tensor w_g = args.tensor(1);
  const Tensor bias_g = args.tensor(2);
  const Tensor y_g = args.tensor(3);
  const Index b_tiles = tiles(B, 1);
  const Index l_tiles = tiles(L, 64);
  const Index count = b_tiles * l_tiles;
  if (pe.id() >= count) co_return;
  const Index o_at = 0, o_n = O;
  const Index c_at = 0, c_n = C;
  const Index i_at = 0, i_n = 3;

  Buffer acc_t = pe.buffer("acc", Dtype::f32, {{axis::b, 1}, {axis::o, O}, {axis::l, 64}}, 1);
  Buffer x_t = pe.buffer("x", Dtype::f16, {{axis::b, 1}, {axis::c, C}, {axis::x_2, 66}}, 2);
  Buffer w_t = pe.buffer("w", Dtype::f16, {{axis::o, O}, {axis::c, C}, {axis::i, 3}}, 1);
  Buffer bias_t = pe.buffer("bias", Dtype::f16, {{axis::o, O}}, 1);
  Buffer y_t = pe.buffer("y", Dtype::f16, {{axis::b, 1}, {axis::o, O}, {axis::l, 64}}, 2);

  co_await pe.load(w_t.next(), w_g, {Slice{o_at, axis::o, o_n}, Slice{c_at, axis::c, c_n}, Slice{i_at, axis::i, i_n}});
  co_await pe.load(bias_t.next(), bias_g, {Slice{o_at, axis::o, o_n}});
  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index l_at = rest % l_tiles * 64;
    rest /= l_tiles;
    const Index l_n = least(64, L - l_at);
    const Index b_at = rest % b_tiles * 1;
    const Index b_n = least(1, B - b_at);
    const Box box_b_o_l_c_i{{axis::b, b_n}, {axis::o, o_n}, {axis::l, l_n}, {axis::c, c_n}, {axis::i, i_n}};
    const Box box_b_o_l{{axis::b, b_n}, {axis::o, o_n}, {axis::l, l_n}};
    co_await pe.load(x_t.next(), x_g, {Slice{b_at, axis::b, b_n}, Slice{c_at, axis::c, c_n}, Slice{l_at + i_at - 1, axis::x_2, (l_n - 1) + (i_n - 1) + 1}}, pad(0.0));
    co_await pe.matmul(acc_t.next(), x_t.tile().window(axis::x_2, {Step{axis::l, 1}, Step{axis::i, 1}}), w_t.tile(), box_b_o_l_c_i, afresh);
    co_await pe.map(Op::add, y_t.next(), {acc_t.tile(), bias_t.tile()}, box_b_o_l);
    co_await pe.store(y_g, {Slice{b_at, axis::b, b_n}, Slice{o_at, axis::o, o_n}, Slice{l_at, axis::l, l_n}}, y_t.tile());
  }
}
