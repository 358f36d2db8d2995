// Each command of the device interface at work.
#include "device.h"

using namespace device;

namespace {

constexpr bool afresh = false, accumulate = true;

}  // namespace

namespace axis {
enum : Axis { m, n, k, p, i, j };
}

// y[m, n] = silu(sum(x[m, k] * w[k, n], k)), of bf16. The PEs that work on one row of tiles at the same
// time read x once. The next tiles are loaded before this step multiplies.
KERNEL(project) {
  const Index M = args.size(0), K = args.size(1), N = args.size(2);
  const Tensor x_g = args.tensor(0), w_g = args.tensor(1), y_g = args.tensor(2);
  const Index n_tiles = tiles(N, 32), count = tiles(M, 32) * n_tiles;
  if (pe.id() >= count) co_return;
  Buffer x_t = pe.buffer("x", Dtype::bf16, {{axis::m, 32}, {axis::k, 64}}, 2);
  Buffer w_t = pe.buffer("w", Dtype::bf16, {{axis::k, 64}, {axis::n, 32}}, 2);
  Buffer acc_t = pe.buffer("acc", Dtype::f32, {{axis::m, 32}, {axis::n, 32}}, 1);
  Buffer y_t = pe.buffer("y", Dtype::bf16, {{axis::m, 32}, {axis::n, 32}}, 2);
  for (Index tile = pe.id(); tile < count; tile += pe.count()) {
    const Index m_at = tile / n_tiles * 32, m_n = least(32, M - m_at);
    const Index n_at = tile % n_tiles * 32, n_n = least(32, N - n_at);
    const Group row = run_of(pe, tile, n_tiles, count);
    const Box box{{axis::m, m_n}, {axis::n, n_n}};
    co_await pe.fill(acc_t.tile(), 0.0, box);
    Tile x = x_t.next(), w = w_t.next();
    const Index first = least(64, K);
    co_await pe.load_shared(x, x_g, {{m_at, axis::m, m_n}, {0, axis::k, first}}, row);
    co_await pe.load(w, w_g, {{0, axis::k, first}, {n_at, axis::n, n_n}});
    for (Index k_at = 0; k_at < K; k_at += 64) {
      const Index k_n = least(64, K - k_at), after = k_at + 64, after_n = least(64, K - after);
      Tile x_after = x, w_after = w;
      if (after < K) {
        x_after = x_t.next();
        w_after = w_t.next();
        co_await pe.load_shared(x_after, x_g, {{m_at, axis::m, m_n}, {after, axis::k, after_n}}, row);
        co_await pe.load(w_after, w_g, {{after, axis::k, after_n}, {n_at, axis::n, n_n}});
      }
      co_await pe.matmul(acc_t.tile(), x, w, {{axis::m, m_n}, {axis::n, n_n}, {axis::k, k_n}}, accumulate);
      x = x_after;
      w = w_after;
    }
    co_await pe.map(Op::silu, y_t.next(), {acc_t.tile()}, box);
    co_await pe.store(y_g, {{m_at, axis::m, m_n}, {n_at, axis::n, n_n}}, y_t.tile());
  }
}

// total[0] = sum(x[m, n], m, n), of f32. Each row of PEs sums into its first, which adds to memory; that
// was cleared before.
KERNEL(total) {
  const Index M = args.size(0), N = args.size(1);
  const Tensor x_g = args.tensor(0), total_g = args.tensor(1);
  Buffer x_t = pe.buffer("x", Dtype::f32, {{axis::m, 1}, {axis::n, N}}, 2);
  Buffer sum_t = pe.buffer("sum", Dtype::f32, {{axis::i, 1}}, 1);
  co_await pe.fill(sum_t.tile(), 0.0, {{axis::i, 1}});
  if (pe.id() == 0) co_await pe.store(total_g, {{0, axis::i, 1}}, sum_t.tile());
  co_await pe.barrier();
  for (Index m_at = pe.id(); m_at < M; m_at += pe.count()) {
    co_await pe.load(x_t.next(), x_g, {{m_at, axis::m, 1}, {0, axis::n, N}});
    co_await pe.reduce(Reduction::sum, sum_t.tile(), x_t.tile(), {{axis::i, 1}, {axis::m, 1}, {axis::n, N}}, accumulate);
  }
  const Index column = pe.id() % pe.columns(), first = pe.id() - column;
  if (column > 0) {
    co_await pe.send(first, sum_t.tile(), {{axis::i, 1}});
    co_return;
  }
  for (Index other = 1; other < pe.columns(); ++other) {
    co_await pe.receive(sum_t.tile(), first + other, {{axis::i, 1}}, Reduction::sum);
  }
  co_await pe.add(total_g, {{0, axis::i, 1}}, sum_t.tile());
}

// y[m, p] = max(pad(x[idx[m], 2 * p + i - 1], 0.0), i=3) of the rows m from bounds[0] to bounds[1].
KERNEL(windows) {
  const Index N = args.size(0), P = (N - 1) / 2 + 1;
  const Tensor x_g = args.tensor(0), idx_g = args.tensor(1), bounds_g = args.tensor(2), y_g = args.tensor(3);
  Buffer idx_t = pe.buffer("idx", Dtype::i32, {{axis::m, 4}}, 1);
  Buffer x_t = pe.buffer("x", Dtype::f32, {{axis::m, 4}, {axis::n, 2 * P + 1}}, 2);
  Buffer y_t = pe.buffer("y", Dtype::f32, {{axis::m, 4}, {axis::p, P}}, 2);
  const Index low = co_await pe.number(bounds_g, {0});
  const Index high = co_await pe.number(bounds_g, {1});
  for (Index m_at = low + 4 * pe.id(); m_at < high; m_at += 4 * pe.rows() * pe.columns()) {
    const Index m_n = least(4, high - m_at);
    co_await pe.load(idx_t.next(), idx_g, {{m_at, axis::m, m_n}});
    co_await pe.load(x_t.next(), x_g, {indirect(idx_t.tile(), axis::m, m_n), {-1, axis::n, 2 * P + 1}}, pad(0.0));
    const Tile taps = x_t.tile().window(axis::n, {Step{axis::p, 2}, Step{axis::i, 1}});
    co_await pe.reduce(Reduction::max, y_t.next(), taps, {{axis::m, m_n}, {axis::p, P}, {axis::i, 3}}, afresh);
    co_await pe.store(y_g, {{m_at, axis::m, m_n}, {0, axis::p, P}}, y_t.tile());
  }
}

// For v of 8 numbers and 4 sorted borders b: y[0] = cumsum(v), y[1] = how many borders are less,
// y[2] = table[that], of a table that is 10, 11, .., y[3] = v[j] - v[0] of the diagonal v[j] + 0 * v[j].
KERNEL(elements) {
  if (pe.id() > 0) co_return;
  const Tensor v_g = args.tensor(0), b_g = args.tensor(1), y_g = args.tensor(2);
  const Box box{{axis::j, 8}};
  Buffer v_t = pe.buffer("v", Dtype::f32, {{axis::j, 8}}, 1);
  Buffer b_t = pe.buffer("b", Dtype::f32, {{axis::k, 4}}, 1);
  Buffer carry_t = pe.buffer("carry", Dtype::f32, {{axis::i, 1}}, 1);
  Buffer rank_t = pe.buffer("rank", Dtype::i32, {{axis::j, 8}}, 1);
  Buffer table_t = pe.buffer("table", Dtype::i32, {{axis::n, 5}}, 1);
  Buffer found_t = pe.buffer("found", Dtype::i32, {{axis::j, 8}}, 1);
  Buffer square_t = pe.buffer("square", Dtype::f32, {{axis::i, 8}, {axis::j, 8}}, 1);
  Buffer y_t = pe.buffer("y", Dtype::f32, {{axis::m, 4}, {axis::j, 8}}, 1);
  co_await pe.load(v_t.tile(), v_g, {{0, axis::j, 8}});
  co_await pe.load(b_t.tile(), b_g, {{0, axis::k, 4}});
  co_await pe.fill(carry_t.tile(), 0.0, {{axis::i, 1}});
  co_await pe.scan(Reduction::sum, y_t.tile().fix(axis::m, 0), v_t.tile(), axis::j, carry_t.tile().fix(axis::i, 0), box);
  co_await pe.bucketize(rank_t.tile(), v_t.tile(), b_t.tile(), axis::k, 4, box);
  co_await pe.map(Op::copy, y_t.tile().fix(axis::m, 1), {rank_t.tile()}, box);
  co_await pe.iota(table_t.tile(), axis::n, 10, {{axis::n, 5}});
  co_await pe.take(found_t.tile(), table_t.tile(), axis::n, 5, rank_t.tile(), box);
  co_await pe.map(Op::copy, y_t.tile().fix(axis::m, 2), {found_t.tile()}, box);
  co_await pe.map(Op::fma, square_t.tile(), {v_t.tile().rename(axis::j, axis::i), 0.0, v_t.tile()}, {{axis::i, 8}, {axis::j, 8}});
  const Tile diagonal = square_t.tile().rename(axis::i, axis::j), first = v_t.tile().fix(axis::j, 0);
  co_await pe.map(Op::sub, y_t.tile().fix(axis::m, 3), {diagonal, first}, box);
  co_await pe.store(y_g, {{0, axis::m, 4}, {0, axis::j, 4}}, y_t.tile());
  co_await pe.store(y_g, {{0, axis::m, 4}, {4, axis::j, 4}}, y_t.tile().shift(axis::j, 4));
  Buffer at_t = pe.buffer("at", Dtype::i32, {{axis::j, 8}}, 1);
  co_await pe.iota(at_t.tile(), axis::j, 0, box);
  co_await pe.load(v_t.tile(), v_g, {scattered(at_t.tile(), box)});
}
