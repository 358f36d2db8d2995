"""Statements with which thread blocks pass stored data to each other."""

from __future__ import annotations

from dataclasses import dataclass

from backends.gpu.tile import Place, Statement
from ir.spec import Expr


@dataclass(frozen=True, slots=True)
class Publish(Statement):
    """Releases what this thread block stored to all blocks that `Acquire` the same flag."""

    flag: Place


@dataclass(frozen=True, slots=True)
class Acquire(Statement):
    """Waits until a thread block has published with a flag."""

    flag: Place


@dataclass(frozen=True, slots=True)
class AcquireAll(Statement):
    """Waits until thread blocks have published with each of several flags, which are consecutive in memory."""

    first: Place
    count: Expr
