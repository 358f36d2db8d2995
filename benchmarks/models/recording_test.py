"""Tests that a recording is a run as text: it can be written, read, and put into a store."""

import pytest

from benchmarks.models.recording import difference, read, recording, told, write
from ir.errors import KernelError
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure
from search.core.settings import settings
from search.core.stored import StoredEvent, StoredExchange
from search.core.testing import SETTINGS
from search.store.store import Store

EXCHANGE = StoredExchange("d", 0, '{"model": "tiny"}', '{"text": "\\u2028 yes"}', 1.5)


@pytest.fixture
def store(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    yield store
    store.close()


def stored(store, us=2.0, exchanges=(EXCHANGE,), ended=True):
    chosen = settings(SETTINGS.to_json())
    run = store.start(chosen, {"contexts": {"tongue": "c"}})
    candidates = [Candidate("v", f"s{n}", "chip", "tongue", origin=Origin("x")) for n in range(2)]
    store.asked(run, 0, candidates, 0.0)
    for one, outcome in zip(
        candidates,
        (Evaluation(us, "simulated", "simulator"), Failure("check", "wrong", "so")),
        strict=True,
    ):
        store.evaluated(run, one.key, "c", outcome, 1.0)
        store.log(run, StoredEvent("told", one.key, 1.0, ""))
    for one in exchanges:
        store.exchanged(run, one)
    if ended:
        store.log(run, StoredEvent("stopped", "", 2.0, "enough"))
    return run


def test_what_is_written_is_read_and_put_into_a_store_again(store, tmp_path):
    run = stored(store)
    made = recording(store, run, "https://somewhere/v1", "2026-01-01")
    write(tmp_path / "r.jsonl", made)
    again = read(tmp_path / "r.jsonl")
    assert again == made and "https://somewhere/v1" in again.title
    other = Store(str(tmp_path / "other.db"))
    name = again.keep(other)
    assert other.exchanges(name) == (EXCHANGE,)
    assert other.load(name).events[-3:] == store.load(run).events[-3:]
    assert other.load(name).settings == store.load(run).settings
    other.close()


def test_a_replay_that_differs_is_told_at_its_first_difference(store):
    made = recording(store, stored(store), "e", "d")
    keys = [key for key, _ in told(store.load(made.head["run"]))]
    assert made.head["told"] == [[keys[0], 2.0], [keys[1], "check"]]
    assert difference(made, store.load(stored(store))) == ""
    slower = difference(made, store.load(stored(store, us=3.0)))
    assert slower.startswith("evaluation 0: [") and "3.0] came of the replay" in slower


def test_a_run_without_a_model_or_an_end_is_no_recording(store):
    with pytest.raises(KernelError, match="asked no model"):
        recording(store, stored(store, exchanges=()), "e", "d")
    with pytest.raises(KernelError, match="has not ended"):
        recording(store, stored(store, ended=False), "e", "d")


@pytest.mark.parametrize(
    "text", ["", "{}\n", "[1]\n", "no\n", '{"format": 9}\n', '{"format": 1}\n{"x": 1}\n']
)
def test_another_file_is_refused_with_its_name(text, tmp_path):
    (tmp_path / "r.jsonl").write_text(text)
    with pytest.raises(KernelError, match="r.jsonl is no recording"):
        read(tmp_path / "r.jsonl")
