"""Size expressions compare by value where that is decidable."""

import pytest

from ir.linear import never_negative, polynomial, same, subtracted, turns_negative
from ir.parse.parse import parse_spec
from ir.spec import Apply, Expr, Number, Size

M, N, ONE = Size("M"), Size("N"), Number(1)


def size(text: str) -> Expr:
    signature = f"def t(P={text}) -> f32[P, M, N]:"
    lines = f'{signature}\n    """Doc."""\n    y[p, m, n] = 1.0\n    return y\n'
    return parse_spec(lines).derived[0][1]


EQUAL = [
    ("M + 1", "1 + M"),
    ("2 * (M - N)", "M + M - 2 * N"),
    ("(M + 1) * (N - 1)", "M * N - M + N - 1"),
    ("-M + M // 2", "M // 2 - M"),
    ("M * (M - 1)", "M * M - M"),
]
DIFFERENT = [("M", "N"), ("M + 1", "M"), ("M // 2", "M"), ("M // 2 * 2", "M"), ("M % 2", "N % 2")]


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_equal(a, b):
    assert same(size(a), size(b), {})


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different(a, b):
    assert not same(size(a), size(b), {})


def test_derived_sizes_stand_for_their_expression():
    assert same(Size("P"), M, {"P": Apply("sub", (Size("Q"), ONE)), "Q": Apply("add", (M, ONE))})


@pytest.mark.parametrize(
    ("text", "never", "turns"),
    [
        ("M", True, False),
        ("M - 1", True, False),
        ("M - 2", False, False),
        ("1 - M", False, True),
        ("5 - M - N", False, True),
        ("M - N", False, False),
        ("M // 2", False, False),
        ("0 * M", True, False),
        ("0 * M - 1", False, True),
    ],
)
def test_signs_are_decided_for_sizes_of_at_least_one(text, never, turns):
    found = polynomial(size(text), {})
    assert (never_negative(found), turns_negative(found)) == (never, turns)
    assert subtracted(found, found) == {}
