"""Faults of a target file: the first is raised, or all are collected for a person to read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from ir.errors import KernelError


@dataclass(slots=True)
class Collected:
    """The faults of one file."""

    errors: list[KernelError] = field(default_factory=list)
    incomplete: bool = False  # whether a field is missing or wrong by itself


_COLLECTED: ContextVar[Collected | None] = ContextVar("collected", default=None)


class Unchecked(KernelError):
    """A table is not compared with others, as fields are missing or wrong by themselves."""


@contextmanager
def collecting() -> Iterator[Collected]:
    """Inside, faults are collected in what this gives, and reading goes on."""
    found = Collected()
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)


def refuse(error: KernelError, of_field: bool = False) -> None:
    """Raises an error, or collects it. of_field: it is about one field by itself, and not about
    two that disagree."""
    found = _COLLECTED.get()
    if found is None:
        raise error
    found.errors.append(error)
    found.incomplete |= of_field


def require_complete() -> None:
    """Raises Unchecked where a field is missing or wrong: what stands in for it agrees with
    nothing."""
    found = _COLLECTED.get()
    if found is not None and found.incomplete:
        raise Unchecked("fields are missing or wrong")
