// max_pool2d: Take the maximum of every 3x3 window, two steps apart, padded by 1.
// Generated from spec 8157973b6de032a1 and schedule 2a8ef748037890cc.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace max_pool2d_0_axes {
namespace axis {
enum : Axis { p, q, n, c, i, j, x_2, x_3 };
}
}  // namespace max_pool2d_0_axes

// y[n, c, p, q] = max(pad(x[n, c, 2 * p + i - 1, 2 * q + j - 1], -inf), i=3, j=3)
KERNEL(max_pool2d_0) {
  using namespace max_pool2d_0_axes;
  const Index N = args.size(0);
  const Index C = args.size(1);
  const Index H = args.size(2);
  const Index W = args.size(3);
  const Index P = args.size(4);
  const Index Q = args.size(5);
  const Tensor x_g = args.tensor(0);
  const Tensor y_g = args.tensor(1);
  const Index p_tiles = tiles(P, 1);
  const Index q_tiles = tiles(Q, 4);
  const Index count = p_tiles * q_tiles;
  if (pe.id() >= count) co_return;
  const Index n_at = 0, n_n = N;
  const Index c_at = 0, c_n = C;
  const Index i_at = 0, i_n = 3;
  const Index j_at = 0, j_n = 3;

  Buffer y_t = pe.buffer("y", Dtype::f32, {{axis::n, N}, {axis::c, C}, {axis::p, 1}, {axis::q, 4}}, 2);
  Buffer x_t = pe.buffer("x", Dtype::f32, {{axis::n, N}, {axis::c, C}, {axis::x_2, 3}, {axis::x_3, 9}}, 2);

  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index q_at = rest % q_tiles * 4;
    rest /= q_tiles;
    const Index q_n = least(4, Q - q_at);
    const Index p_at = rest % p_tiles * 1;
    const Index p_n = least(1, P - p_at);
    const Box box_n_c_p_q_i_j{{axis::n, n_n}, {axis::c, c_n}, {axis::p, p_n}, {axis::q, q_n}, {axis::i, i_n}, {axis::j, j_n}};
    co_await pe.load(x_t.next(), x_g, {Slice{n_at, axis::n, n_n}, Slice{c_at, axis::c, c_n}, Slice{2 * p_at + i_at - 1, axis::x_2, 2 * (p_n - 1) + (i_n - 1) + 1}, Slice{2 * q_at + j_at - 1, axis::x_3, 2 * (q_n - 1) + (j_n - 1) + 1}}, pad(-inf));
    co_await pe.reduce(Reduction::max, y_t.next(), x_t.tile().window(axis::x_2, {Step{axis::p, 2}, Step{axis::i, 1}}).window(axis::x_3, {Step{axis::q, 2}, Step{axis::j, 1}}), box_n_c_p_q_i_j, afresh);
    co_await pe.store(y_g, {Slice{n_at, axis::n, n_n}, Slice{c_at, axis::c, c_n}, Slice{p_at, axis::p, p_n}, Slice{q_at, axis::q, q_n}}, y_t.tile());
  }
}
