"""Asking fills a generation; operators that wait for a model are asked together, in order."""

import threading

from search.asking import Asking
from search.candidate import Candidate, Origin
from search.context import GaveUp
from search.graph import Graph
from search.state import Proposal, State

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


def ask(policy, *operators, count=4, seed="1/1"):
    graph = Graph()
    made = Asking(policy, {o.name: o for o in operators}, lambda p: None, graph.add)
    return made.ask(lambda: State(1, graph, None, {}, ()), count, seed)


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
