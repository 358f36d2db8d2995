"""Jobs in a store: names differ from those of runs, one process works on each, and rounds are
kept."""

import json
from dataclasses import replace

import pytest
import sqlalchemy as sql

from ir.errors import KernelError
from search.core.settings import Settings
from search.core.stored_job import StoredRound
from search.store.copying import copy_store
from search.store.holder import here
from search.store.jobs import StoredJobs
from search.store.salvage import salvage
from search.store.schema import JOB_CLAIMS
from search.store.store import Store

SETTINGS = Settings("softmax", "def softmax", "chip", ("tongue",), {"M": 8})
TEXT = json.dumps({"searches": []})


@pytest.fixture
def store(tmp_path):
    found = Store(str(tmp_path / "s.db"))
    yield found
    found.close()


@pytest.fixture
def jobs(store):
    return StoredJobs(store)


def test_jobs_and_runs_have_names_apart(store, jobs):
    assert store.start(SETTINGS, {}) == "softmax-chip-1"
    assert jobs.add("softmax-chip", TEXT) == "softmax-chip-2"
    assert jobs.add("night", TEXT) == "night-1" and jobs.add("night", TEXT) == "night-2"
    assert store.start(SETTINGS, {}) == "softmax-chip-3"
    assert jobs.names() == ("night-2", "night-1", "softmax-chip-2")


def test_a_round_gets_the_run_that_its_search_starts(store, jobs):
    job = jobs.add("night", TEXT)
    jobs.begin(job, StoredRound(0, 4, 8))
    run = store.start(replace(SETTINGS, job=f"{job}/0"), {})
    assert jobs.load(job).rounds == (StoredRound(0, 4, 8, run),)
    store.start(replace(SETTINGS, job=f"{job}/0"), {})  # a replay of it
    jobs.end(job, 0, "8 evaluations", False)
    assert jobs.load(job).rounds == (StoredRound(0, 4, 8, run, "8 evaluations"),)


def test_a_round_that_begins_again_stands_once(jobs):
    job = jobs.add("night", TEXT)
    for _ in range(2):
        jobs.begin(job, StoredRound(0, 1, 8))
    assert jobs.load(job).rounds == (StoredRound(0, 1, 8),)


def _held_by(store, job, holder):
    with store.transaction() as connection:
        connection.execute(JOB_CLAIMS.update().values(holder=holder.text))


def test_one_process_works_on_a_job(store, jobs):
    job = jobs.add("night", TEXT)
    _held_by(store, job, replace(here(), host="elsewhere"))
    with pytest.raises(KernelError, match="on elsewhere works on job `night-1`"):
        jobs.resume(job)
    with pytest.raises(KernelError, match="is not this process's any more"):
        jobs.begin(job, StoredRound(0, 0, 8))
    _held_by(store, job, replace(here(), began="0"))  # a killed process
    assert jobs.resume(job).job == job
    jobs.let_go(job)
    with store.transaction() as connection:
        assert connection.execute(sql.select(JOB_CLAIMS)).all() == []


def test_an_unknown_job_is_told_from_those_that_are_there(jobs):
    jobs.add("night", TEXT)
    for ask in (jobs.load, jobs.resume):
        with pytest.raises(KernelError, match="no job `day-1`") as caught:
            ask("day-1")
        assert caught.value.allowed == "night-1"


def test_a_copy_and_a_salvage_have_the_jobs(tmp_path, store, jobs):
    job = jobs.add("night", TEXT)
    jobs.begin(job, StoredRound(0, 0, 8))
    store.start(replace(SETTINGS, job=f"{job}/0"), {})
    there = str(tmp_path / "copy.db")
    said = dict(lessons={}, refuse=lambda x: None, keep=lambda x: None, say=lambda x: None)
    with pytest.raises(KernelError, match="works on"):
        _held_by(store, job, here())
        copy_store(store.url, there, **said)
    with store.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM claims")
    with pytest.raises(KernelError, match="works on job `night-1`"):
        copy_store(store.url, there, **said)
    jobs.let_go(job)
    assert copy_store(store.url, there, **said)["rounds"] == 1
    salvage(tmp_path / "s.db", tmp_path / "salvaged.db")
    for name in ("copy.db", "salvaged.db"):
        copy = Store(str(tmp_path / name))
        assert StoredJobs(copy).resume(job) == jobs.load(job)
        copy.close()
