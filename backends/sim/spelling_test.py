"""Names, sizes and constants are written as C++ means them."""

from __future__ import annotations

import pytest

from backends.backend import BackendError
from backends.sim import spelling
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
    assert spelling.size(expr) == text


def test_an_affine_start_names_origins():
    assert spelling.affine((("p", 2), ("i", 1)), Number(-1)) == "2 * p_at + i_at - 1"
    assert spelling.affine((), Number(0)) == "0"


def test_a_window_spans_what_its_indices_reach():
    assert spelling.span((("p", 1),)) == "p_n"
    assert spelling.span((("p", 2), ("i", 1))) == "2 * (p_n - 1) + (i_n - 1) + 1"


def test_an_index_named_like_a_keyword_gets_another_name():
    assert spelling.axis("do") == "axis::do_" and spelling.axis("m") == "axis::m"


def test_constants_keep_their_value():
    assert spelling.number(0.1) == "0.1"
    assert spelling.number(-float("inf")) == "-inf"
    assert spelling.number(True) == "1"


def test_a_scalar_of_the_launch_is_worked_out_by_its_control_core():
    root = Apply("rsqrt", (Cast("f32", M),))
    assert spelling.scalar(root) == "1.0 / __builtin_sqrt(double(M))"
    assert spelling.scalar(Apply("sub", (M, ONE))) == "M - (1)"
    assert spelling.scalar(Apply("isinf", (Cast("f32", M),))) == "__builtin_isinf(double(M))"


def test_what_has_no_spelling_is_refused():
    with pytest.raises(BackendError):
        spelling.size(Index("m"))
    with pytest.raises(BackendError):
        spelling.scalar(Apply("gelu", (M,)))
