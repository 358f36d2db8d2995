"""Searches that share a store evaluate what they leased, and wait for what another one
evaluates."""

from search.core.candidate import Candidate
from search.core.evaluation import Evaluation
from search.loop.shared import Shared

CANDIDATES = [Candidate("spec", f"{n}", "chip", "tongue") for n in range(1, 5)]
WORKS = [("here", c.key) for c in CANDIDATES]


class Leases:
    """Leases that another search holds until they were polled a number of times."""

    def __init__(self, others=(), looks=2):
        self.others = set(others)
        self.looks = looks
        self.claimed: list = []
        self.released: list = []

    def claim(self, wanted):
        found = frozenset(wanted) - self.others
        self.claimed += sorted(found)
        return found

    def free(self, wanted):
        self.looks -= 1
        if not self.looks:
            self.others.clear()
        return frozenset(wanted) - self.others

    def release(self, done):
        self.released += sorted(done)


class Counting:
    """An evaluator that counts, and gives up after a few."""

    contexts = {"tongue": "here"}

    def __init__(self, kind="modelled", most=99):
        self.environment = {"backends": {"tongue": {"time_kind": kind}}}
        self.asked: list = []
        self.most = most

    def evaluate(self, candidates, seconds=None):
        for position, candidate in enumerate(candidates):
            if len(self.asked) == self.most:
                return
            self.asked.append(candidate)
            yield position, Evaluation(float(candidate.schedule), "modelled", "emulator")


def _found(shared, seconds=None):
    return {n: outcome.us for n, outcome in shared.evaluate(CANDIDATES, seconds)}


def _never(seconds):
    raise AssertionError("nothing is waited for")


ALL = {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}


def test_what_nobody_has_is_evaluated_at_once():
    inner, leases = Counting(), Leases()
    assert _found(Shared(inner, leases, sleep=_never)) == ALL
    assert inner.asked == CANDIDATES and leases.claimed == sorted(WORKS)
    assert leases.released == [], "it is stored, which ends a lease"


def test_what_another_search_has_comes_when_that_is_done():
    inner, leases, slept = Counting(), Leases(WORKS[:2], looks=3), []
    shared = Shared(inner, leases, sleep=slept.append)
    assert list(_found(shared)) == [2, 3, 0, 1]
    assert inner.asked == CANDIDATES[2:] + CANDIDATES[:2] and len(slept) == 2


def test_waiting_ends_with_the_time():
    time = [0.0]
    shared = Shared(
        Counting(),
        Leases(WORKS[:1], looks=10_000),
        clock=lambda: time[0],
        sleep=lambda s: time.__setitem__(0, time[0] + s),
    )
    assert _found(shared, 5.0) == {1: 2.0, 2: 3.0, 3: 4.0}
    assert time == [5.0]


def test_what_came_to_nothing_is_given_back():
    inner, leases = Counting(most=1), Leases()
    assert _found(Shared(inner, leases, sleep=_never), 5.0) == {0: 1.0}
    assert leases.released == sorted(WORKS[1:])
    inner, leases = Counting(), Leases()
    assert next(Shared(inner, leases, sleep=_never).evaluate(CANDIDATES)) is not None
    assert leases.released == sorted(WORKS[1:])


def test_measured_times_are_each_search_s_own():
    inner, leases = Counting("measured"), Leases(WORKS)
    assert _found(Shared(inner, leases, sleep=_never)) == ALL
    assert leases.claimed == []


class Foreseeing(Counting):
    """Begins what it is told to."""

    def __init__(self):
        super().__init__()
        self.begun: list = []

    def ahead(self, asked):
        self.begun.append(asked)


def test_what_is_begun_ahead_is_leased_once_and_not_what_another_search_has():
    leases, inner = Leases(WORKS[1:2]), Foreseeing()
    shared = Shared(inner, leases, sleep=lambda seconds: None)
    for each in CANDIDATES[:3]:
        shared.ahead(each)
    assert inner.begun == [CANDIDATES[0], CANDIDATES[2]]
    assert _found(shared) == {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}
    assert inner.asked[:3] == [CANDIDATES[0], CANDIDATES[2], CANDIDATES[3]], (
        "the other's comes last"
    )
    assert sorted(leases.claimed) == sorted(WORKS) and not leases.released


def test_what_is_begun_ahead_and_not_asked_for_is_given_back():
    leases = Leases()
    shared = Shared(Foreseeing(), leases)
    shared.ahead(CANDIDATES[0])
    assert dict(shared.evaluate(CANDIDATES[1:2]))
    assert leases.released == WORKS[:1]
