"""A busy machine: whether a process ran out of time because others had the processor."""

from __future__ import annotations

import os

LEAST_SHARE = 0.5  # of the time that passed, which a process that computes has on an idle machine


def starved(processor_seconds: float, seconds: float) -> bool:
    """Whether a process had little of the processor while so much time passed, and more processes
    want to run than there are cores. One that only waits is not told from it on a busy machine."""
    if processor_seconds >= LEAST_SHARE * seconds:
        return False
    return os.getloadavg()[0] > (os.cpu_count() or 1)
