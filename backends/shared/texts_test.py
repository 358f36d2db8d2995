"""Sizes and constants have the right form in C++."""

from __future__ import annotations

import pytest

from backends.backend import BackendError
from backends.shared import texts
from ir.spec import Apply, Cast, Index, Number, Size

M, ONE, TWO = Size("M"), Number(1), Number(2)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (M, "M"),
        (Apply("add", (M, ONE)), "M + 1"),
        (Apply("sub", (M, Apply("sub", (M, ONE)))), "M - (M - 1)"),
        (Apply("mul", (TWO, Apply("add", (M, ONE)))), "2 * (M + 1)"),
        (Apply("add", (Apply("floordiv", (Apply("sub", (M, ONE)), TWO)), ONE)), "(M - 1) / 2 + 1"),
        (Apply("add", (M, Number(-3))), "M - 3"),
    ],
)
def test_a_size_is_grouped_as_it_must_be(expr, text):
    assert texts.size(expr) == text


def test_an_index_in_a_bound_is_the_origin_of_its_tile():
    assert texts.size(Apply("add", (Index("m"), Number(64)))) == "m_at + 64"


def test_a_window_spans_what_its_indices_reach():
    assert texts.span((("p", 1),)) == "p_n"
    assert texts.span((("p", 2), ("i", 1))) == "2 * (p_n - 1) + (i_n - 1) + 1"


def test_constants_keep_their_value():
    assert texts.number(0.1) == "0.1"
    assert texts.number(-float("inf")) == "-inf"
    assert texts.number(True) == "1"


def test_a_scalar_of_the_launch_is_worked_out_by_its_control_core():
    root = Apply("rsqrt", (Cast("f32", M),))
    assert texts.scalar(root) == "1.0 / __builtin_sqrt(double(M))"
    assert texts.scalar(Apply("sub", (M, ONE))) == "M - (1)"
    assert texts.scalar(Apply("isinf", (Cast("f32", M),))) == "__builtin_isinf(double(M))"


def test_integers_divide_as_c_does_only_where_none_is_negative():
    assert texts.scalar(Apply("mod", (M, TWO))) == "(M) % (2)"
    less = Apply("sub", (M, TWO))
    assert texts.scalar(Apply("mod", (less, TWO))) == "((((M - (2)) % (2)) + (2)) % (2))"


def test_a_truth_value_is_negated_as_one():
    assert texts.scalar(Apply("not", (Apply("lt", (M, TWO)),))) == "!((M) < (2))"
    assert texts.scalar(Apply("not", (M,))) == "~(M)"


def test_what_has_no_spelling_is_refused():
    with pytest.raises(BackendError):
        texts.size(Cast("f32", M))
    with pytest.raises(BackendError):
        texts.scalar(Apply("uniform", (M, M)))
