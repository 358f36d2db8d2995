"""Tests the race with --rehearse: the real command, with the interpreter and fixed times."""

import json
import signal
import subprocess
import sys
import threading
import time

import pytest

from benchmarks.baselines import MODES
from benchmarks.kernelbench import contest as program
from benchmarks.kernelbench.prepared import F32, PROBLEM, TF32_OF_MANY, known_facts
from benchmarks.kernelbench.race import _Memory, _Race, main
from benchmarks.kernelbench.race_rows import summary
from benchmarks.kernelbench.searches import ProblemSearch
from benchmarks.kernelbench.suite import SEED

GUARD = 1800.0  # Limit in seconds. Only a hang reaches it.
PROBLEMS = {
    "1_Product": """
import torch

class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)

def get_inputs():
    return [torch.rand(24, 40), torch.rand(40, 24)]

def get_init_inputs():
    return []
""",
    "2_Convolution": """
import torch

class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, channels, 3)
        self.norm = torch.nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))

def get_inputs():
    return [torch.rand(2, 3, 8, 8)]

def get_init_inputs():
    return [4]
""",
    "3_Dropped": """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = torch.nn.Dropout(0.25)

    def forward(self, x):
        return self.drop(x) * 2

def get_inputs():
    return [torch.rand(16, 16)]

def get_init_inputs():
    return []
""",
    "4_Wrong": """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.svdvals(x)

def get_inputs():
    return [torch.rand(4, 4)]

def get_init_inputs():
    return []
""",
}


@pytest.fixture
def options(tmp_path):
    folder = tmp_path / "level1"
    folder.mkdir()
    for name, source in PROBLEMS.items():
        (folder / f"{name}.py").write_text(source)
    return [
        f"--problems={tmp_path}",
        "--target=h200",
        "--level=1",
        "--rehearse",
        "--workers=1",
        f"--out={tmp_path}/out.json",
        f"--work={tmp_path}/work",
        "--contests=1",
        f"--problem-seconds={GUARD}",
        f"--compile-seconds={GUARD}",
    ]


def result(tmp_path):
    return json.loads((tmp_path / "out.json").read_text())


def test_problems_are_prepared_built_checked_and_timed(options, tmp_path, capsys):
    assert main(options) == 1  # One is not supported.
    table = result(tmp_path)
    product, convolution, dropped, wrong = table["rows"]
    for row in (product, convolution, dropped):
        assert row["correct"] and row["suite"]["passed"] == 5, row.get("reason")
        # The third only if compiling did not take long: opponents_test.py.
        assert {"eager", "compile"} <= set(row["speedups"]) <= {"eager", *MODES}
        assert set(row["speedups"].values()) == {1.0}
        assert row["time_kind"] == "rehearsed" and row["correct_by"] == "interpreter"
        assert row["own_kernels_only"] is None and row["plain_kernels"] == []
        assert row["rel_err"] < 1e-5
    assert dropped["random"] and "draws" in dropped["against"] and not product["random"]
    assert not wrong["correct"] and wrong["stage"] == "prepare" and "svd" in wrong["reason"]
    assert table["summary"]["all"]["correct"] == 3 and table["suite"] == "kernelbench"
    assert table["summary"]["all"]["over"]["eager"]["geometric_mean"] == 1.0
    assert main(options) == 1 and "0 of 0 done" in capsys.readouterr().err


@pytest.mark.slow
def test_a_problem_is_searched_for_after_its_race(options, tmp_path, capsys):
    words = [*options, "--only=1", "--baselines=", "--searches=1"]
    assert main(words) == 0
    (before,) = result(tmp_path)["rows"]
    words.append("--seconds-each=4")
    assert main(words) == 0
    table = result(tmp_path)
    (row,) = table["rows"]
    found = row.pop("searched")
    assert row == before and found["correct"] and found["speedup"] == 1.0, found
    assert found["asked_s"] == 4.0 and found["baselines_us"] == {"eager": 100.0}
    assert found["whole_us"] is None and "stage" not in found  # Nothing is measured here.
    assert {"import", "ways", "search"} <= set(found["phases_s"])
    assert table["summary"]["all"]["correct_after_search"] == 1
    assert table["command"].endswith("--rehearse --seconds-each=4")
    capsys.readouterr()
    assert main(words) == 0 and "0 of 0 done" in capsys.readouterr().err


def test_a_search_that_fails_is_told_in_its_row(options, tmp_path, monkeypatch):
    monkeypatch.setattr(ProblemSearch, "_command", lambda *_: [sys.executable, "-c", "1 / 0"])
    known = {"level": 1, "problem": "1_Product", "number": 1, "degenerate": "", "correct": True}
    known |= {"us": 1.0, "speedup": 1.0, "speedups": {}}
    (tmp_path / "out.json").write_text(json.dumps({"rows": [known]}))
    assert main([*options, "--only=1", "--seconds-each=1"]) == 1
    (row,) = result(tmp_path)["rows"]
    assert row["correct"] and not row["searched"]["correct"]
    assert "ZeroDivisionError" in row["searched"]["reason"] and row["searched"]["stage"] == "search"


def test_what_needs_no_device_can_be_done_before(options, tmp_path, capsys):
    assert main([*options, "--only=1", "--until=prepare"]) == 0
    assert not (tmp_path / "out.json").exists() and not (tmp_path / "work" / "kernels").exists()
    assert main([*options, "--only=1", "--until=build"]) == 0
    assert not (tmp_path / "out.json").exists() and (tmp_path / "work" / "kernels").exists()
    facts = known_facts(tmp_path / "work" / "level1_f32" / "1_Product")
    assert facts["kernels"] == 1 and facts["bytes"] == 4 * (2 * 24 * 40 + 24 * 24)
    assert main([*options, "--only=1", "--seconds=0"]) == 1
    assert not result_there(tmp_path)
    assert main([*options, "--only=1", "--baselines="]) == 0
    (row,) = result(tmp_path)["rows"]
    assert len(row["digest"]) == 16 and row["seed"] == SEED
    assert row["fastest"] == "eager" and list(row["baselines_us"]) == ["eager"]


def test_a_wrong_result_is_timed_only_where_nothing_else_is_tried(options, tmp_path):
    assert main([*options, "--only=1", "--until=build"]) == 0
    work = tmp_path / "work"
    folder = work / "level1_f32" / "1_Product"
    text = (folder / PROBLEM).read_text()
    (folder / PROBLEM).write_text(text.replace("return torch.", "return 2 * torch."))
    said = [f"--folder={folder}", f"--kernels={work / 'kernels'}", f"--work={work}", "--rehearse"]
    said += [f"--notes={tmp_path / 'n.json'}", "--baselines=", f"--compile-seconds={GUARD}"]
    said.append("--parent=1")
    rows = [
        program.contest(program._parser().parse_args(said + strict))
        for strict in (["--strict"], [])
    ]
    assert [row["correct"] for row in rows] == [False, False]
    assert "root mean square error" in rows[0]["reason"]
    assert [row.get("us") for row in rows] == [None, 100.0]


def test_a_try_in_tf32_alone_is_no_row(options, tmp_path, monkeypatch):
    wrong = {"correct": False, "rounded": ["convolution: tf32"], "stage": "check", "reason": "off"}
    tries = iter([wrong, None])  # No time is left for the second.
    monkeypatch.setattr(_Race, "tried", lambda *_: next(tries))
    assert main([*options, "--only=1"]) == 1 and not result_there(tmp_path)


def tries_of(options, monkeypatch, right, again):
    """Returns the products of the attempts at a problem after the first one, which is wrong, and of
    its row.

    right: the products that are correct.
    again: what is rounded if sums of few channels are not.
    """
    tried = []

    def attempt(race, entry, known, products, *_):
        tried.append(products)
        row = {"rounded": ["convolution: tf32"], "stage": "check", "reason": "off"}
        return known | row | {"correct": len(tried) > 1 and products in right}

    monkeypatch.setattr(_Race, "tried", attempt)
    monkeypatch.setattr(_Race, "precisions", lambda *_: again)
    monkeypatch.setattr(_Race, "put", lambda race, row: tried.append(row.get("products")))
    assert main([*options, "--only=1"]) == 0
    return tried[1:]


BOTH = {"convolution: tf32", "convolution: tf32x3"}


def test_sums_of_few_channels_are_in_f32_before_all_are(options, monkeypatch):
    tries = tries_of(options, monkeypatch, {TF32_OF_MANY, F32}, BOTH)
    assert tries == [TF32_OF_MANY, TF32_OF_MANY]


def test_all_are_in_f32_where_that_does_not_suffice(options, monkeypatch):
    assert tries_of(options, monkeypatch, set(), BOTH) == [TF32_OF_MANY, F32, None]


def test_nothing_is_tried_twice_where_no_sum_is_of_few_channels(options, monkeypatch):
    assert tries_of(options, monkeypatch, set(), {"convolution: tf32"}) == [F32, None]


@pytest.mark.parametrize(("stage", "tries"), [("check", 2), ("time", 1)])
def test_only_a_wrong_result_is_a_reason_to_try_without_tf32(
    options, tmp_path, monkeypatch, stage, tries
):
    rounded = ["convolution: tf32"]
    first = {"correct": False, "rounded": rounded, "stage": stage, "reason": "off"}
    second = {"correct": False, "rounded": [], "stage": "time", "reason": "its times spread"}
    left = [second, first]
    monkeypatch.setattr(_Race, "tried", lambda _, entry, known, products: known | left.pop())
    monkeypatch.setattr(_Race, "precisions", lambda *_: set())  # No sum has few channels.
    assert main([*options, "--only=1"]) == 1
    (row,) = result(tmp_path)["rows"]
    assert len(left) == 2 - tries and row["reason"] == (second if tries == 2 else first)["reason"]
    assert row.get("in_tf32") == ("off" if tries == 2 else None)


SLOW = """
import time
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    open("{reached}", "w").close()
    time.sleep(7200)

def get_init_inputs():
    return []
"""


@pytest.mark.slow
def test_an_interrupt_ends_it_at_once_and_leaves_nothing_half_done(options, tmp_path):
    reached = tmp_path / "reached"
    slow = SLOW.replace("{reached}", str(reached))
    (tmp_path / "level1" / "9_Slow.py").write_text(slow)
    command = [sys.executable, "-m", "benchmarks.kernelbench.race", *options, "--only=9"]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # As a shell does for `&`.
    try:
        race = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        wait_for(reached.exists)  # No process is then just being started.
        race.send_signal(signal.SIGINT)
        _, said = race.communicate(timeout=GUARD)
    finally:
        race.kill()
    assert race.returncode == 130 and said.endswith("stopped; run the same command to continue\n")
    assert not result_there(tmp_path)


def wait_for(condition):
    end = time.monotonic() + GUARD
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def result_there(tmp_path):
    return (tmp_path / "out.json").exists()


def test_without_a_device_there_is_no_race(options, capsys):
    assert main([o for o in options if o != "--rehearse"]) == 2
    assert "--rehearse" in capsys.readouterr().err


def test_contests_wait_for_memory():
    memory = _Memory(10, 3)
    second = threading.Event()

    def other():
        with memory.taken(6):
            second.set()

    with memory.taken(6):
        thread = threading.Thread(target=other, daemon=True)
        thread.start()
        with memory.taken(4):
            # If it started too early it would exist by now, however late the check.
            assert not second.wait(0.2)
    assert second.wait(GUARD)
    with memory.taken(1000):
        pass


def test_a_summary_counts_failures_and_leaves_out_degenerate_ones():
    def row(number, **facts):
        known = {
            "level": 1,
            "number": number,
            "degenerate": "",
            "correct": True,
            "us": 1.0,
            "speedups": {"eager": 2.0},
            "speedup": 2.0,
            "suite_passed": True,
            "own_kernels_only": True,
        }
        return known | facts

    rows = [
        row(1),
        row(2, speedups={"eager": 0.5}, speedup=0.5),
        row(3, degenerate="constant"),
        row(4, correct=False, us=None, stage="build", suite_passed=False),
    ]
    found = summary(rows)
    assert found["all"]["correct"] == 3 and found["all"]["failed_at"] == {"build": 1}
    assert found["not degenerate"]["over"]["eager"]["geometric_mean"] == pytest.approx(1.0)
    assert found["all"]["over"]["eager"]["fast_1"] == pytest.approx(2 / 3)
    assert found["all"]["over"]["compile"] is None
