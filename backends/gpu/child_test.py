"""The outcomes of work that misbehaves."""

import os
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from backends.backend import BackendError
from backends.compare import Form, Reference
from backends.gpu.child import ChildEnded, fault, in_child, limit_memory
from backends.patience import patience

HOURS = 7200.0  # seconds: longer than a test may take
GUARD = 1800.0  # seconds: only what hangs waits so long
ASLEEP = f"import time; time.sleep({HOURS})"


def test_the_value_comes_back_and_nothing_stays(tmp_path):
    array = np.arange(1 << 20, dtype=np.float64)
    got = in_child(lambda: {"twice": 2 * array, "pid": os.getpid()}, GUARD, "check", tmp_path)
    np.testing.assert_array_equal(got["twice"], 2 * array)
    assert got["pid"] != os.getpid()
    assert not list(tmp_path.iterdir())


def test_temporary_files_lie_in_the_folder(tmp_path):
    def work():
        import tempfile

        return tempfile.mkdtemp()

    assert in_child(work, GUARD, "build", tmp_path).startswith(str(tmp_path))


def test_a_child_has_nothing_of_the_expected_results(tmp_path):
    x = np.arange(1, 9, dtype=np.float32)
    exact = {"small": np.ones(9), "large": np.ones((3, 1 << 17))}  # of which pages are dropped
    storage = {"small": np.ones(9, np.float32)[1:], "large": np.ones((3, 1 << 17), np.float32)}
    known = Reference({"x": x}, exact, storage, ({"small": np.ones(9)}, {"small": x[2:]}))

    def work():
        groups = (known.exact, known.storage, *known.noisy)
        return [float(np.abs(a).sum()) for g in groups for a in g.values()], float(x.sum())

    results, given = in_child(work, GUARD, "check", tmp_path)
    assert results == [0, 0, 0, 0, 0, 33] and given == 36  # the last is part of an input
    assert work() == ([9, 3 << 17, 8, 3 << 17, 9, 33], 36)


def test_a_child_has_nothing_that_follows_from_expected_results(tmp_path):
    exact = np.arange(1, 4097, dtype=np.float64).reshape(64, 64)
    known = Reference({}, {"y": exact}, {"y": exact.astype(np.float32)})
    usual = known.usual(Form("f32", "f32"), "y")
    assert usual is not None and [a.size for a in known.derived] == [64]

    def work():
        return [float(np.abs(a).sum()) for a in (*known.derived, usual.exact)]

    assert in_child(work, GUARD, "check", tmp_path) == [0, 0]
    assert min(work()) > 0


class Forged:
    """Runs a command where it is unpickled."""

    def __reduce__(self):
        return os.system, ("true",)


@pytest.mark.parametrize("value", [Forged(), [Forged()], os.system, BackendError])
def test_a_pickle_that_is_no_value_runs_nothing(tmp_path, value):
    with pytest.raises(ChildEnded, match="it sent what is no result") as seen:
        in_child(lambda: value, GUARD, "check", tmp_path)
    assert seen.value.kind == "crash"


def test_files_of_the_process_that_waits_are_closed(tmp_path):
    """Through one of them an evaluation's outcome is told."""
    read, write = os.pipe()

    def work():
        for number in range(3, 1024):
            try:
                os.fstat(number)
                os.write(number, b"")
            except OSError:
                continue
            place = os.readlink(f"/proc/self/fd/{number}")
            if place == os.readlink(f"/proc/{os.getppid()}/fd/{write}"):
                return "open"
        return "closed"

    try:
        assert in_child(work, GUARD, "check", tmp_path) == "closed"
    finally:
        os.close(read)
        os.close(write)


def test_an_exception_names_its_kind_and_cause(tmp_path):
    def work():
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ValueError("outer") from error

    with pytest.raises(BackendError, match="(?s)ValueError: outer.*KeyError") as seen:
        in_child(work, GUARD, "build", tmp_path)
    assert seen.value.stage == "build"


def test_a_backend_error_keeps_its_stage(tmp_path):
    def work():
        raise BackendError("time", "too slow")

    with pytest.raises(BackendError, match="too slow") as seen:
        in_child(work, GUARD, "build", tmp_path)
    assert seen.value.stage == "time"


@pytest.fixture
def pipe(tmp_path):
    """A named pipe's reading end, and what opens the other end in a child, which has no file of ours."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield read, lambda: os.open(path, os.O_WRONLY)
    os.close(read)


def test_work_that_hangs_is_ended_with_all_that_it_started(tmp_path, pipe):
    read, opened = pipe

    def work():
        subprocess.Popen([sys.executable, "-c", ASLEEP], pass_fds=[opened()])
        time.sleep(HOURS)

    with pytest.raises(ChildEnded, match="still at it after 1 s") as seen:
        in_child(work, 1, "build", tmp_path)
    assert seen.value.kind in ("timeout", "machine"), "the latter on a busy machine"
    assert _closed(read)  # by all that held it


def _closed(read):
    """Whether the other end of a pipe is closed, or soon is: a killed process takes a moment to
    end."""
    ready = select.select([read], [], [], GUARD)[0]
    return bool(ready) and os.read(read, 1) == b""


def test_what_left_the_group_does_not_hold_the_answer_back(tmp_path, pipe):
    left, opened = pipe

    def work():
        told, tell = os.pipe()
        opened()
        if (pid := os.fork()) == 0:
            os.setsid()
            os.write(tell, b"1")
            time.sleep(HOURS)
        os.read(told, 1)  # it has left
        return pid

    pid = in_child(work, GUARD, "build", tmp_path)
    assert not select.select([left], [], [], 0)[0], "it is there, and was not waited for"
    os.kill(pid, signal.SIGKILL)
    assert _closed(left)


@pytest.mark.parametrize(
    ("work", "words", "kind"),
    [
        (os.abort, "died of SIGABRT", "crash"),
        (lambda: os._exit(3), "exit code 3", "crash"),
        (lambda: sys.exit(1), "exit code 1", "crash"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "it was killed", "machine"),
        (lambda: [np.ones(1 << 46)], "exit code 1", "memory"),
    ],
)
def test_a_death_says_how(tmp_path, work, words, kind):
    with pytest.raises(ChildEnded, match=words) as seen:
        in_child(work, GUARD, "build", tmp_path)
    assert seen.value.kind == kind


def test_memory_is_limited_to_what_is_left(tmp_path):
    def work(first, then):
        limit_memory(first)
        limit_memory(then)  # more than the process may have is no fault
        return len(bytearray(1 << 28))

    assert in_child(lambda: work(1 << 30, 1 << 40), GUARD, "build", tmp_path) == 1 << 28
    with pytest.raises(ChildEnded) as seen:
        in_child(lambda: work(1 << 24, 1 << 40), GUARD, "build", tmp_path)
    assert seen.value.kind == "memory"


def test_a_death_tells_what_was_said_before(tmp_path):
    def work():
        print("LLVM ERROR: out of registers", file=sys.stderr)
        print("0. Program arguments", file=sys.stderr)
        sys.stderr.flush()
        os.abort()

    with pytest.raises(BackendError, match="SIGABRT: LLVM ERROR: out of registers"):
        in_child(work, GUARD, "build", tmp_path)


@pytest.mark.parametrize(
    "line", ["error: no such instruction", "<inline asm>:1:2: error: no", "LLVM ERROR: no"]
)
def test_an_error_that_was_only_printed_is_one(tmp_path, line):
    with pytest.raises(BackendError, match="reported an error and went on"):
        in_child(lambda: os.write(2, f"note\n{line}\n".encode()), GUARD, "build", tmp_path)


def test_words_that_only_look_like_it_are_none(tmp_path):
    text = b"RuntimeWarning: relative error 0.1\nno error\n"
    assert in_child(lambda: os.write(2, text), GUARD, "build", tmp_path) == len(text)


def test_a_command_that_names_files_that_are_gone_is_left_out():
    said = "line 30; error: no such name\n\nRepro command: assemble " + "/a/long/path" * 80
    assert fault(ValueError(said)) == "ValueError: line 30; error: no such name"


def test_within_patience_no_child_takes_longer_and_the_machine_is_not_to_blame(tmp_path):
    with patience(0.2), pytest.raises(ChildEnded, match=r"still at it after 0.2 s") as ended:
        in_child(lambda: time.sleep(HOURS), GUARD, "build", tmp_path)
    assert ended.value.kind == "timeout"  # of a child that had next to no processor time
    with patience(HOURS), patience(None):
        assert in_child(lambda: 3, GUARD, "build", tmp_path) == 3
    with pytest.raises(ChildEnded, match=r"still at it after 0.3 s"):  # by its own limit
        in_child(lambda: time.sleep(HOURS), 0.3, "build", tmp_path)
