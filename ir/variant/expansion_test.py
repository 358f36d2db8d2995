"""The expansion of argmax, scatters and reverse scans."""

import numpy as np
import pytest

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from ir.variant.expansion import expanded
from testing.samples.samples import SMALL, WITH_REGISTERS, decisions, lowered, spec_of

ROWS = ("tile(m, size=2)", "tile(k, size=8)", "place(m.outer, level=grid)")
SIZES = [{"M": 1, "K": 1}, {"M": 5, "K": 37}, {"M": 4, "K": 16}]

_THREADS_ONLY = (
    "split_k",
    "flatten",
    "pack",
    "rasterize",
    "threads",
    "persistent",
    "unroll",
    "causal_bound",
)


def require_right(spec, sizes, *lines, inputs=None):
    given = inputs or random_inputs(spec, sizes, np.random.default_rng(3))
    expected = evaluate(spec, given, sizes)
    for again in (expanded(spec), None):
        if again is not None:
            found = evaluate(again, given, sizes)
        else:
            nest = lowered(spec, *lines, sizes=sizes, machine=WITH_REGISTERS)
            found = interpret(nest, given, sizes)
            plainer = [line for line in lines if not line.startswith(_THREADS_ONLY)]
            own = interpret(lowered(spec, *plainer, sizes=sizes, machine=SMALL), given, sizes)
            for name, array in expected.items():
                np.testing.assert_allclose(own[name], array, 1e-10, 1e-10)
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, 1e-10, 1e-10)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("reduction", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "i32"])
@pytest.mark.parametrize(
    "lines", [(), ROWS, (*ROWS, "kernel(y_top)"), (*ROWS, "split_k(y_top, over=k, parts=2)")]
)
def test_where_the_extremum_lies(reduction, dtype, sizes, lines):
    spec = spec_of(f"y[m] = {reduction}(x[m, k], k)", inputs=f"x: {dtype}[M, K]", result="i32[M]")
    given = {"x": np.random.default_rng(2).integers(-3, 4, (sizes["M"], sizes["K"]))}
    require_right(spec, sizes, *lines, inputs=given)


def test_where_the_extremum_of_two_indices_lies():
    spec = spec_of(
        "y[m] = argmax(x[m, j, k] * 2.0, j, k)", inputs="x: f32[M, J, K]", result="i32[M]"
    )
    require_right(spec, {"M": 3, "J": 4, "K": 9}, "tile(m, size=2)", "tile(j, size=1)")


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("scan", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize(
    "flags", ["reverse=True", "exclusive=True", "reverse=True, exclusive=True"]
)
@pytest.mark.parametrize("lines", [(), ROWS])
def test_scans_from_the_other_end_and_of_what_came_before(scan, flags, sizes, lines):
    spec = spec_of(
        "s[m, k] = x[m, k] * z[k] + f32(k)",
        f"y[m, k] = {scan}(s[m, k], k, {flags})",
        inputs="x: f32[M, K], z: f32[K]",
    )
    require_right(spec, sizes, *lines)


def test_an_exclusive_sum_of_integers():
    spec = spec_of(
        "y[m, k] = cumsum(x[m, k], k, exclusive=True)", inputs="x: i32[M, K]", result="i32[M, K]"
    )
    require_right(spec, SIZES[1], *ROWS)
    spec = spec_of(
        "y[m, k] = cummax(x[m, k], k, exclusive=True)", inputs="x: i32[M, K]", result="i32[M, K]"
    )
    with pytest.raises(KernelError, match="exclusive cummax of integers"):
        lowered(spec, sizes=SIZES[1], machine=WITH_REGISTERS)


SCATTER = spec_of("y[i[k], d] += v[k, d]", inputs="v: f32[K, D], i: i32[K]", result="f32[M, D]")


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("tile(d, size=2)", "tile(k, size=4)", "tile(y_0, size=2)", "place(y_0.outer, level=grid)"),
    ],
)
def test_a_scatter_sums_what_goes_to_each_place(lines):
    sizes = {"M": 5, "K": 13, "D": 3}
    given = random_inputs(SCATTER, sizes, np.random.default_rng(3))
    given["i"] = given["i"] % 5
    require_right(SCATTER, sizes, *lines, inputs=given)


def test_a_scatter_to_two_positions():
    spec = spec_of(
        "y[i[k], j[k]] += v[k] * 2.0", inputs="v: f32[K], i: i32[K], j: i32[K]", result="f32[M, N]"
    )
    sizes = {"M": 3, "N": 4, "K": 13}
    rng = np.random.default_rng(3)
    given = {"v": rng.normal(size=13), "i": rng.integers(0, 3, 13), "j": rng.integers(0, 4, 13)}
    require_right(spec, sizes, inputs=given)


@pytest.mark.parametrize(
    "equation",
    [
        "y[m] = argmax(x[m, k], k)",
        "y[m, k] = cumsum(x[m, k], k, reverse=True)",
    ],
)
def test_they_have_schedules_of_their_own(equation):
    spec = spec_of(equation, result="i32[M]" if "arg" in equation else "f32[M, K]")
    for scheduler in (autoschedule, plain):
        schedule = scheduler(spec, WITH_REGISTERS, SIZES[1])
        nest = lower(spec, schedule, WITH_REGISTERS, SIZES[1])
        given = random_inputs(spec, SIZES[1], np.random.default_rng(3))
        found = interpret(nest, given, SIZES[1])
        np.testing.assert_allclose(found["y"], evaluate(spec, given, SIZES[1])["y"], 1e-10, 1e-10)


def test_a_spec_without_them_stays_as_it_is():
    spec = spec_of("y[m, k] = cumsum(x[m, k], k)")
    assert expanded(spec) is spec


def test_a_tensor_that_is_only_named_like_a_mirrored_scan_ends_no_launch():
    spec = spec_of("y_back[m, k] = cumsum(x[m, k], k)", "y[m, k] = y_back[m, k]")
    assert len(lowered(spec, sizes=SIZES[1]).launches) == 1


def test_the_search_ends_the_launch_of_a_mirrored_scan_once():
    spec = spec_of("y[m, k] = cumsum(x[m, k], k, reverse=True)")
    found = {str(e) for e in neighbours(spec, decisions(spec, *ROWS), WITH_REGISTERS, SIZES[1])}
    assert "+ threads(y_back, count=32)" in found or "+ pack(y_back, order=k_m)" in found
    assert "+ kernel(y_back)" not in found
