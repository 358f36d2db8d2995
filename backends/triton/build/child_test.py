"""What becomes of work that misbehaves."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from backends.backend import BackendError
from backends.triton.build.child import Ended, fault, in_child


def test_the_value_comes_back_and_nothing_stays(tmp_path):
    array = np.arange(1 << 20, dtype=np.float64)
    got = in_child(lambda: {"twice": 2 * array, "pid": os.getpid()}, 20, "check", tmp_path)
    np.testing.assert_array_equal(got["twice"], 2 * array)
    assert got["pid"] != os.getpid()
    assert not list(tmp_path.iterdir())


def test_temporary_files_lie_in_the_folder(tmp_path):
    def work():
        import tempfile

        return tempfile.mkdtemp()

    assert in_child(work, 20, "build", tmp_path).startswith(str(tmp_path))


def test_an_exception_names_its_kind_and_cause(tmp_path):
    def work():
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ValueError("outer") from error

    with pytest.raises(BackendError, match="(?s)ValueError: outer.*KeyError") as seen:
        in_child(work, 20, "build", tmp_path)
    assert seen.value.stage == "build"


def test_a_backend_error_keeps_its_stage(tmp_path):
    def work():
        raise BackendError("time", "too slow")

    with pytest.raises(BackendError, match="too slow") as seen:
        in_child(work, 20, "build", tmp_path)
    assert seen.value.stage == "time"


def test_work_that_hangs_is_ended_with_all_that_it_started(tmp_path):
    pids = tmp_path / "pid"

    def work():
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        pids.write_text(str(other.pid))
        time.sleep(60)

    began = time.monotonic()
    with pytest.raises(Ended, match="still at it after 1 s") as seen:
        in_child(work, 1, "build", tmp_path)
    assert seen.value.kind == "timeout"
    assert time.monotonic() - began < 10
    assert not _alive(int(pids.read_text()))


def _alive(pid):
    """Whether a process runs; one that waits to be collected does not."""
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state == "Z":
            return False
        time.sleep(0.02)
    return True


def test_what_left_the_group_does_not_hold_the_answer_back(tmp_path):
    def work():
        if os.fork() == 0:
            os.setsid()
            time.sleep(5)
            os._exit(0)
        return 7

    began = time.monotonic()
    assert in_child(work, 20, "build", tmp_path) == 7
    assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    ("work", "words", "kind"),
    [
        (os.abort, "died of SIGABRT", "crash"),
        (lambda: os._exit(3), "exit code 3", "crash"),
        (lambda: sys.exit(1), "exit code 1", "crash"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL", "memory"),
        (lambda: [np.ones(1 << 46)], "exit code 1", "memory"),
    ],
)
def test_a_death_says_how(tmp_path, work, words, kind):
    with pytest.raises(Ended, match=words) as seen:
        in_child(work, 20, "build", tmp_path)
    assert seen.value.kind == kind


def test_a_death_tells_what_was_said_before(tmp_path):
    def work():
        print("LLVM ERROR: out of registers", file=sys.stderr)
        print("0. Program arguments", file=sys.stderr)
        sys.stderr.flush()
        os.abort()

    with pytest.raises(BackendError, match="SIGABRT: LLVM ERROR: out of registers"):
        in_child(work, 20, "build", tmp_path)


@pytest.mark.parametrize(
    "line", ["error: no such instruction", "<inline asm>:1:2: error: no", "LLVM ERROR: no"]
)
def test_an_error_that_was_only_printed_is_one(tmp_path, line):
    with pytest.raises(BackendError, match="reported an error and went on"):
        in_child(lambda: os.write(2, f"note\n{line}\n".encode()), 20, "build", tmp_path)


def test_words_that_only_look_like_it_are_none(tmp_path):
    text = b"RuntimeWarning: relative error 0.1\nno error\n"
    assert in_child(lambda: os.write(2, text), 20, "build", tmp_path) == len(text)


def test_a_command_that_names_files_that_are_gone_is_left_out():
    said = "line 30; error: no such name\n\nRepro command: assemble " + "/a/long/path" * 80
    assert fault(ValueError(said)) == "ValueError: line 30; error: no such name"
