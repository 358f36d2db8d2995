"""Views by shape: each shape of a workload has its own elites, which get children."""

import random
from dataclasses import replace

import pytest

from ir.print import spec_text
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure, Timed
from search.core.events import Told
from search.core.graph import Graph
from search.core.measures import named
from search.core.settings import Settings
from search.core.testing import CHIP, SPEC
from search.core.workload import WeightedShape, mean
from search.loop.run import Search
from search.loop.shape_view import ShapeView, in_turn, shape_views
from search.loop.state import Proposal, State
from search.loop.testing import Pick
from search.store.forgetful import Forgetful
from search.store.store import Store
from search.warm_start.first import ELSEWHERE, FIRST, PLAIN

SHAPES = tuple(WeightedShape({"M": m, "N": 32, "K": 48}) for m in (8, 64, 512))
SETTINGS = Settings(
    "scaled_matmul",
    spec_text(SPEC),
    "chip",
    ("tongue",),
    SHAPES[0].sizes,
    evaluations=40,
    seed=1,
    roofline_share=2.0,
    workload=SHAPES,
    dispatch=2,
)
MEASURES = named(SETTINGS.measures)


def drawn(candidate):
    """Times at each shape out of the key; every fourth candidate fits at the first shape only,
    where it is the fastest."""
    number = int(candidate.key, 16)
    us = [100.0 + number // 7**n % 1000 / 100 for n in range(3)]
    if not candidate.origin.parents:
        us = [us + 10.0 for us in us]
    times = tuple(Timed(s.sizes, s.weight, t) for s, t in zip(SHAPES, us, strict=True))
    if number % 4 == 0 and candidate.origin.parents:
        only = Timed(SHAPES[0].sizes, 1.0, us[0] - 20.0)
        partly = Evaluation(us[0] - 20.0, "modelled", "emulator", times=(only,))
        return Failure("verify", "refused", "it does not fit", partly=partly)
    return Evaluation(mean(us, SHAPES), "modelled", "emulator", times=times)


class Best:
    """Chooses only the fittest elite as a parent."""

    def ask(self, state, count, rng):
        best = state.archive.best()
        return [Proposal("pick", (best.candidate.key if best else state.roots[0],))] * count


class Drawn:
    """Evaluates with another evaluator, and is interrupted after a number of outcomes."""

    contexts = {"tongue": "drawn"}
    environment = {"contexts": contexts}

    def __init__(self, most=1000):
        self.most = most

    def evaluate(self, candidates, seconds=None):
        for position, candidate in enumerate(candidates):
            if not self.most:
                raise KeyboardInterrupt
            self.most -= 1
            yield position, drawn(candidate)


def search(settings=SETTINGS, store=None, evaluator=None, **more):
    return Search(
        settings,
        evaluator or Drawn(),
        store or Forgetful(),
        machines={"tongue": CHIP},
        policy=Best(),
        operators={"pick": Pick()},
        **more,
    )


def test_there_is_a_view_of_each_shape_where_kernels_may_share_them():
    assert [v.sizes["M"] for v in shape_views(SETTINGS, SPEC, CHIP, MEASURES)] == [8, 64, 512]
    assert shape_views(replace(SETTINGS, dispatch=1), SPEC, CHIP, MEASURES) == ()
    assert shape_views(replace(SETTINGS, workload=()), SPEC, CHIP, MEASURES) == ()


def test_every_view_has_its_turn():
    seen = shape_views(SETTINGS, SPEC, CHIP, MEASURES)
    pairs = [in_turn(seen, g)[:2] for g in (1, 2, 3)]
    assert pairs == [(None, seen[0]), (seen[1], seen[2]), (None, seen[0])]
    assert len(in_turn(seen, 7)) == 4


def test_a_view_ranks_by_the_time_at_its_shape():
    view = ShapeView({"M": 8}, 1.0, MEASURES)
    fast, slow, none = (Candidate("f", s, "chip", "tongue", origin=Origin("mutate")) for s in "abc")
    here = Evaluation(9.0, "modelled", "emulator", times=(Timed({"M": 8}, 1.0, 2.0),))
    partly = Evaluation(5.0, "modelled", "emulator", times=(Timed({"M": 8}, 1.0, 1.0),))
    assert view.learn(slow, here, CHIP)
    assert view.learn(fast, Failure("verify", "refused", "no", partly=partly), CHIP)
    assert not view.learn(none, Failure("check", "wrong", "off"), CHIP)
    assert view.archive.best().candidate is fast and view.best == (fast.key, partly.at({"M": 8}))
    whole = {c.key: here for c in (slow, fast, none)}
    state = view.state(State(1, Graph(), view.archive, whole, ()))
    assert [state.outcomes[c.key].us for c in (slow, fast)] == [2.0, 1.0]
    assert isinstance(state.outcomes[none.key], Failure)


def test_the_first_candidates_are_the_autoschedules_at_each_shape():
    roots = search().book.roots
    operators = [c.origin.operator for c in roots]
    assert operators[:2] == [FIRST, PLAIN] and set(operators[2:]) == {ELSEWHERE}
    assert all(c.origin.note.startswith("at M=") for c in roots[2:])


def test_the_fastest_at_a_shape_has_children_though_another_is_the_best():
    searching = search()
    outcome = searching.run()
    views = searching.book.views["tongue"].shapes
    for view in views:
        key, fastest = view.best
        assert fastest.us == min(o.us for o in view.outcomes.values() if isinstance(o, Evaluation))
    bests = {view.best[0] for view in views}
    assert len(bests) > 1
    parents = {p for c in outcome.graph for p in c.origin.parents}
    only_partly = {k for k, o in outcome.outcomes.items() if isinstance(o, Failure)}
    assert parents & only_partly, "what fits at one shape only was never a parent"


def test_the_best_is_that_of_the_mean():
    outcome = search().run()
    whole = [o.us for o in outcome.outcomes.values() if isinstance(o, Evaluation)]
    assert outcome.evaluation.us == min(whole)
    assert len(outcome.evaluation.times) == 3


def told(searching):
    found = []
    events = []
    searching.run(events.append)
    found += [(e.candidate.key, e.outcome) for e in events if isinstance(e, Told)]
    return found


@pytest.mark.parametrize("most", [7, 23])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, most):
    store = Store(str(tmp_path / "store.db"))
    first = search(store=store, evaluator=Drawn(most)).run()
    assert first.stopped_because == "it was interrupted"
    again = told(search(first.settings, store, run=first.run))
    assert again == told(search())


def test_the_same_seed_asks_the_same():
    random.seed(5)
    assert told(search()) == told(search())
