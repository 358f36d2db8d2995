// map_id: Find each id among the sorted keys: its place counted from 1, or 0 where it is missing.
// Generated from spec 2a0b685e5976ff86 and schedule f0d8f450fb146069.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace map_id_0_axes {
namespace axis {
enum : Axis { b, keys_0 };
}
}  // namespace map_id_0_axes

// y[b] = where(hit[b] == ids[b], pos[b] + 1, 0)
KERNEL(map_id_0) {
  using namespace map_id_0_axes;
  const Index B = args.size(0);
  const Index U = args.size(1);
  const Tensor keys_g = args.tensor(0);
  const Tensor ids_g = args.tensor(1);
  const Tensor y_g = args.tensor(2);
  const Index b_tiles = tiles(B, 64);
  const Index count = b_tiles;
  if (pe.id() >= count) co_return;

  Buffer keys_t = pe.buffer("keys", Dtype::i32, {{axis::keys_0, U}}, 1);
  Buffer ids_t = pe.buffer("ids", Dtype::i32, {{axis::b, 64}}, 1);
  Buffer keys_rank_t = pe.buffer("keys_rank", Dtype::i32, {{axis::b, 64}}, 1);
  Buffer keys_rows_t = pe.buffer("keys_rows", Dtype::i32, {{axis::b, 64}}, 1);
  Buffer keys_at_t = pe.buffer("keys_at", Dtype::i32, {{axis::b, 64}}, 1);
  Buffer y_t = pe.buffer("y", Dtype::i32, {{axis::b, 64}}, 1);
  Buffer b8_b_0_t = pe.buffer("b8_b_0", Dtype::b8, {{axis::b, 64}}, 1);

  co_await pe.load_shared(keys_t.next(), keys_g, {Slice{0, axis::keys_0, U}}, Group{-1, least(count, pe.count())});
  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index b_at = rest % b_tiles * 64;
    const Index b_n = least(64, B - b_at);
    const Box box_b{{axis::b, b_n}};
    co_await pe.load(ids_t.next(), ids_g, {Slice{b_at, axis::b, b_n}});
    co_await pe.bucketize(keys_rank_t.next(), ids_t.tile(), keys_t.tile(), axis::keys_0, U, box_b);
    co_await pe.map(Op::min, keys_rows_t.next(), {keys_rank_t.tile(), U - (1)}, box_b);
    co_await pe.take(keys_at_t.next(), keys_t.tile(), axis::keys_0, U, keys_rows_t.tile(), box_b);
    co_await pe.map(Op::eq, b8_b_0_t.tile(), {keys_at_t.tile(), ids_t.tile()}, box_b);
    co_await pe.map(Op::add, y_t.next(), {keys_rank_t.tile(), 1}, box_b);
    co_await pe.map(Op::select, y_t.tile(), {b8_b_0_t.tile(), y_t.tile(), 0}, box_b);
    co_await pe.store(y_g, {Slice{b_at, axis::b, b_n}}, y_t.tile());
  }
}
