"""Statements by which thread blocks hand what they stored to each other."""

from __future__ import annotations

from dataclasses import dataclass

from backends.gpu.tile import Place, Statement
from ir.spec import Expr


@dataclass(frozen=True, slots=True)
class Publish(Statement):
    """What this thread block stored is there for all that `Acquire` the same flag."""

    flag: Place


@dataclass(frozen=True, slots=True)
class Acquire(Statement):
    """Waits until a thread block has published by a flag."""

    flag: Place


@dataclass(frozen=True, slots=True)
class AcquireAll(Statement):
    """Waits until thread blocks have published by each of several flags, one after the other in memory."""

    first: Place
    count: Expr
