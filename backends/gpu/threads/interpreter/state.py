"""The state of a thread block: registers, active threads, current statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from backends.gpu.threads.interpreter.faults import (
    DIVERGENT,
    MATMUL_IN_FLIGHT,
    UNINITIALISED,
    ThreadFault,
)
from backends.gpu.threads.interpreter.registers import Held
from backends.gpu.threads.interpreter.values import converted, held_as
from backends.gpu.threads.text import statement_text
from backends.gpu.threads.thread import Statement
from backends.gpu.tile import Name


@dataclass(slots=True)
class Variable:
    """A fragment: its registers, and which threads wrote them."""

    name: Name
    dtype: str
    axes: tuple[Held, ...]
    shape: tuple[int, ...]  # (threads, registers of each axis)
    value: Any = None  # (threads, registers of each axis), or one number for all threads
    partly: np.ndarray | None = None  # the threads that wrote it, where not all did
    flies: bool = False  # whether a matmul in flight accumulates into it
    feeds: bool = False  # whether a matmul in flight reads it as an operand
    # In tensor memory: the barriers that the block had passed when it was last loaded
    loaded: int = -1


@dataclass(slots=True)
class Block:
    """One thread block of a launch."""

    launch: str
    threads: int
    warp: int
    variables: dict[Name, Variable] = field(default_factory=dict)
    active: np.ndarray | None = None  # threads; None: all
    number: int = 0
    first: int = 0  # the index of its first thread among those of all roles
    barriers: int = 0  # that it has passed
    statement: Statement | None = None  # the current one
    # The result, and the register operand if any, of each matmul in flight, latest last.
    flights: list[tuple[Variable, Variable | None]] = field(default_factory=list)
    issued: int | None = None  # the number of the latest matmul in tensor memory

    def fault(
        self, kind: str, what: str, hint: str, threads: Sequence[int] | np.ndarray = ()
    ) -> ThreadFault:
        """A fault of the current statement."""
        text = statement_text(self.statement) if self.statement is not None else ""
        found = tuple(int(t) for t in threads)
        return ThreadFault(kind, what, hint, self.launch, self.number, found, text)

    def read(self, v: Variable) -> Any:
        """The value of a variable. Raises ThreadFault where a reading thread never wrote it."""
        if v.flies:
            what = f"`{v.name.stem or v.name.sort}` is read while a matmul that adds to it is in flight"
            raise self.fault(MATMUL_IN_FLIGHT, what, "wait for the warpgroup's matmuls first")
        if v.value is None:
            raise self._unwritten(v, ())
        if v.partly is not None:
            lacks = ~v.partly if self.active is None else self.active & ~v.partly
            if lacks.any():
                raise self._unwritten(v, np.flatnonzero(lacks)[:1])
        return v.value

    def _unwritten(self, v: Variable, threads: Sequence[int] | np.ndarray) -> ThreadFault:
        what = f"`{v.name.stem or v.name.sort}` ({v.name.sort}) is read before it is written"
        return self.fault(UNINITIALISED, what, "give it a value on every path to here", threads)

    def write(self, v: Variable, value: Any, dtype: str) -> None:
        """Writes a value to the active threads of a variable, rounded to its dtype."""
        if v.feeds:
            what = f"`{v.name.stem or v.name.sort}` is written while a matmul in flight takes it"
            raise self.fault(MATMUL_IN_FLIGHT, what, "wait for the warpgroup's matmuls first")
        value = converted(value, dtype, v.dtype)
        whole = v.shape if v.axes else v.shape if np.ndim(value) else ()
        value = spread(value, whole)
        if self.active is None:
            v.value, v.partly = value, None
            return
        before = np.zeros((), held_as(v.dtype)) if v.value is None else v.value
        threads = self.active.reshape(-1, *[1] * (len(v.shape) - 1))
        if v.value is None:
            v.partly = self.active
        elif v.partly is not None:
            v.partly = v.partly | self.active
        v.value = np.where(threads, value, before)

    def land(self, pending: int) -> None:
        """Completes the oldest matmuls until at most `pending` are in flight."""
        for onto, held in self.flights:
            onto.flies = False
            if held is not None:
                held.feeds = False
        self.flights = self.flights[len(self.flights) - pending :] if pending else []
        for onto, held in self.flights:
            onto.flies = True
            if held is not None:
                held.feeds = True

    def whole(self, v: Variable) -> np.ndarray:
        """The value of a variable, with an entry for each thread."""
        return spread(self.read(v), v.shape)

    def require_all(self, what: str) -> None:
        """Raises ThreadFault where some threads of the block are inactive."""
        if self.active is not None:
            raise self._diverged(what, self.active, "block")

    def require_groups(self, what: str, size: int = 0) -> None:
        """Raises ThreadFault where only some threads of a group are active. size: of a group; 0: a warp."""
        if self.active is not None:
            size = size or self.warp
            groups = self.active.reshape(-1, size)
            wrong = groups.any(axis=1) & ~groups.all(axis=1)
            if wrong.any():
                group = "warp" if size == self.warp else "warpgroup"
                raise self._diverged(what, self.active & np.repeat(wrong, size), group)

    def _diverged(self, what: str, active: np.ndarray, group: str) -> ThreadFault:
        return self.fault(
            DIVERGENT,
            f"{what} is reached by {int(active.sum())} threads and not by others of their {group}",
            f"move it out of the guard or loop whose condition differs between threads of a {group}",
            np.flatnonzero(active)[:1],
        )

    def alike(self, value: Any) -> Any:
        """A single number, where all active threads have the same; else one for each thread."""
        if np.ndim(value) == 0:
            return value
        shown = value if self.active is None else value[self.active]
        return shown.flat[0] if (shown == shown.flat[0]).all() else value


def spread(value: Any, shape: tuple[int, ...]) -> Any:
    """A value with an entry for each register."""
    return value if np.shape(value) == shape else np.broadcast_to(value, shape)
