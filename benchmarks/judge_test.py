"""Tests solutions through the command: honest ones are accepted, each cheat is refused for its
reason."""

import os
from pathlib import Path

import pytest

from benchmarks.foreign.judging import Report
from benchmarks.judge import told
from benchmarks.testing.solutions import CHEATS, LISTED, PROBLEM, TRITON, cheat, judge
from testing.slow import slow

__all__ = ["judge"]  # a fixture
SOME = "right at the listed shape alone"  # All of them are in judge_slow_test.py.


def test_an_honest_solution_is_accepted_and_its_secret_repeats_the_draws(judge):
    code, found = judge(cheat("return torch.exp(torch.log_softmax(x * self.scale, -1))"))
    assert (code, found["accepted"], found["reason"]) == (0, True, "")
    assert len(found["shapes"]) == 3 and found["shapes"][0] == "listed"
    assert {c["draw"] for c in found["calls"]} > {"as given", "large", "shifted"}
    assert (found["time_kind"], found["own_kernels"]) == ("no time", [])
    assert "aten.exp" in found["torch_operators"]
    again = judge(cheat("return right"), f"--secret={found['secret']}")[1]
    assert again["accepted"] and again["shapes"] == found["shapes"]
    assert [c["at"] for c in again["calls"]] == [c["at"] for c in found["calls"]]
    assert [c["reference_rel_err"] for c in again["calls"]] == [
        c["reference_rel_err"] for c in found["calls"]
    ]


@pytest.mark.slow
def test_a_triton_kernel_runs_by_the_interpreter_and_is_its_own(judge):
    pytest.importorskip("triton")
    code, found = judge(TRITON, "--own")
    assert (code, found["reason"]) == (0, "")
    assert found["own_kernels"] == ["triton: soft"] and found["correct_by"] == "interpreter"


def test_a_cheat_is_refused_for_its_reason(judge):
    lines, kind, said, options = CHEATS[SOME]
    code, found = judge(cheat(lines), *options)
    assert (code, found["accepted"]) == (1, False), found
    assert found["kind"] == kind and said in found["reason"], found["reason"]


@pytest.mark.slow
def test_a_solution_without_the_class_is_refused(judge):
    code, found = judge("class Model: pass\n", LISTED)
    assert (code, found["kind"]) == (1, "missing class")


def test_what_it_starts_does_not_outlive_it(judge):
    """A process session of its own, whose command line is unique."""
    mark = str(7200.0 + os.getpid() / 1e7)
    lines = f"""if os.fork() == 0:
            os.setsid()
            os.execvp("sleep", ["sleep", "{mark}"])
        return x"""
    assert judge(cheat(lines), LISTED)[1]["kind"] == "wrong"
    assert not [p for p in Path("/proc").glob("[0-9]*/cmdline") if mark in command(p)]


def test_a_time_is_told_with_what_it_counts():
    found = dict(us=52.34, within_us=1.5, reference_us=104.0, nothing_us=30.0)
    found |= dict(speedup=1.987, speedup_at_least=1.3)
    said = told(Report(time_kind="at most", time=found))
    assert "52.3 us at most by the judge's clock, within 1.5 us" in said
    assert "a speed-up of 1.30 at least, 1.99 if" in said
    said = told(Report(time_kind="measured", time={"us": 2000.0, "wall_us": 2100.0}))
    assert "2000.0 us measured (2100.0 us by the judge's clock)" in said


def command(file):
    try:
        return file.read_bytes().decode(errors="replace")
    except OSError:  # It has ended meanwhile.
        return ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        slow(PROBLEM.replace("get_inputs", "inputs"), "defines no `get_inputs`"),
        slow(PROBLEM.replace("x * self.scale", "torch.rand_like(x)"), "random numbers"),
        slow(PROBLEM + "\n1 / 0\n", "ZeroDivisionError"),
        (PROBLEM.replace("x * self.scale", "x * 0 + 1 + (x + 1e9 - 1e9) * 1e3"), "own error"),
        slow(PROBLEM.replace("[2.0]", "[lambda: 0]"), "get_init_inputs"),
    ],
)
def test_a_problem_that_cannot_be_judged_by_is_bad_input(judge, tmp_path, text, said):
    file = tmp_path / "other.py"
    file.write_text(text.replace("self.scale = scale", "self.scale = 2.0"))
    code, found = judge(cheat("return right"), LISTED, file=file)
    assert (code, found["accepted"]) == (2, None)
    assert said in found["reason"]


@pytest.mark.slow
def test_options_that_are_no_numbers_are_bad_input(judge, tmp_path):
    assert judge(cheat("return right"), "--seconds=-1")[0] == 2
    assert judge(cheat("return right"), file=tmp_path / "nowhere.py")[0] == 2
