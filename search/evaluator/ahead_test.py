"""Candidates that are begun before a call: taken over and evaluated once, or cancelled."""

from search.core.evaluation import Evaluation, Failure
from search.evaluator.local import LocalEvaluator
from search.evaluator.testing.acting import HOURS, bench, candidate


def noted(monkeypatch):
    """The sources that workers get, in order."""
    given = []

    def give(self, worker, position, asked, give=LocalEvaluator._give):
        given.append(asked.source)
        give(self, worker, position, asked)

    monkeypatch.setattr(LocalEvaluator, "_give", give)
    return given


def test_a_call_takes_over_what_was_begun_for_it(monkeypatch):
    given = noted(monkeypatch)
    with LocalEvaluator([bench()], workers=1) as local:
        local.ahead(candidate("off"))
        local.ahead(candidate("divide"))  # no worker is free, so nothing is begun
        asked = [candidate(source) for source in ("good", "off", "good")]
        found = dict(local.evaluate(asked))
    assert given == ["off", "good", "good"]
    assert isinstance(found[0], Evaluation) and isinstance(found[2], Evaluation)
    assert (found[1].stage, found[1].kind) == ("check", "wrong")


def test_what_a_call_does_not_ask_for_is_given_up(monkeypatch):
    given = noted(monkeypatch)
    with LocalEvaluator([bench()], workers=1) as local:
        local.ahead(candidate(f"wait {HOURS}"))
        ((_, found),) = local.evaluate([candidate("good")])
    assert given == [f"wait {HOURS}", "good"]
    assert isinstance(found, Evaluation)


def test_a_worker_that_dies_before_the_call_costs_nobody_the_candidate():
    with LocalEvaluator([bench()], workers=1) as local:
        local.ahead(candidate("good"))
        local._pool[0].process.kill()
        local._pool[0].process.wait()
        ((_, found),) = local.evaluate([candidate("good")])
    assert not isinstance(found, Failure)


def test_a_closed_evaluator_begins_nothing():
    local = LocalEvaluator([bench()], workers=1)
    local.ahead(candidate(f"wait {HOURS}"))
    local.close()
    local.ahead(candidate("good"))
    assert not local._pool
