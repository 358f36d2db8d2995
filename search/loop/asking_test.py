"""Asking fills a generation; operators that wait for a model are asked together, in order."""

import threading

import pytest

from ir.errors import KernelError
from search.core.candidate import Candidate, Origin
from search.core.graph import Graph
from search.loop.asking import Asking
from search.loop.context import GaveUp, Halted
from search.loop.state import Proposal, State

GUARD = 1800.0  # seconds: only what hangs waits so long


class Names:
    """Makes candidates named by its generator; remote ones wait until `together` are at it."""

    parents = 0

    def __init__(self, name, together=0):
        self.name = name
        self.remote = together > 0
        self._barrier = threading.Barrier(together) if together else None

    def propose(self, context, rng):
        if self._barrier:
            self._barrier.wait(timeout=GUARD)
        return Candidate("f", f"{self.name} {rng.random()}", "chip", "tongue", origin=Origin("n"))


class Never:
    name, parents, remote = "never", 0, False

    def propose(self, context, rng):
        return GaveUp("never")


class Says:
    def __init__(self, *proposals):
        self.proposals = proposals

    def ask(self, state, count, rng):
        return self.proposals


def ask(policy, *operators, count=4, seed="1/1", most=None, unmade=lambda why: None):
    graph = Graph()
    made = Asking(policy, {o.name: o for o in operators}, lambda p: None, graph.add, unmade)
    return made.ask(lambda: State(1, graph, None, {}, ()), count, seed, most)


class Asked(Names):
    """A model's operator that counts requests, and answers some of them: those of `answers`,
    by number, in the order of its generators."""

    def __init__(self, answers=lambda number: True, error=None):
        super().__init__("model")
        self.remote, self.requests = True, 0
        self._answers, self._error, self._lock = answers, error, threading.Lock()

    def propose(self, context, rng):
        with self._lock:
            self.requests += 1
            number = self.requests
        if self._answers(number):
            return super().propose(context, rng)
        if self._error:
            raise self._error
        return GaveUp("the connection failed", unanswered=True)


def test_a_tag_is_kept_in_the_child():
    (child,) = ask(Says(Proposal("a", (), tag="north")), Names("a"), count=1)
    assert child.origin.tag == "north"


def test_models_are_asked_at_the_same_time_and_their_children_come_in_order():
    policy = Says(Proposal("m", ()), Proposal("a", ()), Proposal("m", ()), Proposal("m", ()))
    found = [c.schedule.split()[0] for c in ask(policy, Names("m", 3), Names("a"))]
    assert found == ["m", "a", "m", "m"]
    again = [ask(policy, Names("m", 3), Names("a")) for _ in range(2)]
    assert again[0] == again[1]


def test_an_open_operator_is_chosen_among_those_that_take_as_many_parents():
    found = ask(Says(Proposal("", ())), Names("a"), count=3)
    assert len(found) == 3 and all(c.schedule.startswith("a ") for c in found)


def test_what_gives_up_leaves_a_generation_short():
    assert ask(Says(Proposal("never", ())), Never()) == ()


def test_another_seed_gives_other_children():
    policy = Says(Proposal("a", ()))
    assert ask(policy, Names("a")) != ask(policy, Names("a"), seed="1/2")


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_no_more_is_asked_of_a_model_than_children_are_missing(most):
    model = Asked()
    policy = Says(*[Proposal("model", ())] * 6)
    found = ask(policy, model, most=most)
    assert len(found) == model.requests == most
    assert found == ask(policy, Asked())[:most], "the first of a whole generation"


def test_a_later_turn_asks_for_what_is_still_missing():
    model = Asked(lambda number: number != 2)
    found = ask(Says(*[Proposal("model", ())] * 4), model)
    assert len(found) == 4 and model.requests == 5


def test_children_that_are_there_stay_when_a_model_can_no_longer_be_asked():
    halted = Halted(KernelError("the budget is spent"), spent=True)
    model, unmade = Asked(lambda number: number != 3, halted), []
    proposals = [*[Proposal("model", ())] * 4, *[Proposal("a", ())] * 9]
    found = ask(Says(*proposals), model, Names("a"), count=8, unmade=unmade.append)
    assert len([c for c in found if c.schedule.startswith("model")]) == 3
    assert unmade == [halted] and model.requests == 4, "nothing more is asked"


def test_it_is_told_which_proposals_had_no_answer():
    unmade = []
    assert ask(Says(Proposal("model", ())), Asked(lambda n: False), unmade=unmade.append) == ()
    assert unmade == [GaveUp("the connection failed", unanswered=True)] * 3
