"""Loops that a mask cuts short, in two."""

from dataclasses import replace

from backends.gpu.peel import peeled, without
from ir.nest.nest import Bound, Loop, Map, Tile
from ir.spec import Apply, Index, Number, Size

N, M = Index("n"), Index("m")
CAUSAL = Apply("le", (N, M))
CHOICE = Apply("where", (CAUSAL, Tile("s"), Number(-float("inf"))))


def loop(condition=CAUSAL, high=None, low=Number(0)):
    end = Apply("minimum", (Size("N"), Apply("add", (Index("m"), Number(32)))))
    body = (Map("a", Apply("where", (condition, Tile("s"), Number(0.0)))),)
    return Loop("n", 16, Bound(size=low), Bound(size=high or end), body)


def test_a_causal_loop_is_two_and_the_first_needs_no_mask():
    (first, true), (second, none) = peeled(loop())
    assert true == {CAUSAL} and not none
    below = Apply("mul", (Apply("floordiv", (M, Number(16))), Number(16)))
    assert first.high == second.low == Bound(size=Apply("minimum", (Size("N"), below)))
    assert second.high == loop().high
    assert first.low == loop().low
    assert first.body == second.body == loop().body


def test_comparisons_that_hold_below_the_origin():
    for function, a, b in (("lt", N, M), ("ge", M, N), ("gt", M, N), ("le", N, M)):
        assert len(peeled(loop(Apply(function, (a, b))))) == 2, function


def test_others_are_left_in_one_loop():
    for function, a, b in (("ge", N, M), ("le", M, N), ("eq", N, M), ("ne", N, M)):
        assert peeled(loop(Apply(function, (a, b)))) == (
            (loop(Apply(function, (a, b))), frozenset()),
        )
    window = loop(Apply("le", (N, Apply("add", (M, Number(4))))))
    assert peeled(window) == ((window, frozenset()),)


def test_a_loop_over_all_is_left_as_it_is():
    whole = loop(high=Size("N"))
    assert peeled(whole) == ((whole, frozenset()),)


def test_a_loop_that_starts_later_is_left_as_it_is():
    later = loop(low=Number(16))
    assert peeled(later) == ((later, frozenset()),)


def test_a_loop_that_data_bound_is_left_as_it_is():
    bound = Loop("n", 16, Bound(tensor="o"), Bound(tensor="o"), loop().body)
    assert peeled(bound) == ((bound, frozenset()),)


def test_masks_in_loops_inside_count_too():
    outer = Loop("n", 16, loop().low, loop().high, (loop(),))
    assert len(peeled(outer)) == 2


def test_choices_that_are_settled_go():
    assert without(CHOICE, frozenset({CAUSAL})) == Tile("s")
    assert without(Apply("exp", (CHOICE,)), frozenset({CAUSAL})) == Apply("exp", (Tile("s"),))
    assert without(CHOICE, frozenset()) == CHOICE
    other = Apply("where", (Apply("lt", (N, M)), Tile("s"), Number(0.0)))
    assert without(other, frozenset({CAUSAL})) == other


def test_of_a_loop_from_its_end_the_last_tiles_come_first():
    backwards = replace(loop(), backwards=True)
    (last, none), (rest, true) = peeled(backwards)
    assert true == {CAUSAL} and not none
    assert last.low == rest.high and last.high == backwards.high and rest.low == backwards.low
    assert last.backwards and rest.backwards
