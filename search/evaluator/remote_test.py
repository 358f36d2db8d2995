"""The remote evaluator finds the same as a local one, also if slots are lost."""

import pytest

from ir.errors import KernelError
from search.core.evaluation import Evaluation, Failure
from search.evaluator.local import LocalEvaluator
from search.evaluator.remote import RemoteEvaluator
from search.evaluator.testing.acting import HASTY, HOURS, Mute, bench, candidate, outcomes
from search.evaluator.testing.fake_cluster import FakeCluster, ThreadSlot, node

CPU = {"CPU": 1.0}


def made(cluster, **more):
    return RemoteEvaluator([bench(**more)], cluster, CPU)


def slots_of(*dying):
    """Slots on separate nodes. dying: number of candidates that each of them loses."""
    left = list(enumerate(dying))

    def making(resources, without):
        number, dies = left.pop(0)
        return ThreadSlot(f"n{number}", dies)

    return making


def test_outcomes_and_contexts_are_those_of_a_local_evaluator():
    words = ("good", "off", "no build")
    with LocalEvaluator([bench()], workers=1) as local:
        expected = outcomes(local, *words)
        contexts, limits = local.contexts, local.environment["limits"]
    lost = []
    cluster = FakeCluster(node("n0"), making=slots_of(1, 0))
    with made(cluster) as remote:
        remote.lost = lambda which, how: lost.append((which.source, how))
        found = outcomes(remote, *words)
        assert (remote.contexts, remote.environment["limits"]) == (contexts, limits)
        assert remote.workers == remote.environment["workers"] == 1
        assert remote.environment["cluster"]["address"] == "fake"
    assert [plain(each) for each in found] == [plain(each) for each in expected]
    assert lost == [("good", "host-n0 (its node ended)")]


def plain(outcome):
    """An outcome without values that vary."""
    if isinstance(outcome, Failure):
        return outcome.stage, outcome.kind, outcome.reason
    return outcome.us, outcome.errors, outcome.figures, outcome.source_digest


def test_what_is_not_done_in_time_never_is_and_the_next_call_has_slots():
    cluster = FakeCluster(node("n0"), making=slots_of(0, 0))
    with made(cluster) as remote:
        assert list(remote.evaluate([candidate(f"wait {HOURS}")], seconds=0.5)) == []
        assert isinstance(outcomes(remote, "good")[0], Evaluation)


def test_a_bench_that_cannot_be_set_up_is_an_error_of_the_start():
    cluster = FakeCluster(node("n0"), making=slots_of(0))
    with pytest.raises(KernelError, match="no device"):
        RemoteEvaluator([bench(Mute)], cluster, CPU)


def test_a_closed_evaluator_gives_nothing():
    remote = made(FakeCluster(node("n0"), making=slots_of(0)), limits=HASTY)
    remote.close()
    assert list(remote.evaluate([candidate("good")])) == []
