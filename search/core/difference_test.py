"""Differences between candidates are readable lines."""

from search.core import difference
from search.core.candidate import Candidate


def candidate(*decisions, variant="f", source=None):
    text = "schedule(k)\n" + "".join(f"{d}\n" for d in decisions)
    return Candidate(variant, text, "t", "b", source)


def test_a_changed_option_is_shown_alone():
    before = candidate("tile(m, size=32)", "pipeline(x, stages=2)")
    after = candidate("tile(m, size=64)", "pipeline(x, stages=2)")
    assert difference.lines(before, after) == ("tile(m): size 32 → 64",)


def test_an_option_that_came_or_went_is_shown_with_none():
    before = candidate("pack(w, order=n_k)")
    after = candidate("pack(w, dtype=tf32, order=k_n)")
    assert difference.lines(before, after) == ("pack(w): order n_k → k_n, dtype none → tf32",)
    assert difference.lines(after, before) == ("pack(w): dtype tf32 → none, order k_n → n_k",)


def test_a_decision_that_came_or_went_has_a_sign():
    before, after = candidate("tile(m, size=32)"), candidate("pipeline(x, stages=2)")
    assert difference.lines(before, after) == ("- tile(m, size=32)", "+ pipeline(x, stages=2)")


def test_equal_candidates_have_no_difference():
    assert difference.lines(candidate("tile(m, size=32)"), candidate("tile(m, size=32)")) == ()


def test_other_equations_and_other_source_are_said():
    before, after = candidate(), candidate(variant="g", source="s")
    assert difference.lines(before, after) == (
        "other equations, equal to the spec's, by given",
        "other source, by given",
    )


def test_another_order_is_said():
    before = candidate("tile(m, size=32)", "tile(n, size=8)")
    after = candidate("tile(n, size=8)", "tile(m, size=32)")
    assert difference.lines(before, after) == ("the same decisions in another order",)
