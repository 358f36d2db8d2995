"""Peeling: splits a loop with a causal bound into the tiles that its mask does not affect, which
need no mask, and the last ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from backends.gpu.values import moves, settled
from ir.nest.nest import Bound, Loop, Map, Statement
from ir.spec import Apply, Expr, Index, Number
from ir.visit import rebuilt

_BELOW = {("le", 0): True, ("lt", 0): True, ("ge", 1): True, ("gt", 1): True}


def peeled(loop: Loop) -> tuple[tuple[Loop, frozenset[Expr]], ...]:
    """The loops that replace a loop, each with the comparisons that always hold in it.

    before: for n in 0..minimum(N, m_at + tile of m): ... where(n <= m, f, g)
    after:  for n in 0..whole tiles below m_at: ... f; for n in the rest: ... where(n <= m, f, g)
    """
    over = _over(loop)
    true = frozenset(_comparisons(loop.body, loop.index, over)) if over else frozenset()
    if not true or loop.low.size != Number(0):
        return ((loop, frozenset()),)
    tile = Number(loop.tile)
    below = Apply("mul", (Apply("floordiv", (Index(over), tile)), tile))
    middle = Bound(size=Apply("minimum", (settled(loop.high.size), below)))
    first = replace(loop, high=middle)
    parts = (first, true), (replace(loop, low=middle), frozenset[Expr]())
    return parts[::-1] if loop.backwards else parts


def without(expr: Expr, true: frozenset[Expr]) -> Expr:
    """The expression without `where` on conditions that hold."""
    if isinstance(expr, Apply) and expr.function == "where" and expr.args[0] in true:
        return without(expr.args[1], true)
    return rebuilt(expr, lambda e: without(e, true)) if true else expr


def _over(loop: Loop) -> str:
    """The index whose tile origin alone bounds a loop; empty: there is none."""
    if loop.high.size is None or not moves(loop.high.size):
        return ""
    found = {n.name for n in loop.high.size.walk() if isinstance(n, Index)}
    return found.pop() if len(found) == 1 else ""


def _comparisons(block: tuple[Statement, ...], index: str, over: str) -> Iterator[Expr]:
    """The comparisons that hold for all of `index` below the origin of `over`."""
    pair = {Index(index), Index(over)}
    for s in block:
        if isinstance(s, Loop):
            yield from _comparisons(s.body, index, over)
        elif isinstance(s, Map):
            for n in s.expression.walk():
                if isinstance(n, Apply) and len(n.args) == 2 and set(n.args) == pair:
                    if _BELOW.get((n.function, n.args.index(Index(index)))):
                        yield n
