"""Comparisons of positions are narrowed from i64, unless they could overflow or compare other
values."""

import pytest

from ir.parse.parse import parse_spec
from ir.partition.positions import with_plain_positions
from ir.print import expression_text


def comparison(text):
    spec = parse_spec(
        'def f(x: f32[4, 6], n: i64[4]) -> f32[4, 6]:\n    """F."""\n'
        f"    y[i, j] = where({text}, x[i, j], f32(n[i]))\n    return y\n"
    )
    (e,) = with_plain_positions(spec).equations
    return expression_text(e.value).removeprefix("where(").partition(", x[")[0]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("i64(j) <= i64(i)", "j <= i"),
        ("(i64(j) <= i64(i)) & (i64(j) > i64(i) - 3)", "(j <= i) & (j > i - 3)"),
        ("i64(i32(j)) == i64(i) + 1", "j == i + 1"),
    ],
)
def test_comparisons_are_made_of_indices(given, made):
    assert comparison(given) == made


@pytest.mark.parametrize(
    "given", ["i64(j) <= n[i]", "i64(j) < i64(i) + 3000000000", "i64(j) * 2 < i64(i)"]
)
def test_what_is_no_position_or_may_overflow_stays(given):
    assert comparison(given) == given


def test_a_spec_without_any_is_the_same():
    spec = parse_spec(
        'def f(x: f32[4]) -> f32[4]:\n    """F."""\n    y[i] = exp(x[i])\n    return y\n'
    )
    assert with_plain_positions(spec) is spec
