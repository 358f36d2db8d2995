"""Pointwise arithmetic meets in the right dtype, over the right axes, with each operand spelled once."""

import pytest

from backends.gpu.blocks import Blocks
from backends.gpu.expressions import Expressions
from backends.gpu.plain_rules import RULES
from backends.gpu.tile import Compute, Converted, Name, Power, Spread
from ir.nest.nest import Tile
from ir.spec import Apply, Cast, Index, Number, Size
from testing.samples.samples import WITH_TF32, lowered, spec_of

HELD = {  # by value: its axes and dtype
    "x": (("m", "k"), "f32"),
    "h": (("m", "k"), "f16"),
    "r": (("m",), "f32"),
    "n": (("m", "k"), "i32"),
    "b": (("m", "k"), "b8"),
}
X, H, R, N, B = map(Tile, HELD)
OVER = ("m", "k")
ROWS = Spread(Name("value", "r"), (True, False))


def made(factors=None):
    spec = spec_of("y[m, k] = x[m, k] * 2.0")
    lines = ("tile(m, size=4)", "place(m.outer, level=grid)")
    nest = lowered(spec, *lines, sizes=dict(M=21, K=70), machine=WITH_TF32)
    named = []

    def temporary(value):
        named.append(value)
        return Name("value", f"part_{len(named)}")

    def tile(one):
        axes, dtype = HELD[one.value]
        return Name("value", one.value), axes, dtype

    blocks = Blocks(nest.launches[0], RULES)
    return Expressions(blocks, tile, temporary, factors or {}), named


def typed(expr):
    return made()[0].typed(expr, OVER)


def value(tile):
    return Name("value", tile.value)


@pytest.mark.parametrize(
    ("a", "b", "dtype"),
    [(X, H, "f32"), (H, H, "f32"), (N, X, "f32"), (N, N, "i32"), (N, Number(2.0), "f32")],
)
def test_operands_meet_in_the_wider_dtype_and_narrow_floats_in_f32(a, b, dtype):
    assert typed(Apply("add", (a, b))).dtype == dtype


def test_only_the_operand_that_differs_is_converted():
    found = typed(Apply("mul", (X, H)))
    assert found.value == Compute("mul", (value(X), Converted(value(H), "f32", False)), True)
    assert found.axes == {"m", "k"}


def test_a_row_is_spread_over_the_axes_that_it_lacks():
    found = typed(Apply("sub", (X, R)))
    assert found.value == Compute("sub", (value(X), ROWS), True)
    assert typed(R).axes == {"m"}


def test_a_comparison_gives_truth_and_a_choice_the_dtype_of_what_is_chosen():
    compared = typed(Apply("lt", (N, Number(3))))
    assert (compared.dtype, compared.axes) == ("b8", {"m", "k"})
    assert typed(Apply("where", (B, N, N))).dtype == "i32"


@pytest.mark.parametrize(
    ("expr", "known"),
    [
        (Apply("lt", (Number(1), Number(2))), True),
        (Apply("not", (Apply("le", (Number(0), Number(0))),)), False),
    ],
)
def test_comparisons_of_constants_are_evaluated(expr, known):
    assert typed(expr).value == Number(known)


def test_a_float_becomes_a_short_integer_through_i32():
    found = typed(Cast("i8", X))
    assert found.value == Converted(Converted(value(X), "i32", False), "i8", False)


def test_tf32_is_rounded_and_read_as_f32_without_a_conversion():
    rounded = typed(Cast("tf32", X))
    assert rounded.value == Compute("round_tf32", (value(X),), True)
    assert typed(Cast("f32", Cast("tf32", X))).value == rounded.value


def test_an_argument_that_is_spelled_twice_gets_a_name():
    expressions, named = made()
    inner = Compute("add", (value(X), Number(1.0)), True)
    found = expressions.typed(Apply("gelu", (Apply("add", (X, Number(1.0))),)), OVER)
    assert named == [inner]
    assert found.value == Compute("gelu", (Name("value", "part_1"),), True)
    assert made()[0].typed(Apply("gelu", (X,)), OVER).value == Compute("gelu", (value(X),), True)


def test_an_exponential_of_a_difference_to_a_row_is_a_power_of_two():
    expr = Apply("exp", (Apply("sub", (X, R)),))
    assert typed(expr).value == Power(value(X), ROWS, None)
    factor = Name("factor", "x")
    assert made({"x": factor})[0].typed(expr, OVER).value.factor == factor
    assert isinstance(typed(Apply("exp", (Apply("sub", (X, X)),))).value, Compute)


def test_division_rounds_to_zero_where_nothing_is_negative():
    assert typed(Apply("floordiv", (Index("k"), Size("K")))).value.function == "quotient"
    assert typed(Apply("floordiv", (N, Size("K")))).value.function == "floordiv"


def test_an_index_is_its_positions_or_where_its_only_element_is():
    found = typed(Index("k"))
    assert found.value == Spread(Name("positions", "k"), (False, True))
    assert (found.dtype, found.axes) == ("i32", {"k"})
