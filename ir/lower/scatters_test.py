"""Scatters by atomic addition: what they lower to, their results, and what is refused."""

import re
from dataclasses import replace

import numpy as np
import pytest

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.edits.edits import Edit, neighbours
from ir.errors import KernelError
from ir.estimate.estimate import estimate
from ir.lower.lower import lower
from ir.nest.nest import LoopNest, Store
from ir.parse.parse import parse_spec
from ir.reference.inputs import random_inputs
from ir.reference.interpret import NestFault, interpret
from ir.reference.reference import evaluate
from ir.schedule import Decision
from ir.sizes import free_sizes
from ir.spec import Spec
from testing.samples.samples import (
    SMALL,
    WITH_REGISTERS,
    WITH_THREADS,
    decisions,
    lowered,
    outline,
    spec_of,
)
from testing.samples.samples import statements as found

ROWS = spec_of("y[i[k], d] += v[k, d]", inputs="v: f32[K, D], i: i32[K]", result="f32[M, D]")
COUNTS = spec_of("y[i[k]] += 1", inputs="i: i32[K]", result="i32[M]")
PAIRS = spec_of(
    "y[i[k], j[k]] += v[k] * 2.0", inputs="v: f32[K], i: i32[K], j: i32[K]", result="f32[M, N]"
)
FEEDING = spec_of(
    "s[k, d] = f32(v[k, d]) * w[k]",
    "a[i[k], d] += s[k, d]",
    "y[m, d] = a[m, d] / (1.0 + b[m])",
    inputs="v: bf16[K, D], w: f32[K], i: i32[K], b: f32[M]",
    result="f32[M, D]",
)
ALONG = spec_of("y[k, i[k]] += v[k]", inputs="v: f32[K], i: i32[K]", result="f32[K, M]")
SPECS = {"rows": ROWS, "counts": COUNTS, "pairs": PAIRS, "feeding": FEEDING, "along": ALONG}
TILED = ("tile(k, size=4)", "place(k.outer, level=grid)")
LINES = {
    "rows": (*TILED, "tile(d, size=2)", "tile(y_0, size=2)", "place(y_0.outer, level=grid)"),
    "counts": (*TILED, "tile(y_0, size=4)"),
    "pairs": (*TILED, "tile(y_0, size=1)", "tile(y_1, size=2)"),
    "feeding": (*TILED, "tile(d, size=2)", "tile(m, size=2)", "tile(a_0, size=2)"),
    "along": ("tile(k, size=1)", "place(k.outer, level=grid)", "tile(y_1, size=2)"),
}
TARGET = {name: "a" if name == "feeding" else "y" for name in SPECS}
SIZES = ({"M": 5, "N": 4, "K": 13, "D": 3}, {"M": 1, "N": 1, "K": 1, "D": 1})


def given(spec: Spec, sizes: dict[str, int]) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Inputs with positions in bounds, and the sizes of the spec among those given."""
    own = {name: sizes[name] for name in free_sizes(spec)}
    inputs = random_inputs(spec, own, np.random.default_rng(3))
    rng = np.random.default_rng(4)
    ends = {"i": own["M"], "j": own.get("N", 1)}
    inputs |= {n: rng.integers(0, ends[n], inputs[n].shape) for n in ends if n in inputs}
    return inputs, own


def atomic(name: str, *lines: str, sizes: dict[str, int]) -> LoopNest:
    """A sample kernel with atomic additions."""
    more = (f"atomic({TARGET[name]})", *lines)
    return lowered(SPECS[name], *more, sizes=sizes, machine=WITH_REGISTERS)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("tiled", [True, False])
@pytest.mark.parametrize("name", SPECS)
def test_updates_are_added_at_their_places(name, tiled, sizes, rounded):
    inputs, own = given(SPECS[name], sizes)
    nest = atomic(name, *(LINES[name] if tiled else ()), sizes=own)
    exact = evaluate(SPECS[name], inputs, own)["y"]
    for seed in (None, 1, 2):
        rng = None if seed is None else np.random.default_rng(seed)
        got = interpret(nest, inputs, own, rounded=rounded, rng=rng)["y"]
        np.testing.assert_allclose(got, exact, *((2e-2, 2e-2) if rounded else (1e-10, 1e-10)))


def test_a_launch_fills_and_another_adds():
    nest = atomic("rows", *LINES["rows"], sizes=given(ROWS, SIZES[0])[1])
    fill, add = nest.launches
    assert [g.index for g in fill.grid] == ["y_0", "d"]
    assert [g.index for g in add.grid] == ["k", "d"], "nothing is reduced, so tiles are contiguous"
    assert outline(fill.body) == ["Map y", "Store y"]
    assert outline(add.body) == ["Load i", "Load v", "Store y"] or outline(add.body) == [
        "Load v",
        "Load i",
        "Store y",
    ]
    before, after = found(nest, Store)
    assert (before.reduction, after.reduction) == ("", "sum")
    assert after.region[0].rows is not None and after.region[1].rows is None


def test_what_is_computed_before_stays_in_the_launch_that_adds():
    nest = atomic("feeding", *LINES["feeding"], sizes=given(FEEDING, SIZES[0])[1])
    assert [launch.name for launch in nest.launches] == ["f_0", "f_1", "f_2"]
    assert [s.tensor for s in found(nest, Store)] == ["a", "a", "y"]


def test_updates_that_lack_a_grid_index_are_added_once():
    """Another output of the launch has a grid index that the updates lack."""
    spec = parse_spec(
        "def f(v: f32[K], w: f32[N], i: i32[K]) -> (f32[K, N], f32[M], f32[M]):\n"
        '    """F."""\n    z[k, n] = v[k] + w[n]\n    t[k] = v[k] * 2.0\n'
        "    y[i[k]] += t[k]\n    u[0 * i[k]] += 3.0\n    return z, y, u\n"
    )
    sizes = {"K": 13, "N": 6, "M": 5}
    inputs, own = given(spec, sizes)
    lines = (
        "tile(k, size=4)",
        "tile(n, size=2)",
        "tile(y_0, size=2)",
        "tile(u_0, size=2)",
        "place(n.outer, level=grid)",
        "place(k.outer, level=grid)",
    )
    nest = lowered(spec, "atomic(y)", "atomic(u)", *lines, sizes=own, machine=WITH_REGISTERS)
    assert [launch.name for launch in nest.launches] == ["f_0", "f_1", "f_2", "f_3"]
    assert found(nest, Store)[-1].once == () and ("n",) in [s.once for s in found(nest, Store)]
    got, exact = interpret(nest, inputs, own), evaluate(spec, inputs, own)
    for name, array in exact.items():
        np.testing.assert_allclose(got[name], array, 1e-10)


@pytest.mark.parametrize("rows", [5, -1])
def test_places_outside_are_faults(rows):
    inputs, own = given(ROWS, SIZES[0])
    inputs["i"][3] = rows
    with pytest.raises(NestFault, match="`y` is read at|`y` is added to at"):
        interpret(atomic("rows", sizes=own), inputs, own)


def test_what_is_not_filled_is_a_fault():
    inputs, own = given(ROWS, SIZES[0])
    nest = atomic("rows", sizes=own)
    alone = LoopNest(
        nest.spec, nest.variant, nest.schedule, nest.machine, nest.sizes, nest.launches[1:]
    )
    with pytest.raises(NestFault, match="nothing was written"):
        interpret(alone, inputs, own)


@pytest.mark.parametrize(
    ("spec", "line", "message"),
    [
        (ROWS, "atomic(v)", "`v` is not scattered into"),
        (spec_of("y[m, k] = x[m, k] * 2.0"), "atomic(y)", "allowed: no tensor here"),
        (
            spec_of("y[i[k]] += x[k]", inputs="x: bf16[K], i: i32[K]", result="bf16[M]"),
            "atomic(y)",
            "`y` is bf16.*\n?.*f32, i32",
        ),
        (
            spec_of("y[i[y_0]] += x[y_0]", inputs="x: f32[K], i: i32[K]", result="f32[M]"),
            "atomic(y)",
            "a second `y_0`",
        ),
        (
            spec_of(
                "y[i[b]] += sum(x[b, k], k)", inputs="x: f32[B, K], i: i32[B]", result="f32[M]"
            ),
            "atomic(y)",
            "reduced in the same equation",
        ),
    ],
)
def test_what_is_refused(spec, line, message):
    sizes = dict.fromkeys(free_sizes(spec), 4)
    with pytest.raises(KernelError) as seen:
        lowered(spec, line, sizes=sizes, machine=WITH_REGISTERS)
    assert re.search(message, str(seen.value), re.DOTALL), str(seen.value)


def test_16_bits_are_not_added_to_in_memory():
    """A partial sum may exceed the range of f16 where the total does not."""
    halves = spec_of("y[i[k]] += f32(x[k])", inputs="x: f16[K], i: i32[K]", result="f16[M]")
    sizes = {"K": 5, "M": 3}
    with pytest.raises(KernelError, match="`y` is f16, which memory here does not add to"):
        lowered(halves, "atomic(y)", sizes=sizes, machine=WITH_REGISTERS)
    there = replace(WITH_REGISTERS, atomics=("f32", "f16"))
    with pytest.raises(KernelError, match="beyond the largest f16") as seen:
        lowered(halves, "atomic(y)", sizes=sizes, machine=there)
    assert seen.value.allowed == "f32" and "f32 tensor" in seen.value.hint
    assert Edit(None, Decision("atomic", "y")) not in neighbours(
        halves, decisions(halves), there, sizes
    )
    assert not autoschedule(halves, replace(WITH_THREADS, atomics=("f16",)), sizes).of("atomic")


def test_machines_without_registers_refuse_it():
    with pytest.raises(KernelError, match="class `tiles`, which has no `atomic`"):
        lowered(ROWS, "atomic(y)", sizes={"M": 5, "K": 7, "D": 2}, machine=SMALL)


@pytest.mark.parametrize("name", SPECS)
def test_the_search_finds_it_and_leaves_it(name):
    spec, sizes = SPECS[name], given(SPECS[name], SIZES[0])[1]
    plain = decisions(spec, *LINES[name])
    new = Decision("atomic", TARGET[name])
    there = neighbours(spec, plain, WITH_REGISTERS, sizes)
    assert Edit(None, new) in there
    changed = Edit(None, new).apply(plain)
    after = neighbours(spec, changed, WITH_REGISTERS, sizes)
    assert Edit(new, None) in after
    assert Edit(None, Decision("kernel", TARGET[name])) not in after
    back = Edit(new, None).apply(changed)
    assert set(back.decisions) == set(plain.decisions)


def test_it_has_an_estimate():
    sizes = {"M": 512, "K": 4096, "D": 64}
    lines = ("tile(k, size=32)", "tile(y_0, size=16)", "place(k.outer, level=grid)")
    nest = lowered(ROWS, "atomic(y)", *lines, sizes=sizes, machine=WITH_THREADS)
    gathered = lowered(ROWS, *lines, sizes=sizes, machine=WITH_THREADS)
    assert 0 < estimate(nest, WITH_THREADS, sizes) < estimate(gathered, WITH_THREADS, sizes)


def test_which_nests_give_other_bits_from_run_to_run():
    assert atomic("rows", sizes=given(ROWS, SIZES[0])[1]).unordered
    assert not atomic("counts", sizes=given(COUNTS, SIZES[0])[1]).unordered
    assert not lowered(ROWS, sizes=given(ROWS, SIZES[0])[1], machine=WITH_REGISTERS).unordered


@pytest.mark.parametrize("machine", [WITH_REGISTERS, WITH_THREADS])
@pytest.mark.parametrize("scheduler", [plain, autoschedule])
@pytest.mark.parametrize("name", SPECS)
def test_scatters_have_schedules_of_their_own(name, scheduler, machine):
    spec = SPECS[name]
    inputs, own = given(spec, {"M": 12, "N": 7, "K": 40, "D": 6})
    nest = lower(spec, scheduler(spec, machine, own), machine, own)
    got, exact = interpret(nest, inputs, own)["y"], evaluate(spec, inputs, own)["y"]
    np.testing.assert_allclose(got, exact, 1e-10, 1e-10)


def test_long_scatters_are_added_to_memory_from_the_start():
    sizes = {"M": 512, "K": 4096, "D": 64}
    assert autoschedule(ROWS, WITH_THREADS, sizes).find("atomic", "y")
