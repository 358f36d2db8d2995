"""The axes of tile expressions by name, their dtypes, and constants of a launch."""

import pytest

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.threads.constants import constant, constants
from backends.gpu.threads.expressions import Typing, leaves, met
from backends.gpu.threads.thread import All
from backends.gpu.tile import Name
from ir.spec import Apply, Number, Size

X, S = Name("value", "x"), Name("value", "s")
K = Name("positions", "k")


@pytest.fixture
def typing():
    found = Typing({"x": "bf16"})
    found.known |= {X: ("bf16", ("m", "k")), S: ("f32", ("m",))}
    return found


def test_axes_follow_an_expression(typing):
    spread = of.Spread(S, (True, False))
    assert typing.axes(of.Compute("sub", (X, spread))) == ("m", "k")
    assert typing.axes(of.Permuted(X, (1, 0))) == ("k", "m")
    assert typing.axes(of.Reduced("sum", X, 1, False)) == ("m",)
    assert typing.axes(spread) == ("m", None)
    assert typing.axes(of.Check(of.Spread(K, (False, True)), below=Size("K"))) == (None, "k")
    assert typing.axes(of.Full(Number(0.0), (Number(4), Number(8)), "f32")) == (None, None)


def test_dtypes_follow_an_expression(typing):
    assert typing.dtype(of.Converted(X, "f32")) == "f32"
    assert typing.dtype(of.Compute("lt", (X, Number(0)))) == "b8"
    assert typing.dtype(of.Compute("mul", (Number(2.0), X), True)) == "bf16"
    place = of.Place(Name("pointer", "x"), ())
    assert typing.dtype(of.Entry(place)) == "bf16"
    assert typing.dtype(of.Masked((), X, Number(0.0))) == "bf16"


def test_axes_of_operands_meet_from_the_last():
    assert met(("m", None), (None, "k")) == ("m", "k")
    assert met((), ("k",)) == ("k",)


def test_leaves_have_no_constants_and_no_pointers():
    place = of.Place(Name("pointer", "x"), (of.Term(of.Spread(K, (True,))), of.Term(X)))
    assert leaves(of.Entry(place, Name("width", "k"))) == [K, X]


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (of.Tiles(Size("K"), 16), 7),
        (of.BlockWidth(Size("K"), 16), 128),
        (of.Even(Size("K"), Number(20)), 1),
        (of.Even(Size("K"), of.BlockWidth(Size("K"), 1)), 0),
        (of.Bits(Size("K")), 7),
        (All((of.Even(Size("K"), Number(10)), of.Even(Size("K"), Number(3)))), 0),
        (Apply("mul", (of.Tiles(Size("K"), 64), Number(64))), 128),
    ],
)
def test_what_the_launcher_computes(expr, value):
    assert constant(expr, {"K": 100}) == value


def test_a_constant_may_name_one_before_it():
    pairs = ((Name("width", "k"), of.Tiles(Size("K"), 64)), (Name("even", "k"), Name("width", "k")))
    assert list(constants(pairs, {"K": 100}).values()) == [2, 2]


def test_what_data_decide_is_no_constant():
    with pytest.raises(BackendError, match="no constant of a launch"):
        constant(of.Truth(X), {})
