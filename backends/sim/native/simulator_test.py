"""The behaviour of programs: tiles, DMA, mesh, order, time, and the report of a run."""

import json

import numpy as np
import pytest

from backends.sim.native.kernel_fixture import machine, run, tiny

_COPY = """
KERNEL(k) {
  const Index rows = args.size(0), columns = args.size(1);
  auto a = pe.buffer("tile", Dtype::f32, {{M, 8}, {N, 16}}, 3);
  for (Index i = pe.id(); i < tiles(rows, 8); i += pe.count())
    for (Index j = 0; j < columns; j += 16) {
      const Index m = least(8, rows - i * 8), n = least(16, columns - j);
      Tile t = a.next();
      co_await pe.load(t, args.tensor(0), {{i * 8, M, m}, {j, N, n}});
      co_await pe.map(Op::add, t, {t, 1}, {{M, m}, {N, n}});
      co_await pe.store(args.tensor(1), {{i * 8, M, m}, {j, N, n}}, t);
    }
}
"""


def _copy_tensors(rows: int = 101, columns: int = 53) -> dict[str, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    return {"x": x, "y": np.zeros_like(x)}


def test_odd_sizes_are_covered() -> None:
    tensors = _copy_tensors()
    run(_COPY, tensors, [101, 53])
    np.testing.assert_array_equal(tensors["y"], tensors["x"] + 1)


def test_the_same_run_gives_the_same_cycles_and_bits() -> None:
    runs = []
    for _ in range(2):
        tensors = _copy_tensors()
        result = run(_COPY, tensors, [101, 53])
        runs.append((result, tensors["y"].tobytes()))
    assert runs[0] == runs[1]


def test_time_does_not_depend_on_whether_values_are_computed() -> None:
    tensors = _copy_tensors()
    timed = run(_COPY, tensors, [101, 53], functional=False)
    assert not tensors["y"].any()
    full = run(_COPY, tensors, [101, 53])
    assert timed == full == run(_COPY, tensors, [101, 53], check=False)


def test_a_run_reports_what_it_did() -> None:
    tensors = _copy_tensors(64, 64)
    spec = tiny()
    result = run(_COPY, tensors, [64, 64], machine=spec)
    assert result["launch_cycles"] == [result["cycles"]]
    assert result["microseconds"] == pytest.approx(result["cycles"] / spec["clock_hz"] * 1e6)
    assert result["bytes"]["dram_read"] == result["bytes"]["shared_read"] == 64 * 64 * 4
    assert result["bytes"]["dram_write"] == result["bytes"]["shared_write"] == 64 * 64 * 4
    assert result["bytes"]["local"] == 2 * 64 * 64 * 4
    engines = result["engines"]
    assert engines["dma_in"]["commands"] == engines["vector"]["commands"] == 32
    assert engines["vector"]["busy"] == 64 * 64 / spec["vector"]["lanes"]["f32"]
    assert engines["matrix"] == dict(busy=0, stall=0, max_busy=0, max_stall=0, commands=0)
    assert engines["control"]["busy"] == 3 * 32 * spec["issue_cycles"]
    assert len(result["elements"]) == 4
    for name, engine in engines.items():
        assert engine["busy"] == sum(e[name]["busy"] for e in result["elements"])
        assert engine["max_busy"] == max(e[name]["busy"] for e in result["elements"])


def test_launches_follow_each_other_and_keep_the_cache() -> None:
    tensors = _copy_tensors(64, 64)
    spec = tiny()
    launch = ("k", [0, 1], [64, 64])
    result = run(_COPY, tensors, launches=[launch, launch], machine=spec)
    first, second = result["launch_cycles"]
    assert result["cycles"] == first + spec["launch_cycles"] + second
    assert result["bytes"]["dram_read"] == 64 * 64 * 4  # once
    assert second < first


def test_shared_memory_forgets_what_was_used_least_recently() -> None:
    tensors = _copy_tensors(64, 64)
    spec = tiny(shared={"bytes": 4096})
    launch = ("k", [0, 1], [64, 64])
    result = run(_COPY, tensors, launches=[launch, launch], machine=spec)
    assert result["bytes"]["dram_read"] >= 2 * 64 * 64 * 4


def test_the_trace_is_valid_json_with_names(tmp_path) -> None:
    path = tmp_path / "trace.json"
    run(_COPY, _copy_tensors(), [101, 53], trace=str(path))
    events = json.loads(path.read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert {"load x to tile", "add tile", "store tile to y"} <= {e["name"] for e in spans}
    assert {"PE 0", "PE 3", "vector"} <= {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert all(e["dur"] >= 0 and e["args"]["done"] >= e["args"]["cycle"] for e in spans)


_EVERY_DTYPE = """
KERNEL(k) {
  auto t = pe.buffer("t", static_cast<Dtype>(args.size(0)), {{M, 3}, {N, 5}}, 1);
  if (pe.id() != 1) co_return;
  co_await pe.load(t.tile(), args.tensor(0), {{1, M, 3}, {2, N, 5, 2}}, pad(7));
  co_await pe.store(args.tensor(1), {{0, M, 3}, {0, N, 5}}, t.tile());
}
"""


@pytest.mark.parametrize(
    ("number", "dtype"),
    list(enumerate([np.float32, np.float16, np.uint16, np.int32, np.int64, np.bool_])),
)
def test_loads_pad_and_step(number: int, dtype) -> None:
    x = np.arange(24).reshape(3, 8).astype(dtype)
    y = np.zeros((3, 5), dtype)
    run(_EVERY_DTYPE, {"x": x, "y": y}, [number])
    seven = 0x40E0 if dtype is np.uint16 else 7
    want = np.full((3, 5), seven, dtype)
    want[:2, :3] = x[1:, 2::2]
    np.testing.assert_array_equal(y, want)


_GATHER = """
KERNEL(k) {
  const Index n = args.size(0);
  auto rows = pe.buffer("rows", Dtype::i32, {{M, 16}}, 1);
  auto t = pe.buffer("t", Dtype::f32, {{M, 16}, {N, 20}}, 1);
  if (pe.id() != 0) co_return;
  for (Index i = 0; i < n; i += 16) {
    const Index m = least(16, n - i);
    co_await pe.load(rows.tile(), args.tensor(1), {{i, M, m}});
    co_await pe.load(t.tile(), args.tensor(0), {indirect(rows.tile(), M, m), {0, N, 20}}, pad(-1));
    co_await pe.store(args.tensor(2), {{i, M, m}, {0, N, 20}}, t.tile());
    co_await pe.map(Op::max, rows.tile(), {rows.tile(), 0}, {{M, m}});
    co_await pe.add(args.tensor(3), {indirect(rows.tile(), M, m), {0, N, 20}}, t.tile());
  }
}
"""


def test_gather_reads_rows_and_scatter_add_accumulates() -> None:
    rng = np.random.default_rng(1)
    table = rng.integers(0, 9, (11, 20)).astype(np.float32)
    rows = rng.integers(-1, 11, 37).astype(np.int32)
    y, sums = np.zeros((37, 20), np.float32), np.zeros((11, 20), np.float32)
    result = run(_GATHER, {"table": table, "rows": rows, "y": y, "sums": sums}, [37])
    want = np.where(rows[:, None] < 0, -1, table[rows])
    np.testing.assert_array_equal(y, want)
    added = np.zeros_like(sums)
    np.add.at(added, np.maximum(rows, 0), want)
    np.testing.assert_array_equal(sums, added)
    assert result["engines"]["dma_out"]["commands"] == 6


_SCATTERED = """
KERNEL(k) {
  auto at = pe.buffer("at", Dtype::i64, {{M, 3}, {N, 5}}, 1);
  auto t = pe.buffer("t", Dtype::f32, {{M, 3}, {K, 2}, {N, 5}}, 1);
  if (pe.id() != 0) co_return;
  co_await pe.load(at.tile(), args.tensor(1), {{0, M, 3}, {0, N, 5}});
  co_await pe.load(t.tile(), args.tensor(0),
                   {{0, M, 3}, scattered(at.tile(), {{M, 3}, {N, 5}}), {1, K, 2, 2}, {2}}, pad(-1));
  co_await pe.store(args.tensor(2), {{0, M, 3}, {0, K, 2}, {0, N, 5}}, t.tile());
}
"""


def test_scattered_rows_go_together_with_other_dimensions_element_by_element() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 9, (3, 7, 5, 4)).astype(np.float32)
    at = rng.integers(-1, 8, (3, 5))
    y = np.zeros((3, 2, 5), np.float32)
    run(_SCATTERED, {"x": x, "at": at, "y": y}, [])
    want = np.full((3, 2, 5), -1, np.float32)
    for m, n in zip(*np.nonzero((at >= 0) & (at < 7)), strict=True):
        want[m, :, n] = x[m, at[m, n], 1:4:2, 2]
    np.testing.assert_array_equal(y, want)


_WINDOW = """
KERNEL(k) {
  const Index n = args.size(0);
  if (pe.id() != 0) co_return;
  auto x = pe.buffer("x", Dtype::f32, {{M, 66}, {K, 4}}, 1);
  auto w = pe.buffer("w", Dtype::f32, {{N, 8}, {K, 4}, {Q, 3}}, 1);
  auto y = pe.buffer("y", Dtype::f32, {{P, 32}, {N, 8}}, 1);
  co_await pe.load(w.tile(), args.tensor(1), {{0, N, 8}, {0, K, 4}, {0, Q, 3}});
  co_await pe.load(x.tile(), args.tensor(0), {{-1, M, 2 * n + 1}, {0, K, 4}}, pad(0));
  Tile window = x.tile().window(M, {{P, 2}, {Q, 1}});
  const Box box{{P, n}, {N, 8}, {K, 4}, {Q, 3}};
  co_await pe.matmul(y.tile(), window, w.tile(), box, false);
  co_await pe.store(args.tensor(2), {{0, P, n}, {0, N, 8}}, y.tile());
}
"""


def test_a_window_makes_a_strided_convolution_a_matmul() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(64, 4)).astype(np.float32)
    w = rng.normal(size=(8, 4, 3)).astype(np.float32)
    y = np.zeros((32, 8), np.float32)
    run(_WINDOW, {"x": x, "w": w, "y": y}, [32])
    padded = np.pad(x, ((1, 1), (0, 0))).astype(np.float64)
    want = sum(padded[q : q + 64 : 2] @ w[:, :, q].T for q in range(3))
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)


_LOOKUP = """
KERNEL(k) {
  const Index n = args.size(0), count = args.size(1);
  if (pe.id() != 0) co_return;
  auto v = pe.buffer("v", Dtype::f32, {{M, 3}, {N, 64}}, 1);
  auto b = pe.buffer("b", Dtype::f32, {{M, 3}, {K, 16}}, 1);
  auto at = pe.buffer("at", Dtype::i32, {{M, 3}, {N, 64}}, 1);
  auto t = pe.buffer("t", Dtype::i64, {{K, 17}}, 1);
  auto y = pe.buffer("y", Dtype::i32, {{M, 3}, {N, 64}}, 1);
  const Box box{{M, 3}, {N, n}};
  co_await pe.load(v.tile(), args.tensor(0), {{0, M, 3}, {0, N, n}});
  co_await pe.load(b.tile(), args.tensor(1), {{0, M, 3}, {0, K, count}});
  co_await pe.bucketize(at.tile(), v.tile(), b.tile(), K, count, box);
  co_await pe.store(args.tensor(2), {{0, M, 3}, {0, N, n}}, at.tile());
  co_await pe.iota(t.tile(), K, 100, {{K, count + 1}});
  co_await pe.take(y.tile(), t.tile(), K, count + 1, at.tile(), box);
  co_await pe.store(args.tensor(3), {{0, M, 3}, {0, N, n}}, y.tile());
}
"""


@pytest.mark.parametrize("count", [1, 5, 16])
def test_bucketize_counts_borders_below_and_take_looks_up(count: int) -> None:
    rng = np.random.default_rng(count)
    values = rng.integers(-5, 15, (3, 41)).astype(np.float32)
    values[0, 0] = np.nan
    borders = np.sort(rng.integers(-4, 14, (3, count)).astype(np.float32), axis=1)
    at, y = np.zeros((3, 41), np.int32), np.zeros((3, 41), np.int32)
    run(_LOOKUP, {"v": values, "b": borders, "at": at, "y": y}, [41, count])
    want = np.stack([np.searchsorted(b, v, side="left") for b, v in zip(borders, values)])
    np.testing.assert_array_equal(at, want)
    np.testing.assert_array_equal(y, want + 100)


_SHARED = """
KERNEL(k) {
  auto t = pe.buffer("t", Dtype::f32, {{M, 8}, {N, 64}}, 2);
  const Index row = pe.id() / pe.columns();
  for (Index i = 0; i < 4; ++i) {
    Tile a = t.next();
    if (args.size(0))
      co_await pe.load_shared(a, args.tensor(0), {{8 * (4 * row + i), M, 8}, {0, N, 64}},
                              {row, pe.columns()});
    else
      co_await pe.load(a, args.tensor(0), {{8 * (4 * row + i), M, 8}, {0, N, 64}});
    co_await pe.store(args.tensor(1), {{pe.id()}, {8 * i, M, 8}, {0, N, 64}}, a);
  }
}
"""


def test_a_shared_load_reads_once_for_all_members() -> None:
    rng = np.random.default_rng(3)
    results = {}
    for shared in (0, 1):
        x = rng.normal(size=(128, 64)).astype(np.float32)
        y = np.zeros((16, 32, 64), np.float32)
        results[shared] = run(_SHARED, {"x": x, "y": y}, [shared], machine=machine())
        np.testing.assert_array_equal(y, np.repeat(x.reshape(4, 32, 64), 4, axis=0))
    assert results[0]["bytes"]["shared_read"] == 4 * results[1]["bytes"]["shared_read"]
    assert results[1]["bytes"]["mesh"] < results[0]["bytes"]["mesh"]


_RING = """
KERNEL(k) {
  const Box box{{M, 8}, {N, 32}};
  auto t = pe.buffer("t", Dtype::f32, box, 1);
  auto half = pe.buffer("half", Dtype::f16, box, 2);
  co_await pe.load(t.tile(), args.tensor(0), {{pe.id()}, {0, M, 8}, {0, N, 32}});
  for (Index step = 1; step < pe.count(); step *= 2) {
    if (pe.id() % (2 * step) == step) {
      co_await pe.send(pe.id() - step, t.tile(), box);
      break;
    }
    if (pe.id() % (2 * step) == 0)
      co_await pe.receive(t.tile(), pe.id() + step, box, static_cast<Reduction>(args.size(0)));
  }
  if (pe.id() == 0) co_await pe.store(args.tensor(1), {{0, M, 8}, {0, N, 32}}, t.tile());
  // Round the ring, both ways at once.
  const Index next = (pe.id() + 1) % pe.count(), last = (pe.id() + pe.count() - 1) % pe.count();
  Tile a = half.next(), b = half.next();
  co_await pe.fill(a, pe.id(), box);
  co_await pe.send(next, a, box);
  co_await pe.receive(b, last, box);
  co_await pe.store(args.tensor(2), {{pe.id()}, {0, M, 8}, {0, N, 32}}, b);
}
"""


@pytest.mark.parametrize(("reduction", "function"), [(0, np.sum), (1, np.max), (2, np.min)])
def test_tiles_cross_the_mesh_and_reduction(reduction: int, function) -> None:
    x = np.random.default_rng(4).integers(-9, 9, (16, 8, 32)).astype(np.float32)
    y, ring = np.zeros((8, 32), np.float32), np.zeros((16, 8, 32), np.float16)
    run(_RING, {"x": x, "y": y, "ring": ring}, [reduction], machine=machine())
    np.testing.assert_array_equal(y, function(x, axis=0))
    np.testing.assert_array_equal(ring[:, 0, 0], np.roll(np.arange(16), 1))


_BARRIER = """
KERNEL(k) {
  auto t = pe.buffer("t", Dtype::i32, {{M, 4}}, 1);
  co_await pe.fill(t.tile(), pe.id() + 1, {{M, 4}});
  for (Index i = 0; i < 40 * pe.id(); ++i)
    co_await pe.map(Op::copy, t.tile(), {t.tile()}, {{M, 4}});
  co_await pe.store(args.tensor(0), {{pe.id(), kNoAxis}, {0, M, 4}}, t.tile());
  co_await pe.barrier();
  const Index other = (pe.id() + 1) % pe.count();
  Index number = co_await pe.number(args.tensor(0), {other, 2});
  co_await pe.load(t.tile(), args.tensor(0), {{other}, {0, M, 4}});
  co_await pe.barrier();
  co_await pe.map(Op::mul, t.tile(), {t.tile(), number}, {{M, 4}});
  co_await pe.store(args.tensor(0), {{pe.id()}, {0, M, 4}}, t.tile());
}
"""


def test_a_barrier_makes_earlier_stores_visible() -> None:
    x = np.zeros((16, 4), np.int32)
    run(_BARRIER, {"x": x}, machine=machine())
    want = (np.roll(np.arange(1, 17), -1) ** 2)[:, None].repeat(4, axis=1)
    np.testing.assert_array_equal(x, want)


_IN_PLACE = """
KERNEL(k) {
  if (pe.id() != 0) co_return;
  auto t = pe.buffer("t", Dtype::f32, {{M, 4}, {N, 700}}, 1);
  co_await pe.load(t.tile(), args.tensor(0), {{0, M, 4}, {0, N, 700}});
  Tile row = t.tile().fix(M, 3);
  co_await pe.map(Op::add, t.tile(), {t.tile(), row}, {{M, 4}, {N, 700}});
  Tile shifted = t.tile().shift(N, 1);
  co_await pe.map(Op::copy, shifted, {t.tile()}, {{M, 4}, {N, 699}});
  co_await pe.store(args.tensor(0), {{0, M, 4}, {0, N, 700}}, t.tile());
}
"""


def test_operands_are_read_before_the_result_is_written() -> None:
    x = np.random.default_rng(5).normal(size=(4, 700)).astype(np.float32)
    want = x + x[3]
    want[:, 1:] = want[:, :-1].copy()
    run(_IN_PLACE, {"x": x})
    np.testing.assert_array_equal(x, want)


_EMPTY = """
KERNEL(k) {
  if (pe.id() != 0) co_return;
  auto t = pe.buffer("t", Dtype::f32, {{M, 4}, {N, 4}}, 1);
  auto s = pe.buffer("s", Dtype::f32, {{M, 4}}, 1);
  co_await pe.load(t.tile(), args.tensor(0), {{0, M, 4}, {4, N, 0}});
  co_await pe.map(Op::exp, t.tile(), {t.tile()}, {{M, 4}, {N, 0}});
  co_await pe.reduce(Reduction::sum, s.tile(), t.tile(), {{M, 4}, {N, 0}}, false);
  co_await pe.store(args.tensor(0), {{0, M, 4}, {1}}, s.tile());
}
"""


def test_nothing_is_a_legal_amount() -> None:
    x = np.ones((4, 4), np.float32)
    run(_EMPTY, {"x": x})
    assert x[:, 1].tolist() == [0] * 4


_OVERLAP = """
KERNEL(k) {
  if (pe.id() != 0) co_return;
  auto t = pe.buffer("t", Dtype::f32, {{M, 32}, {N, 32}}, args.size(0));
  for (Index i = 0; i < 32; ++i) {
    Tile a = t.next();
    co_await pe.load(a, args.tensor(0), {{32 * i, M, 32}, {0, N, 32}});
    co_await pe.map(Op::neg, a, {a}, {{M, 32}, {N, 32}});
    co_await pe.store(args.tensor(0), {{32 * i, M, 32}, {0, N, 32}}, a);
  }
}
"""


def test_deeper_buffers_overlap_more() -> None:
    x = np.ones((1024, 32), np.float32)
    cycles = [run(_OVERLAP, {"x": x}, [depth])["cycles"] for depth in (1, 2, 4)]
    assert cycles[0] > 1.5 * cycles[1] > 1.5 * cycles[2]
