"""A dispatch has the best set of kernels of its size, and guards that choose among them."""

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ir.errors import KernelError
from ir.guards import chosen
from search.core import shape_dispatch as dispatching
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure, Timed
from search.core.graph import Graph
from search.core.settings import Settings
from search.core.shape_dispatch import WORTH, shape_dispatch
from search.core.workload import WeightedShape, mean

SHAPES = (WeightedShape({"B": 64}), WeightedShape({"B": 512}, 2.0), WeightedShape({"B": 4096}))


def settings(most, shapes=SHAPES):
    return Settings(
        "k", "spec", "chip", ("tongue",), shapes[0].sizes, workload=shapes, dispatch=most
    )


def outcome(times, shapes=SHAPES, kind="simulated"):
    """The outcome of a candidate with these times; None: it does not fit at that shape."""
    found = [(s, t) for s, t in zip(shapes, times, strict=True) if t is not None]
    if not found:
        return Failure("check", "wrong", "off")
    timed = tuple(Timed(s.sizes, s.weight, t) for s, t in found)
    us = mean([t for _, t in found], [s for s, _ in found])
    one = Evaluation(us, kind, "simulator", times=timed)
    return one if len(found) == len(shapes) else Failure("verify", "refused", "", partly=one)


def made(most, *all_times, shapes=SHAPES):
    """The dispatch of a run with these candidates, and the candidates' names by key."""
    graph, outcomes, names = Graph(), {}, {}
    for number, times in enumerate(all_times):
        candidate = Candidate("spec", f"schedule {number}", "chip", "tongue")
        graph.add(candidate)
        outcomes[candidate.key] = outcome(times, shapes)
        names[candidate.key] = number
    whole = {k: o.us for k, o in outcomes.items() if isinstance(o, Evaluation)}
    best = graph.node(min(whole, key=whole.get))
    found = shape_dispatch(settings(most, shapes), best, graph, outcomes)
    return found, [names[k.candidate.key] for k in found.kernels]


def test_each_shape_has_the_fastest_of_the_kernels():
    found, names = made(3, (9.0, 9.0, 9.0), (1.0, 20.0, 20.0), (50.0, 10.0, 2.0))
    assert names == [0, 1, 2]
    assert found.chosen == (1, 0, 2) and found.times == (1.0, 9.0, 2.0)
    assert found.us == pytest.approx((1 * 9**2 * 2) ** (1 / 4))
    assert found.single_us == pytest.approx(9.0)
    assert [chosen(found.guards, s.sizes) for s in SHAPES] == [1, 0, 2]


def test_no_more_kernels_than_were_asked_for():
    times = ((9.0, 9.0, 9.0), (1.0, 20.0, 20.0), (50.0, 10.0, 5.0))
    assert made(2, *times)[1] == [0, 1]
    assert made(1, *times)[1] == [0]


def test_what_fits_at_one_shape_only_can_be_a_specialist():
    found, names = made(2, (9.0, 9.0, 9.0), (3.0, None, None), (None, None, None))
    assert names == [0, 1] and found.kernels[1].times == (3.0, None, None)
    assert found.chosen == (1, 0, 0)


def test_a_kernel_more_must_be_worth_it():
    assert made(3, (9.0, 9.0, 9.0), (8.99, 9.1, 9.1))[1] == [0]
    assert made(3, (9.0, 9.0, 9.0), (8.0, 9.9, 9.9))[1] == [0, 1]


def test_where_a_specialist_is_hardly_faster_the_fallback_is_run():
    found, _ = made(2, (9.0, 9.0, 9.0), (2.0, 8.99, 90.0))
    assert found.chosen == (1, 0, 0)


def test_a_heavier_shape_decides():
    shapes = (WeightedShape({"B": 64}), WeightedShape({"B": 512}, 9.0))
    times = ((9.0, 9.0), (6.0, 20.0), (40.0, 8.5))
    assert made(2, *times, shapes=shapes)[1] == [0, 2]


def test_times_of_two_kinds_do_not_meet():
    graph, outcomes = Graph(), {}
    for number, kind in enumerate(("simulated", "measured")):
        candidate = Candidate("spec", str(number), "chip", "tongue")
        graph.add(candidate)
        outcomes[candidate.key] = outcome((1.0, 1.0, 1.0), kind=kind)
    with pytest.raises(KernelError, match="cannot be compared"):
        shape_dispatch(settings(2), next(iter(graph)), graph, outcomes)


TIMES = st.tuples(*[st.floats(1.0, 100.0)] * 3)


@given(st.lists(TIMES, min_size=1, max_size=6, unique=True), st.integers(1, 4))
@hypothesis_settings(deadline=None)
def test_no_set_of_as_many_kernels_is_better_than_it_is_worth(all_times, most):
    found, names = made(most, *all_times)
    assert len(names) <= most
    single = all_times[names[0]]
    assert all(a <= b for a, b in zip(found.times, single, strict=True))
    others = [t for t in all_times if t != single]
    sets = [s for n in range(most) for s in combinations(others, min(n, len(others)))]
    least = min(mean([min(u) for u in zip(single, *s)], SHAPES) for s in sets)
    assert found.us <= least * (1 + WORTH) ** 2 * (1 + 1e-12)


def test_of_too_many_sets_one_is_chosen_kernel_by_kernel(monkeypatch):
    times = [(9.0, 9.0, 9.0), (1.0, 20.0, 20.0), (50.0, 10.0, 2.0), (5.0, 10.0, 10.0)]
    exact = made(3, *times)
    monkeypatch.setattr(dispatching, "MOST_TRIED", 0)
    assert made(3, *times)[1] == exact[1]
    assert math.isclose(made(3, *times)[0].us, exact[0].us)
