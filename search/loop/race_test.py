"""A search races backends with one budget and one best; each child is for one backend."""

import json
import random
from dataclasses import dataclass, replace

import pytest

from ir.errors import KernelError
from ir.estimate.estimate import intensity
from ir.lower.lower import lower
from ir.machine import Rendering
from ir.parse.parse import parse_schedule
from search.core.by_backend import by_backend
from search.core.evaluation import Evaluation, Failure, Timed
from search.core.events import Told
from search.core.testing import CHIP, SETTINGS, SIZES, SPEC
from search.core.workload import WeightedShape, mean
from search.loop.generations import PORT
from search.loop.run import Search
from search.loop.state import Proposal
from search.loop.testing import Pick
from search.store.forgetful import Forgetful
from search.store.store import Store

RACED = ("tongue", "dialect")
SETTINGS = replace(SETTINGS, backends=RACED)
MACHINES = {
    "tongue": replace(CHIP, rendering=Rendering("tongue")),
    "dialect": replace(CHIP, rendering=Rendering("dialect", ())),
}


class Seen:
    """Chooses any elite as a parent, and records the states that it sees."""

    def __init__(self):
        self.states = []

    def ask(self, state, count, rng):
        self.states.append(state)
        keys = [e.candidate.key for e in state.archive] or list(state.roots)
        return [Proposal("pick", (rng.choice(keys),)) for _ in range(count)]


@dataclass
class Drawn:
    """Draws times from keys, with a factor for each backend; None: its candidates fail."""

    slower: dict
    stop_at: int | None = None  # evaluations after which it is interrupted
    made: int = 0
    contexts = {name: f"drawn for {name}" for name in RACED}

    @property
    def environment(self):
        return {"contexts": self.contexts}

    def evaluate(self, candidates, seconds=None):
        for position, c in enumerate(candidates):
            if self.made == self.stop_at:
                raise KeyboardInterrupt
            self.made += 1
            yield position, self.outcome(c)

    def outcome(self, c):
        if self.slower[c.backend] is None:
            return Failure("emit", "refused", "not in this language")
        nest = lower(SPEC, parse_schedule(c.schedule), MACHINES[c.backend], SIZES)
        us = self.slower[c.backend] * (100 + int(c.key, 16) % 1000 / 100)
        return Evaluation(us, "modelled", "emulator", figures=intensity(nest, CHIP, SIZES))


class Bring:
    """An operator that ports a candidate from another backend."""

    name, parents, remote = PORT, 1, False

    def propose(self, context, rng):
        parent = context.parents[0]
        return context.offer_variant(parent.variant, PORT, f"from {parent.candidate.backend}")


EVEN, UNEVEN = {"tongue": 1.0, "dialect": 1.0}, {"tongue": 3.0, "dialect": 1.0}


def search(slower=EVEN, store=None, settings=SETTINGS, evaluator=None, policy=None, **more):
    return Search(
        settings,
        evaluator or Drawn(slower),
        store or Forgetful(),
        machines=MACHINES,
        policy=policy or Seen(),
        operators={"pick": Pick(), PORT: Bring()},
        **more,
    )


def test_one_budget_is_shared_and_the_fastest_of_all_wins():
    outcome = search(UNEVEN).run()
    assert outcome.evaluations == SETTINGS.evaluations == len(outcome.outcomes)
    tongue, dialect = by_backend(outcome)
    assert (tongue.backend, dialect.backend) == RACED
    assert tongue.evaluated + dialect.evaluated == outcome.evaluations
    assert outcome.best.backend == outcome.backend == "dialect"
    assert outcome.evaluation.us == dialect.best_us == min(tongue.best_us, dialect.best_us)
    # Most children go to the faster backend; the other keeps its floor.
    assert dialect.evaluated > 1.5 * tongue.evaluated
    assert tongue.evaluated >= 2 + 4 + 2 * 3


@pytest.mark.parametrize("evaluations, each", [(8, 2), (10, 3), (12, 4)])
def test_a_short_race_is_shared_as_a_long_one_is(evaluations, each):
    settings = replace(SETTINGS, evaluations=evaluations)
    rows = by_backend(search(UNEVEN, settings=settings).run())
    assert [row.evaluated for row in rows] == [2 + each, 2 + each]


def test_a_run_with_a_wider_limit_goes_on_as_if_it_had_had_it(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    short = search(store=store, settings=replace(SETTINGS, evaluations=9)).run()
    assert short.evaluations == 9
    again = told(search(store=store, run=short.run))
    assert again == told(search())
    store.close()


def test_a_backend_that_fails_always_is_left_alone():
    outcome = search({"tongue": 1.0, "dialect": None}).run()
    tongue, dialect = by_backend(outcome)
    assert (dialect.correct, dialect.best_us, dialect.best) == (0, None, None)
    assert dialect.failed == dialect.evaluated <= 2 + 4
    assert outcome.failures == {"emit": dialect.failed} and outcome.best.backend == "tongue"
    # The autoschedule is that of the first backend, whatever its outcome.
    other = search({"tongue": None, "dialect": 1.0}).run()
    assert other.first.backend == "tongue" and other.first_us is None
    assert other.best.backend == "dialect"


def test_a_child_is_for_the_backend_of_its_parents_and_lowers_there():
    outcome = search().run()
    for child in outcome.graph:
        lower(SPEC, parse_schedule(child.schedule), MACHINES[child.backend], SIZES)
        if child.origin.parents and child.origin.operator != PORT:
            assert {outcome.graph.node(p).backend for p in child.origin.parents} == {child.backend}
        assert child.backend == "tongue" or "pipeline" not in child.schedule


def test_the_best_is_brought_over_to_the_other_backend():
    # one ported candidate is fast enough to be a parent
    outcome = search(settings=replace(SETTINGS, seed=5)).run()
    ported = [c for c in outcome.graph if c.origin.operator == PORT]
    assert {c.backend for c in ported} <= set(RACED) and ported
    for child in ported:
        (parent,) = (outcome.graph.node(p) for p in child.origin.parents)
        assert parent.backend != child.backend
        assert child.origin.note == f"from {parent.backend}"
    # It has children, though its own parent is of another backend.
    parents = {p for c in outcome.graph if c.origin.operator != PORT for p in c.origin.parents}
    assert parents & {c.key for c in ported}


def test_without_that_operator_nothing_is_brought_over():
    searching = search()
    del searching.operators[PORT]
    outcome = searching.run()
    assert not [c for c in outcome.graph if c.origin.operator == PORT]
    assert outcome.evaluations == SETTINGS.evaluations


def test_equal_schedules_on_two_backends_are_two_candidates():
    outcome = search().run()
    schedules = [c.schedule for c in outcome.graph]
    assert len(set(schedules)) < len(schedules) == len({c.key for c in outcome.graph})


def test_a_policy_sees_the_outcomes_of_one_backend():
    policy = Seen()
    search(policy=policy).run()
    seen = set()
    for state in policy.states:
        keys = {*state.outcomes, *state.roots, *(e.candidate.key for e in state.archive)}
        (backend,) = {state.graph.node(key).backend for key in keys}
        assert state.machine is MACHINES[backend]
        seen.add(backend)
    assert seen == set(RACED)


def told(searching):
    events = []
    searching.run(events.append)
    return [(e.candidate.key, e.candidate.backend, e.outcome) for e in events if type(e) is Told]


@pytest.mark.parametrize("most", [1, 7, 23])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, most):
    store = Store(str(tmp_path / "store.db"))
    first = search(store=store, evaluator=Drawn(EVEN, most)).run()
    assert first.stopped_because == "it was interrupted"
    assert store.load(first.run).settings == SETTINGS
    random.seed(most)
    assert told(search(store=store, run=first.run)) == told(search())
    store.close()


def test_a_run_goes_on_only_where_all_its_backends_are_as_they_were(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    run = search(store=store, evaluator=Drawn(EVEN, 7)).run().run
    changed = Drawn(EVEN)
    changed.contexts = {**Drawn.contexts, "dialect": "another compiler"}
    with pytest.raises(KernelError, match="another machine file, toolchain or sizes"):
        search(store=store, evaluator=changed, run=run)
    store.close()


def test_kernels_that_share_shapes_are_of_one_backend():
    shapes = tuple(WeightedShape({**SIZES, "M": m}) for m in (64, 128))

    class AtShapes(Drawn):
        def outcome(self, c):
            number = int(c.key, 16)
            us = [self.slower[c.backend] * (900 + number // 7**n % 900) for n in range(2)]
            times = tuple(Timed(s.sizes, 1.0, t) for s, t in zip(shapes, us, strict=True))
            return Evaluation(mean(us, shapes), "modelled", "emulator", times=times)

    settings = replace(SETTINGS, workload=shapes, dispatch=3)
    outcome = search(settings=settings, evaluator=AtShapes(EVEN)).run()
    assert {k.candidate.backend for k in outcome.dispatch.kernels} == {outcome.best.backend}
    assert {c.backend for c in outcome.graph} == set(RACED)
    assert outcome.evaluations == settings.evaluations


def test_a_backend_is_plain_data():
    tongue, _ = by_backend(search().run())
    table = json.loads(json.dumps(tongue.table()))
    assert table["backend"] == "tongue" and table["evaluations"] == tongue.evaluated
    assert table["schedule"] == tongue.best.schedule and table["correct_by"] == "emulator"
