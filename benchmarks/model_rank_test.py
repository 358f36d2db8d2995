"""Tests the ranking end to end: built here, and timed by a fake clock."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import model_rank
from benchmarks.rank_table import read, summary, write
from benchmarks.stopwatch import Reading
from testing.slow import slow


class Clock:
    """Replaces a device. The second schedule computes something else."""

    def __init__(self, make):
        self.asked = 0

    def __call__(self, job):
        assert job.file.is_file()
        self.asked += 1
        return Reading(us=10.0 * self.asked, apart=0.5 if self.asked == 2 else 0.0)

    def close(self):
        pass


def command(out, *more, backend="triton"):
    what = ("--target=h200", "--schedules=4", "--kernels=softmax", "--workers=2", "--seconds=1e9")
    given = [f"--backend={backend}"] if backend else []
    return model_rank.main([*what, *given, f"--out={out}", *more])


@pytest.mark.parametrize("backend", [slow("triton"), "cuda"])
def test_schedules_are_built_modelled_timed_and_left_alone_afterwards(
    tmp_path, monkeypatch, backend
):
    out = tmp_path / "rank.json"
    assert command(out, "--dry", backend=backend) == 0
    dry = read(out)
    assert {r["backend"] for r in dry} == {backend}
    assert len(dry) == 4
    built = [r["schedule"] for r in dry if r["correct"] is None]
    assert len(built) >= 2  # The backend may reject some draws.
    assert all(r["reason"] for r in dry if r["correct"] is False)
    good = [r for r in dry if r["schedule"] in built]
    assert all(r["modelled_us"] > 0 for r in good)
    assert all(any(k.endswith(".dram_us") for k in r["terms"]) for r in good)
    monkeypatch.setattr(model_rank, "Stopwatch", Clock)
    monkeypatch.setattr(model_rank, "_head", lambda asked: {"machine": "none"})
    assert command(out, backend=backend) == 0
    rows = [r for r in read(out) if r["schedule"] in built]
    measured = [10.0 * (n + 1) for n in range(len(built))]
    assert [r["measured_us"] for r in rows] == measured
    assert [r["correct"] for r in rows] == [n != 1 for n in range(len(built))]
    assert "lie 0.5 from" in rows[1]["reason"]
    assert summary(rows)["overall"]["timed"] == (len(built) - 1 if len(built) > 2 else 0)
    # Only the first is timed again, for comparison.
    assert command(out, backend=backend) == 0
    assert [r["measured_us"] for r in read(out) if r["schedule"] in built] == measured


def test_all_backends_of_a_target_are_ranked_in_one_file(tmp_path, monkeypatch):
    out = tmp_path / "rank.json"
    monkeypatch.setattr(model_rank, "Stopwatch", Clock)
    monkeypatch.setattr(model_rank, "_head", lambda asked: {"machine": "none"})
    assert command(out, backend="") == 0
    rows = read(out)
    count = {
        name: sum(r["backend"] == name for r in rows) for name in ("triton", "cuda", "cutedsl")
    }
    assert count == {"triton": 4, "cuda": 4, "cutedsl": 4}
    # One kernel's schedules are timed one after the other, and compared with the first of all.
    assert [r["backend"] for r in rows] == ["triton"] * 4 + ["cuda"] * 4 + ["cutedsl"] * 4
    wrong = [r for r in rows if r["correct"] is False and "lie 0.5" in r["reason"]]
    assert len(wrong) == 1
    table = json.loads(out.read_text())["summary"]
    assert set(table["backends"]) == {"triton", "cuda", "cutedsl"}
    parts = [part["kernels"]["softmax"]["timed"] for part in table["backends"].values()]
    assert sum(parts) == table["kernels"]["softmax"]["timed"]


def test_rows_are_modelled_again_and_what_was_measured_stays(tmp_path, monkeypatch):
    out = tmp_path / "rank.json"
    assert command(out, "--dry") == 0
    rows = read(out)
    stale = [
        r | {"modelled_us": 1.0, "guessed_us": 1.0, "terms": {}} if r.get("figures") else r
        for r in rows
    ]
    stale[0] = stale[0] | {"measured_us": 7.0, "us": 7.0, "time_kind": "measured"}
    stale[1] = stale[1] | {"schedule_text": "schedule(softmax)\ntile(none, size=3)\n"}
    write(out, {"command": "measured so", "machine": "none"}, stale)
    assert command(out, "--remodel") == 0
    again = read(out)
    assert again[0] == rows[0] | {"measured_us": 7.0, "us": 7.0, "time_kind": "measured"}
    assert again[1].pop("not_remodelled")
    assert again[1] == stale[1]
    assert again[2:] == rows[2:]
    head = json.loads(out.read_text())
    assert (head["measured_by"], head["machine"]) == ("measured so", "none")
    assert "--remodel" in head["modelled_by"]
    assert command(out, "--remodel") == 0
    assert json.loads(out.read_text())["measured_by"] == "measured so"


def test_wrong_use_is_said(tmp_path, capsys):
    assert model_rank.main(["--target=nowhere", f"--out={tmp_path}/x"]) == 2
    assert "there is no target `nowhere`" in capsys.readouterr().err
    assert model_rank.main(["--target=h200", "--kernels=no", f"--out={tmp_path}/x"]) == 2
    assert "no kernel `no` is ranked" in capsys.readouterr().err
    assert model_rank.main(["--target=npu", f"--out={tmp_path}/x"]) == 2
    assert "a backend without a model of times ranks nothing" in capsys.readouterr().err


def test_what_runs_on_a_device_imports_no_database_and_no_display():
    code = "import sys, benchmarks.model_rank, benchmarks.bench; print(*sys.modules)"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"sqlalchemy", "rich", "ribs", "pytest"} & set(seen.stdout.split())


@pytest.fixture(autouse=True)
def from_the_root(monkeypatch):
    monkeypatch.chdir(Path(model_rank.__file__).parent.parent)
