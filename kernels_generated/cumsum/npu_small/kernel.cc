// cumsum: Add up each row from its start to every place.
// Generated from spec 66c4a252b85db64e and schedule 3a304c1c0fa4fbb4.
#include "device.h"

using namespace device;

namespace {

constexpr double inf = __builtin_inf();
constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace cumsum_0_axes {
namespace axis {
enum : Axis { m, k };
}
}  // namespace cumsum_0_axes

// y[m, k] = cumsum(x[m, k], k)
KERNEL(cumsum_0) {
  using namespace cumsum_0_axes;
  const Index M = args.size(0);
  const Index K = args.size(1);
  const Tensor x_g = args.tensor(0);
  const Tensor y_g = args.tensor(1);
  const Index m_tiles = tiles(M, 1);
  const Index count = m_tiles;
  if (pe.id() >= count) co_return;
  const Index k_at = 0, k_n = K;

  Buffer y_carry_t = pe.buffer("y_carry", Dtype::f32, {{axis::m, 1}}, 1);
  Buffer x_t = pe.buffer("x", Dtype::f32, {{axis::m, 1}, {axis::k, K}}, 2);
  Buffer y_t = pe.buffer("y", Dtype::f32, {{axis::m, 1}, {axis::k, K}}, 2);

  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    Index rest = tile;
    const Index m_at = rest % m_tiles * 1;
    const Index m_n = least(1, M - m_at);
    const Box box_m{{axis::m, m_n}};
    const Box box_m_k{{axis::m, m_n}, {axis::k, k_n}};
    co_await pe.fill(y_carry_t.next(), 0.0, box_m);
    co_await pe.load(x_t.next(), x_g, {Slice{m_at, axis::m, m_n}, Slice{k_at, axis::k, k_n}});
    co_await pe.scan(Reduction::sum, y_t.next(), x_t.tile(), axis::k, y_carry_t.tile(), box_m_k);
    co_await pe.store(y_g, {Slice{m_at, axis::m, m_n}, Slice{k_at, axis::k, k_n}}, y_t.tile());
  }
}
