"""Tests what a run reports of a contest whose program ended well, failed, died, took too long, or
lost its run."""

import os
import select
import sys
import threading

import pytest

from benchmarks.contest_process import contested, hold, options_of, row_of
from benchmarks.crew import Crew
from ir.errors import KernelError

GUARD = 600.0  # Limit in seconds. Only a hang reaches it.
PROGRAM = """
import os, sys, time
from benchmarks.contest_process import hold, options_of

def held(asked, notes, lock):
    with notes.stage("first"), lock.alone():
        notes.note(seed=3)
    {end}

made = options_of("contest")
sys.exit(hold(made.parse_args(), held))
"""


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Returns the row and the log of a contest that ends in a given way."""
    monkeypatch.syspath_prepend(tmp_path)

    def of(end, limit=GUARD):
        (tmp_path / "a_contest.py").write_text(PROGRAM.format(end=end))
        options = [f"--work={tmp_path}", "--baselines=", "--compile-seconds=1"]
        row = contested(Crew(), "a_contest", options, {"SAID": "1"}, limit, tmp_path, "a")
        return row, (tmp_path / "a.log").read_text()

    return of


def test_a_row_is_what_the_program_noted(told):
    row, _ = told("notes.note(correct=os.environ['SAID'] == '1')")
    assert row.pop("first_s") >= 0 and row == {"correct": True, "stage": "first", "seed": 3}


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("raise ValueError('no good')", "ValueError: no good"),
        ("print('its last words'); sys.stdout.flush(); os._exit(3)", "its process ended with 3: "),
        ("notes.failed('wrong'); os._exit(3)", "wrong"),
    ],
)
def test_a_contest_that_fails_or_dies_has_a_reason_and_what_was_known(told, end, reason):
    row, log = told(end)
    assert not row["correct"] and row["seed"] == 3
    assert row["reason"] == reason + ("its last words" if "ended" in reason else "")
    assert ("Traceback" in log) is ("raise" in end)


def test_a_contest_that_takes_too_long_is_ended_and_has_no_earlier_row(told, tmp_path):
    (tmp_path / "a.json").write_text('{"correct": true, "us": 3.0}')
    row, _ = told("time.sleep(7200)", limit=0.0)
    assert row["reason"].startswith("it took longer than 0 s")
    assert not row["correct"] and "us" not in row


def asked(tmp_path, parent):
    words = [f"--work={tmp_path}", "--baselines=", "--compile-seconds=1", f"--parent={parent}"]
    return options_of("a").parse_args([*words, f"--notes={tmp_path / 'a.json'}"])


def test_a_program_whose_run_is_gone_holds_nothing(tmp_path):
    pid = os.fork()  # It changes its process, so it runs in a fork.
    if pid == 0:
        try:
            code = hold(asked(tmp_path, parent=os.getpid()), lambda *_: sys.exit("it was held"))
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert not (tmp_path / "a.json").exists()


def test_a_program_ends_with_its_run(tmp_path):
    read, write = os.pipe()
    run = os.fork()
    if run == 0:
        if os.fork() == 0:
            try:
                hold(
                    asked(tmp_path, parent=os.getppid()),
                    lambda *_: (os.write(write, b"1"), threading.Event().wait()),
                )
            finally:
                os._exit(0)
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    os.close(write)
    os.waitpid(run, 0)
    assert select.select([read], [], [], GUARD)[0]
    assert os.read(read, 1) == b""  # No other process holds the other end.


def test_a_refusal_is_told_without_its_kind(tmp_path):
    def held(asked, notes, lock):
        raise KernelError("it does not fit")

    row = row_of(asked(tmp_path, parent=0), held)
    assert row == {"correct": False, "reason": "it does not fit"}
