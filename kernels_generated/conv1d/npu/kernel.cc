// conv1d: Convolve each row with kernels of width 3, padded by 1, and add a bias.
// Generated from spec a9ddf1487adb2982 and schedule 6f5864a48613399c.
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
  const Index b_tiles = tiles(B, 4);
  const Index l_tiles = tiles(L, 16);
  const Index o_tiles = tiles(O, 32);
  const Index count = b_tiles * l_tiles * o_tiles;
  if (pe.id() >= count) co_return;
  const Index c_at = 0, c_n = C;
  const Index i_at = 0, i_n = 3;

  Buffer acc_t = pe.buffer("acc", Dtype::f32, {{axis::b, 4}, {axis::o, 32}, {axis::l, 16}}, 1);
  Buffer x_t = pe.buffer("x", Dtype::f16, {{axis::b, 4}, {axis::c, C}, {axis::x_2, 18}}, 2);
  Buffer w_t = pe.buffer("w", Dtype::f16, {{axis::o, 32}, {axis::c, C}, {axis::i, 3}}, 3);
  Buffer bias_t = pe.buffer("bias", Dtype::f16, {{axis::o, 32}}, 2);
  Buffer y_t = pe.buffer("y", Dtype::f16, {{axis::b, 4}, {axis::o, 32}, {axis::l, 16}}, 2);

  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index o_at = rest % o_tiles * 32;
    rest /= o_tiles;
    const Index o_n = least(32, O - o_at);
    const Index l_at = rest % l_tiles * 16;
    rest /= l_tiles;
    const Index l_n = least(16, L - l_at);
    const Index b_at = rest % b_tiles * 4;
    const Index b_n = least(4, B - b_at);
    const Box box_b_o_l_c_i{{axis::b, b_n}, {axis::o, o_n}, {axis::l, l_n}, {axis::c, c_n}, {axis::i, i_n}};
    const Box box_b_o_l{{axis::b, b_n}, {axis::o, o_n}, {axis::l, l_n}};
    co_await pe.load(x_t.next(), x_g, {Slice{b_at, axis::b, b_n}, Slice{c_at, axis::c, c_n}, Slice{l_at + i_at - 1, axis::x_2, (l_n - 1) + (i_n - 1) + 1}}, pad(0.0));
    co_await pe.load(w_t.next(), w_g, {Slice{o_at, axis::o, o_n}, Slice{c_at, axis::c, c_n}, Slice{i_at, axis::i, i_n}});
    co_await pe.matmul(acc_t.next(), x_t.tile().window(axis::x_2, {Step{axis::l, 1}, Step{axis::i, 1}}), w_t.tile(), box_b_o_l_c_i, afresh);
    co_await pe.load(bias_t.next(), bias_g, {Slice{o_at, axis::o, o_n}});
    co_await pe.map(Op::add, y_t.next(), {acc_t.tile(), bias_t.tile()}, box_b_o_l);
    co_await pe.store(y_g, {Slice{b_at, axis::b, b_n}, Slice{o_at, axis::o, o_n}, Slice{l_at, axis::l, l_n}}, y_t.tile());
  }
}
