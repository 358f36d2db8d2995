// pairwise_dot: Multiply every two features of a sample; keep the products below the diagonal.
// Generated from spec f1630f2e12cffdbd and schedule 6410117b85e9242e.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace pairwise_dot_0_axes {
namespace axis {
enum : Axis { b, i, j, d };
}
}  // namespace pairwise_dot_0_axes

// z[b, i, j] = sum(f32(x[b, i, d]) * f32(x[b, j, d]), d)
// y[b, i, j] = where(i > j, z[b, i, j], 0.0)
KERNEL(pairwise_dot_0) {
  using namespace pairwise_dot_0_axes;
  const Index B = args.size(0);
  const Index F = args.size(1);
  const Index D = args.size(2);
  const Tensor x_g = args.tensor(0);
  const Tensor y_g = args.tensor(1);
  const Index b_tiles = tiles(B, 1);
  const Index count = b_tiles;
  if (pe.id() >= count) co_return;
  const Index i_at = 0, i_n = F;
  const Index j_at = 0, j_n = F;
  const Index d_at = 0, d_n = D;
  const Box box_i{{axis::i, i_n}};
  const Box box_j{{axis::j, j_n}};
  const Box box_i_j{{axis::i, i_n}, {axis::j, j_n}};

  Buffer z_t = pe.buffer("z", Dtype::f32, {{axis::b, 1}, {axis::i, F}, {axis::j, F}}, 1);
  Buffer x_t = pe.buffer("x", Dtype::f16, {{axis::b, 1}, {axis::i, F}, {axis::d, D}}, 2);
  Buffer x_2_t = pe.buffer("x_2", Dtype::f16, {{axis::b, 1}, {axis::j, F}, {axis::d, D}}, 2);
  Buffer y_t = pe.buffer("y", Dtype::f16, {{axis::b, 1}, {axis::i, F}, {axis::j, F}}, 2);
  Buffer i32_i_0_t = pe.buffer("i32_i_0", Dtype::i32, {{axis::i, F}}, 1);
  Buffer i32_j_0_t = pe.buffer("i32_j_0", Dtype::i32, {{axis::j, F}}, 1);
  Buffer b8_i_j_0_t = pe.buffer("b8_i_j_0", Dtype::b8, {{axis::i, F}, {axis::j, F}}, 1);

  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index b_at = rest % b_tiles * 1;
    const Index b_n = least(1, B - b_at);
    const Box box_b_i_j_d{{axis::b, b_n}, {axis::i, i_n}, {axis::j, j_n}, {axis::d, d_n}};
    const Box box_b_i_j{{axis::b, b_n}, {axis::i, i_n}, {axis::j, j_n}};
    co_await pe.load(x_t.next(), x_g, {Slice{b_at, axis::b, b_n}, Slice{i_at, axis::i, i_n}, Slice{d_at, axis::d, d_n}});
    co_await pe.load(x_2_t.next(), x_g, {Slice{b_at, axis::b, b_n}, Slice{j_at, axis::j, j_n}, Slice{d_at, axis::d, d_n}});
    co_await pe.matmul(z_t.next(), x_t.tile(), x_2_t.tile(), box_b_i_j_d, afresh);
    co_await pe.iota(i32_i_0_t.tile(), axis::i, i_at, box_i);
    co_await pe.iota(i32_j_0_t.tile(), axis::j, j_at, box_j);
    co_await pe.map(Op::gt, b8_i_j_0_t.tile(), {i32_i_0_t.tile(), i32_j_0_t.tile()}, box_i_j);
    co_await pe.map(Op::select, y_t.next(), {b8_i_j_0_t.tile(), z_t.tile(), 0.0}, box_b_i_j);
    co_await pe.store(y_g, {Slice{b_at, axis::b, b_n}, Slice{i_at, axis::i, i_n}, Slice{j_at, axis::j, j_n}}, y_t.tile());
  }
}
