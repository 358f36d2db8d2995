"""The pointwise functions: spellings, dtypes, and values at their limits."""

import math
import warnings

import numpy as np
import pytest

from ir.errors import KernelError
from ir.lower.lower import lower
from ir.nest.nest import Map
from ir.nest.steps import Temporary, steps
from ir.parse.parse import parse_spec
from ir.print import spec_text
from ir.reference.interpret import interpret
from ir.reference.labelled import Labelled, apply
from ir.reference.reference import evaluate
from ir.verify import facts
from testing.samples.function_samples import (
    float_inputs,
    float_spec,
    integer_inputs,
    integer_spec,
    short_inputs,
    short_spec,
)
from testing.samples.samples import SMALL, WITH_REGISTERS, decisions, spec_of

COUNT = 150
SPECS = [(float_spec(d), float_inputs(d, COUNT)) for d in ("f32", "f64", "bf16")]
SPECS += [(integer_spec(d), integer_inputs(d, COUNT)) for d in ("i32", "i64")]


def dtype_of(expression):
    dtypes = {"x": "f32", "i": "i32", "l": "i64", "b": "b8"}
    inputs = ", ".join(f"{n}: {d}[M]" for n, d in dtypes.items() if f"{n}[" in expression)
    spec = spec_of(f"t[m] = {expression}", "y[m] = f32(t[m])", inputs=inputs, result="f32[M]")
    return facts(spec).tensors["t"].dtype


@pytest.mark.parametrize(("spec", "inputs"), SPECS)
def test_what_prints_parses(spec, inputs):
    assert parse_spec(spec_text(spec)) == spec


@pytest.mark.parametrize("machine", [SMALL, WITH_REGISTERS])
@pytest.mark.parametrize(("spec", "inputs"), SPECS)
def test_a_nest_computes_them_as_the_reference_does(spec, inputs, machine):
    exact = evaluate(spec, inputs, {"M": COUNT})
    nest = lower(spec, decisions(spec, "tile(m, size=64)"), machine, {"M": COUNT})
    found = interpret(nest, inputs, {"M": COUNT})
    for name, right in exact.items():
        np.testing.assert_array_equal(found[name], right, err_msg=name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("i[m] & j[m] | i[m] ^ j[m]", "i[m] & j[m] | i[m] ^ j[m]"),
        ("(i[m] | j[m]) & ~j[m]", "(i[m] | j[m]) & ~j[m]"),
        ("i[m] << (j[m] & 3) >> 1", "i[m] << (j[m] & 3) >> 1"),
        ("i[m] << (j[m] >> 1)", "i[m] << (j[m] >> 1)"),
        ("(i[m] << j[m]) + 1", "(i[m] << j[m]) + 1"),
        ("i[m] << j[m] + 1", "i[m] << j[m] + 1"),
        ("(i[m] ^ j[m]) == 3", "i[m] ^ j[m] == 3"),
    ],
)
def test_operators_bind_as_in_python(text, shown):
    result = "b8[M]" if "==" in text else "i32[M]"
    spec = spec_of(f"y[m] = {text}", inputs="i: i32[M], j: i32[M]", result=result)
    assert f"y[m] = {shown}\n" in spec_text(spec)
    i, j = np.array([5, 9, -7]), np.array([3, 1, 2])
    (found,) = evaluate(spec, {"i": i, "j": j}, {"M": 3}).values()
    assert list(found) == [eval(text, {"i": i, "j": j, "m": m}) for m in range(3)]


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("i[m] & l[m]", "i64"),
        ("i[m] | 3", "i32"),
        ("b[m] ^ (x[m] > 0.0)", "b8"),
        ("~i[m]", "i32"),
        ("l[m] >> i[m]", "i64"),
        ("i[m] & 4294967295", "i64"),
        ("isnan(x[m])", "b8"),
        ("uniform(l[m], m)", "f32"),
        ("atan2(x[m], i[m])", "f32"),
        ("log1p(i[m])", "f32"),
        ("round(x[m])", "f32"),
        ("sign(i[m])", "i32"),
        ("i[m] ** 2", "i32"),
        ("fmod(i[m], l[m])", "i64"),
    ],
)
def test_dtypes(expression, dtype):
    assert dtype_of(expression) == dtype


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("b[m] & i[m]", "`&` is given i32 where it needs a truth value"),
        ("x[m] & i[m]", "`&` is given f32"),
        ("x[m] ^ x[m]", "`^` is given f32"),
        ("x[m] << i[m]", "`<<` is given f32"),
        ("b[m] >> 1", "`>>` is given b8"),
        ("isnan(i[m])", "`isnan` is given i32"),
        ("uniform(x[m], m)", "`uniform` is given f32"),
        ("uniform(1, b[m])", "`uniform` is given b8"),
    ],
)
def test_operands_of_another_sort_are_refused(expression, fault):
    with pytest.raises(KernelError, match=fault.replace("^", r"\^")) as error:
        dtype_of(expression)
    assert error.value.place is not None


def test_short_integers_are_computed_with_as_i32_and_wrap_where_they_are_stored():
    inputs = short_inputs(9, 30)
    a, b, c = (inputs[n].astype(np.int64) for n in "abc")
    found = evaluate(short_spec(), inputs, {"M": 9, "K": 30})
    right = {
        "added": (a + b).astype(np.int8),
        "transposed": 255 - b,
        "squared": (c * c).astype(np.int16),
        "wide": a * b - c,
        "halved": a * 0.5 + b,
        "cut": np.trunc(c * 3.7).astype(np.int64).astype(np.uint8),
        "more": c % 256 + 1,
        "less": a < b,
        "long": c.astype(np.int8),
        "chosen": np.where(a < b, a, b.astype(np.int8)),
        "masked": (a & 15 ^ b >> 4).astype(np.int8),
        "most": a.max(1),
        "least": b.min(1),
        "total": c.sum(1),
        "running": b.cumsum(1).astype(np.int16),
        "place": c.argmax(1),
    }
    assert found.keys() == right.keys()
    for name, array in right.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.parametrize("machine", [SMALL, WITH_REGISTERS])
def test_a_nest_of_short_integers_gives_what_the_reference_does(machine):
    spec, inputs, sizes = short_spec(), short_inputs(9, 30), {"M": 9, "K": 30}
    assert parse_spec(spec_text(spec)) == spec
    nest = lower(spec, decisions(spec, "tile(m, size=4)", "tile(k, size=8)"), machine, sizes)
    for rounded in (False, True):
        found = interpret(nest, inputs, sizes, rounded=rounded)
        for name, right in evaluate(spec, inputs, sizes).items():
            np.testing.assert_array_equal(found[name], right, err_msg=name)


@pytest.mark.parametrize("machine", [SMALL, WITH_REGISTERS])
def test_attributes_that_are_integers_are_computed_with_as_integers(machine):
    spec = parse_spec(
        "def f(x: i32[M], seed=2147483647, flip=5) -> (i32[M], f32[M]):\n"
        '    """F."""\n    y[m] = x[m] & seed ^ flip\n'
        "    z[m] = uniform(seed, x[m] + flip)\n    return y, z\n"
    )
    nest = lower(spec, decisions(spec), machine, {"M": 3})
    inputs = {"x": np.array([1, -2, 2**24 + 1])}
    right = evaluate(spec, inputs, {"M": 3})
    assert list(right["y"]) == [4, 2147483643, (2**24 + 1) ^ 5]
    assert {s.to.dtype for s in _temporaries(nest)} <= {"i32"}
    for name, found in interpret(nest, inputs, {"M": 3}).items():
        np.testing.assert_array_equal(found, right[name])


def _temporaries(nest):
    for launch in nest.launches:
        values = {v.name: v for v in launch.values}
        for s in launch.statements():
            if isinstance(s, Map):
                yield from (p for p in steps(s, values) if isinstance(p.to, Temporary))


def test_integers_wrap_where_they_are_stored():
    spec = spec_of("y[m] = x[m] + 1", inputs="x: i32[M]", result="i32[M]")
    assert list(evaluate(spec, {"x": np.array([2**31 - 1])}, {"M": 1})["y"]) == [-(2**31)]


def of(function, *args, real=np.float64):
    made = [Labelled(("m",), np.atleast_1d(np.asarray(a))) for a in args]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return apply(function, made, real).data


def test_modulo_and_floor_division_are_pythons():
    a = [7, -7, 7, -7, 1, -1]
    b = [3, 3, -3, -3, 5, 5]
    for kind in (int, float):
        left, right = (np.array(v, kind) for v in (a, b))
        pairs = list(zip(a, b, strict=True))
        assert list(of("mod", left, right)) == [p % q for p, q in pairs]
        assert list(of("floordiv", left, right)) == [p // q for p, q in pairs]
        assert list(of("fmod", left, right)) == [math.fmod(p, q) for p, q in pairs]


def test_a_nan_wins():
    assert np.isnan(of("minimum", [1.0, np.nan], [np.nan, 1.0])).all()
    assert np.isnan(of("maximum", [1.0, np.nan], [np.nan, 1.0])).all()
    assert np.isnan(of("relu", [np.nan])).all()


def test_halves_are_rounded_to_the_even():
    assert list(of("round", [0.5, 1.5, 2.5, -0.5, -1.5, 2.6])) == [0, 2, 2, 0, -2, 3]


def test_powers_of_integers_are_exact_and_inverses_are_cut():
    assert list(of("pow", [3, -3, 2, 1, -1, -1, 0], [39, 39, -1, -5, -3, -4, 0])) == [
        3**39,
        -(3**39),
        0,
        1,
        -1,
        1,
        1,
    ]
