"""The forecast follows the nearest outcomes, and the mean of all if none is near."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.core.candidate import Candidate
from search.loop.forecast import APART, Neighbour, apart, correction, neighbours


def candidate(*decisions, variant="spec", source=None):
    return Candidate(variant, "\n".join(("schedule(k)", *decisions)), "chip", "tongue", source)


A, B, FAR = candidate("a", "b"), candidate("a", "c"), candidate("x", "y", "z", "u", "v", "w")


def test_without_neighbours_the_estimate_stands():
    assert correction(A, ()) == 1.0


def test_a_decision_that_is_changed_counts_once_and_other_equations_count_more():
    assert apart(A, A) == 0 and apart(A, B) == 1
    assert apart(A, candidate("a")) == 0.5
    assert apart(A, candidate("a", "b", variant="other")) == APART


def test_a_twin_weighs_more_than_what_is_far():
    known = neighbours([(B, 2.0, 1.0), (FAR, 0.5, 1.0)])
    assert correction(B, known) > 1.5
    assert correction(FAR, known) < 0.7
    assert 1.0 < correction(A, known) < correction(B, known)


def test_where_nothing_is_near_it_is_the_mean_of_all():
    known = neighbours([(FAR, 2.0, 1.0), (candidate("p", "q", "r", "s", "t"), 8.0, 1.0)])
    lone = candidate("e", "f", "g", "h", "i", "j", "k", "l", "m")
    assert correction(lone, known) == pytest.approx(4.0, rel=0.05)


def test_an_edited_source_says_nothing_of_its_schedule():
    assert neighbours([(candidate("a", source="edited"), 2.0, 1.0)]) == ()


@given(st.lists(st.tuples(st.frozensets(st.sampled_from("abcdef")), st.floats(-3, 3)), min_size=1))
def test_it_stays_between_the_least_and_the_largest_residual(known):
    near = [Neighbour(candidate(*sorted(d)), r) for d, r in known]
    found = math.log(correction(A, near))
    residuals = [r for _, r in known]
    assert min(residuals) - 1e-9 <= found <= max(residuals) + 1e-9
