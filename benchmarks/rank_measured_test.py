"""Candidates that searches and contests measured are ranked by the time model."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from backends.registry import target
from benchmarks import rank_measured
from benchmarks.rank_measured import main, of_contests, of_searches
from ir.print import spec_text
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation
from search.core.stored import StoredEvent, StoredRun
from search.core.testing import SETTINGS
from testing.samples.samples import workload

H200 = target("h200")
CONTESTS = Path(__file__).parent / "results" / "h200" / "contests.json"
WORK = workload("softmax")


def run():
    """A run with a measured candidate, one with an equal source, and one of another backend."""
    text = spec_text(WORK.spec)
    schedules = [
        f"schedule(softmax)\ntile(m, size={n})\nplace(m.outer, level=grid)\n" for n in (1, 2)
    ]
    asked = [Candidate(text, s, "h200", "cutedsl") for s in schedules]
    asked.append(Candidate(text, schedules[0], "h200", "triton"))
    outcomes = {c.key: Evaluation(5.0, "measured", "device") for c in asked}
    events = [StoredEvent("told", c.key, 1.0, "") for c in asked]
    events.append(StoredEvent("same", asked[1].key, 1.0, asked[0].key))
    settings = replace(SETTINGS, target="h200", sizes=dict(WORK.tune))
    return StoredRun("run", settings, {}, (tuple(asked),), outcomes, tuple(events))


def test_what_a_search_measured_is_modelled(monkeypatch, tmp_path):
    monkeypatch.setattr(rank_measured, "runs_of", lambda file: [run()])
    (row,) = of_searches(tmp_path / "runs.db", H200, "cutedsl")
    assert row["kernel"].startswith("softmax ") and row["measured_us"] == 5.0
    assert row["modelled_us"] == row["guessed_us"] > 0 and row["estimated_us"] > 0
    assert "tile(m, size=1)" in row["schedule_text"]
    assert list(of_searches(tmp_path / "runs.db", target("h100"), "cutedsl")) == []


def test_candidates_of_contests_are_modelled_without_builds(tmp_path):
    table = json.loads(CONTESTS.read_text())
    table["rows"] = [r for r in table["rows"] if r["kernel"] == "matmul_f32"]
    file = tmp_path / "contests.json"
    file.write_text(json.dumps(table))
    rows = list(of_contests(file, H200, "cutedsl"))
    assert len(rows) == len([c for c in table["rows"][0]["candidates"] if c["correct"]])
    assert all(r["modelled_us"] == r["guessed_us"] for r in rows)
    assert list(of_contests(file, H200, "cuda")) == []
    words = ["--target=h200", "--backend=cutedsl", f"--contests={file}"]
    assert main([*words, f"--out={tmp_path / 'rank.json'}"]) == 0
    written = json.loads((tmp_path / "rank.json").read_text())
    assert written["summary"]["overall"]["timed"] == len(rows)


def test_a_candidate_that_is_no_longer_legal_is_left_out(tmp_path, capsys):
    table = json.loads(CONTESTS.read_text())
    (row,) = [r for r in table["rows"] if r["kernel"] == "matmul_f32"]
    row["candidates"] = row["candidates"][:2]
    row["candidates"][0]["schedule"] = ["overlap(c, turns=1)"]
    file = tmp_path / "contests.json"
    file.write_text(json.dumps(table | {"rows": [row]}))
    assert len(list(of_contests(file, H200, "cutedsl"))) == 1
    assert "is left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--store=missing.db"], "there is no such file"),
        ([], "no candidate of `cutedsl` was measured"),
    ],
)
def test_without_candidates_nothing_is_written(words, said, tmp_path, capsys):
    out = tmp_path / "rank.json"
    assert main(["--target=h200", "--backend=cutedsl", *words, f"--out={out}"]) == 2
    assert said in capsys.readouterr().err and not out.exists()
