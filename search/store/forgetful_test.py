"""A store in memory knows only this process's runs, outcomes and jobs."""

import pytest

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation
from search.core.settings import Settings
from search.core.stored import StoredEvent, StoredExchange
from search.core.stored_job import StoredRound
from search.store.forgetful import Forgetful, ForgetfulJobs


def test_outcomes_are_known_in_their_context_as_long_as_it_lives():
    kept, good = Forgetful(), Evaluation(1.0, "simulated", "simulator")
    settings = Settings("rows", "", "chip", ("tongue",), {})
    others = Settings("columns", "", "chip", ("tongue",), {})
    names = [kept.start(each, {}) for each in (settings, others, settings)]
    assert names == ["rows-chip-1", "columns-chip-1", "rows-chip-2"]
    kept.evaluated("rows-chip-1", "key", "here", good, 0.0)
    assert kept.cached("key", "here") == good
    assert kept.cached("key", "there") is None
    assert kept.runs_of("rows") == ("rows-chip-2", "rows-chip-1")
    with pytest.raises(KernelError, match="is not stored"):
        kept.load("rows-chip-3")


def test_a_run_is_loaded_as_it_was_told():
    kept, good = Forgetful(), Evaluation(1.0, "simulated", "simulator")
    settings = Settings("rows", "", "chip", ("tongue",), {})
    one, two = (Candidate("v", schedule, "chip", "tongue") for schedule in ("a", "b"))
    run = kept.start(settings, {"workers": 2})
    kept.asked(run, 0, [two], 0.0)
    kept.asked(run, 0, [one], 0.0)
    kept.asked(run, 1, [two], 0.0)
    kept.evaluated(run, one.key, "here", good, 0.0)
    kept.log(run, StoredEvent("told", one.key, 3.0, ""))
    found = kept.load(run)
    assert found.generations == ((one,), (two,)) and found.outcomes == {one.key: good}
    assert (found.settings, found.environment, found.seconds) == (settings, {"workers": 2}, 3.0)


def test_a_job_is_loaded_with_its_rounds():
    store = Forgetful()
    kept = ForgetfulJobs(store)
    job = kept.add("night", "text")
    kept.begin(job, StoredRound(0, 4, 8))
    kept.begin(job, StoredRound(1, 2, 8))
    run = store.start(Settings("rows", "", "chip", ("tongue",), {}, job=f"{job}/1"), {})
    kept.end(job, 0, "8 evaluations", True)
    found = kept.resume(job)
    assert (found.job, found.text) == ("night-1", "text") and kept.add("night", "") != job
    assert found.rounds == (
        StoredRound(0, 4, 8, "", "8 evaluations", True),
        StoredRound(1, 2, 8, run),
    )
    with pytest.raises(KernelError, match="job `other-1` is not stored"):
        kept.load("other-1")


def test_exchanges_are_known_as_long_as_it_lives():
    kept, first = Forgetful(), StoredExchange("d", 0, "request", "reply", 0.0)
    second = StoredExchange("e", 0, "request", "reply", 0.0)
    later = StoredExchange("d", 0, "request", "another reply", 0.0)
    for exchange in (first, second, later):
        kept.exchanged("rows-chip-1", exchange)
    assert kept.exchanges("rows-chip-1") == (second, later)
    assert kept.exchanges("rows-chip-2") == ()
