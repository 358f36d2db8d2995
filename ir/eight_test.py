"""8-bit floats: results, and how their matmuls are lowered."""

from dataclasses import replace

import numpy as np
import pytest

from ir.autoschedule.autoschedule import autoschedule
from ir.dtypes import promote
from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Unit
from ir.nest.nest import Dot, LoopNest, Map
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate, evaluate_storage, storage_dtype
from ir.reference.rounding import round_to
from ir.spec import EIGHT, FLOATS, Spec
from ir.verify import facts
from testing.samples.samples import (
    SMALL,
    WITH_REGISTERS,
    WITH_THREADS,
    lowered,
    spec_of,
    statements,
)

SIZES = {"M": 21, "K": 70, "N": 18}
EIGHT_BITS = Unit({"f8e4m3": 16e9, "f8e5m2": 16e9, "bf16": 8e9, "f32": 1e9}, step=(4, 4, 4))
WITH_EIGHT = replace(
    WITH_REGISTERS, name="with_eight", units={**WITH_REGISTERS.units, "matrix": EIGHT_BITS}
)
TILES = (
    "tile(m, size=16)",
    "tile(n, size=16)",
    "tile(k, size=32)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
    "compute(y, unit=matrix)",
)


def product(a: str, b: str, body: str = "x[m, k] * w[k, n]", result: str = "bf16") -> Spec:
    return spec_of(
        f"y[m, n] = sum({body}, k)", inputs=f"x: {a}[M, K], w: {b}[K, N]", result=f"{result}[M, N]"
    )


def nest_of(spec: Spec, *lines: str, machine=WITH_EIGHT) -> LoopNest:
    return lowered(spec, *TILES, *lines, sizes=SIZES, machine=machine)


def operands(nest: LoopNest) -> set[str]:
    (launch,) = nest.launches
    return {launch.value(t.value).dtype for d in statements(nest, Dot) for t in (d.a, d.b)}


def right(nest: LoopNest) -> bool:
    """Whether the nest is about as accurate as plain arithmetic in the spec's formats."""
    inputs = random_inputs(nest.spec, SIZES, np.random.default_rng(3))
    (exact,) = evaluate(nest.spec, inputs, SIZES).values()
    (found,) = interpret(nest, inputs, SIZES, rounded=True).values()
    (plain,) = evaluate_storage(nest.spec, inputs, SIZES).values()
    return np.sqrt(np.mean((found - exact) ** 2)) <= 1.5 * np.sqrt(np.mean((plain - exact) ** 2))


def test_two_floats_of_one_width_meet_in_f32():
    assert promote("f8e4m3", "f8e5m2") == "f32"
    assert promote("f8e5m2", "f8e5m2") == "f8e5m2"
    assert [promote("f8e4m3", d) for d in ("i64", "bf16", "f16", "f32")] == [
        "f8e4m3",
        "bf16",
        "f16",
        "f32",
    ]


@pytest.mark.parametrize(
    "equation",
    ["x[m, k] * 2.0", "exp(x[m, k])", "-x[m, k]", "cumsum(x[m, k], k)", "cummax(x[m, k], k)"],
)
def test_arithmetic_of_8_bits_is_that_of_f32(equation):
    spec = spec_of(
        f"t[m, k] = {equation}",
        "y[m, k] = t[m, k]",
        inputs="x: f8e4m3[M, K]",
        result="f8e4m3[M, K]",
    )
    known = facts(spec).tensors
    assert (known["t"].dtype, known["y"].dtype) == ("f32", "f8e4m3")


@pytest.mark.parametrize("dtype", EIGHT)
def test_operands_of_8_bits_go_in_as_they_are_and_each_step_is_added_in_f32(dtype):
    nest = nest_of(product(dtype, dtype))
    (dot,) = statements(nest, Dot)
    assert operands(nest) == {dtype} and not dot.accumulate
    assert len(statements(nest, Map, "y")) == 1
    assert right(nest)


def test_casts_that_are_written_change_nothing():
    nest = nest_of(product("f8e4m3", "f8e4m3", "f32(x[m, k]) * f32(w[k, n])"))
    assert operands(nest) == {"f8e4m3"} and right(nest)


@pytest.mark.parametrize(("a", "b"), [EIGHT, ("f8e4m3", "bf16"), ("bf16", "f8e5m2")])
def test_two_dtypes_meet_in_one_that_holds_both(a, b):
    nest = nest_of(product(a, b))
    (dot,) = statements(nest, Dot)
    assert operands(nest) == {"bf16"} and dot.accumulate
    assert right(nest)


@pytest.mark.parametrize("machine", [SMALL, WITH_REGISTERS])
def test_a_matrix_unit_without_8_bits_says_so_and_takes_them_as_bf16(machine):
    spec = product("f8e4m3", "f8e4m3")
    with pytest.raises(KernelError, match="takes no f8e4m3 operands") as raised:
        nest_of(spec, machine=machine)
    assert "precision(y, dtype=bf16)" in str(raised.value)
    nest = nest_of(spec, "precision(y, dtype=bf16)", machine=machine)
    assert operands(nest) == {"bf16"} and right(nest)


@pytest.mark.parametrize("machine", [SMALL, WITH_EIGHT, WITH_REGISTERS, WITH_THREADS])
def test_the_first_schedule_takes_what_the_unit_has(machine):
    spec = product("f8e5m2", "f8e5m2")
    nest = lower(spec, autoschedule(spec, machine, SIZES), machine, SIZES)
    assert operands(nest) == {"f8e5m2" if machine is WITH_EIGHT else "bf16"}
    assert right(nest)


def test_edits_widen_operands_and_never_round_to_8_bits():
    spec = product("f8e4m3", "f32")
    nest = nest_of(spec)
    found = neighbours(spec, nest.schedule, WITH_EIGHT, SIZES)
    rounded = {str(e.new) for e in found if e.new and e.new.verb == "precision"}
    assert rounded == {"precision(y, dtype=bf16)"}


def test_a_sum_in_parts_keeps_them_in_f32():
    spec = product("f8e4m3", "f8e4m3", result="f8e5m2")
    assert right(nest_of(spec, "split_k(y, over=k, parts=2)"))


def test_results_of_8_bits_are_judged_by_the_arithmetic_of_16():
    spec = product("f8e4m3", "f8e4m3", result="f8e4m3")
    assert storage_dtype(spec) == "bf16"
    inputs = random_inputs(spec, SIZES, np.random.default_rng(1))
    (plain,) = evaluate_storage(spec, inputs, SIZES).values()
    assert (round_to(plain, "f8e4m3") == plain).all() and np.isfinite(plain).all()
    assert all((round_to(x, "f8e4m3") == x).all() for x in inputs.values())


def test_a_format_without_infinity_is_not_padded_with_it():
    with pytest.raises(KernelError, match="has no infinity"):
        facts(
            spec_of("y[m] = max(pad(x[m + i], -inf), i=2)", inputs="x: f8e4m3[M]", result="f32[M]")
        )
    facts(spec_of("y[m] = max(pad(x[m + i], -inf), i=2)", inputs="x: f8e5m2[M]", result="f32[M]"))


def test_they_are_floats():
    assert set(EIGHT) <= set(FLOATS)
