"""Faults of a target file: raised at once, or collected so that a person sees them all."""

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
    incomplete: bool = False  # whether a single field is missing or wrong


_COLLECTED: ContextVar[Collected | None] = ContextVar("collected", default=None)


class Unchecked(KernelError):
    """Tables are not compared with each other, since single fields are missing or wrong."""


@contextmanager
def collecting() -> Iterator[Collected]:
    """Within this context, faults are collected in the yielded value, and reading continues."""
    found = Collected()
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)


def refuse(error: KernelError, of_field: bool = False) -> None:
    """Raises an error, or collects it. of_field: the error is about a single field, not about two
    that contradict each other."""
    found = _COLLECTED.get()
    if found is None:
        raise error
    found.errors.append(error)
    found.incomplete |= of_field


def require_complete() -> None:
    """Raises Unchecked where a field is missing or wrong: its placeholder would contradict other fields."""
    found = _COLLECTED.get()
    if found is not None and found.incomplete:
        raise Unchecked("fields are missing or wrong")
