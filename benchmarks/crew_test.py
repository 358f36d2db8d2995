"""Tests a crew of small programs: limits, a process that dies, and one with exclusive use of the
device."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from benchmarks.crew import Crew
from benchmarks.device_lock import DeviceLock

GUARD = 600.0  # Limit in seconds. Only a hang reaches it.
OPENING = """
import argparse, os, sys, time
from pathlib import Path
from benchmarks.device_lock import DeviceLock
made = argparse.ArgumentParser()
made.add_argument("--ask", type=int)
made.add_argument("--answer", type=int)
asked = made.parse_args()
folder = Path({folder!r})
lock = DeviceLock(folder / "lock", asked.ask, asked.answer)
def wait(name):
    while not (folder / name).exists():
        time.sleep(0.01)
"""


@pytest.fixture
def crew():
    made = Crew()
    yield made
    made.end()


def run(crew, tmp_path, source, limit=GUARD):
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    around = {**os.environ, "PYTHONPATH": os.pathsep.join(p or "." for p in sys.path)}
    text = OPENING.format(folder=str(tmp_path)) + source
    try:
        return crew.run([sys.executable, "-c", text], around, limit, log)
    finally:
        os.close(log)


def state(pid):
    """Returns a process's state in the kernel: `T` if it is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_process_that_ends_well_has_no_reason(crew, tmp_path):
    assert run(crew, tmp_path, "with lock.alone(): pass") == ""
    assert crew.members == [] and crew.alone is None


def test_a_process_that_crashes_or_hangs_is_a_reason_and_the_crew_goes_on(crew, tmp_path):
    assert run(crew, tmp_path, "sys.exit(3)") == "its process ended with 3"
    killed = "os.kill(os.getpid(), 9)"
    assert run(crew, tmp_path, killed) == "its process ended with -9"
    assert "longer than 0.2 s" in run(crew, tmp_path, "time.sleep(600)", limit=0.2)
    assert run(crew, tmp_path, "") == ""


def test_the_others_are_stopped_while_one_is_alone(crew, tmp_path):
    worker = (
        "(folder / 'pid').write_text(str(os.getpid())); (folder / 'there').touch(); wait('end')"
    )
    timer = "\n".join(
        (
            "wait('there')",
            "pid = (folder / 'pid').read_text()",
            "with lock.alone():",
            "    stat = Path(f'/proc/{pid}/stat').read_text()",
            "    (folder / 'state').write_text(stat.rpartition(')')[2].split()[0])",
        )
    )
    other = threading.Thread(target=run, args=(crew, tmp_path, worker))
    other.start()
    assert run(crew, tmp_path, timer) == ""
    assert (tmp_path / "state").read_text() == "T"
    assert state((tmp_path / "pid").read_text()) != "T"
    (tmp_path / "end").touch()
    other.join(GUARD)
    assert not other.is_alive()


def test_the_others_go_on_when_the_one_alone_is_killed(crew, tmp_path):
    worker = "(folder / 'there').touch(); wait('alone'); (folder / 'went on').touch()"
    timer = "\n".join(
        (
            "wait('there')",
            "with lock.alone():",
            "    (folder / 'alone').touch()",
            f"    os.kill(os.getpid(), {int(signal.SIGKILL)})",
        )
    )
    other = threading.Thread(target=run, args=(crew, tmp_path, worker))
    other.start()
    assert "-9" in run(crew, tmp_path, timer)
    other.join(GUARD)
    assert (tmp_path / "went on").exists()


def test_a_lock_may_be_entered_again(tmp_path):
    lock = DeviceLock(tmp_path / "lock")
    with lock.held(), lock.alone():
        pass
    with lock.held():
        pass
