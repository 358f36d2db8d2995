"""A place is the address that the region says: the sum of its terms is the row-major index."""

import pytest

from backends.gpu import tile as to
from backends.gpu.plain_rules import RULES
from backends.gpu.program import tile_program
from backends.gpu.tile import Check, Name, statements
from ir.sizes import value as number
from ir.spec import Apply, Index, Number, Size
from testing.samples.samples import WITH_TF32, lowered, spec_of

SIZES = {"M": 21, "K": 70}
AT = {"m": 8, "k": 16}  # where tiles start
WITHIN = {"m": 3, "k": 5}  # the element that is looked at
TILES = ("tile(m, size=4)", "tile(k, size=16)", "place(m.outer, level=grid)")


def place_of(tensor, *equations, lines=TILES, **kwargs):
    nest = lowered(spec_of(*equations, **kwargs), *lines, sizes=SIZES, machine=WITH_TF32)
    (launch,) = tile_program(nest, WITH_TF32, RULES).launches
    every = statements((*launch.once, *launch.body))
    named = {
        s.name: s.value
        for s in statements((*launch.once, *launch.body))
        if isinstance(s, to.Assign)
    }
    loads = (s.place for s in every if isinstance(s, to.Load | to.Store))
    return next(p for p in loads if p.tensor == Name("pointer", tensor)), named


def evaluated(expr, named):
    """What an index expression comes to at one element."""
    match expr:
        case to.Spread(value=inner):
            return evaluated(inner, named)
        case Name("positions", index):
            return AT[index] + WITHIN[index]
        case Name("origin", index) | Index(index):
            return AT[index]
        case Name() if expr in named:
            return evaluated(named[expr], named)
        case to.Compute(function=function, args=args) | Apply(function, args):
            a, *b = (evaluated(x, named) for x in args)
            return {"add": sum, "mul": lambda v: v[0] * v[1], "sub": lambda v: v[0] - v[1]}[
                function
            ]([a, *b])
        case Number() | Size():
            return number(expr, SIZES)
    raise AssertionError(expr)


def address(place, named):
    total = 0
    for term in place.terms:
        product = evaluated(term.value, named)
        for size in term.stride:
            product *= evaluated(size, named)
        total += product
    return total


@pytest.mark.parametrize(
    ("read", "row", "column"),
    [
        ("x[m, k]", 11, 21),
        ("pad(x[m + 1, k], 0.0)", 12, 21),
        ("pad(x[m, k - 2], 0.0)", 11, 19),
        ("pad(x[m, 2 * k], 0.0)", 11, 42),
        ("x[0, k]", 0, 21),
    ],
)
def test_the_terms_add_up_to_the_row_major_index(read, row, column):
    place, named = place_of("x", f"y[m, k] = {read} + 1.0")
    assert address(place, named) == row * SIZES["K"] + column


def test_what_cannot_lie_outside_is_not_checked_and_the_rest_is():
    plain, _ = place_of("x", "y[m, k] = x[m, k] + 1.0")
    assert not [c for c in plain.mask if isinstance(c, Check)]
    shifted, _ = place_of("x", "y[m, k] = pad(x[m, k - 2], 0.0)")
    at = Name("dim", "x", 1)
    assert shifted.mask[-2:] == (Check(at), Check(at, below=Size("K")))


@pytest.mark.parametrize(
    ("position", "size", "checks"),
    [
        (0, Size("M"), False),
        (1, Size("M"), True),
        (2, Number(3), False),
        (3, Number(3), True),
        (-1, Number(3), True),
    ],
)
def test_a_padded_position_that_is_a_number_is_checked_unless_it_is_inside(position, size, checks):
    shape = size.name if isinstance(size, Size) else size.value
    equation = f"y[m, k] = x[m, k] + pad(t[{position}, k], 0.0)"
    place, _ = place_of("t", equation, inputs=f"x: f32[M, K], t: f32[{shape}, K]")
    at = Number(position)
    found = [c for c in place.mask if isinstance(c, Check) and c.at == at]
    assert found == ([Check(at), Check(at, below=size)] if checks else [])


def test_a_store_lies_where_its_region_says():
    place, named = place_of("y", "y[m, k] = x[m, k] + 1.0")
    assert address(place, named) == 11 * SIZES["K"] + 21
