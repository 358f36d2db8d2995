"""What runs apart returns values and errors, and cannot outlive its limits."""

import os
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from frontends.kernelbench.apart import _PRELOADED, apart
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


def visible():
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def test_work_may_be_kept_from_seeing_devices():
    assert apart(visible, devices=False) == "-1"
    assert apart(visible) == os.environ.get("CUDA_VISIBLE_DEVICES")


@pytest.mark.parametrize(("built_for", "exports"), [("13.0", 0), (None, 1)])
def test_nothing_is_exported_before_a_fork_where_there_may_be_a_gpu(
    monkeypatch, built_for, exports
):
    """Exporting asks the driver for devices, and no process forked afterwards can open one."""
    calls = []
    monkeypatch.setattr(torch.version, "cuda", built_for)
    monkeypatch.setattr(torch.version, "hip", None, raising=False)
    monkeypatch.setattr("frontends.pytorch.module.imported", lambda *a: calls.append(a))
    runpy.run_module(_PRELOADED)
    assert len(calls) == exports


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
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, str(file)], env={**os.environ, "PYTHONPATH": path}
    )
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
