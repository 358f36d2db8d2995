"""A race between backends: rows of what each found, and how many times as fast one is."""

import json

import pytest

from benchmarks import languages
from benchmarks.languages import main, ratios
from ir.errors import KernelError

ROWS = [
    {"kernel": "a", "one": {"us": 8.0}, "other": {"us": 2.0}},
    {"kernel": "b", "one": {"us": 2.0}, "other": {"us": 2.0}},
    {"kernel": "c", "one": {"us": 2.0}, "other": {"failure": "spills"}},
]


def test_ratios_are_of_the_kernels_that_both_ran():
    found = ratios(ROWS, "one", "other")
    assert found == {"geometric_mean": 2.0, "min": 1.0, "failed": ["c"]}
    assert ratios(ROWS[2:], "one", "other") == {
        "geometric_mean": None,
        "min": None,
        "failed": ["c"],
    }


def test_nothing_is_raced_where_it_would_not_be_measured(tmp_path):
    with pytest.raises(KernelError, match="not measured here"):
        main(["--target=npu", f"--out={tmp_path / 'found.json'}"])
    with pytest.raises(KernelError, match="no kernel `nothing`"):
        main(["--target=npu", f"--out={tmp_path / 'found.json'}", "--kernels=nothing"])
    assert not list(tmp_path.iterdir())


def test_each_backend_is_checked_and_timed_in_a_process_of_its_own(monkeypatch, capfd):
    shown = []
    rows = languages.raced(["softmax"], "cpu", ("cpp",), shown.append)
    assert rows == shown and rows[0]["cpp"]["correct_by"] == "device"
    assert rows[0]["cpp"]["us"] > 0 and json.dumps(rows)


def test_a_stage_that_fails_says_why(monkeypatch):
    monkeypatch.setattr(languages, "job", failing)
    (row,) = languages.raced(["softmax"], "cpu", ("cpp",), lambda row: None)
    assert "no `run`" in row["cpp"]["failure"]


def failing(kernel, machine, language, folder, stage):
    raise KernelError(f"no `{stage}`")
