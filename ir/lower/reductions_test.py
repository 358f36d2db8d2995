"""Which reductions share a loop, and which are refused; scans."""

import numpy as np
import pytest

from ir.errors import KernelError
from ir.nest.nest import Dot, Fill, Map, Reduction
from ir.parse.parse import parse_spec
from testing.samples.right import require_right
from testing.samples.samples import lowered, outline, spec_of, statements


def fault(spec, *lines, sizes=None) -> KernelError:
    with pytest.raises(KernelError) as caught:
        lowered(spec, *lines, sizes=sizes)
    return caught.value


def test_fused_reductions_share_one_loop():
    spec = spec_of(
        "a[m] = sum(x[m, k], k)",
        "b[m] = sum(x[m, k] ** 2, k)",
        "y[m] = a[m] + b[m]",
        result="f32[M]",
    )
    sizes = {"M": 4, "K": 8}
    apart = lowered(spec, "tile(k, size=2)", sizes=sizes).launches[0]
    fused = lowered(spec, "tile(k, size=2)", "fuse(a, into=b)", sizes=sizes).launches[0]
    loops = [[p for p in outline(x.once) if isinstance(p, list)] for x in (apart, fused)]
    assert [len(found) for found in loops] == [2, 1]
    assert loops[1] == [["k", "Load x", "Reduction a", "Map b_term", "Reduction b"]]


def test_a_reduction_that_needs_a_finished_one_cannot_share_its_loop():
    found = fault("layer_norm", "tile(k, size=8)", "fuse(s, into=ss)")
    assert "`ss` needs the finished `s`, so they cannot share a loop" in str(found)
    assert found.hint == "hoist or online `s`, or drop the fuse"


def test_reductions_over_other_loops_cannot_be_fused():
    found = fault("wukong_fm", "tile(i, size=4)", "tile(d, size=8)", "fuse(t, into=out)")
    assert "do not run over the same loops" in str(found)


def test_a_sum_that_cannot_be_rescaled_is_not_online():
    spec = spec_of("mx[m] = max(x[m, k], k)", "y[m] = sum(x[m, k] / mx[m], k)", result="f32[M]")
    found = fault(spec, "tile(k, size=2)", "online(mx, into=y)", sizes={"M": 2, "K": 5})
    assert "`y` cannot be rescaled as the maximum `mx` grows" in str(found)
    assert "exp(... - mx[...])" in str(found)


@pytest.mark.parametrize(
    "body", ["exp(mx[m] - x[m, k])", "exp(x[m, k] - mx[m]) * mx[m]", "exp(2.0 * (x[m, k] - mx[m]))"]
)
def test_only_one_factor_with_the_maximum_subtracted_is_rescaled(body):
    spec = spec_of("mx[m] = max(x[m, k], k)", f"y[m] = sum({body}, k)", result="f32[M]")
    found = fault(spec, "tile(k, size=2)", "online(mx, into=y)", sizes={"M": 2, "K": 5})
    assert "cannot be rescaled" in str(found)


def test_a_running_maximum_starts_finite_and_its_sum_is_scaled_before_it_grows():
    nest = lowered("softmax", "tile(k, size=32)", "online(mx, into=s)")
    (start,) = statements(nest, Fill, "mx")
    assert -float("inf") < start.number <= -1e38
    maps = [m.value for m in statements(nest, Map)]
    assert maps.index("mx_before") < maps.index("mx_scale") < maps.index("s")


@pytest.mark.parametrize("returned", ["f32[M]: y", "(f32[M], f32[M]): mx, y"])
def test_a_running_maximum_of_nothing_but_masked_values_is_minus_infinity(returned):
    result, names = returned.split(": ")
    spec = parse_spec(
        f'def f(x: f32[M, K]) -> {result}:\n    """F."""\n    mx[m] = max(x[m, k], k)\n'
        "    s[m] = sum(exp(x[m, k] - mx[m]), k)\n    y[m] = where(mx[m] == -inf, 0.0, s[m])\n"
        f"    return {names}\n"
    )
    sizes = {"M": 3, "K": 5}
    nest = lowered(spec, "tile(k, size=2)", "online(mx, into=s)", sizes=sizes)
    rows = np.random.default_rng(3).normal(size=(3, 5))
    rows[0], rows[1, :4] = -np.inf, -np.inf
    require_right(nest, sizes, {"x": rows})


EXTREMA = ("argmax", "argmin")


@pytest.mark.parametrize("dtype", ["f32", "f16", "i64"])
@pytest.mark.parametrize("tile", [1, 3, 8])
@pytest.mark.parametrize("reduction", EXTREMA)
def test_the_place_of_an_extremum_runs_along_with_it(reduction, tile, dtype):
    spec = spec_of(f"y[m] = {reduction}(x[m, k], k)", inputs=f"x: {dtype}[M, K]", result="i32[M]")
    sizes = {"M": 6, "K": 11}
    nest = lowered(spec, f"tile(k, size={tile})", "online(y_top, into=y)", sizes=sizes)
    loops = [part for part in outline(nest.launches[0].once) if isinstance(part, list)]
    assert len(loops) == 1
    never = float("inf") if reduction == "argmin" else -float("inf")
    rows = np.random.default_rng(7).integers(-3, 3, (6, 11))  # with ties
    if dtype != "i64":
        rows = rows.astype(float)
        rows[0], rows[1, :4] = never, never
    require_right(nest, sizes, {"x": rows})


@pytest.mark.parametrize("reduction", EXTREMA)
def test_a_place_beside_others_starts_anew_where_its_extremum_moves(reduction):
    spec = spec_of(
        f"p[m] = {reduction}(x[m, j, k] * 2.0, j, k)",
        "s[m] = sum(x[m, j, k], j, k)",
        "y[m] = f32(p[m]) + s[m]",
        inputs="x: f32[M, J, K]",
        result="f32[M]",
    )
    sizes = {"M": 4, "J": 3, "K": 10}
    lines = ("tile(k, size=4)", "online(p_top, into=p)", "fuse(s, into=p)")
    nest = lowered(spec, *lines, sizes=sizes)
    assert not [v for v in nest.launches[0].values if v.name.endswith("_scale")]
    require_right(nest, sizes)


def test_other_positions_than_the_extrema_own_are_not_online():
    spec = spec_of(
        "top[m] = max(x[m, k], k)",
        "y[m] = min(where(x[m, k] * 2.0 == top[m], k, K), k)",
        result="i32[M]",
    )
    found = fault(spec, "tile(k, size=2)", "online(top, into=y)", sizes={"M": 2, "K": 5})
    assert "cannot be rescaled" in str(found)


def test_a_running_maximum_has_the_dtype_of_its_maximum():
    spec = parse_spec(
        'def f(x: f64[M, K]) -> f64[M]:\n    """F."""\n    a[m] = max(x[m, k], k)\n'
        "    b[m] = sum(exp(x[m, k] - a[m]), k)\n    return b\n"
    )
    nest = lowered(spec, "tile(k, size=2)", "online(a, into=b)", sizes={"M": 2, "K": 5})
    assert {v.dtype for v in nest.launches[0].values if v.tensor == "a"} == {"f64"}


@pytest.mark.parametrize("reduction", ["max", "min"])
@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_an_extremum_of_integers_starts_from_an_integer(reduction, dtype):
    spec = spec_of(
        f"y[m] = {reduction}(x[m, k], k)", inputs=f"x: {dtype}[M, K]", result=f"{dtype}[M]"
    )
    nest = lowered(spec, "tile(k, size=2)", sizes={"M": 2, "K": 5})
    (start,) = statements(nest, Fill, "y")
    assert isinstance(start.number, int) and start.number == int(start.number)


def test_a_reduction_stands_in_no_loop_over_its_own_index():
    found = fault(
        "softmax",
        "tile(k, size=8)",
        "tile(m, size=4)",
        "place(k.outer, level=loop)",
        "place(m.outer, level=loop)",
    )
    assert "`mx` reduces `k` inside a loop over it" in str(found)
    assert "before" in found.hint


def test_the_loop_of_a_scan_is_the_innermost():
    found = fault(
        "cumsum",
        "tile(k, size=8)",
        "tile(m, size=4)",
        "place(k.outer, level=loop)",
        "place(m.outer, level=loop)",
    )
    assert "the loop over `k` must be the innermost around its scan" in str(found)


def test_a_product_takes_sixteen_bit_operands_as_they_lie_in_memory():
    nest = lowered("matmul_bias_gelu", "compute(acc, unit=matrix)")
    (dot,) = statements(nest, Dot)
    assert (dot.a.value, dot.b.value) == ("x", "w")
    assert not statements(nest, Reduction)
