"""Tests that the command writes a file row by row, continues an interrupted run, and needs few
packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial

import pytest

from benchmarks import entrant, race, starter, workshop
from benchmarks.entrant import ROOT
from benchmarks.rehearsal import SlowDevice, TorchBackend
from benchmarks.shapes import Row
from testing.slow import slow_but

FACTS = {"machine": "Chip", "driver": "1", "versions": {}, "clocks_mhz": {"sm": 1, "memory": 2}}
GOOD = "y.copy_(torch.softmax(x.float(), 1))"
ROWS = [Row("softmax", dtype, {"M": 64, "K": 128}) for dtype in ("f16", "f32")]


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Runs the command on a fake device with small rows. Returns the exit code and the rows."""

    def run(*options, body=GOOD):
        monkeypatch.setattr(starter, "backend_for", lambda machine: TorchBackend(body))
        out = tmp_path / "r.json"
        patient = ("--seconds=1e9", "--row-seconds=1800")
        code = starter.main(["--target=h200", f"--out={out}", *patient, *options])
        return code, json.loads(out.read_text())

    monkeypatch.setattr(starter, "rows", lambda: iter(ROWS))
    monkeypatch.setattr(starter.machine_room, "require", lambda machine: {})
    monkeypatch.setattr(starter.machine_room, "prepare", lambda: None)
    monkeypatch.setattr(starter.machine_room, "facts", lambda: dict(FACTS))
    monkeypatch.setattr(starter, "CudaDevice", SlowDevice)
    # No record or schedule file of the checkout interferes.
    monkeypatch.setattr(workshop, "choose", partial(entrant.choose, root=tmp_path))
    monkeypatch.setattr(starter, "Track", partial(race.Track, place="cpu", seen=lambda *_: []))
    return run


def test_a_file_says_where_it_is_from_and_holds_all_rows(command):
    code, made = command("--baselines=eager")
    assert code == 0 and [row["dtype"] for row in made["rows"]] == ["f16", "f32"]
    assert list(made) == [
        "command",
        "date",
        "machine",
        "driver",
        "versions",
        "clocks_mhz",
        "summary",
        "rows",
    ]
    assert (
        made["command"]
        == "python3 -m benchmarks.starter --target=h200 --baselines=eager --out=r.json"
    )
    assert made["summary"]["all"]["raced"] == 2


@pytest.mark.slow
def test_a_run_goes_on_where_it_stopped(command, capsys):
    command("--baselines=eager", "--dtypes=f16")
    capsys.readouterr()
    command("--baselines=eager")
    assert capsys.readouterr().err.count("softmax") == 1
    command("--baselines=eager", "--again")
    assert capsys.readouterr().err.count("softmax") == 2
    _, made = command("--seconds=0", "--again")
    assert "out of time" in capsys.readouterr().err and len(made["rows"]) == 2


def test_a_failed_row_is_kept_and_shown_by_the_exit_code(command):
    code, made = command("--baselines=eager", body="pass")
    assert code == 1 and made["summary"]["all"]["failed"] == 2
    assert all("not finite" in row["reason"] for row in made["rows"])


def test_a_failed_row_is_tried_again(command):
    command("--baselines=eager", body="pass")
    code, made = command("--baselines=eager")
    assert code == 0 and "reason" not in made["rows"][0]


def test_a_run_builds_by_the_schedules_of_another_target(command, tmp_path):
    own = tmp_path / f"benchmarks/schedules/h100/{ROWS[0].key}.sched"
    own.parent.mkdir(parents=True)
    own.write_text("schedule(softmax)\ntile(m, size=2)\nplace(m.outer, level=grid)\n")
    code, made = command("--baselines=eager", "--schedules=h100")
    origins = [row["schedule_from"] for row in made["rows"]]
    assert code == 0 and origins == [str(own.relative_to(tmp_path)), "autoschedule"]
    assert "--target=h200 --schedules=h100 --baselines=eager --out=r.json" in made["command"]


def test_each_time_is_a_mean_over_processes(command):
    code, made = command("--baselines=eager", "--processes=3", "--dtypes=f32")
    assert code == 0 and "--processes=3" in made["command"]
    (row,) = made["rows"]
    ours, theirs = row["us_of_processes"], row["baseline_times"]["eager"]["us_of_processes"]
    assert len(ours) == len(theirs) == 3
    assert row["us"] == pytest.approx(sum(ours) / 3, rel=1e-3)
    assert row["baselines_us"]["eager"] == pytest.approx(sum(theirs) / 3, rel=1e-3)


RACES = {
    "starter": ("h200", "there is no `h200` in this computer"),
    "products": ("h200", "there is no `h200` in this computer"),
    "model_rank": ("h200", "--dry"),
    "starter of a simulated chip": ("npu", "its kernels are run by the simulator"),
}


@pytest.mark.parametrize("name", slow_but(lambda name: name.startswith("starter"), RACES))
def test_a_computer_without_the_chip_is_told_at_once(tmp_path, name):
    chip, said = RACES[name]
    words = ["-m", f"benchmarks.{name.split()[0]}", f"--target={chip}", f"--out={tmp_path}/r.json"]
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, env=os.environ | hidden
    )
    assert done.returncode == 2 and done.stdout == ""
    assert "Traceback" not in done.stderr and "--target: there is no" in done.stderr
    assert said in done.stderr and "hint: " in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_race_needs_only_torch_triton_jinja2_and_numpy():
    text = (
        "import sys\n"
        "for name in ('sqlalchemy', 'rich', 'psutil', 'pytest', 'hypothesis'):\n"
        "    sys.modules[name] = None\n"
        "import benchmarks.starter, benchmarks.products\n"
    )
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
