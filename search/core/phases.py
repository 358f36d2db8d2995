"""Phases: where the seconds of a search go, by the clock on the wall.

Whoever wants to know opens `recorded`; what it calls names what it does by `phase`. A phase within another
counts for itself alone, so that all of them together are at most what was recorded. Phases of other threads
count for nothing, as they take no time of who waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

Clock = Callable[[], float]


@dataclass(slots=True)
class Phases:
    """Seconds by phase, in the order in which the first of each began."""

    clock: Clock = time.monotonic
    seconds: dict[str, float] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    _since: float = 0.0

    def _account(self) -> None:
        """What went by since something last changed goes to the innermost phase."""
        now = self.clock()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now

    def enter(self, name: str) -> None:
        self._account()
        self._open.append(name)
        self.seconds.setdefault(name, 0.0)

    def leave(self) -> None:
        self._account()
        self._open.pop()

    def moved(self, seconds: float, name: str) -> None:
        """So many of the seconds of the phase that is open went to another one."""
        self._account()
        inside = self._open[-1]
        part = min(seconds, self.seconds[inside])
        self.seconds[inside] -= part
        self.seconds[name] = self.seconds.get(name, 0.0) + part

    def rounded(self) -> dict[str, float]:
        """For a result file."""
        return {name: round(s, 2) for name, s in self.seconds.items()}


_RECORDED: ContextVar[Phases | None] = ContextVar("phases", default=None)


@contextmanager
def recorded(clock: Clock = time.monotonic) -> Iterator[Phases]:
    """Within it phases are recorded; those of another one go on when it ends."""
    made = Phases(clock)
    token = _RECORDED.set(made)
    try:
        yield made
    finally:
        _RECORDED.reset(token)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """What is done within it is a phase, where somebody records them."""
    found = _RECORDED.get()
    if found is None:
        yield
        return
    found.enter(name)
    try:
        yield
    finally:
        found.leave()


def went_to(name: str, seconds: float) -> None:
    """So many seconds of the phase that is open were another one's, as another process tells."""
    if (found := _RECORDED.get()) is not None:
        found.moved(seconds, name)
