"""Phases: how the wall time of a search is divided.

A caller opens `recorded`; the code below it marks its work with `phase`. The time of a nested phase
does not count for the outer phase, so the sum is at most the recorded time. Phases of other threads
are not recorded, because the caller does not wait for them.
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
    """Seconds by phase, in the order in which the phases first began."""

    clock: Clock = time.monotonic
    seconds: dict[str, float] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    _since: float = 0.0

    def _account(self) -> None:
        """Adds the time since the last change to the innermost phase."""
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
        """Moves some seconds from the current phase to another phase."""
        self._account()
        inside = self._open[-1]
        part = min(seconds, self.seconds[inside])
        self.seconds[inside] -= part
        self.seconds[name] = self.seconds.get(name, 0.0) + part

    def rounded(self) -> dict[str, float]:
        """The seconds, rounded for a result file."""
        return {name: round(s, 2) for name, s in self.seconds.items()}


_RECORDED: ContextVar[Phases | None] = ContextVar("phases", default=None)


@contextmanager
def recorded(clock: Clock = time.monotonic) -> Iterator[Phases]:
    """Records phases inside the context. An outer recording continues when this one ends."""
    made = Phases(clock)
    token = _RECORDED.set(made)
    try:
        yield made
    finally:
        _RECORDED.reset(token)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Marks the work inside the context as a phase; has no effect if nothing is recorded."""
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
    """Moves seconds from the current phase to another one, as reported by another process."""
    if (found := _RECORDED.get()) is not None:
        found.moved(seconds, name)
