"""Rounds of a job: each search is opened, then the expected gain per cost decides, within the
limits."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.loop.rounds import ROUND, Idle, JobBudget, JobStanding, Share, next_round, shares, spent

GAINING = tuple(100.0 * 0.9**n for n in range(8))
FLAT = (100.0,) * 8


def standing(times=(), **more):
    of_share = [n for n in more if n in ("weight", "priority", "evaluations")]
    share = Share(**{n: more.pop(n) for n in of_share})
    return JobStanding(share, tuple(times), roofline_us=more.pop("roofline_us", 1.0), **more)


def test_all_are_opened_in_their_order_before_anything_decides():
    found = next_round([standing(GAINING), standing(), standing()], JobBudget())
    assert (found.search, found.evaluations) == (1, ROUND)


def test_a_small_budget_opens_all():
    found = next_round([standing()] * 5, JobBudget(evaluations=12))
    assert found.evaluations == 2


def test_who_gained_lately_goes_on():
    assert next_round([standing(FLAT), standing(GAINING)], JobBudget()).search == 1


def test_weights_count():
    both = [standing(FLAT, weight=100.0), standing(GAINING)]
    assert next_round(both, JobBudget()).search == 0


def test_nothing_is_expected_beyond_the_roofline():
    near = standing(GAINING, roofline_us=GAINING[-1] * 0.99)
    assert next_round([near, standing(FLAT)], JobBudget()).search == 1


def test_with_a_budget_of_seconds_the_cheap_one_goes_on():
    both = [standing(FLAT, seconds=80.0), standing(FLAT, seconds=8.0)]
    assert next_round(both, JobBudget(seconds=100.0)).search == 1
    assert next_round(both, JobBudget(evaluations=100)).search == 0
    assert next_round(both, JobBudget(seconds=88.0)) is None


def test_a_lower_priority_waits_until_the_higher_is_over():
    high = standing(FLAT, priority=1, evaluations=10)
    low = standing(GAINING)
    found = next_round([low, high], JobBudget())
    assert (found.search, found.evaluations) == (1, 2)
    assert next_round([low, replace(high, over=True)], JobBudget()).search == 0


def test_who_has_nothing_correct_is_hoped_for_as_at_the_start():
    failing = standing((math.inf,) * 8)
    assert next_round([standing(FLAT), failing], JobBudget()).search == 0
    assert failing.rate == standing(FLAT).rate


TIMES = st.lists(st.floats(1.0, 1e6) | st.just(math.inf), max_size=40)
STANDING = st.builds(
    lambda times, weight, priority, most, seconds, over: standing(
        times, weight=weight, priority=priority, evaluations=most, seconds=seconds, over=over
    ),
    TIMES,
    st.floats(0.01, 100.0),
    st.integers(-1, 1),
    st.none() | st.integers(1, 60),
    st.floats(0.0, 100.0),
    st.booleans(),
)


@given(
    st.lists(STANDING, min_size=1, max_size=6),
    st.builds(JobBudget, st.none() | st.integers(1, 200), st.none() | st.floats(1.0, 300.0)),
)
def test_no_round_goes_beyond_a_limit(standings, budget):
    found = next_round(standings, budget)
    had, seconds = spent(standings)
    open_ones = [s for s in standings if s.open]
    if found is None:
        assert (
            not open_ones
            or (budget.evaluations is not None and had >= budget.evaluations)
            or (budget.seconds is not None and seconds >= budget.seconds)
        )
        return
    chosen = standings[found.search]
    assert chosen.open and found.evaluations >= 1
    assert chosen.left is None or found.evaluations <= chosen.left
    assert budget.evaluations is None or had + found.evaluations <= budget.evaluations
    assert chosen.share.priority == max(s.share.priority for s in open_ones)
    assert math.isfinite(found.gain) and found.gain >= 0.0 and found.cost > 0.0
    assert found == next_round(standings, budget)


@pytest.mark.parametrize("count", [1, 3])
def test_a_budget_is_used_up_to_the_last_evaluation(count):
    standings, budget = [standing() for _ in range(count)], JobBudget(evaluations=50)
    while (found := next_round(standings, budget)) is not None:
        one = standings[found.search]
        standings[found.search] = replace(one, times=one.times + (7.0,) * found.evaluations)
    assert spent(standings)[0] == 50


def kernel(times=(), *, calls=1, us=100.0, timed=True, **more):
    """A search for a kernel of a network. us: time of its seed schedule in a call."""
    share = Share(network="chip", calls=calls, estimate_us=us, timed=timed)
    return JobStanding(share, tuple(times), roofline_us=more.pop("roofline_us", 1.0), **more)


def test_of_a_network_the_kernel_that_takes_most_of_a_call_goes_first():
    rare, often = kernel(us=100.0), kernel(calls=12, us=20.0)
    assert next_round([rare, often], JobBudget()).search == 1
    assert shares([rare, often]) == pytest.approx([100 / 340, 240 / 340])
    found = next_round([kernel(us=300.0), often], JobBudget())
    assert (found.search, found.evaluations) == (0, ROUND)


def test_a_kernel_at_its_roofline_gets_nothing():
    there, near = kernel(us=500.0, roofline_us=500.0), kernel(us=2.0, roofline_us=1.9)
    assert next_round([there, near], JobBudget()).search == 1
    assert next_round([there], JobBudget()) is None


def test_shares_are_weighed_again_as_results_come_in():
    before = [kernel(us=100.0), kernel(us=60.0)]
    assert next_round(before, JobBudget()).search == 0
    faster = [kernel((100.0, 20.0), us=100.0), kernel(us=60.0)]
    assert next_round(faster, JobBudget()).search == 1
    in_vain = [kernel((100.0,) * 60, us=100.0), kernel(us=60.0)]
    assert next_round(in_vain, JobBudget()).search == 1


def test_kernels_of_whose_times_there_are_estimates_only_are_tried_once_each():
    standings = [kernel(us=5.0, timed=False), kernel(us=9.0, timed=False, roofline_us=9.0)]
    opened = []
    while len(opened) < 2:
        found = next_round(standings, JobBudget())
        opened.append((found.search, found.evaluations))
        one = standings[found.search]
        standings[found.search] = replace(one, times=(one.share.estimate_us,))
    assert opened == [(1, 1), (0, 1)]
    assert next_round(standings, JobBudget()).search == 0


def test_networks_of_several_targets_are_weighed_each_for_itself():
    slow = kernel(us=9000.0)
    other = JobStanding(Share(network="other", estimate_us=1.0, timed=True), (), roofline_us=0.5)
    assert shares([slow, other]) == [1.0, 1.0]


def test_seconds_between_searches_count_but_for_those_before_the_first():
    now, worked = [0.0], [0.0]
    idle = Idle(lambda: now[0])

    def of_round(took, searched):
        with idle.of_round(lambda: worked[0]):
            now[0] += took
            worked[0] += searched

    of_round(9.0, 4.0)  # workers start
    assert idle.left(JobBudget(seconds=60.0)) == JobBudget(seconds=60.0)
    now[0] += 100.0  # outside any round
    of_round(5.0, 3.0)
    of_round(4.0, 3.5)
    assert idle.left(JobBudget(seconds=60.0)) == JobBudget(seconds=57.5)
    assert idle.left(JobBudget(evaluations=8)) == JobBudget(evaluations=8)
