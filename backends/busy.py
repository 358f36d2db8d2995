"""A busy machine: whether a process ran out of time because others had the processor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LEAST_SHARE = 0.5  # of the time that passed, which a process that computes has on an idle machine
MARGIN = 2.0  # times as long as the load says, what has ended may have stood in line


def starved(processor_seconds: float, seconds: float, waited: float | None = None) -> bool:
    """Whether a process had little of the processor while so much time passed, and more processes
    want to run than there are cores. waited: for a processor, see `in_line`; None where that is not known:
    one that sleeps is not told from it then."""
    if processor_seconds >= LEAST_SHARE * seconds:
        return False
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    if waited is not None:
        # What descends from it and has ended is in its processor time, and in no line any more.
        most = processor_seconds * (1.0 + MARGIN * load) + waited
        if most < LEAST_SHARE * seconds:
            return False
    return load > 1.0


def in_line(process: int, proc: Path = Path("/proc")) -> float | None:
    """For how many seconds a process, and all that live below it, have stood in line for a processor; None
    where the system does not say. proc: where it says that."""
    if not (proc / str(process) / "schedstat").exists():
        return None
    found = 0
    for one in (process, *_below(process, proc)):
        for task in (proc / str(one) / "task").glob("*/schedstat"):
            with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
                found += int(task.read_text().split()[1])
    return found / 1e9


def _below(process: int, proc: Path) -> Iterator[int]:
    """The processes that descend from one."""
    for children in (proc / str(process) / "task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, children.read_text().split()):
                yield child
                yield from _below(child, proc)
