"""Answers with parameters through the command: every combination is evaluated, stored, reported and
replayed."""

import json
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from search.store.store import Store
from testing.cli.place import Place
from testing.model_server.server import ModelServer

ANSWERS = Path(__file__).parent / "testdata" / "sizes"
RUN = "rows-null-1"
WORDS = ("--kernel=rows.kir", "--target=null", "--model=tiny", "--seed=2", "--requests=2")
# On a busy machine some evaluations pass before the model's second answer is there.
COUNT = 48
WORDS += ("--operators=universal,mutate", f"--evaluations={COUNT}", "--store=runs.db", "--json")


def at(server):
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-0", "NO_PROXY": "127.0.0.1"}


def served():
    return ModelServer(["schedule_faults"], folder=ANSWERS, otherwise="nonsense")


@dataclass
class Whole:
    """A run whose model left values to be timed. It was killed and resumed."""

    place: Place
    before: object  # stored when it was killed
    said: str
    seen: tuple

    @property
    def found(self):
        return json.loads(self.said)["runs"][0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("whole"), "null")
    with served() as server:
        dies = place.signalled(signal.SIGKILL, 11)
        code, _, _ = place.run(*WORDS, **at(server), **dies)
        assert code == -signal.SIGKILL
        before = load(place)
        code, said, noise = place.run_here(
            f"--resume={RUN}", "--store=runs.db", "--json", **at(server)
        )
    assert code == 0 and "goes on" in noise
    return Whole(place, before, said, server.seen)


def load(place, run=RUN):
    store = Store(str(place.work / "runs.db"))
    found = store.load(run)
    store.close()
    return found


def answers(record):
    """The candidates of each answer with parameters, in order."""
    found = {}
    for c in record.graph():
        if c.origin.trial:
            found.setdefault(c.origin.trial.answer, []).append(c)
    return found


def test_every_combination_that_is_legal_is_evaluated_and_says_which_it_is(whole):
    record = load(whole.place)
    groups = answers(record)
    by_file = {name: [] for name in ("schedule.sched", "variant.kir", "kernel.txt")}
    for group in groups.values():
        by_file[next(iter(group[0].origin.trial.template.files))] += group
    values = {str(c.origin.trial) for c in by_file["schedule.sched"]}
    assert {"rows=32, stages=2", "rows=16, stages=3"} < values
    for c in by_file["schedule.sched"]:
        rows, stages = c.origin.trial.values.values()
        assert rows in ("32", "16") and f"tile(m, size={rows})" in c.schedule
        assert stages == "2" or f"stages={stages}" in c.schedule
    for c in by_file["variant.kir"]:
        assert f"x[m, k] * {c.origin.trial.values['early']}" in c.variant
    told = {c.source for c in by_file["kernel.txt"] if c.key in record.outcomes}
    assert told == {f"nest of rows for null, by {how}\n" for how in ("hand", "machine")}
    models = whole.found["models"]
    assert models["parameterised"] == len(groups)
    tried = [c.key for g in groups.values() for c in g if c.key in record.outcomes]
    assert models["combinations"] == len(tried) > len(groups)
    assert whole.found["evaluations"] == COUNT == len(record.outcomes)
    by_name = {row["operator"]: row["children"] for row in whole.found["operators"]}
    assert by_name["universal"] >= len(tried), "each is an evaluation of the operator"


def test_all_faults_go_back_to_the_model_at_once(whole):
    back = [s.body["messages"][-1]["content"] for s in whole.seen if len(s.body["messages"]) > 2]
    faults = "line 3: `PARAMETER rows in 32, 16` names no parameter; needed: `PARAMETER NAME in"
    assert any(faults in text and "line 4: `stages` has 2 twice" in text for text in back)


def test_what_was_tried_before_the_kill_is_not_tried_again(whole):
    before, after = answers(whole.before), answers(load(whole.place))
    assert before and any(len(group) > 1 for group in after.values())
    assert all(after[n][: len(g)] == g for n, g in before.items())
    assert whole.place.evaluated("runs.db") == COUNT, "what was stored is not evaluated again"
    assert all("PARAMETER size in (64, 32, 128)" in seen.prompt for seen in whole.seen)


def test_a_replay_is_the_same_to_the_byte(whole):
    code, said, noise = whole.place.run_here(f"--replay={RUN}", "--store=runs.db", "--json")
    assert code == 0, noise
    name = json.loads(said)["runs"][0]["run"]
    assert said.replace(name, RUN) == whole.said
    first, again = load(whole.place), load(whole.place, name)
    assert again.generations == first.generations and again.outcomes == first.outcomes
    assert [c.origin for c in again.graph()] == [c.origin for c in first.graph()]
