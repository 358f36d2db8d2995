"""A plan: measured calls decide which way is the best, and what each kernel may save."""

from dataclasses import replace

import pytest

from backends.backend import BackendError
from backends.registry import backend_for, served_by, target
from backends.served import Served
from ir.errors import KernelError
from ir.network import Network
from search.whole import plan as planning
from search.whole.plan import GAIN, MOST_WEIGHT, CallPlan, Chosen
from search.whole.testing.two_ways import of_spec
from search.whole.times import WholeTimes


@pytest.fixture
def plan(monkeypatch):
    """A call with two ways on a target that claims to measure calls."""
    machine = target("null")
    backend = backend_for(machine)
    monkeypatch.setattr(CallPlan, "measures", property(lambda _: True))
    return CallPlan.of(of_spec, [Served(backend, served_by(machine, backend))])


def measured(monkeypatch, times):
    """Makes calls with a number of steps take some us; a text is the reason why they cannot be
    timed."""
    asked = []

    def times_of(networks, when=""):
        asked.extend(networks)
        return [_times(network.call, times) for network in networks]

    monkeypatch.setattr(planning, "times_of", times_of)
    return asked


def _times(call: Network, times):
    us = times[len(call.steps)]
    if isinstance(us, str):
        return us
    each = us / len(call.steps)
    return WholeTimes(us + 3.0, us, {step.spec.name: each for step in call.steps})


def test_the_way_that_is_measured_fastest_comes_first(plan, monkeypatch):
    measured(monkeypatch, {1: 10.0, 2: 8.0})
    found = plan.timed(of_spec)
    assert [len(w.call.steps) for w in found.ways] == [2, 1]
    assert found.measured[0].best_us == 8.0 and found.measured[1].best_us == 10.0
    first, second, other = found.seeds()
    assert (first.us, first.timed, first.weight) == (4.0, True, 1.0) and second.us == 4.0
    assert 0.0 < other.weight <= MOST_WEIGHT and other.us == 10.0


def test_a_way_that_is_measured_far_is_not_searched_for(plan, monkeypatch):
    measured(monkeypatch, {1: 10.0, 2: 16.0})
    found = plan.timed(of_spec)
    assert len(found.ways) == 1 and len(found.seeds()) == 1


@pytest.mark.parametrize("fault", [KernelError("no"), BackendError("emit", "no")])
def test_a_joint_way_that_cannot_be_made_is_left_out(plan, monkeypatch, fault):
    def refuse(*_):
        raise fault

    usual, other = plan.ways
    third = replace(other, choices={**other.choices, "more": True})
    measured(monkeypatch, {1: 10.0, 2: 8.0})
    found = replace(plan, ways=(usual, other, third)).timed(refuse)
    assert found.ways == (other, usual) and found.measured[0].best_us == 8.0


@pytest.mark.parametrize("times", [{1: "no", 2: 8.0}, {1: 9.0, 2: "no"}])
def test_what_cannot_be_timed_is_said_and_left_out(plan, monkeypatch, times):
    measured(monkeypatch, times)
    said = []
    found = plan.timed(of_spec, said.append)
    assert said == ["a call cannot be timed: no"]
    if times[1] == "no":  # the usual way has no time, so estimates decide
        assert found == plan and not found.seeds()[0].timed
    else:
        assert len(found.ways) == 1 and found.measured[0].best_us == 9.0


def test_the_best_way_with_the_kernels_that_were_found_is_kept(plan, monkeypatch):
    measured(monkeypatch, {1: 10.0, 2: 12.0})
    found = plan.timed(of_spec)
    texts = {seed.spec.name: seed.texts for seed in found.seeds()}
    us = dict.fromkeys(found.ways[1].calls, 1.0)
    asked = measured(monkeypatch, {1: 10.0, 2: 3.0})
    best = found.chosen(texts, us)
    assert len(best.way.call.steps) == 2 and best.times.best_us == 3.0
    assert [len(network.call.steps) for network in asked] == [1, 2, 1]  # the last with seeds
    asked = measured(monkeypatch, {1: 10.0, 2: 11.0})  # the sum is better, but not the whole
    assert found.chosen(texts, us).way == found.ways[0]
    asked = measured(monkeypatch, {1: 11.0, 2: 11.0})
    best = found.chosen(texts, dict.fromkeys(found.ways[1].calls, 6.0 / GAIN))
    # Only seeds, in the usual way: that is known
    assert best.way == found.ways[0] and best.times.best_us == 10.0 and not asked


@pytest.fixture
def ready(plan, monkeypatch):
    """A plan whose first way has two kernels with 5 us each for their seeds, and the found
    kernels."""
    measured(monkeypatch, {1: 11.0, 2: 10.0})
    made = plan.timed(of_spec)
    names = [spec.name for spec in made.ways[0].call.kernels()]
    seeds = {name: made.texts(spec) for name, spec in zip(names, made.ways[0].call.kernels())}
    return made, names, {name: replace(texts, source="found") for name, texts in seeds.items()}


def called(monkeypatch, names, times):
    """Sets the us of a call by the numbers of its found kernels."""
    asked = []

    def times_of(networks, when):
        asked.extend(networks)
        return [_mixed(network) for network in networks]

    def _mixed(network):
        mine = frozenset(k for k, n in enumerate(names) if network.kernels[n].source == "found")
        us = times[mine]
        return us if isinstance(us, str) else WholeTimes(30.0, us, {})

    monkeypatch.setattr(planning, "times_of", times_of)
    return asked


BOTH, FIRST, SECOND = frozenset({0, 1}), frozenset({0}), frozenset({1})
NEITHER = BOTH - BOTH


@pytest.mark.parametrize(
    "times, passed_over",
    [
        ({BOTH: 8.0, FIRST: 9.0, SECOND: 9.0, NEITHER: 10.0}, NEITHER),
        ({BOTH: 10.0, FIRST: 11.0, SECOND: 9.0, NEITHER: 10.0}, FIRST),
        # without found kernels it is faster
        ({BOTH: 12.0, FIRST: 11.0, SECOND: 11.0, NEITHER: 10.0}, BOTH),
        # with only one it is the fastest
        ({BOTH: 10.0, FIRST: 8.0, SECOND: 9.0, NEITHER: 12.0}, SECOND),
        # a difference of less than one percent
        ({BOTH: 10.5, FIRST: 11.0, SECOND: 11.0, NEITHER: 10.4}, BOTH),
        # It does not run at all
        ({BOTH: "no", FIRST: "no", SECOND: "no", NEITHER: 10.0}, BOTH),
        ({BOTH: "no", FIRST: "no", SECOND: 9.0, NEITHER: 10.0}, FIRST),  # with one of them it runs
        ({BOTH: "no", FIRST: 11.0, SECOND: "no", NEITHER: 10.0}, BOTH),
        ({BOTH: 9.0, FIRST: "no", SECOND: 9.5, NEITHER: "no"}, NEITHER),
    ],
)
def test_a_kernel_that_makes_a_call_slower_is_passed_over(ready, monkeypatch, times, passed_over):
    made, names, found = ready
    called(monkeypatch, names, times)
    best = made.chosen(found, dict.fromkeys(names, 4.0))
    assert best.passed_over == {names[k] for k in passed_over}
    assert best.times.best_us == times[BOTH - passed_over]


def test_where_a_search_found_nothing_else_a_call_is_not_timed_again(ready, monkeypatch):
    made, names, found = ready
    asked = called(monkeypatch, names, {})
    seeds = {s.spec.name: s.texts for s in made.seeds()}
    best = made.only(made.ways[:1]).chosen(seeds, dict.fromkeys(names, 4.0))
    assert best == Chosen(made.ways[0], made.measured[0], frozenset()) and not asked


def test_of_ways_that_are_left_out_nothing_is_known(ready):
    made, _, _ = ready
    assert made.only(made.ways).ways == made.ways
    rest = made.only(made.ways[1:])
    assert rest.ways == made.ways[1:] != () and dict(rest.measured) == {0: made.measured[1]}


def test_where_nothing_is_measured_the_sums_decide(plan, monkeypatch):
    monkeypatch.setattr(CallPlan, "measures", property(lambda _: False))
    assert plan.timed(of_spec) == plan and not plan.measured
    us = dict.fromkeys(plan.ways[1].calls, 0.0)
    assert plan.chosen({}, us) == Chosen(plan.ways[1], None, frozenset())
    assert plan.chosen({}, {}) == Chosen(plan.ways[0], None, frozenset())
