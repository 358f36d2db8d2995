"""A plan: measured calls decide which way is best, and what each kernel may save."""

from dataclasses import replace

import pytest

from backends.registry import backend_for, served_by, target
from backends.served import Served
from ir.network import Network
from search.whole import plan as planning
from search.whole.plan import GAIN, MOST_WEIGHT, CallPlan, Chosen
from search.whole.testing.two_ways import of_spec
from search.whole.times import WholeTimes


@pytest.fixture
def plan(monkeypatch):
    """A call with two ways on a target whose calls are measured, it is said."""
    machine = target("null")
    backend = backend_for(machine)
    monkeypatch.setattr(CallPlan, "measures", property(lambda _: True))
    return CallPlan.of(of_spec, [Served(backend, served_by(machine, backend))])


def measured(monkeypatch, times):
    """Has calls of so many steps take so many us; a text is why they cannot be timed."""
    asked = []

    def times_of(networks):
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


@pytest.mark.parametrize("times", [{1: "no", 2: 8.0}, {1: 9.0, 2: "no"}])
def test_what_cannot_be_timed_is_said_and_left_out(plan, monkeypatch, times):
    measured(monkeypatch, times)
    said = []
    found = plan.timed(of_spec, said.append)
    assert said == ["a call cannot be timed: no"]
    if times[1] == "no":  # the usual way's: estimates decide
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
    assert [len(network.call.steps) for network in asked] == [1, 2, 1, 2]  # the last two with seeds
    asked = measured(monkeypatch, {1: 10.0, 2: 11.0})  # the sum had said so, the whole does not
    assert found.chosen(texts, us).way == found.ways[0]
    best = found.chosen(texts, dict.fromkeys(found.ways[1].calls, 6.0 / GAIN))
    assert best.way == found.ways[0] and best.times.best_us == 10.0


@pytest.mark.parametrize(
    "slow, in_all, passed_over",
    [
        ({}, 8.0, {}),  # each found kernel is faster in the call
        ({0}, 10.0, {0}),
        ({0, 1}, 12.0, {0, 1}),  # nothing that was found is better
        ({0}, 9.0, {}),  # as a whole what was found is better none the less
    ],
)
def test_a_kernel_that_is_slower_in_the_call_than_its_seed_is_passed_over(
    plan, monkeypatch, slow, in_all, passed_over
):
    measured(monkeypatch, {1: 20.0, 2: 10.0})
    ready = plan.timed(of_spec)
    names = [spec.name for spec in ready.ways[0].call.kernels()]
    seeds = {name: ready.texts(spec) for name, spec in zip(names, ready.ways[0].call.kernels())}
    found = {name: replace(texts, source="found") for name, texts in seeds.items()}

    def times_of(networks):
        return [_mixed(network, names) for network in networks]

    def _mixed(network, names):
        mine = [network.kernels[name].source == "found" for name in names]
        each = {
            n: (6.0 if k in slow else 4.0) if m else 5.0
            for k, (n, m) in enumerate(zip(names, mine))
        }
        return WholeTimes(30.0, in_all if all(mine) else sum(each.values()), each)

    monkeypatch.setattr(planning, "times_of", times_of)
    best = ready.chosen(found, dict.fromkeys(names, 4.0))
    assert best.passed_over == {names[k] for k in passed_over}
    assert best.times.best_us == {0: in_all, 1: 9.0, 2: 10.0}[len(passed_over)]


def test_where_nothing_is_measured_the_sums_decide(plan, monkeypatch):
    monkeypatch.setattr(CallPlan, "measures", property(lambda _: False))
    assert plan.timed(of_spec) == plan and not plan.measured
    us = dict.fromkeys(plan.ways[1].calls, 0.0)
    assert plan.chosen({}, us) == Chosen(plan.ways[1], None, frozenset())
    assert plan.chosen({}, {}) == Chosen(plan.ways[0], None, frozenset())
