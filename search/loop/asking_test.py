"""Asking fills a generation with the children of a policy's proposals."""

import pytest

from ir.errors import KernelError
from search.core.candidate import Candidate, Origin
from search.core.graph import Graph
from search.loop.asking import Asking
from search.loop.context import GaveUp, NotInstalled
from search.loop.state import Proposal, State


class Names:
    """Makes candidates named by its generator."""

    parents, remote = 0, False

    def __init__(self, name):
        self.name = name

    def propose(self, context, rng):
        return Candidate("f", f"{self.name} {rng.random()}", "chip", "tongue", origin=Origin("n"))


class Never:
    name, parents, remote = "never", 0, False

    def propose(self, context, rng):
        return GaveUp("never")


class Faulty:
    """Meets a schedule that is not legal."""

    name, parents, remote = "faulty", 0, False

    def __init__(self, fault):
        self.fault = fault

    def propose(self, context, rng):
        raise self.fault


class Says:
    def __init__(self, *proposals):
        self.proposals = proposals

    def ask(self, state, count, rng):
        return self.proposals


def ask(policy, *operators, count=4, seed="1/1", most=None):
    graph = Graph()
    made = Asking(policy, {o.name: o for o in operators}, lambda p: None, graph.add)
    return made.ask(lambda: State(1, graph, None, {}, ()), count, seed, most)


def test_a_tag_is_kept_in_the_child():
    (child,) = ask(Says(Proposal("a", (), tag="north")), Names("a"), count=1)
    assert child.origin.tag == "north"


def test_an_open_operator_is_chosen_among_those_that_take_as_many_parents():
    found = ask(Says(Proposal("", ())), Names("a"), count=3)
    assert len(found) == 3 and all(c.schedule.startswith("a ") for c in found)


def test_what_gives_up_leaves_a_generation_short():
    assert ask(Says(Proposal("never", ())), Never()) == ()


def test_another_seed_gives_other_children():
    policy = Says(Proposal("a", ()))
    assert ask(policy, Names("a")) != ask(policy, Names("a"), seed="1/2")


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_a_part_of_a_generation_is_the_first_of_the_whole(most):
    policy = Says(*[Proposal("a", ())] * 6)
    assert ask(policy, Names("a"), most=most) == ask(policy, Names("a"))[:most]


def test_an_operator_that_meets_an_illegal_schedule_gave_up():
    both = Says(Proposal("faulty", ()), Proposal("a", ()))
    found = ask(both, Names("a"), Faulty(KernelError("`kernel(t)` ends no launch")), count=2)
    assert [c.schedule[0] for c in found] == ["a", "a"]


def test_an_operator_that_lacks_a_package_ends_the_run():
    with pytest.raises(NotInstalled, match="is not installed"):
        ask(Says(Proposal("faulty", ())), Faulty(NotInstalled("`package` is not installed")))
