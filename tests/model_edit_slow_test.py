"""A source edit by a model that beats what equations and schedule say, from the command to the
record; and what one target's search found, carried to the next target of the command.

`vote` turns two long rows into probabilities. A schedule gives a row to one processing element,
as each reduction needs all of it; 62 of 64 are idle. The edit gives each row to 32 of them, and the
largest value and the sum go round among these over the mesh.
"""

import contextlib
import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kernels_generated.reproduction import Reproduction, reproduction
from search.core.evaluation import Evaluation
from search.record.record import Record, Stored, read_record, write_record
from search.store.store import Store
from testing.cli.place import Place
from testing.model_server.server import ModelServer

ROOT = Path(__file__).parents[1]
ANSWERS = Path(__file__).parent / "testdata" / "model_edits"
ODD = [(5, 7001), (64, 100), (65, 17), (33, 2000), (7, 63), (1, 65), (3, 64), (130, 33), (1, 70001)]


def at(server):
    """Variables for a run that asks a server."""
    where = server.base_url
    return {"OPENAI_BASE_URL": where, "OPENAI_API_KEY": "sk-0123", "NO_PROXY": "127.0.0.1"}


@dataclass
class Found:
    """What a command came to."""

    runs: list  # of its JSON object
    records: dict  # as stored, by target
    prompts: dict  # that were sent, by target
    tree: Path  # the checkout

    def brought(self, target):
        """What the first generation took over from elsewhere, each correct here."""
        record = self.records[target]
        found = [c for c in record.generations[0] if c.origin.operator == "brought"]
        assert all(isinstance(record.outcomes[c.key], Evaluation) for c in found)
        assert all(c.target == target and c.source is None for c in found)
        return found


def evolved(folder, *words, titles):
    """A command with models, in a place of its own. titles: what prompts call each target."""
    place, tree = Place(folder, "npu"), folder / "tree"
    tree.mkdir()
    (tree / "WORKSPACE").touch()
    (place.work / "vote.kir").write_text((ANSWERS / "vote.kir").read_text())
    asks = ("--model=tiny", "--operators=universal", "--store=runs.db", "--json")
    with ModelServer(folder=ANSWERS, otherwise="nonsense") as server:
        more = {**at(server), "BUILD_WORKSPACE_DIRECTORY": str(tree)}
        code, out, err = place.run(*asks, *words, **more)
        sent = [seen.prompt for seen in server.seen]
    assert code == 0, err
    runs = json.loads(out)["runs"]
    store = Store(str(place.work / "runs.db"))
    records = {run["target"]: store.load(run["run"]) for run in runs}
    store.close()
    prompts = {name: [p for p in sent if title in p] for name, title in titles.items()}
    return Found(runs, records, prompts, tree)


@pytest.fixture(scope="module")
def vote(tmp_path_factory):
    """`vote` on the npu, then a little of it on a GPU, by its interpreter."""
    words = ("--target=npu", "--target=mi300", "--kernel=vote.kir", "--evaluations=16", "--promote")
    titles = {"npu": "npu: 8x8 grid", "mi300": "mi300: "}
    return evolved(tmp_path_factory.mktemp("vote"), *words, titles=titles)


@pytest.fixture
def stored(vote) -> Stored:
    return read_record(vote.tree / vote.runs[0]["record"])


def test_the_edit_is_found_and_is_much_faster_than_the_first_schedule(vote):
    run = vote.runs[0]
    assert (run["target"], run["correct_by"], run["time_kind"]) == ("npu", "simulator", "simulated")
    # A hundred evaluations of equations and schedules come to 7.37 us at best: docs/search.md.
    assert run["best_us"] < 0.4 * run["first_us"]
    best = {row["operator"]: row["best"] for row in run["operators"]}
    assert best["universal"] == 1 and run["models"]["prompts"][0]["gain"] > 2.5


def test_it_is_promoted_as_freely_edited(vote, stored):
    record: Record = stored.record
    assert record.freely_edited and record.us == vote.runs[0]["best_us"]
    assert record.lineage[-1].startswith("other source, by universal: Share each row among")
    assert record.command.endswith("--model=tiny")
    assert "pe.send(pe.id() ^ step, mx, one)" in stored.source
    assert stored.source != reproduction(stored).emit()


def test_it_is_correct_at_odd_shapes_too(stored):
    checks = "".join(f"check(M={m}, K={k})\n" for m, k in ODD)
    found = reproduction(replace(stored, workload=stored.workload + checks)).evaluate(stored.source)
    assert isinstance(found, Evaluation), found
    assert len(found.errors) == len(stored.record.checked) + len(ODD)


class Verdicts:
    """A plugin that keeps what became of each test, and what was said of it."""

    def __init__(self):
        self.words, self.said = {}, []

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            name = report.nodeid.partition("::")[2].partition("[")[0]
            self.words.setdefault(name, report.outcome)
            self.said.append(str(report.longrepr))


def checked(root, stored):
    """The outcomes of the record's own tests, by name, and what they said."""
    folder = write_record(root, stored, replace=True).folder
    seen = Verdicts()
    words = [
        "-c",
        "pytest.ini",
        "--rootdir",
        ".",
        "-p",
        "no:terminal",
        "-p",
        "no:hypothesispytest",
        "-o",
        "addopts=--import-mode=importlib -p no:cacheprovider",
        "kernels_generated/record_check.py",
        f"--record={folder}/record.toml",
    ]
    with contextlib.chdir(ROOT):
        pytest.main(words, plugins=[seen])
    return seen.words, "\n".join(seen.said)


SAME = "test_the_backend_emits_the_same_source_again"


def test_the_records_test_holds_it_to_the_spec_and_does_not_emit(tmp_path, stored, monkeypatch):
    def emit(self, kernel=0):
        raise AssertionError("a source that was edited freely is not emitted again")

    monkeypatch.setattr(Reproduction, "emit", emit)
    other = replace(stored.record.digests, templates="0123456789abcdef")
    words, said = checked(tmp_path, replace(stored, record=replace(stored.record, digests=other)))
    assert words.pop(SAME) == "skipped" and "edited freely" in said
    assert len(words) >= 4 and set(words.values()) == {"passed"}, said


def test_the_records_test_sees_a_source_that_changed(tmp_path, stored):
    source = stored.source.replace("step *= 2", "step *= 4")
    words, said = checked(tmp_path, replace(stored, source=source))
    assert words["test_the_files_are_those_that_the_record_was_made_from"] == "failed"
    assert words["test_the_kernel_equals_the_reference_at_all_check_shapes"] == "failed", said


def test_it_is_carried_to_the_next_target_as_far_as_it_holds_there(vote):
    every = vote.brought("mi300")
    assert len(every) == 2, "one for each of its backends"
    for brought in every:
        assert brought.origin.note == f"found for npu by {vote.runs[0]['run']}"
        assert "online(mx, into=s)" in brought.schedule


def test_a_model_is_shown_the_external_edit_to_translate_it(vote):
    asked = [p for p in vote.prompts["mi300"] if "is fast on another machine (npu, sim)" in p]
    assert asked and all("`kernel of npu`" in p for p in asked)
    assert all("pe.send(pe.id() ^ step, mx, one)" in p for p in asked)
    assert not any("is fast on another machine" in p for p in vote.prompts["npu"])


def test_an_edit_of_the_schedule_is_carried_to_every_target_that_follows(tmp_path):
    targets = [f"--target={name}" for name in ("npu", "npu_small", "mi300")]
    words = (*targets, "--kernel=rows.kir", "--evaluations=8", "--seed=1")
    found = evolved(tmp_path, *words, titles={})
    first = found.runs[0]
    assert first["best_us"] < 0.8 * first["first_us"]
    assert {row["operator"]: row["best"] for row in first["operators"]}["universal"] == 1
    for target in ("npu_small", "mi300"):
        brought = found.brought(target)[0]
        assert brought.origin.note == "found for npu by rows-npu-1"
        assert "tile(m, size=1)" in brought.schedule and "tile(n, size=64)" in brought.schedule
