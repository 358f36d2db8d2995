"""The model against the peaks of a target, and each latency cycle by cycle."""

import numpy as np
import pytest

from backends.sim.native.kernel_fixture import machine, run, target, tiny

_TARGETS = ["npu", "npu_small"]
_ROUNDING = 1e-6  # relative tolerance for a target's figures


@pytest.mark.parametrize("name", _TARGETS)
def test_stated_peaks_are_what_the_rates_multiply_to(name: str) -> None:
    tables = target(name)
    sim, units = tables["sim"], tables["units"]
    elements = sim["rows"] * sim["columns"]
    assert tables["levels"]["grid"] == elements
    per_second = elements * sim["clock_hz"]
    macs = sim["matrix"]["rows"] * sim["matrix"]["columns"]
    for dtype, flops in units["matrix"]["flops"].items():
        rate = 2 * macs * sim["matrix"]["depth_per_cycle"][dtype] * per_second
        assert flops == pytest.approx(rate, rel=_ROUNDING)
    for unit in ("vector", "special"):
        for dtype, flops in units[unit]["flops"].items():
            assert flops == pytest.approx(sim[unit]["lanes"][dtype] * per_second, rel=_ROUNDING)
    dram = sim["dram"]["channels"] * sim["dram"]["bytes_per_cycle"] * sim["clock_hz"]
    assert tables["spaces"]["global"]["bytes_per_second"] == pytest.approx(dram, rel=_ROUNDING)
    shared = sim["shared"]["banks"] * sim["shared"]["bytes_per_cycle"] * sim["clock_hz"]
    assert tables["spaces"]["cache"]["bytes_per_second"] == pytest.approx(shared, rel=_ROUNDING)
    assert tables["spaces"]["cache"]["bytes"] == sim["shared"]["bytes"]


_COPY = """
KERNEL(k) {
  const Index rows = args.size(0);
  auto a = pe.buffer("a", Dtype::f32, {{M, 32}, {N, 64}}, 3);
  for (Index i = pe.id(); i < rows / 32; i += pe.count()) {
    Tile t = a.next();
    co_await pe.load(t, args.tensor(0), {{i * 32, M, 32}, {0, N, 64}});
    co_await pe.store(args.tensor(1), {{i * 32, M, 32}, {0, N, 64}}, t);
  }
}
"""


@pytest.mark.parametrize("name", _TARGETS)
def test_a_copy_reaches_the_memory_bandwidth(name: str) -> None:
    x = np.zeros((64 * 1024, 64), np.float32)
    tensors = {"x": x, "y": np.zeros_like(x)}
    result = run(_COPY, tensors, [len(x)], machine=machine(name), functional=False)
    reached = 2 * x.nbytes / (result["microseconds"] * 1e-6)
    assert 0.85 <= reached / target(name)["spaces"]["global"]["bytes_per_second"] <= 1


_GEMM = """
KERNEL(k) {
  const Index size = args.size(0), depth = args.size(2);
  constexpr Index tile = 96;
  const auto dtype = static_cast<Dtype>(args.size(1));
  auto a = pe.buffer("a", dtype, {{M, tile}, {K, 64}}, 2);
  auto b = pe.buffer("b", dtype, {{K, 64}, {N, tile}}, 2);
  auto c = pe.buffer("c", Dtype::f32, {{M, tile}, {N, tile}}, 2);
  const Index row = pe.id() / pe.columns(), column = pe.id() % pe.columns();
  const Box box{{M, tile}, {N, tile}, {K, 64}};
  for (Index i = row * tile; i < size; i += pe.rows() * tile)
    for (Index j = column * tile; j < size; j += pe.columns() * tile) {
      Tile sum = c.next();
      for (Index s = 0; s < depth; s += 64) {
        Tile p = a.next(), q = b.next();
        co_await pe.load_shared(p, args.tensor(0), {{i, M, tile}, {s, K, 64}},
                                Group{row, pe.columns()});
        co_await pe.load_shared(q, args.tensor(1), {{s, K, 64}, {j, N, tile}},
                                Group{pe.rows() + column, pe.rows()});
        co_await pe.matmul(sum, p, q, box, s > 0);
      }
      co_await pe.store(args.tensor(2), {{i, M, tile}, {j, N, tile}}, sum);
    }
}
"""


@pytest.mark.parametrize(("number", "dtype"), [(1, "f16"), (2, "bf16")])
@pytest.mark.parametrize("name", _TARGETS)
def test_a_warm_matrix_product_reaches_the_matrix_peak(name: str, number: int, dtype) -> None:
    size, depth = 96 * target(name)["sim"]["rows"] * 2, 4096
    x = np.zeros((size, depth), np.float16 if dtype == "f16" else np.uint16)
    w, y = np.zeros((depth, size), x.dtype), np.zeros((size, size), np.float32)
    tensors = {"x": x, "w": w, "y": y}
    launch = ("k", [0, 1, 2], [size, number, depth])
    result = run(_GEMM, tensors, machine=machine(name), functional=False, launches=[launch] * 2)
    seconds = result["launch_cycles"][1] / target(name)["sim"]["clock_hz"]
    reached = 2 * size**2 * depth / seconds / target(name)["units"]["matrix"]["flops"][dtype]
    assert 0.85 <= reached <= 1


_MAP = """
KERNEL(k) {
  const Box box{{M, 64}, {N, 64}};
  auto a = pe.buffer("a", Dtype::f32, box, 1);
  auto b = pe.buffer("b", Dtype::f32, box, 2);
  co_await pe.fill(a.tile(), 1, box);
  for (Index i = 0; i < args.size(0); ++i)
    co_await pe.map(Op::add, b.next(), {a.tile(), 1}, box);
}
"""


@pytest.mark.parametrize("name", _TARGETS)
def test_a_map_reaches_the_vector_peak(name: str) -> None:
    tables = target(name)
    result = run(_MAP, {}, [1000], machine=machine(name), functional=False)
    work = 1000 * 64 * 64 * tables["levels"]["grid"]
    reached = work / (result["microseconds"] * 1e-6) / tables["units"]["vector"]["flops"]["f32"]
    assert 0.85 <= reached <= 1


def _latency(body: str, **changes) -> int:
    """Cycles of a launch in which PE 0 runs the body, on a machine with simple numbers."""
    easy = {
        "issue_cycles": 1,
        "dma": {"startup_cycles": 5, "bytes_per_cycle": 32, "row_cycles": 1},
        "dram": {"latency_cycles": 100, "bytes_per_cycle": 8},
        "shared": {"latency_cycles": 20, "bytes_per_cycle": 64, "block_bytes": 1024},
        "mesh": {"hop_cycles": 2, "bytes_per_cycle": 64},
        "vector": {"startup_cycles": 7},
        "special": {"startup_cycles": 9},
        "reduction": {"startup_cycles": 11},
        "matrix": {"startup_cycles": 13, "rows": 8, "columns": 8},
    }
    source = f"""KERNEL(k) {{
      auto a = pe.buffer("a", Dtype::f32, {{{{M, 16}}, {{N, 16}}}}, 2);
      auto b = pe.buffer("b", Dtype::f32, {{{{N, 16}}}}, 1);
      auto i = pe.buffer("i", Dtype::i32, {{{{N, 16}}}}, 1);
      if (pe.id() == 0) {{ {body} }}
      co_return;
    }}"""
    x = np.zeros((16, 256), np.float32)
    options = {"machine": tiny(**{**easy, **changes}), "functional": False}
    return run(source, {"x": x}, **options)["cycles"]


# The command is issued at cycle 1, followed by the cycles in the row's comment.
@pytest.mark.parametrize(
    ("body", "cycles"),
    [
        # 256 elements over 32 lanes, then the pipeline
        ("co_await pe.fill(a.tile(), 0, {{M, 16}, {N, 16}});", 1 + 8 + 7),
        # a partial group of lanes takes a whole cycle
        ("co_await pe.fill(a.tile(), 0, {{M, 11}, {N, 3}});", 1 + 2 + 7),
        # two independent ones: the second enters when the first has entered
        (
            """co_await pe.fill(a.tile(), 0, {{M, 16}, {N, 16}});
            co_await pe.fill(a.next(), 0, {{M, 16}, {N, 16}});""",
            1 + 8 + 8 + 7,
        ),
        # two dependent ones: the second also waits for the pipeline
        (
            """co_await pe.fill(a.tile(), 0, {{M, 16}, {N, 16}});
            co_await pe.map(Op::neg, a.tile(), {a.tile()}, {{M, 16}, {N, 16}});""",
            1 + 8 + 7 + 8 + 7,
        ),
        # 16 lanes
        ("co_await pe.map(Op::exp, a.tile(), {1.0}, {{M, 16}, {N, 16}});", 1 + 16 + 9),
        # by source elements
        (
            """Tile s = a.tile().fix(M, 0);
            co_await pe.reduce(Reduction::sum, s.fix(N, 0), a.tile(), {{M, 16}, {N, 16}}, false);""",
            1 + 8 + 11,
        ),
        # 16 elements * ceil(log2(6 + 1)) / 32 lanes
        (
            """Tile borders = b.tile().rename(N, K);
            co_await pe.bucketize(i.tile(), b.tile(), borders, K, 6, {{N, 16}});""",
            1 + 2 + 7,
        ),
        # ceil(16 / 8) * ceil(9 / 8) * ceil(16 / 0.125)
        (
            """Tile f = a.tile().rename(M, K), t = a.tile().rename(N, K);
            co_await pe.matmul(a.next(), t, f.rename(N, Q).rename(Q, N),
                               {{M, 16}, {N, 9}, {K, 16}}, false);""",
            1 + 2 * 2 * 128 + 13,
        ),
        # sums that stay in the matrix engine do not wait for its pipeline
        (
            """Tile f = a.tile().rename(M, K), t = a.tile().rename(N, K), c = a.next();
            co_await pe.matmul(c, t, f, {{M, 8}, {N, 8}, {K, 1}}, false);
            co_await pe.matmul(c, t, f, {{M, 8}, {N, 8}, {K, 1}}, true);""",
            1 + 8 + 8 + 13,
        ),
        # startup, request over one hop, bank, block from DRAM, reply over one hop
        (
            "co_await pe.load(b.tile(), args.tensor(0), {{0}, {0, N, 16}});",
            1 + 5 + 2 + 1 + 20 + 128 + 100 + 2 + 1,
        ),
        # the same, with only 64 bytes of metadata to DRAM, and without the latency of shared memory
        (
            "co_await pe.store(args.tensor(0), {{0}, {0, N, 16}}, b.tile());",
            1 + 5 + 2 + 1 + 1 + 8 + 2,
        ),
    ],
)
def test_latency_of_one_command(body: str, cycles: int) -> None:
    assert _latency(body) == cycles


def test_latency_of_a_number() -> None:
    source = "KERNEL(k) { auto n = co_await pe.number(args.tensor(0), {0}); (void)n; }"
    quick = {"mesh": {"hop_cycles": 0, "bytes_per_cycle": 64}, "issue_cycles": 1}
    spec = tiny(dram={"latency_cycles": 100, "bytes_per_cycle": 8}, **quick)
    shared = {"latency_cycles": 20, "bytes_per_cycle": 64, "block_bytes": 1024}
    spec["shared"] = {**spec["shared"], **shared}
    cycles = run(source, {"n": np.zeros(1, np.int32)}, machine=spec)["cycles"]
    assert cycles == 1 + 1 + 20 + 128 + 100 + 1  # issue, bank, its latency, block, DRAM's, mesh


def test_a_barrier_takes_the_way_across_the_grid() -> None:
    spec = tiny(issue_cycles=3, mesh={"hop_cycles": 2})
    cycles = run("KERNEL(k) { co_await pe.barrier(); }", {}, machine=spec)["cycles"]
    assert cycles == 3 + (2 + 2) * 2


def test_a_tile_sent_takes_its_hops_and_its_length() -> None:
    source = """KERNEL(k) {
      auto a = pe.buffer("a", Dtype::f32, {{M, 64}}, 1);
      if (pe.id() == 0) co_await pe.send(3, a.tile(), {{M, 64}});
      if (pe.id() == 3) co_await pe.receive(a.tile(), 0, {{M, 64}});
    }"""
    spec = tiny(issue_cycles=1, mesh={"hop_cycles": 2, "bytes_per_cycle": 64})
    cycles = run(source, {}, machine=spec, functional=False)["cycles"]
    assert cycles == 1 + 3 * 2 + 256 / 64  # two links, and the one to the element


def test_the_control_core_waits_for_a_full_queue() -> None:
    source = """KERNEL(k) {
      auto a = pe.buffer("a", Dtype::f32, {{M, 32}}, 1);
      for (Index i = 0; i < 8 && pe.id() == 0; ++i) co_await pe.fill(a.tile(), 0, {{M, 32}});
    }"""
    spec = tiny(issue_cycles=1, queue_length=2, vector={"lanes": {"f32": 1}, "startup_cycles": 0})
    result = run(source, {}, machine=spec)
    assert result["cycles"] == 1 + 8 * 32
    # Two are in the queue, and a third is held from cycle 3 until the first leaves at 33; the
    # next five are held from one cycle after that until one more has left.
    assert result["engines"]["control"]["stall"] == 30 + 5 * 31
