"""Control groups: total limits for all processes of one evaluation."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from search.evaluator import groups

MEBI = 1 << 20


@pytest.fixture
def group():
    """A group with 64 MiB and 20 processes, if this machine permits one."""
    try:
        found = groups.made(64 * MEBI, 20)
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield found
    found.remove()


def inside(group, act):
    """The exit code of a process of the group; if negative, the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            group.enter()
            os._exit(act() or 0)
        except BaseException:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_what_is_limited_is_told(group):
    assert group.held == f"memory {64 * MEBI}, processes 20"
    assert inside(group, lambda: 7) == 7 and not group.out_of_memory()


def test_memory_is_limited_over_all_processes(group):
    def act():
        """Eight processes, each with at most an eighth too much."""
        children = []
        for _ in range(8):
            children.append(os.fork())
            if not children[-1]:
                held = bytearray(os.urandom(16 * MEBI))
                signal.pause()
                os._exit(len(held) % 2)
        _, status = os.wait()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        return 5 if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL else 0

    assert inside(group, act) in (5, -signal.SIGKILL)
    assert group.out_of_memory()


def test_processes_are_limited(group):
    def act():
        for count in range(40):
            try:
                if not os.fork():
                    signal.pause()
            except BlockingIOError:
                return count
        return 0

    assert 10 < inside(group, act) < 20


def test_what_is_left_in_a_group_ends_with_it(group):
    def act():
        if not os.fork():
            os.setsid()
            signal.pause()

    assert inside(group, act) == 0
    assert [n for folder in group.folders for n in groups._members(folder)]
    group.remove()  # the kernel removes only empty groups
    assert not any(folder.exists() for folder in group.folders)


def test_groups_of_processes_that_are_gone_are_removed(group):
    program = "from search.evaluator import groups; print(groups.made(1 << 26, 20).folders[0])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    left = Path(done.stdout.strip())
    assert left.exists()
    groups.sweep()
    assert not left.exists() and all(folder.exists() for folder in group.folders)


def test_what_cannot_be_limited_is_said(monkeypatch, tmp_path):
    with pytest.raises(OSError, match="not asked for"):
        groups.made(None, None)
    monkeypatch.setattr(groups, "ROOT", tmp_path)
    with pytest.raises(OSError):
        groups.made(MEBI, 20)
