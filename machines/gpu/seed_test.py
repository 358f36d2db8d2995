"""Seed schedules of a GPU, at sizes of a large machine."""

import dataclasses
import tomllib
from pathlib import Path

import numpy as np
import pytest

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.errors import KernelError
from ir.estimate.estimate import estimate
from ir.lower.lower import lower
from ir.lower.verb_table import canonical
from ir.machine import Space
from ir.parse.schedule import parse_schedule
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from ir.sizes import bind
from machines.gpu import seed
from machines.gpu.quick_cost import work
from machines.registry import read
from testing.samples.samples import KERNELS, WITH_THREADS, decisions, spec_of, workload

TARGETS = Path(__file__).parents[2] / "backends" / "targets"
SIZES = {
    "attention": {"H": 64, "M": 4096, "N": 4096, "D": 128},
    "conv1d": {"B": 2048, "C": 96, "O": 96, "L": 200},
    "conv2d": {"B": 64, "C": 64, "O": 64, "H": 56, "W": 56},
    "cumsum": {"M": 16384, "K": 4096},
    "embedding_bag": {"V": 1_000_000, "D": 128, "L": 262_144, "B": 16384},
    "layer_norm": {"M": 16384, "K": 4096},
    "map_id": {"U": 10_000, "B": 50_000},
    "matmul_bias_gelu": {"M": 8192, "K": 4096, "N": 4096},
    "max_pool2d": {"N": 64, "C": 64, "H": 112, "W": 112},
    "pairwise_dot": {"B": 4096, "F": 27, "D": 128},
    "pffn": {"B": 1024, "N": 200, "D": 256, "K": 160},
    "rmsnorm_matmul": {"M": 4096, "K": 4096, "N": 4096},
    "softmax": {"M": 16384, "K": 4096},
    "wukong_fm": {"B": 1024, "N": 40, "D": 224, "K": 448},
}
TIGHT = dataclasses.replace(
    WITH_THREADS,
    levels={"grid": 300, "thread": 1024, "warp": 64},
    engines=(),
    spaces={**WITH_THREADS.spaces, "shared": Space(2**16), "register": Space(2**19)},
)


def scheduled(name: str, machine=WITH_THREADS):
    return autoschedule(workload(name).spec, machine, SIZES[name])


def tile(schedule, index: str) -> int:
    """The tile of an index, 0: it is whole."""
    decision = schedule.find("tile", index)
    return decision.option("size") if decision else 0


@pytest.mark.parametrize("machine", [WITH_THREADS, TIGHT], ids=["roomy", "tight"])
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_has_a_schedule_that_registers_nearly_hold(name, machine, monkeypatch):
    spec, sizes = workload(name).spec, SIZES[name]
    tried = []
    monkeypatch.setattr(seed, "lower", lambda *given: tried.append(given) or lower(*given))
    schedule = scheduled(name, machine)
    assert 0 < len(tried) < 400, "it is the first thing that a search does"
    assert parse_schedule(str(schedule)) == schedule == canonical(schedule)
    nest = lower(spec, schedule, machine, sizes)
    bound = bind(spec, sizes)
    for launch in nest.launches:
        assert launch.threads
        assert work(launch, machine, bound).residence(launch.threads).spilled < 0.15
    untuned = plain(spec, machine, sizes)
    slow = estimate(lower(spec, untuned, machine, sizes), machine, sizes)
    assert estimate(nest, machine, sizes) <= 1.05 * slow


@pytest.mark.parametrize("name", KERNELS)
def test_schedules_for_large_sizes_compute_the_same_at_any_size(name):
    given = workload(name)
    nest = lower(given.spec, scheduled(name), WITH_THREADS, SIZES[name])
    for sizes in given.checks[:2]:
        inputs = random_inputs(given.spec, sizes, np.random.default_rng(1))
        found, expected = interpret(nest, inputs, sizes), evaluate(given.spec, inputs, sizes)
        for output in given.spec.outputs:
            np.testing.assert_allclose(
                found[output.name], expected[output.name], rtol=1e-8, atol=1e-10
            )


@pytest.mark.parametrize("name", KERNELS)
def test_tiles_are_powers_of_two(name):
    for decision in scheduled(name).of("tile"):
        assert decision.option("size").bit_count() == 1


@pytest.mark.parametrize("name", ["attention", "matmul_bias_gelu", "rmsnorm_matmul"])
def test_large_products_have_large_sides(name):
    schedule = scheduled(name)
    assert tile(schedule, "m") >= 64 and 32 <= tile(schedule, "n") <= 256
    assert schedule.find("threads", "y").option("count") in (128, 256)


def test_what_a_batch_only_repeats_and_taps_go_one_at_a_time():
    assert tile(scheduled("attention"), "h") == 1
    assert tile(scheduled("pffn"), "b") == 1
    schedule = scheduled("conv2d")
    assert (tile(schedule, "i"), tile(schedule, "j")) == (1, 1)
    assert schedule.find("place", "i.outer").option("level") == "loop"


def test_rows_are_whole_where_they_fit_and_the_sums_between_products_too():
    assert tile(scheduled("softmax"), "k") == tile(scheduled("cumsum"), "k") == 0
    schedule = scheduled("pffn")
    assert (tile(schedule, "e"), tile(schedule, "n") >= 32) == (0, True)
    assert not schedule.of("kernel") and not scheduled("wukong_fm").of("kernel")


def test_only_operands_in_loops_are_pipelined():
    assert not scheduled("softmax").of("pipeline")
    found = scheduled("matmul_bias_gelu").of("pipeline")
    assert {d.subject for d in found} == {"x", "w"}
    assert all(d.option("stages") in (2, 3, 4) for d in found)


def test_a_product_of_three_is_done_in_the_cheaper_order():
    """Its operands are not those of the equations, so they are rounded to tf32 and not to f16."""
    w, matrix = workload("wukong_fm"), WITH_THREADS.units["matrix"]
    fast = dataclasses.replace(matrix, flops={**matrix.flops, "tf32": 5e14})
    with_tf32 = dataclasses.replace(WITH_THREADS, units={**WITH_THREADS.units, "matrix": fast})
    schedule = autoschedule(w.spec, with_tf32, SIZES["wukong_fm"])
    assert schedule.of("associate")
    assert schedule.find("precision", "out").option("dtype") == "tf32"
    assert not scheduled("wukong_fm").of("associate")
    assert not autoschedule(
        workload("wukong_fm").spec, WITH_THREADS, {"B": 64, "N": 448, "D": 32, "K": 32}
    ).of("associate")


def test_tiles_of_a_large_product_are_rasterized_in_groups():
    assert scheduled("matmul_bias_gelu").find("rasterize", "m").option("over") == "n"
    assert not scheduled("wukong_fm").of("rasterize")


def test_a_product_of_integers_is_not_for_the_matrix_unit():
    line = "y[m, n] = sum(a[m, k] * b[k, n], k)"
    spec = spec_of(line, inputs="a: i64[M, K], b: i64[K, N]", result="i64[M, N]")
    schedule = autoschedule(spec, WITH_THREADS, {"M": 64, "K": 64, "N": 64})
    assert schedule.find("compute", "y") is None


def test_a_product_of_f32_is_for_the_matrix_unit_too():
    spec = spec_of(
        "y[m, n] = sum(x[m, k] * w[k, n], k)",
        inputs="x: f32[M, K], w: f32[K, N]",
        result="f32[M, N]",
    )
    schedule = autoschedule(spec, WITH_THREADS, {"M": 1024, "K": 1024, "N": 1024})
    assert schedule.find("compute", "y").option("unit") == "matrix"
    assert not schedule.of("precision")


def test_sums_shorter_than_a_step_of_the_matrix_unit_are_tried_on_the_threads():
    spec = spec_of(
        "y[b, m, n] = sum(x[b, m, k] * w[b, k, n], k)",
        inputs="x: f32[B, M, K], w: f32[B, K, N]",
        result="f32[B, M, N]",
    )

    def cost(nest):
        return 2.0 if nest.schedule.of("compute") else 1.0

    sizes = {"B": 64, "M": 32, "N": 32}
    short = autoschedule(spec, WITH_THREADS, sizes | {"K": 3}, cost=cost)
    assert not short.of("compute")
    assert autoschedule(spec, WITH_THREADS, sizes | {"K": 64}, cost=cost).of("compute")


def test_few_rows_of_a_step_are_multiplied_on_the_threads_and_many_by_the_matrix_unit():
    def products(rows):
        sizes = {"T": 64, "B": rows, "I": 256, "H": 256}
        schedule = autoschedule(workload("rnn").spec, WITH_THREADS, sizes)
        return [d.subject for d in schedule.of("compute")]

    assert products(2) == ["gx"]  # the gates' product is outside of the steps, and has all rows
    assert products(512) == ["gx", "a"]


def test_parts_of_a_large_product_of_three_are_made_beforehand_and_moved_in_bulk():
    spec = spec_of(
        "y[m, n] = sum(x[m, k] * w[k, n], k)",
        inputs="x: f32[M, K], w: f32[K, N]",
        result="f32[M, N]",
    )
    matrix = dataclasses.replace(WITH_THREADS.units["matrix"], flops={"tf32": 5e14, "f32": 6e13})
    machine = dataclasses.replace(WITH_THREADS, units=WITH_THREADS.units | {"matrix": matrix})

    def cost(nest):
        return (2 - bool(nest.schedule.of("copy"))) / len(nest.launches)

    found = autoschedule(spec, machine, {"M": 4096, "N": 4096, "K": 4096}, cost=cost)
    assert {d.subject for d in found.of("kernel")} == {"y_al", "y_bl"}
    assert {d.subject for d in found.of("copy")} == {
        f"y_{part}" for part in ("ah", "al", "bh", "bl")
    }


def test_of_schedules_that_a_judge_finds_alike_the_estimate_chooses():
    spec = spec_of(
        "y[m, n] = sum(x[m, k] * w[k, n], k)",
        inputs="x: f16[M, K], w: f16[K, N]",
        result="f32[M, N]",
    )
    sizes = {"M": 4096, "N": 4096, "K": 4096}
    alike = autoschedule(spec, WITH_THREADS, sizes, cost=lambda _: 1.0)
    assert alike == autoschedule(spec, WITH_THREADS, sizes)


def test_fused_matmuls_are_chosen_by_the_estimate():
    """Another judge saw little of what prefetching their operands hides."""
    spec = spec_of(
        "s[m, n] = sum(x[m, k] * w[k, n], k)",
        "p[m, n] = exp(s[m, n])",
        "y[m, o] = sum(p[m, n] * v[n, o], n)",
        inputs="x: f16[M, K], w: f16[K, N], v: f16[N, O]",
        result="f32[M, O]",
    )
    sizes = {"M": 1024, "N": 1024, "K": 64, "O": 64}
    other = autoschedule(
        spec, WITH_THREADS, sizes, cost=lambda nest: 1 / len(nest.schedule.decisions)
    )
    assert other == autoschedule(spec, WITH_THREADS, sizes)


def test_a_depthwise_convolution_with_channels_last_copies_what_has_them_elsewhere():
    line = "y[b, i, j, c] = sum(pad(x[b, {}], 0.0) * w[r, t, c], r, t)"
    windows = "i + r - 3, j + t - 3"
    found = [
        autoschedule(
            spec_of(
                line.format(at),
                inputs=f"x: f16[64, {shape}], w: f16[7, 7, 256]",
                result="f32[64, 28, 28, 256]",
            ),
            WITH_THREADS,
            {},
        )
        for at, shape in ((f"c, {windows}", "256, 28, 28"), (f"{windows}, c", "28, 28, 256"))
    ]
    assert [[d.subject for d in s.of("pack")] for s in found] == [["x"], []]


def test_a_row_that_is_too_long_is_looped():
    sizes = {"M": 64, "K": 1_000_000}
    schedule = autoschedule(workload("softmax").spec, WITH_THREADS, sizes)
    assert tile(schedule, "k") >= 1024 and schedule.of("online")
    spec = spec_of("y[m] = argmax(x[m, k], k)", result="i32[M]")
    assert autoschedule(spec, WITH_THREADS, sizes).of("online")


def test_what_cannot_be_lowered_is_refused_with_the_reason():
    spec = spec_of(
        "y[m, k] = cummax(x[m, k], k, exclusive=True)", inputs="x: i32[M, K]", result="i32[M, K]"
    )
    with pytest.raises(KernelError, match="an exclusive cummax of integers is not lowered"):
        autoschedule(spec, WITH_THREADS, {"M": 4, "K": 8})


@pytest.mark.parametrize(("dtype", "each"), [("f32", 4), ("f16", 8)])
def test_what_is_computed_element_by_element_takes_one_access_a_thread(dtype, each):
    spec = spec_of(
        "y[i] = maximum(x[i] + b[0], 0.0)",
        inputs=f"x: {dtype}[4194304], b: f32[1]",
        result=f"{dtype}[4194304]",
    )
    found = autoschedule(spec, WITH_THREADS, {})
    (tile,), (count,) = found.of("tile"), found.of("threads")
    assert tile.number("size") == each * count.number("count")


def test_a_judge_is_not_asked_of_what_the_estimate_finds_far_too_slow(monkeypatch):
    sizes = {"M": 4096, "N": 4096, "K": 4096}
    spec = spec_of(
        "y[m, n] = sum(x[m, k] * w[k, n], k)",
        inputs="x: f16[M, K], w: f16[K, N]",
        result="f32[M, N]",
    )
    asked = []

    def cost(nest):
        asked.append(1)
        return estimate(nest, WITH_THREADS, sizes)

    counts, found = [], set()
    for far in (1.5, seed.FAR, np.inf):
        monkeypatch.setattr(seed, "FAR", far)
        found.add(autoschedule(spec, WITH_THREADS, sizes, cost=cost))
        counts.append(len(asked))
        asked.clear()
    assert len(found) == 1 and counts[0] < counts[1] <= counts[2]


def test_a_reverse_scan_is_one_launch_where_nothing_else_of_it_reads_the_scan():
    spec = spec_of("y[m, k] = cumsum(x[m, k], k, reverse=True)")
    sizes = {"M": 4096, "K": 8192}
    schedule = autoschedule(spec, WITH_THREADS, sizes)
    assert schedule.find("mirror", "y")
    assert len(lower(spec, schedule, WITH_THREADS, sizes).launches) == 1
    spec = spec_of("t[m, k] = cumsum(x[m, k], k, reverse=True)", "y[m, k] = t[m, k] * x[m, k]")
    schedule = autoschedule(spec, WITH_THREADS, sizes)
    assert not schedule.find("mirror", "t")
    assert len(lower(spec, schedule, WITH_THREADS, sizes).launches) == 2


@pytest.mark.parametrize(("slower", "threads"), [(1.05, 128), (1.15, 128), (1.3, 256)])
def test_a_rounded_convolution_has_as_many_threads_as_usual_where_that_is_hardly_slower(
    slower, threads
):
    spec = spec_of(
        "y[b, o, p, q] = sum(x[b, p + i, q + j, c] * w[i, j, o, c], c, i, j)",
        inputs="x: tf32[16, 65, 129, 32], w: tf32[2, 2, 256, 32]",
        result="f32[16, 256, 64, 128]",
    )
    text = (TARGETS / "h200.toml").read_text(encoding="utf-8")
    machine = read(tomllib.loads(text))

    def cost(nest):
        if nest.schedule.of("copy"):
            return 9.0  # of another tile of its pixels
        return {128: slower, 256: 1.0}.get(nest.schedule.of("threads")[-1].number("count"), 9.0)

    found = autoschedule(spec, machine, {}, cost=cost)
    assert found.of("threads")[-1].number("count") == threads


def test_a_rounded_convolution_takes_a_line_at_a_time_where_two_blocks_then_fit():
    """Whatever a judge says of registers that addresses take; and pixels of images keep their order."""
    spec = spec_of(
        "y[b, o, p, q] = sum(x[b, p * 65 + q + i * 65 + j, c] * w[i, j, o, c], c, i, j)",
        inputs="x: tf32[32, 4291, 64], w: tf32[2, 2, 512, 64]",
        result="f32[32, 512, 65, 65]",
    )
    machine = read(tomllib.loads((TARGETS / "h200.toml").read_text(encoding="utf-8")))

    def cost(nest):
        tiles = {d.subject: d.number("size") for d in nest.schedule.of("tile")}
        whole = {"o": 128, "pq": 128}.items() <= tiles.items() and "c" not in tiles
        count = nest.schedule.of("threads")[-1].number("count")
        return 1.0 if whole and nest.schedule.of("copy") and count == 256 else 9.0

    found = autoschedule(spec, machine, {}, cost=cost)
    assert found.find("tile", "c").number("size") == 32
    assert found.of("threads")[-1].number("count") == 128
    assert len(found.of("copy")) == 2
    assert not found.of("rasterize")


@pytest.mark.parametrize(("slower", "threads"), [(0.9, 128), (1.1, 128), (1.3, 256)])
def test_a_convolution_of_flattened_taps_has_half_the_threads_where_that_is_hardly_slower(
    slower, threads
):
    spec = spec_of(
        "y[b, o, p, q] = sum(x[b, c, p + i, q + j] * w[o, c, i, j], c, i, j)",
        inputs="x: f32[16, 3, 66, 130], w: f32[64, 3, 3, 3]",
        result="f32[16, 64, 64, 128]",
    )
    machine = read(tomllib.loads((TARGETS / "h200.toml").read_text(encoding="utf-8")))

    def cost(nest):
        if len(nest.schedule.of("flatten")) != 2 or nest.schedule.of("pack"):
            return 9.0
        return {128: slower, 256: 1.0}.get(nest.schedule.of("threads")[-1].number("count"), 9.0)

    found = autoschedule(spec, machine, {}, ["y"], cost=cost)
    assert found.of("threads")[-1].number("count") == threads


@pytest.mark.parametrize(("whole", "split"), [(1.05, False), (1.3, True)])
def test_a_product_in_parts_must_be_faster_by_more_than_doubt(whole, split):
    spec = spec_of(
        "y[m, n] = sum(x[m, k] * w[k, n], k)",
        inputs="x: f16[64, 16384], w: f16[16384, 64]",
        result="f32[64, 64]",
    )

    def cost(nest):
        return 1.0 if nest.schedule.of("split_k") else whole

    found = autoschedule(spec, WITH_THREADS, {}, cost=cost)
    assert bool(found.of("split_k")) == split


def test_large_tiles_without_a_loop_have_threads_as_others():
    body = "y[m, k]: [4096, 262144] = x[m, k] * g[k // 2]"
    spec = spec_of(body, inputs="x: f32[4096, 262144], g: f32[131072]", result="f32[4096, 262144]")
    lines = (
        "tile(m, size=8)",
        "tile(k, size=2048)",
        "place(m.outer, level=grid)",
        "place(k.outer, level=grid)",
    )
    nest = lower(spec, decisions(spec, *lines), WITH_THREADS, {})
    assert not seed._is_large_part_of_rows(nest.launches[0], 8 * 2048)


@pytest.mark.parametrize("kind", ["epilogue", "window", "turns"])
def test_a_range_that_data_bound_has_no_seed_in_bulk(kind):
    machine = read(tomllib.loads((TARGETS / "h200.toml").read_text(encoding="utf-8")))
    spec, sizes = workload("embedding_bag").spec, SIZES["embedding_bag"]
    first = autoschedule(spec, machine, sizes)
    assert machine.model.seeds_like(kind, spec, machine, sizes, first) == ()
