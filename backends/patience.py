"""How long one waits for processes at most, whatever each of them may take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_limits: list[float] = []  # seconds


@contextmanager
def patience(seconds: float | None) -> Iterator[None]:
    """Within it, no child of `backends.gpu.child` takes longer; one that does is out of time, however busy the
    machine is. None: no limit beside each child's own."""
    if seconds is None:
        yield
        return
    _limits.append(seconds)
    try:
        yield
    finally:
        _limits.pop()


def within(seconds: float) -> float:
    """So many seconds, or fewer where patience ends before."""
    return min((seconds, *_limits))
