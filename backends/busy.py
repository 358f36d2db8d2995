"""A busy machine: whether a process ran out of time because others used the processor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LEAST_SHARE = 0.5  # share of the wall time that a computing process has on an idle machine
MARGIN = 2.0  # margin on the wait time, which lacks that of processes that have ended


def starved(processor_seconds: float, seconds: float, waited: float | None = None) -> bool:
    """Whether a process got little processor time because more processes were runnable than there
    are cores. waited: seconds that it waited for a processor, see `in_line`. If that is None, a
    sleeping process also counts as starved."""
    if processor_seconds >= LEAST_SHARE * seconds:
        return False
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    if waited is not None:
        # Descendants that have ended count in the processor time but no longer in the wait time.
        most = processor_seconds * (1.0 + MARGIN * load) + waited
        if most < LEAST_SHARE * seconds:
            return False
    return load > 1.0


def in_line(process: int, proc: Path = Path("/proc")) -> float | None:
    """How many seconds a process and its live descendants have waited for a processor; None if the
    system does not report it. proc: the folder of the report."""
    if not (proc / str(process) / "schedstat").exists():
        return None
    found = 0
    for one in (process, *_below(process, proc)):
        for task in (proc / str(one) / "task").glob("*/schedstat"):
            with suppress(OSError, ValueError, IndexError):  # the process has ended meanwhile
                found += int(task.read_text().split()[1])
    return found / 1e9


def _below(process: int, proc: Path) -> Iterator[int]:
    """The descendants of a process."""
    for children in (proc / str(process) / "task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, children.read_text().split()):
                yield child
                yield from _below(child, proc)
