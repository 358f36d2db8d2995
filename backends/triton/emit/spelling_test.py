"""Sizes, constants, calls and tables as Python; sizes mean what they meant."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.gpu.tile import (
    Assign,
    Check,
    Compute,
    Guard,
    Joined,
    Load,
    Loop,
    Name,
    Place,
    Reduced,
    Scanned,
    Store,
    Term,
)
from backends.triton.emit.spelling import templates, titles
from ir.functions import SCANS
from ir.lower.loop_bounds import IDENTITY_ELEMENTS
from ir.spec import Apply, Index, Number, Size
from testing.samples.samples import spec_of

EXPRESSION = templates().environment.get_template("expressions.py.j2").module
STATEMENT = templates().environment.get_template("statements.py.j2").module
X, Y = Name("value", "x"), Name("value", "y")
M, N = Size("M"), Size("N")
_BINARY = ("add", "sub", "mul", "floordiv", "mod", "minimum", "maximum")
EXPRESSIONS = st.recursive(
    st.sampled_from([M, N, Index("m"), Number(3), Number(-2), Number(1)]),
    lambda inner: st.builds(Apply, st.sampled_from(_BINARY), st.tuples(inner, inner)),
    max_leaves=8,
)
KNOWN = {"M": 13, "N": 7, "m_at": 5}


def size(expr):
    return str(EXPRESSION.expr(expr))


def factor(expr):
    return str(EXPRESSION.factor(expr))


def printed(*statements):
    return str(STATEMENT.block(statements, 1))


def meaning(expr):
    """The value of a size expression, by Python's own arithmetic."""
    match expr:
        case Number(value):
            return value
        case Size(name):
            return KNOWN[name]
        case Index(name):
            return KNOWN[f"{name}_at"]
        case Apply(function, (a, b)):
            a, b = meaning(a), meaning(b)
            calls = dict(
                add=int.__add__,
                sub=int.__sub__,
                mul=int.__mul__,
                minimum=min,
                maximum=max,
                floordiv=int.__floordiv__,
                mod=int.__mod__,
            )
            return calls[function](a, b)
    raise AssertionError(expr)


@given(EXPRESSIONS)
def test_a_size_means_what_it_meant(expr):
    try:
        expected = meaning(expr)
    except ZeroDivisionError:
        return
    assert eval(size(expr), dict(KNOWN, min=min, max=max)) == expected


@given(EXPRESSIONS)
def test_so_does_one_that_something_is_multiplied_by(expr):
    try:
        expected = meaning(expr)
    except ZeroDivisionError:
        return
    known = dict(KNOWN, min=min, max=max)
    assert eval(f"2 * {factor(expr)}", known) == 2 * expected
    assert eval(f"{factor(expr)} * 2", known) == 2 * expected


def test_a_function_without_a_spelling_is_refused():
    for nowhere in (Apply("nowhere", (M, N)), Compute("nowhere", (X,))):
        with pytest.raises(Exception, match="nowhere"):
            size(nowhere)


def test_constants_are_python():
    assert size(Number(2)) == "2"
    assert size(Number(True)) == "True"
    assert size(Number(1e-06)) == "1e-06"
    assert eval(size(Number(float("inf")))) == float("inf")
    assert eval(size(Number(-float("inf")))) == -float("inf")


def test_a_sum_subtracts_what_is_below_zero():
    assert size(Apply("add", (X, Number(-1)))) == "x - 1"


def test_what_is_added_to_a_variable():
    assert printed(Assign(X, Joined("sum", X, Y, False))) == "    x += y"
    assert printed(Assign(X, Compute("add", (X, Compute("mul", (Y, Y)))))) == "    x += (y * y)"
    assert printed(Assign(Y, Joined("sum", X, Y, False))) == "    y = x + y"
    assert printed(Assign(X, Joined("prod", X, Y, False))) == "    x = x * y"


def test_blocks_are_indented_below_their_header():
    inner = Loop(Name("origin", "k"), Number(0), Size("K"), 16, (Assign(X, Y),), stages=2)
    text = printed(Assign(X, Number(1)), Guard(Name("bulk", "x"), (inner,), (Assign(Y, X),)))
    assert text.splitlines() == [
        "    x = 1",
        "    if BULK_X:",
        "        for k_at in tl.range(0, K, 16, num_stages=2):",
        "            x = y",
        "    else:",
        "        y = x",
    ]


def place(*words, mask=()):
    """A place at a sum of long names, where some are at least 0."""
    terms = tuple(Term(Name("value", w)) for w in words)
    return Place(Name("pointer", "x"), terms, tuple(Check(Name("value", w)) for w in mask))


def test_a_short_call_stays_on_its_line():
    assert printed(Store(place(), Y)) == "    tl.store(x_ptr, y)"
    assert printed(Load(Y, place("i"), Number(0.0))) == "    y = tl.load(x_ptr + i)"


def test_a_long_call_is_broken_into_its_arguments():
    found = printed(Load(Y, place("p" * 60, mask=("m" * 30,)), Number(0.0))).splitlines()
    assert found == [
        "    y = tl.load(",
        f"        x_ptr + {'p' * 60},",
        f"        mask=({'m' * 30} >= 0),",
        "        other=0.0,",
        "    )",
    ]


def test_a_long_argument_is_broken_into_its_terms():
    names = [c * 30 for c in "abc"]
    found = printed(Store(place("i", mask=names), Y)).splitlines()
    assert found == [
        "    tl.store(",
        "        x_ptr + i,",
        "        y,",
        f"        mask=({names[0]} >= 0)",
        f"            & ({names[1]} >= 0)",
        f"            & ({names[2]} >= 0),",
        "    )",
    ]
    found = printed(Store(place(*names), Y)).splitlines()
    assert found[1:3] == ["        x_ptr", f"            + {names[0]}"]


def test_a_value_that_is_added_to_memory_says_so_when_it_is_broken_too():
    for words in (("i",), ("i" * 90,)):
        found = printed(Store(place(*words), Y, "sum"))
        assert "tl.atomic_add(" in found and 'sem="relaxed"' in found


def test_a_long_equation_is_split_at_its_terms():
    terms = " + ".join(f"sin(x[m, k] * {n}.0)" for n in range(6))
    (equation,) = spec_of(f"y[m, k] = {terms}").equations
    found = list(titles((equation,)))
    assert len(found) == 6 and all(line.startswith("    + ") for line in found[1:])


NUMPY = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod, "any": np.any, "all": np.all}


@pytest.mark.parametrize("reduction", NUMPY)
def test_an_identity_element_changes_nothing(reduction):
    values = (
        np.array([0.0, 1.0, 1.0]) if reduction in ("any", "all") else np.array([-2.0, 0.5, 3.0])
    )
    reduced = NUMPY[reduction](values)
    assert NUMPY[reduction]([*values, IDENTITY_ELEMENTS[reduction]]) == reduced
    truth = {"any": bool, "all": bool}.get(reduction, float)

    class tl:
        maximum, minimum = max, min

    names = {"tl": tl, "x": truth(reduced), "y": truth(IDENTITY_ELEMENTS[reduction])}
    assert eval(size(Joined(reduction, X, Y, False)), names) == reduced


@pytest.mark.parametrize(("reduction", "helper"), [("max", "larger"), ("min", "smaller")])
def test_extrema_of_floats_give_nan_unless_it_is_not_needed(reduction, helper):
    assert size(Reduced(reduction, X, 1, nan=True)) == f"tl.reduce(x, 1, {helper})"
    assert size(Joined(reduction, X, Y, nan=True)) == f"{helper}(x, y)"
    assert size(Reduced(reduction, X, 1, nan=False)) == f"tl.{reduction}(x, 1)"


@pytest.mark.parametrize("reduction", sorted(set(SCANS.values())))
def test_every_scan_has_a_text(reduction):
    assert size(Scanned(reduction, X, 1)).startswith("tl.")
