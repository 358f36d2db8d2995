"""What runs apart returns values and errors, and cannot outlive its limits."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from frontends.kernelbench.apart import _PRELOADED, _preloaded, apart
from ir.errors import KernelError

GUARD = 1800.0  # seconds: only what hangs waits so long
HOURS = 7200.0  # seconds: longer than a test may take


def doubled(x):
    return 2 * x


def refused(x):
    raise KernelError("no", where=x, hint="another")


def broken(x):
    return 1 / x


def asleep(seconds):
    time.sleep(seconds)


def gone(code):
    os._exit(code)


def hungry(gigabytes):
    return len(bytearray(int(gigabytes * 2**30)))


def test_the_result_comes_back():
    assert apart(doubled, 21) == 42


def test_an_error_comes_back_whole():
    with pytest.raises(KernelError) as caught:
        apart(refused, "here")
    assert str(caught.value) == "here: no\n  hint: another"


@pytest.mark.parametrize(
    ("work", "argument", "fault"),
    [
        (broken, 0, "ZeroDivisionError"),
        (asleep, HOURS, "longer than 0.5 s"),
        (gone, 3, "ended with 3"),
        (hungry, 64, "MemoryError"),
    ],
)
def test_faults_are_told(work, argument, fault):
    with pytest.raises(KernelError, match=fault):
        apart(work, argument, seconds=0.5 if work is asleep else GUARD, gigabytes=4)


def test_what_opens_a_device_is_forked_before_anything_is_exported() -> None:
    assert _preloaded(doubled, None) == [doubled.__module__]
    assert _PRELOADED in _preloaded(doubled, 4.0)


CALLER = """
import sys
from frontends.kernelbench.apart import apart
from frontends.kernelbench.apart_test import linger
apart(linger, sys.argv[1])
"""


def linger(file):
    Path(file).write_text(str(os.getpid()))
    time.sleep(HOURS)


def test_it_ends_with_the_process_that_called_it_however_that_ended(tmp_path):
    file = tmp_path / "pid"
    path = os.pathsep.join(p or os.getcwd() for p in sys.path)
    caller = subprocess.Popen([sys.executable, "-c", CALLER, str(file)],
                              env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    try:
        wait_for(lambda: file.exists() and file.read_text())
    finally:
        caller.kill()
        caller.wait()
    worker = Path("/proc") / file.read_text()
    wait_for(lambda: not worker.exists())


def wait_for(holds):
    end = time.monotonic() + GUARD
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
