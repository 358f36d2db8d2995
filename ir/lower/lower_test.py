"""Lowered nests give the reference's results when the interpreter runs them."""

import random

import numpy as np
import pytest

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.nest.nest import Fill, Load, LoopNest, Store
from ir.parse.parse import parse_spec
from ir.parse.schedule import parse_schedule
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate, evaluate_storage, storage_dtype
from ir.reference.rounding import BITS
from ir.schedule import Schedule
from ir.spec import FLOATS, Spec
from ir.workload import Sizes
from testing.samples.right import require_right
from testing.samples.samples import (
    KERNELS,
    SMALL,
    decisions,
    lowered,
    outline,
    spec_of,
    statements,
    workload,
)

WALKS = 6
LONGEST_WALK = 12


def given(spec: Spec, sizes: Sizes) -> dict[str, np.ndarray]:
    return random_inputs(spec, sizes, np.random.default_rng(5))


def require_right_when_checked(name: str, *lines: str) -> LoopNest:
    """A schedule of a library kernel must be right at all of its check sizes."""
    nest = lowered(name, *lines)
    for sizes in workload(name).checks:
        require_right(nest, sizes)
    return nest


# -- the library ----------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", [autoschedule, plain])
@pytest.mark.parametrize("name", KERNELS)
def test_a_schedule_made_for_other_sizes_is_right_at_every_check_size(name, scheduler):
    w = workload(name)
    schedule = scheduler(w.spec, SMALL, w.tune)
    nest = lower(w.spec, schedule, SMALL, w.tune)
    for sizes in w.checks:
        require_right(nest, sizes)


@pytest.mark.parametrize("scheduler", [autoschedule, plain])
@pytest.mark.parametrize("name", KERNELS)
def test_a_schedule_made_for_its_own_sizes_is_right(name, scheduler):
    w = workload(name)
    for sizes in w.checks:
        schedule = scheduler(w.spec, SMALL, sizes)
        require_right(lower(w.spec, schedule, SMALL, sizes), sizes)


@pytest.mark.parametrize("name", KERNELS)
def test_in_its_own_dtypes_a_nest_errs_little_more_than_plain_arithmetic(name):
    w = workload(name)
    sizes = w.checks[-1]
    inputs = given(w.spec, sizes)
    exact, storage = evaluate(w.spec, inputs, sizes), evaluate_storage(w.spec, inputs, sizes)
    nest = lower(w.spec, autoschedule(w.spec, SMALL, sizes), SMALL, sizes)
    found = interpret(nest, inputs, sizes, rounded=True)
    last = 2.0 ** (1 - BITS.get(storage_dtype(w.spec), 24))
    for t in w.spec.outputs:
        if t.dtype not in FLOATS:
            np.testing.assert_array_equal(found[t.name], exact[t.name])
            continue
        allowed = 3 * rms(storage[t.name] - exact[t.name]) + 4 * last * rms(exact[t.name])
        assert rms(found[t.name] - exact[t.name]) <= allowed


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))


def test_precision_rounds_the_operands_of_a_product_and_nothing_else_does():
    lines = ("compute(z, unit=matrix)", "compute(u, unit=matrix)", "kernel(hn)")
    sizes = workload("pffn").checks[-1]
    inputs = given(workload("pffn").spec, sizes)
    wide = interpret(lowered("pffn", *lines), inputs, sizes, rounded=True)["y"]
    narrow_nest = lowered("pffn", *lines, "precision(z, dtype=f16)")
    narrow = interpret(narrow_nest, inputs, sizes, rounded=True)["y"]
    exact = evaluate(workload("pffn").spec, inputs, sizes)["y"]
    assert rms(wide - exact) < rms(narrow - exact) < 8 * rms(wide - exact)


# -- random walks ---------------------------------------------------------------------------


def walk(spec: Spec, sizes: Sizes, seed: int) -> Schedule:
    """A schedule some random legal edits away from a seed schedule, all verbs equally likely."""
    rng = random.Random(seed)
    schedule = (autoschedule, plain)[seed % 2](spec, SMALL, sizes)
    for _ in range(rng.randint(1, LONGEST_WALK)):
        found = neighbours(spec, schedule, SMALL, sizes)
        verbs = sorted({(e.new or e.old).verb for e in found})
        verb = rng.choice(verbs)
        changed = rng.choice([e for e in found if (e.new or e.old).verb == verb]).apply(schedule)
        try:
            lower(spec, changed, SMALL, sizes)
        except KernelError:
            continue
        schedule = changed
    return schedule


@pytest.mark.parametrize("seed", range(WALKS))
@pytest.mark.parametrize("name", KERNELS)
def test_what_lowering_accepts_is_right_whatever_was_edited(name, seed):
    w = workload(name)
    sizes = w.checks[1]
    schedule = walk(w.spec, sizes, seed)
    read_back = parse_schedule(str(schedule))
    assert read_back == schedule
    nest = lower(w.spec, schedule, SMALL, sizes)
    assert lower(w.spec, read_back, SMALL, sizes) == nest
    try:
        require_right(nest, sizes)
    except AssertionError as fault:
        raise AssertionError(f"{schedule}\n{fault}") from fault


@pytest.mark.parametrize("name", KERNELS)
def test_the_order_of_the_grid_does_not_matter(name):
    w = workload(name)
    sizes = w.checks[1]
    nest = lower(w.spec, plain(w.spec, SMALL, sizes), SMALL, sizes)
    inputs = given(w.spec, sizes)
    first = interpret(nest, inputs, sizes)
    for seed in range(3):
        again = interpret(nest, inputs, sizes, rng=np.random.default_rng(seed))
        for t in w.spec.outputs:
            np.testing.assert_array_equal(first[t.name], again[t.name])


# -- schedules by hand ----------------------------------------------------------------------

MATMUL_NORM = (  # as in docs and LANGUAGE.md, smaller tiles
    "tile(m, size=16)",
    "tile(n, size=32)",
    "tile(k, size=8)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
    "place(k.outer, level=loop)",
    "fuse(ss, into=acc)",
    "hoist(r, into=y)",
    "pipeline(x, stages=3)",
    "pipeline(w, stages=3)",
    "compute(acc, unit=matrix, acc=f32)",
)


def test_rmsnorm_matmul_as_in_the_language_reads_x_once():
    nest = require_right_when_checked("rmsnorm_matmul", *MATMUL_NORM)
    (launch,) = nest.launches
    assert [g.index for g in launch.grid] == ["m", "n"]
    assert len(statements(nest, Load, "x")) == 1
    (loop,) = [part for part in outline(launch.body) if isinstance(part, list)]
    assert loop[0] == "k"
    assert {"Load x", "Load w", "Reduction ss", "Dot acc"} <= set(loop)
    assert launch.value("x").stages == 3


def test_without_fuse_and_hoist_x_is_read_in_two_loops():
    lines = [d for d in MATMUL_NORM if not d.startswith(("fuse", "hoist"))]
    nest = require_right_when_checked("rmsnorm_matmul", *lines)
    assert len(statements(nest, Load, "x")) == 2


FLASH = (
    "tile(h, size=1)",
    "tile(m, size=16)",
    "tile(n, size=8)",
    "place(h.outer, level=grid)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=loop)",
    "online(mx, into=o)",
    "fuse(l, into=o)",
)


@pytest.mark.parametrize(
    "more", [(), ("compute(s, unit=matrix)", "compute(o, unit=matrix)", "pipeline(k, stages=2)")]
)
def test_online_attention_walks_the_keys_once(more):
    nest = require_right_when_checked("attention", *FLASH, *more)
    (launch,) = nest.launches
    (loop,) = [part for part in outline(launch.body) if isinstance(part, list)]
    assert loop[0] == "n"
    assert len(statements(nest, Load, "k")) == len(statements(nest, Load, "v")) == 1


def test_online_attention_may_have_its_sum_left_in_a_loop_of_its_own():
    lines = [d for d in FLASH if not d.startswith(("fuse", "online"))]
    nest = require_right_when_checked("attention", *lines)
    loops = [part for part in outline(nest.launches[0].body) if isinstance(part, list)]
    assert [part[0] for part in loops] == ["n", "n", "n"]


def test_a_softmax_of_long_rows_takes_three_passes():
    nest = require_right_when_checked(
        "softmax", "tile(m, size=4)", "tile(k, size=32)", "place(m.outer, level=grid)"
    )
    assert len(statements(nest, Load, "x")) == 3


def test_a_online_softmax_takes_two_passes():
    nest = require_right_when_checked(
        "softmax",
        "tile(m, size=4)",
        "tile(k, size=32)",
        "place(m.outer, level=grid)",
        "online(mx, into=s)",
    )
    assert len(statements(nest, Load, "x")) == 2


def test_streaming_where_the_index_is_not_looped_changes_nothing():
    require_right_when_checked("softmax", "online(mx, into=s)")


def test_streaming_a_maximum_of_another_launch_changes_nothing():
    require_right_when_checked("softmax", "kernel(mx)", "online(mx, into=s)")


def test_a_loop_outside_the_loop_that_it_is_reduced_in_is_right_or_refused():
    lines = (
        "tile(k, size=8)",
        "tile(m, size=4)",
        "place(k.outer, level=loop)",
        "place(m.outer, level=loop)",
    )
    try:
        nest = lowered("softmax", *lines)
    except KernelError:
        return
    for sizes in workload("softmax").checks:
        require_right(nest, sizes)


def test_staging_at_the_grid_loads_the_row_once_for_all_passes():
    nest = require_right_when_checked(
        "softmax",
        "tile(m, size=4)",
        "tile(k, size=32)",
        "place(m.outer, level=grid)",
        "load(x, at=grid)",
    )
    (load,) = statements(nest, Load, "x")
    assert load in nest.launches[0].body
    assert any(one.whole for one in load.region)


def test_one_tensor_may_be_staged_whole_for_one_loop_and_in_tiles_for_another():
    spec = parse_spec(
        "def f(x: f32[M, K]) -> (f32[M], f32[K]):\n"
        '    """F."""\n    a[m] = sum(x[m, k], k)\n    b[k] = sum(x[m, k], m)\n    return a, b\n'
    )
    lines = ("tile(k, size=2)", "tile(m, size=2)", "load(x, at=k.outer)")
    for order in (("place(k.outer, level=loop)",), ("place(m.outer, level=loop)",)):
        sizes = {"M": 5, "K": 7}
        require_right(lower(spec, decisions(spec, *lines, *order), SMALL, sizes), sizes)


def test_staging_deeper_changes_the_buffer_and_nothing_else():
    lines = ("tile(m, size=4)", "tile(k, size=32)", "place(m.outer, level=grid)")
    one = lowered("softmax", *lines)
    three = require_right_when_checked("softmax", *lines, "pipeline(x, stages=3)")
    assert (one.launches[0].value("x").stages, three.launches[0].value("x").stages) == (1, 3)
    assert one.launches[0].body == three.launches[0].body


def test_a_looped_scan_carries_on_from_tile_to_tile():
    nest = require_right_when_checked(
        "cumsum",
        "tile(m, size=4)",
        "tile(k, size=32)",
        "place(m.outer, level=grid)",
        "place(k.outer, level=loop)",
    )
    body = outline(nest.launches[0].body)
    assert body[0] == "Fill y_carry"
    assert body[1][0] == "k"


def test_every_launch_may_end_anywhere():
    spec = workload("layer_norm").spec
    for e in spec.equations[:-1]:
        nest = require_right_when_checked("layer_norm", f"kernel({e.target})")
        assert len(nest.launches) == 2
    everywhere = [f"kernel({e.target})" for e in spec.equations[:-1]]
    assert len(require_right_when_checked("layer_norm", *everywhere).launches) == 5


def test_a_launch_stores_only_what_a_later_one_needs():
    nest = lowered("layer_norm", "kernel(r)")
    stored = [s.tensor for s in nest.launches[0].statements() if isinstance(s, Store)]
    assert sorted(stored) == ["mean", "r"]
    assert {p.name: p.role for p in nest.launches[1].parameters} == {
        "x": "input",
        "g": "input",
        "b": "input",
        "mean": "workspace",
        "r": "workspace",
        "y": "output",
    }


@pytest.mark.parametrize("unit", ["matrix", "vector"])
def test_a_product_in_a_loop_is_right_on_either_unit(unit):
    nest = require_right_when_checked(
        "matmul_bias_gelu",
        "tile(m, size=16)",
        "tile(n, size=8)",
        "tile(k, size=16)",
        "place(m.outer, level=grid)",
        "place(n.outer, level=grid)",
        "place(k.outer, level=loop)",
        f"compute(acc, unit={unit})",
    )
    assert [f.number for f in statements(nest, Fill, "acc")] == [0.0]


def test_a_shared_load_says_along_which_index():
    nest = require_right_when_checked(
        "matmul_bias_gelu",
        "tile(m, size=16)",
        "tile(n, size=8)",
        "place(m.outer, level=grid)",
        "place(n.outer, level=grid)",
        "multicast(x, over=n.outer)",
    )
    assert [load.shared for load in statements(nest, Load, "x")] == ["n"]
    assert [load.shared for load in statements(nest, Load, "w")] == [None]


@pytest.mark.parametrize("tile", [1, 2, 5, 16])
def test_windows_are_right_at_any_tile(tile):
    require_right_when_checked(
        "conv1d", f"tile(l, size={tile})", "place(l.outer, level=grid)", "tile(c, size=3)"
    )
    require_right_when_checked(
        "max_pool2d", f"tile(p, size={tile})", "place(p.outer, level=grid)", f"tile(q, size={tile})"
    )


@pytest.mark.parametrize("tile", [1, 3, 32])
def test_a_jagged_range_is_right_at_any_tile(tile):
    require_right_when_checked(
        "embedding_bag", "tile(b, size=1)", "place(b.outer, level=grid)", f"tile(l, size={tile})"
    )


def test_one_output_may_lack_the_index_of_the_grid():
    spec = parse_spec(
        "def f(x: f32[M, K], g: f32[M]) -> (f32[M, K], f32[M]):\n"
        '    """F."""\n    y[m, k] = x[m, k] + 1.0\n    z[m] = g[m] * 2.0\n    return y, z\n'
    )
    sizes = {"M": 5, "K": 7}
    for lines in ((), ("tile(k, size=2)", "place(k.outer, level=grid)")):
        require_right(lower(spec, decisions(spec, *lines), SMALL, sizes), sizes)


REDUCED = {
    "argmax": ("argmax(x[m, k], k)", "i32"),
    "argmin": ("argmin(x[m, k], k)", "i32"),
    "any": ("any(x[m, k] > 0.5, k)", "b8"),
    "all": ("all(x[m, k] > -0.5, k)", "b8"),
    "prod": ("prod(x[m, k], k)", "f32"),
    "min": ("min(x[m, k], k)", "f32"),
}


@pytest.mark.parametrize("reduction", REDUCED)
def test_every_reduction_is_right_or_refused(reduction):
    body, dtype = REDUCED[reduction]
    spec = spec_of(f"y[m] = {body}", result=f"{dtype}[M]")
    sizes = {"M": 5, "K": 7}
    for lines in ((), ("tile(k, size=2)",)):
        try:
            nest = lower(spec, decisions(spec, *lines), SMALL, sizes)
        except KernelError:
            continue
        require_right(nest, sizes)
