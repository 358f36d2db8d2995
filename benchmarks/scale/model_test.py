"""Tests that the model loses and duplicates nothing, respects its resources, and obeys Little's
law."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

simpy = pytest.importorskip(
    "simpy", reason="PYTHONPATH=$(python3 bazel/make_cluster_site.py requirements_scale.lock)"
)

from benchmarks.scale.model import Case, SearchSort, Simulation, Times, simulated  # noqa: E402
from benchmarks.scale.nodes import CHECK, TIME, NodeSort  # noqa: E402

EVEN = Times(stages=[(("build", 0.2), (CHECK, 0.4), (TIME, 0.1))], asked=[0.03], told=0.004)
UNEVEN = replace(
    EVEN,
    stages=[
        (("build", 0.2), (CHECK, 0.4), (TIME, 0.1)),
        (("build", 1.5), (CHECK, 0.2), (TIME, 0.3)),
        (("build", 0.1),),
    ],
)
HELD = 0.7  # Seconds of a candidate of EVEN.
SMALL = SearchSort(24)
CASES = st.builds(
    Case,
    times=st.sampled_from([EVEN, UNEVEN, replace(EVEN, remote=0.01, shared=0.006, answer=2.0)]),
    search=st.builds(SearchSort, st.integers(1, 24), ahead=st.booleans()),
    node=st.builds(
        NodeSort,
        slots=st.integers(1, 4),
        cores=st.integers(1, 4),
        devices=st.integers(0, 1),
        lives=st.sampled_from([None, 3.0]),
        repair=st.just(1.0),
    ),
    searches=st.integers(1, 4),
    nodes=st.integers(1, 3),
    store_cores=st.integers(0, 1),
    seed=st.integers(0, 9),
)


@settings(max_examples=25)
@given(CASES)
def test_each_search_makes_its_evaluations_and_only_what_was_lost_is_repeated(case):
    found = simulated(case)
    assert found.evaluations == case.searches * case.search.evaluations
    assert found.handed == found.evaluations + found.losses
    assert 0 < found.busy <= 1 + 1e-9
    assert 0 <= found.measuring <= 1 + 1e-9
    assert found == simulated(case), "the same seed gives the same"


@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(1, 16), st.booleans())
def test_little_s_law(searches, slots, ahead):
    """The mean number of candidates between proposal and answer is their arrival rate times the
    mean time of each."""
    running = Counted(Case(UNEVEN, SearchSort(24, ahead=ahead), NodeSort(slots, slots), searches))
    found = running.run()
    there = found.throughput * (found.waited + found.held)
    assert running.area / found.seconds == pytest.approx(there, rel=1e-6)


class Counted(Simulation):
    """Counts candidates that were proposed and not answered, over time."""

    area, here, at = 0.0, 0, 0.0

    def _propose(self, task, first=False):
        self._count(1)
        super()._propose(task, first)

    def answered(self, slot, task):
        self._count(-1)
        super().answered(slot, task)

    def _count(self, change):
        self.area += self.here * (self.env.now - self.at)
        self.here, self.at = self.here + change, self.env.now


@pytest.mark.parametrize("case", [Case(EVEN, SMALL, NodeSort(1, 2), cluster=False), None])
def test_more_slots_are_never_slower_until_a_generation_is_evaluated_at_once(case):
    found = []
    for slots in (1, 2, 4, 8, 16, 32):
        node = NodeSort(slots, 2 if case else slots)
        found.append(simulated(replace(case or Case(EVEN, SMALL, node), node=node)))
    rates = [f.throughput for f in found]
    assert all(b >= a * 0.99 for a, b in zip(rates, rates[1:], strict=False))
    assert rates[-1] == pytest.approx(rates[-2]), "a generation has eight candidates"
    assert all(
        f.throughput <= slots / HELD + 1e-9 for f, slots in zip(found, (1, 2, 4), strict=False)
    )


def test_searches_fill_slots_that_one_leaves_idle():
    one, many = (simulated(Case(EVEN, SMALL, NodeSort(16, 16), n)) for n in (1, 6))
    assert many.throughput > 3 * one.throughput and many.busy > 0.85


def test_candidates_that_are_evaluated_while_others_are_proposed_save_time():
    slow = replace(EVEN, asked=[0.2])
    after, ahead = (
        simulated(Case(slow, SearchSort(40, ahead=early), NodeSort(2, 2), cluster=False))
        for early in (False, True)
    )
    assert ahead.seconds < after.seconds and ahead.busy > after.busy


def test_a_device_times_one_candidate_at_a_time_on_a_node():
    slow = replace(EVEN, stages=[((TIME, 1.0),)])
    one = simulated(Case(slow, SMALL, NodeSort(4, 4, devices=1), 4))
    two = simulated(Case(slow, SMALL, NodeSort(4, 4, devices=1), 4, nodes=2))
    shared = simulated(Case(slow, SMALL, NodeSort(8, 8, devices=2), 4))
    assert one.throughput <= 1 + 1e-9 and one.measuring > 0.95
    assert two.throughput > 1.9 * one.throughput
    assert shared.throughput == pytest.approx(one.throughput, rel=0.05)
    assert shared.measuring < 0.51


def test_checks_share_a_device_with_each_other():
    checks = replace(EVEN, stages=[((CHECK, 1.0),)])
    found = simulated(Case(checks, SMALL, NodeSort(4, 4, devices=1), 4))
    assert found.throughput > 3


def test_a_shared_store_bounds_all_searches():
    slow = replace(EVEN, shared=0.1)
    found = simulated(Case(slow, SMALL, NodeSort(8, 8), 8, nodes=8, store_cores=1))
    assert found.throughput == pytest.approx(10, rel=0.03)


def test_answers_of_a_model_bound_a_search_that_waits_for_them():
    asks = replace(EVEN, answer=4.0)
    found = simulated(Case(asks, SearchSort(400, batch=12), NodeSort(8, 8)))
    assert found.throughput == pytest.approx(12 / 4.0, rel=0.2)


def test_the_cost_of_a_kernel_counts_cores_and_devices():
    case = Case(EVEN, SMALL, NodeSort(4, 4, devices=1), searches=2, nodes=3)
    found = simulated(case)
    hours = found.seconds / 3600
    assert found.cost(case, 1.0, 0.0) == pytest.approx(hours * (3 * 4 + 2) / 2)
    assert found.cost(case, 0.0, 1.0) == pytest.approx(hours * 3 / 2)
