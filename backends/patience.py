"""A common time limit for child processes, whatever limits they have themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_limits: list[float] = []  # seconds


@contextmanager
def patience(seconds: float | None) -> Iterator[None]:
    """Inside, no child of `backends.gpu.child` may take longer. One that does is reported as a
    timeout, however busy the machine is. None: only each child's own limit applies."""
    if seconds is None:
        yield
        return
    _limits.append(seconds)
    try:
        yield
    finally:
        _limits.pop()


def within(seconds: float) -> float:
    """The given seconds, or the current limit if that is less."""
    return min((seconds, *_limits))
