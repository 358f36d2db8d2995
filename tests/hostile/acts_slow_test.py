"""Whatever a candidate does in its sandbox, its evaluation ends, nothing is left, the next one runs."""

import ctypes
import os
import resource
import signal
import socket
import time
from pathlib import Path

import pytest

from search.core.evaluation import Evaluation, Failure
from search.evaluator.local import LocalEvaluator
from search.evaluator.sandbox import Limits
from search.evaluator.testing.acting import bench, outcomes
from tests.hostile.acts import ACTS, HOURS, INSIDE, KEPT, OUTSIDE, Hostile

LIMITS = Limits(cpu=8, seconds=12.0, memory=1 << 30, file=1 << 20, files=1 << 26, processes=512)
NEEDS_PID = ("search", "signal_group", "read_memory")  # parts of names: the act is given our number


@pytest.fixture(scope="module")
def evaluator():
    with LocalEvaluator([bench(Hostile, limits=LIMITS)], workers=1) as found:
        yield found


@pytest.fixture
def outside():
    """A folder that nothing may change."""
    OUTSIDE.mkdir(exist_ok=True)
    KEPT.write_text("kept")
    KEPT.chmod(0o644)
    before = KEPT.stat()
    yield
    after = KEPT.stat()
    assert KEPT.read_text() == "kept"
    assert (after.st_mode, after.st_uid, after.st_nlink) == (before.st_mode, before.st_uid, 1)
    assert after.st_mtime == before.st_mtime
    assert [p.name for p in OUTSIDE.iterdir()] == ["kept"]
    KEPT.unlink()
    OUTSIDE.rmdir()


@pytest.mark.parametrize("name", ACTS)
def test_a_hostile_act_is_stopped_or_stays_inside(evaluator, outside, name):
    mark = f"{HOURS}.3{os.getpid()}"
    place = socket.socket()
    place.bind(("127.0.0.1", 0))
    place.listen()
    word = mark
    if any(part in name for part in NEEDS_PID):
        word = str(os.getpid())
    elif name in ("connect_tcp", "send_datagram"):
        word = str(place.getsockname()[1])
    limits, cores = resource.getrlimit(resource.RLIMIT_NOFILE), os.sched_getaffinity(0)
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
    try:
        found, good = outcomes(evaluator, f"{name} {word}", "good")
    finally:
        signal.signal(signal.SIGUSR1, before)
        place.close()
    allowed = (Failure, Evaluation) if ACTS[name] in INSIDE else Failure
    assert isinstance(found, allowed), f"{name} had its way: {found}"
    assert isinstance(good, Evaluation), "the next one is evaluated"
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == limits
    assert os.sched_getaffinity(0) == cores and os.getpriority(os.PRIO_PROCESS, 0) < 19
    assert not heard
    assert not [p for p in Path("/proc").glob("[0-9]*/cmdline") if mark in _text(p)]
    assert not Path("/dev/shm/speciate-hostile").exists()
    assert ctypes.CDLL(None).shmget(0x5EC1A7E, 0, 0) < 0, "its memory is gone"


def test_an_evaluation_ends_at_its_limit(evaluator):
    """How long the longest take is told; what is asserted is that they end."""
    for name in ("loop", "sleep", "deadlock", "stop", "leave_many", "memory_of_many", "flood"):
        began = time.monotonic()
        found = outcomes(evaluator, f"{name} {HOURS}")[0]
        print(f"{name}: {time.monotonic() - began:.1f} s, {getattr(found, 'kind', 'right')}")


def _text(file):
    try:
        return file.read_bytes().decode(errors="replace")
    except OSError:  # it has ended meanwhile
        return ""
