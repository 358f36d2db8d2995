"""tf32 and 3xTF32 contractions: what they lower to, and which operands stay exact."""

import numpy as np
import pytest

from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.nest.nest import Dot, Fill, LoopNest, Map
from ir.parse.parse import parse_spec
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from ir.variant.precision import products, undone
from ir.variant.variant import formulate
from testing.samples.samples import (
    SMALL,
    WITH_REGISTERS,
    WITH_TF32,
    decisions,
    lowered,
    spec_of,
    statements,
)

SIZES = {"M": 21, "K": 70, "N": 18}
MATMUL = spec_of(
    "acc[m, n] = sum(x[m, k] * w[k, n], k)",
    "y[m, n] = acc[m, n] + 1.0",
    inputs="x: f32[M, K], w: f32[K, N]",
    result="f32[M, N]",
)
TILES = (
    "tile(m, size=16)",
    "tile(n, size=16)",
    "tile(k, size=16)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
    "compute(acc, unit=matrix)",
)


def nest_of(*lines: str, spec=MATMUL, sizes=SIZES) -> LoopNest:
    return lowered(spec, *lines, sizes=sizes, machine=WITH_TF32)


def error(nest: LoopNest, rounded: bool = True, sizes=SIZES) -> float:
    """The root mean square of the first output's relative error."""
    inputs = random_inputs(nest.spec, sizes, np.random.default_rng(3))
    (name, exact), *_ = evaluate(nest.spec, inputs, sizes).items()
    found = interpret(nest, inputs, sizes, rounded=rounded)[name]
    return float(np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2)))


def test_tf32_operands_are_maps_over_what_is_loaded():
    nest = nest_of(*TILES, "precision(acc, dtype=tf32)")
    (dot,) = statements(nest, Dot)
    (launch,) = nest.launches
    for side in (dot.a, dot.b):
        assert launch.value(side.value).dtype == "tf32"
        assert statements(nest, Map, side.value)[0].expression.dtype == "tf32"
    assert error(nest, rounded=False) < 1e-12
    assert 1e-5 < error(nest) < 1e-3


def test_three_products_are_about_as_good_as_one_of_f32():
    nest = nest_of(*TILES, "precision(acc, dtype=tf32x3)")
    assert error(nest, rounded=False) < 1e-12
    assert error(nest) < 1e-6
    assert error(nest_of(*TILES)) < 1e-6


def test_three_products_go_into_a_sum_of_the_step_which_is_added_to_the_whole():
    nest = nest_of(*TILES, "precision(acc, dtype=tf32x3)")
    dots = statements(nest, Dot)
    assert [d.accumulate for d in dots] == [False, True, True]
    assert len({d.value for d in dots}) == 1
    assert dots[0].value != "acc"
    assert [f.value for f in statements(nest, Fill)] == ["acc"]
    assert statements(nest, Map, "acc")
    assert [(d.a.value, d.b.value) for d in dots] == [
        ("acc_al", "acc_bh"),
        ("acc_ah", "acc_bl"),
        ("acc_ah", "acc_bh"),
    ]


def test_in_one_step_three_products_go_into_the_sum_itself():
    tiles = [t for t in TILES if "(k" not in t]
    nest = nest_of(*tiles, "precision(acc, dtype=tf32x3)")
    dots = statements(nest, Dot)
    assert [(d.value, d.accumulate) for d in dots] == [("acc", False), ("acc", True), ("acc", True)]
    assert error(nest) < 1e-6


@pytest.mark.parametrize(
    ("ends", "stored"),
    [
        (["acc_bl"], ["acc_ah", "acc_al", "acc_bh", "acc_bl"]),
        (["acc_al"], ["acc_ah", "acc_al"]),
        (["acc_al", "acc_bl"], ["acc_ah", "acc_al", "acc_bh", "acc_bl"]),
    ],
)
def test_operands_can_be_split_beforehand(ends, stored):
    nest = nest_of(*TILES, "precision(acc, dtype=tf32x3)", *(f"kernel({t})" for t in ends))
    assert len(nest.launches) == len(ends) + 1
    workspace = {
        p.name: p for launch in nest.launches for p in launch.parameters if p.role == "workspace"
    }
    assert list(workspace) == stored
    assert {p.dtype for p in workspace.values()} == {"tf32"}
    assert error(nest, rounded=False) < 1e-12
    assert error(nest) < 1e-6


def test_what_is_split_has_the_summed_index_last():
    spec = formulate(MATMUL, decisions(MATMUL, "precision(acc, dtype=tf32x3)"))
    assert spec.equation("acc_ah").indices == ("m", "k")
    assert spec.equation("acc_bl").indices == ("n", "k")


def test_the_parts_of_a_filter_come_first():
    spec = spec_of(
        "acc[b, o, p] = sum(x[b, c, p + i] * w[o, c, i], c, i)",
        "y[b, o, p] = acc[b, o, p] + 1.0",
        inputs="x: f32[2, 3, 6], w: f32[4, 3, 2]",
        result="f32[2, 4, 5]",
    )
    made = formulate(spec, decisions(spec, "precision(acc, dtype=tf32x3)")).equations
    assert [e.target for e in made] == ["acc_bh", "acc_bl", "acc_ah", "acc_al", "acc", "y"]


def test_the_variant_equals_the_spec():
    spec = formulate(MATMUL, decisions(MATMUL, "precision(acc, dtype=tf32x3)"))
    inputs = random_inputs(MATMUL, SIZES, np.random.default_rng(3))
    np.testing.assert_allclose(
        evaluate(spec, inputs, SIZES)["y"], evaluate(MATMUL, inputs, SIZES)["y"], 1e-12
    )
    assert len(products(spec.equation("acc"))) == 3
    assert undone(spec, spec.equation("acc")) == MATMUL.equation("acc")


def test_a_side_of_16_bits_is_not_split():
    spec = spec_of(
        "y[m, n] = sum(x[m, k] * f32(w[k, n]), k)",
        inputs="x: f32[M, K], w: bf16[K, N]",
        result="f32[M, N]",
    )
    lines = [line.replace("acc", "y") for line in TILES]
    nest = nest_of(*lines, "precision(y, dtype=tf32x3)", spec=spec)
    assert len(statements(nest, Dot)) == 2
    assert error(nest) < 1e-6


ATTENTION = parse_spec('''def attention(q: f32[M, D], k: f32[N, D], v: f32[N, D]) -> f32[M, D]:
    """A."""
    s[m, n] = sum(q[m, d] * k[n, d], d)
    mx[m] = max(s[m, n], n)
    p[m, n] = exp(s[m, n] - mx[m])
    l[m] = sum(p[m, n], n)
    o[m, e] = sum(p[m, n] * v[n, e], n)
    y[m, e] = o[m, e] / l[m]
    return y
''')


@pytest.mark.parametrize("dtype", ["tf32", "tf32x3"])
def test_products_of_a_online_can_be_split(dtype):
    sizes = {"M": 20, "N": 37, "D": 8}
    nest = nest_of(
        "tile(m, size=8)",
        "tile(n, size=16)",
        "place(m.outer, level=grid)",
        "online(mx, into=o)",
        "fuse(l, into=o)",
        "compute(s, unit=matrix)",
        "compute(o, unit=matrix)",
        f"precision(s, dtype={dtype})",
        f"precision(o, dtype={dtype})",
        spec=ATTENTION,
        sizes=sizes,
    )
    assert error(nest, rounded=False, sizes=sizes) < 1e-12
    assert error(nest, sizes=sizes) < (1e-6 if dtype == "tf32x3" else 2e-3)


@pytest.mark.parametrize("machine", [SMALL, WITH_REGISTERS])
@pytest.mark.parametrize("dtype", ["tf32", "tf32x3"])
def test_a_matrix_unit_without_tf32_takes_none(machine, dtype):
    with pytest.raises(KernelError, match=f"rounded to {dtype}, which the matrix unit"):
        lowered(MATMUL, *TILES, f"precision(acc, dtype={dtype})", sizes=SIZES, machine=machine)


def test_operands_of_16_bits_have_nothing_to_round():
    spec = spec_of(
        "y[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
        inputs="x: bf16[M, K], w: bf16[K, N]",
        result="f32[M, N]",
    )
    for dtype in ("tf32", "tf32x3"):
        with pytest.raises(KernelError, match="holds exactly"):
            nest_of("compute(y, unit=matrix)", f"precision(y, dtype={dtype})", spec=spec)


def test_three_products_need_the_matrix_unit():
    with pytest.raises(KernelError, match="not done on the matrix unit"):
        nest_of("precision(acc, dtype=tf32x3)")


def test_a_name_that_is_taken_is_refused():
    spec = spec_of(
        "acc_ah[m, k] = x[m, k] + 1.0",
        "acc[m, n] = sum(acc_ah[m, k] * w[k, n], k)",
        "y[m, n] = acc[m, n]",
        inputs="x: f32[M, K], w: f32[K, N]",
        result="f32[M, N]",
    )
    with pytest.raises(KernelError, match="a second `acc_ah`"):
        nest_of("compute(acc, unit=matrix)", "precision(acc, dtype=tf32x3)", spec=spec)


def test_operands_that_were_rounded_before_are_multiplied_as_they_are():
    line = "y[m, n] = sum(x[m, k] * w[n, k], k)"
    spec = spec_of(line, inputs="x: tf32[M, K], w: tf32[N, K]", result="f32[M, N]")
    nest = lowered(spec, "compute(y, unit=matrix)", sizes=SIZES, machine=WITH_TF32)
    assert [v.dtype for v in nest.launches[0].values if v.loaded] == ["tf32", "tf32"]
    assert not [s for s in nest.launches[0].statements() if isinstance(s, Map)]


def test_the_search_is_offered_tf32_for_products_of_f32_on_the_matrix_unit():
    found = {str(e) for e in neighbours(MATMUL, decisions(MATMUL, *TILES), WITH_TF32, SIZES)}
    assert {"+ precision(acc, dtype=tf32)", "+ precision(acc, dtype=tf32x3)"} <= found
    for machine, lines in ((WITH_REGISTERS, TILES), (WITH_TF32, TILES[:-1])):
        found = neighbours(MATMUL, decisions(MATMUL, *lines), machine, SIZES)
        assert not any("tf32" in str(e) for e in found)


def test_a_cast_to_tf32_needs_a_machine_that_has_it():
    spec = spec_of("y[m, k] = f32(tf32(x[m, k]))")
    sizes = {"M": 4, "K": 4}
    assert error(lowered(spec, sizes=sizes, machine=WITH_TF32), False, sizes) == 0
    with pytest.raises(KernelError, match="`y` casts to tf32, which `small` does not have"):
        lowered(spec, sizes=sizes)


def test_the_search_is_offered_launches_that_split_operands_beforehand():
    start = decisions(MATMUL, *TILES, "precision(acc, dtype=tf32x3)")
    found = {str(e) for e in neighbours(MATMUL, start, WITH_TF32, SIZES)}
    assert {"+ kernel(acc_al)", "+ kernel(acc_bl)", "- precision(acc, dtype=tf32x3)"} <= found
