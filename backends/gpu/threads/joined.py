"""Joins the K loops of independent matmuls into one loop.

    before: for k: a += h[k] @ u[k];  p = f(a);  for k: b += h[k] @ v[k]
    after:  for k: a += h[k] @ u[k], b += h[k] @ v[k];  p = f(a)

A matrix instruction waits for the previous one on the same accumulator. Instructions on other
accumulators fill that time, and a shared operand is loaded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from backends.gpu.threads import thread as to
from backends.gpu.threads.expressions import rewritten
from backends.gpu.threads.prune import reads
from backends.gpu.tile import Name
from ir.spec import Expr, Number

UNROLLED = 32  # issues along K up to which the joined loop is unrolled
ISSUE = "issue"  # the sort of names of steps along K
# Statements allowed between two joined loops: those on registers.
_PLAIN = (to.Each, to.Positions, to.Reduce, to.Load)


def joined(block: to.Block) -> to.Block:
    """The block with joined K loops, where the later loop depends on nothing that is computed after the first."""
    found: list[to.Statement] = []
    first: int | None = None  # the position of a loop that later ones may join
    for s in block:
        if first is not None and not isinstance(s, (*_PLAIN, to.Loop, to.Store, to.Guard)):
            first = None
        if not _is_matmul(s):
            inner = to.changed_inside(s, joined)
            first = None if inner.__class__ in (to.Loop, to.Guard) else first
            found.append(inner)
            continue
        assert isinstance(s, to.Loop), "asked just now"
        if first is not None and (moved := _fills(found[first + 1 :], s)) is not None:
            into = found[first]
            assert isinstance(into, to.Loop), "a place of a loop"
            if _alike(into, s):
                left = [x for x in found[first + 1 :] if not any(x is m for m in moved)]
                found[first:] = [*moved, _both(into, s), *left]
                first += len(moved)
                continue
        first = len(found)
        found.append(s)
    return tuple(found)


def _is_matmul(s: to.Statement) -> bool:
    """Whether a statement is the K loop of one matmul, or of several."""
    if not isinstance(s, to.Loop) or s.name.sort != ISSUE:
        return False
    return all(isinstance(x, to.SharedLoad | to.Multiply) for x in s.body)


def _alike(a: to.Loop, b: to.Loop) -> bool:
    return (a.low, a.high, a.step) == (b.low, b.high, b.step)


def _fills(between: list[to.Statement], loop: to.Loop) -> list[to.Statement] | None:
    """The statements between two loops that initialise the accumulators of the later one. None
    where it depends on other statements between them."""
    needed = {*reads((loop,)), *(n for s in loop.body for n in _written(s))}
    fills: list[to.Statement] = []
    for s in between:
        if not set(_written(s)) & needed:
            continue
        if not isinstance(s, to.Each) or any(isinstance(n, to.Element) for n in s.value.walk()):
            return None
        fills.append(s)
    return fills


def _written(s: to.Statement) -> Iterator[Name]:
    """The fragments that a statement writes."""
    for field in ("name", "to"):
        if isinstance(found := getattr(s, field, None), Name):
            yield found


def _both(into: to.Loop, loop: to.Loop) -> to.Loop:
    """One loop with the statements of both."""
    body = list(into.body)
    names: dict[Name, Name] = {loop.name: into.name}

    def change(e: Expr) -> Expr | None:
        if isinstance(e, to.Element) and e.name in names:
            return replace(e, name=names[e.name])
        return names.get(e) if isinstance(e, Name) else None

    for s in loop.body:
        match s:
            case to.SharedLoad(name):
                at = tuple((axis, rewritten(e, change)) for axis, e in s.at)
                made = replace(s, at=at)
                same = (x for x in body if isinstance(x, to.SharedLoad))
                if known := next((x for x in same if replace(x, name=name) == made), None):
                    names[name] = known.name
                    continue
                body.append(made)
            case to.Multiply():
                first = None if s.first is None else rewritten(s.first, change)
                a, b = (names.get(n, n) for n in (s.a, s.b))
                body.append(replace(s, a=a, b=b, first=first))
    loads = [s for s in body if isinstance(s, to.SharedLoad)]
    rest = [s for s in body if not isinstance(s, to.SharedLoad)]
    high = into.high
    few = isinstance(high, Number) and high.value <= UNROLLED * into.step
    return replace(into, body=(*loads, *rest), unrolled=into.unrolled or few)
