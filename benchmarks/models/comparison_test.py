"""Tests that blocks are compared if both searches found something, and that nothing is claimed
without an endpoint."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.models.__main__ import main
from benchmarks.models.comparison import row_of, summary, words
from benchmarks.search.kernels import testbed_kernels as held_out

ROOT = Path(__file__).parents[2]
RUN = {
    "run": "k-npu-1",
    "kernel": "k",
    "target": "npu",
    "evaluations": 24,
    "first_us": 9.0,
    "best_us": 4.0,
    "roofline_us": 3.0,
    "correct_by": "simulator",
    "time_kind": "simulated",
    "stopped_because": "24 evaluations",
}
USED = {"tokens": 10, "cost": None, "answers": 3, "refused": 1, "steps": 0}


def row(kernel, seed, us, model=""):
    run = {**RUN, "kernel": kernel, "best_us": us} | ({"models": USED} if model else {})
    return row_of(run, seed, 24, model)


def test_a_gain_is_the_mean_ratio_of_times_by_block():
    rows = [row("a", 1, 8.0), row("a", 1, 4.0, "m"), row("a", 2, 8.0), row("a", 2, 8.0, "m")]
    rows += [row("b", 1, 2.0), row("b", 1, 4.0, "m")]
    assert summary(rows) == {
        "m": {
            "blocks": 3,
            "without_a_time": 0,
            "without_an_answer": 0,
            "faster": 1,
            "slower": 1,
            "gain": 1.0,
            "by_kernel": {"a": 1.4142, "b": 0.5},
        }
    }
    assert words(summary(rows)).startswith("m: 1.000x over the search without it, at as many")


def test_a_block_that_lacks_a_search_or_a_time_has_no_gain():
    rows = [row("a", 1, 8.0), row("a", 2, 4.0, "m")]
    assert summary(rows)["m"]["blocks"] == 0 and summary(rows)["m"]["gain"] is None
    rows = [row("a", 1, 8.0), row("a", 1, None, "m")]
    assert (summary(rows)["m"]["without_a_time"], summary(rows)["m"]["gain"]) == (1, None)
    rows = [row("a", 1, 8.0), {**row("a", 1, 8.0, "m"), "answers": 0}]
    assert "in 1 blocks the model gave no answer" in words(summary(rows))
    assert words(summary(rows[:1])) == "no model has been compared"


def call(folder, *more, **environ):
    places = ["--store", str(folder / "s.db"), "--out", str(folder / "r.json")]
    return main(["compare", "--model", "tiny", *places, *more], environ)


def test_without_an_endpoint_nothing_is_compared_written_or_claimed(tmp_path, capsys):
    assert call(tmp_path) == 2
    said = capsys.readouterr()
    assert "there is no endpoint: OPENAI_API_KEY is not set; nothing was compared" in said.err
    assert "nothing is claimed" in said.err and said.out == "" and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "more, what",
    [
        (("--kernels", "softmax"), "`softmax` is not held out"),
        (("--kernels", "matmul_chian"), "did you mean `matmul_chain`?"),
        (("--target", "moon"), "moon"),
    ],
)
def test_wrong_use_is_refused_before_anything_runs(more, what, tmp_path, capsys):
    assert call(tmp_path, *more, OPENAI_API_KEY="sk-0") == 2
    assert what in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_no_note_describes_a_kernel_that_is_held_out():
    notes = [*ROOT.glob("search/knowledge/*.md"), *ROOT.glob("backends/*/notes/*.md")]
    assert len(notes) > 20
    for note in notes:
        found = [name for name in held_out() if re.search(rf"\b{name}\b", note.read_text())]
        assert not found, f"{note.name} names {', '.join(found)}"


def test_rows_that_are_there_are_not_made_again(tmp_path, capsys, monkeypatch):
    rows = [
        row_of({**RUN, "kernel": k, "best_us": 4.0}, 1, 24, m)
        for k in held_out()
        for m in ("", "tiny")
    ]
    (tmp_path / "r.json").write_text(json.dumps({"rows": rows}))
    monkeypatch.setattr("subprocess.run", None)
    assert call(tmp_path, "--seeds", "1", OPENAI_API_KEY="sk-0") == 0
    assert "tiny: 1.000x" in capsys.readouterr().out
