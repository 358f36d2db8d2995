"""Vectors: a run is moved at once only where its addresses are aligned and its mask is the same."""

import pytest

from backends.gpu.threads.thread import All
from backends.gpu.threads.vectors import aligned, coefficient, contiguous
from backends.gpu.tile import Check, Even, Name, Place, Spread, Term
from ir.spec import Apply, Index, Number, Size

POINTER = Name("pointer", "x")
M, K = Size("M"), Size("K")
ROW = Spread(Name("positions", "m"), (True, False))
COLUMN = Spread(Name("positions", "k"), (False, True))
INSIDE = Spread(Name("mask", "k"), (False, True))
ENDS = {"k": K, "m": M}


def place(*terms, mask=()):
    return Place(POINTER, terms, mask)


def test_the_contiguous_axis_is_the_one_whose_positions_count_once():
    assert contiguous(place(Term(ROW, (K,)), Term(COLUMN))) == "k"
    assert contiguous(place(Term(ROW, (K,)), Term(Apply("mul", (COLUMN, Number(2)))))) == ""
    assert contiguous(place(Term(ROW), Term(COLUMN, (M,)))) == "m"
    assert contiguous(place(Term(Name("value", "rows"), (K,)))) == ""


@pytest.mark.parametrize(
    ("expr", "count"),
    [
        (COLUMN, 1),
        (ROW, 0),
        (Apply("add", (COLUMN, Index("i"))), 1),
        (Apply("mul", (COLUMN, Number(3))), 3),
        (Apply("add", (COLUMN, COLUMN)), 2),
        (Apply("mod", (COLUMN, Number(3))), None),
    ],
)
def test_what_a_position_counts(expr, count):
    assert coefficient(expr, "k") == count


def test_rows_of_any_length_are_aligned_where_their_length_is_a_multiple():
    found = aligned(place(Term(ROW, (K,)), Term(COLUMN), mask=(INSIDE,)), "k", 8, {}, ENDS)
    assert found == All((Even(K, Number(8)),))


def test_an_origin_is_a_multiple_of_its_tile():
    terms = (Term(ROW, (Number(64),)), Term(COLUMN))
    assert aligned(place(*terms), "k", 8, {"k": 64}, ENDS) == All(())
    assert aligned(place(*terms), "k", 8, {"k": 4}, ENDS) is None


def test_an_offset_that_is_no_multiple_is_never_aligned():
    terms = (Term(ROW, (K,)), Term(Apply("add", (COLUMN, Number(-1)))))
    assert aligned(place(*terms), "k", 4, {}, ENDS) is None
    by_eight = (Term(ROW, (K,)), Term(Apply("add", (COLUMN, Number(-8)))))
    assert aligned(place(*by_eight), "k", 4, {}, ENDS) == All((Even(K, Number(4)),))


def test_a_row_length_that_is_no_multiple_is_never_aligned():
    assert aligned(place(Term(ROW, (Number(63),)), Term(COLUMN)), "k", 4, {}, ENDS) is None


def test_a_mask_that_changes_within_a_run_forbids_it():
    causal = Check(COLUMN, below=Size("N"))
    assert aligned(place(Term(COLUMN), mask=(causal,)), "k", 4, {}, ENDS) is None
    of_rows = Check(ROW, below=M)
    assert aligned(place(Term(COLUMN), mask=(of_rows,)), "k", 4, {}, ENDS) == All(())
    assert aligned(place(Term(COLUMN), mask=(INSIDE,)), "k", 4, {}, {}) is None
