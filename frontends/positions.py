"""Positions: where an equation reads, told from where it writes."""

from __future__ import annotations

from collections.abc import Sequence

from frontends.expressions import Term, constant, expr, plus
from ir.errors import KernelError
from ir.spec import Expr, Number


def moved(at: Sequence[Term], dim: int, to: Term) -> tuple[Expr, ...]:
    """The positions with another one along a dimension."""
    return tuple(expr(to if d == dim else i) for d, i in enumerate(at))


def counted(position: int | Expr, size: Expr) -> Expr:
    """A position from 0; one below 0 counts from the end."""
    if isinstance(position, int) and position < 0:
        return plus(size, Number(position))
    return expr(position)


def known(size: int | Expr, what: str) -> int:
    """A size that a rule must know; KernelError where it is open."""
    found = constant(expr(size))
    if found is None:
        raise KernelError(f"{what} is open", allowed="a number", hint="fix the size it comes from")
    return found
