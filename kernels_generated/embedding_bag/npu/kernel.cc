// embedding_bag: Add up the rows of table that each bag names; bag b holds idx[offsets[b]:offsets[b + 1]].
// Generated from spec a43c77321c1f0d91 and schedule a7694c6ecbdaa5d6.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace embedding_bag_0_axes {
namespace axis {
enum : Axis { l, b, d };
}
}  // namespace embedding_bag_0_axes

// y[b, d] = sum(table[idx[l], d], l=range(offsets[b], offsets[b + 1]))
KERNEL(embedding_bag_0) {
  using namespace embedding_bag_0_axes;
  const Index V = args.size(0);
  const Index D = args.size(1);
  const Index L = args.size(2);
  const Index B = args.size(3);
  const Tensor idx_g = args.tensor(0);
  const Tensor table_g = args.tensor(1);
  const Tensor offsets_g = args.tensor(2);
  const Tensor y_g = args.tensor(3);
  const Index b_tiles = tiles(B, 1);
  const Index count = b_tiles;
  if (pe.id() >= count) co_return;
  const Index d_at = 0, d_n = D;

  Buffer y_t = pe.buffer("y", Dtype::f32, {{axis::b, 1}, {axis::d, D}}, 1);
  Buffer idx_t = pe.buffer("idx", Dtype::i32, {{axis::l, 32}}, 3);
  Buffer table_t = pe.buffer("table", Dtype::f32, {{axis::l, 32}, {axis::d, D}}, 4);

  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index b_at = rest % b_tiles * 1;
    const Index b_n = least(1, B - b_at);
    const Box box_b_d{{axis::b, b_n}, {axis::d, d_n}};
    co_await pe.fill(y_t.next(), 0.0, box_b_d);
    const Index l_low = co_await pe.number(offsets_g, {b_at});
    const Index l_high = co_await pe.number(offsets_g, {b_at + 1});
    for (Index l_at = l_low; l_at < l_high; l_at += 32) {
      const Index l_n = least(32, l_high - l_at);
      const Box box_b_d_l{{axis::b, b_n}, {axis::d, d_n}, {axis::l, l_n}};
      co_await pe.load(idx_t.next(), idx_g, {Slice{l_at, axis::l, l_n}});
      co_await pe.load(table_t.next(), table_g, {indirect(idx_t.tile(), axis::l, l_n), Slice{d_at, axis::d, d_n}});
      co_await pe.reduce(Reduction::sum, y_t.tile(), table_t.tile(), box_b_d_l, accumulate);
    }
    co_await pe.store(y_g, {Slice{b_at, axis::b, b_n}, Slice{d_at, axis::d, d_n}}, y_t.tile());
  }
}
