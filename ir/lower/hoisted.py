"""Hoisted operands: what no iteration of a loop changes is computed, or converted, once before it.

before: for n: q_a = bf16(q), s = q_a @ k
after:  q_a = bf16(q);   for n: s = q_a @ k
legal:  where every tile that the expression reads was made before the loop, which no index of the
        expression walks. The value takes the same memory.
"""

from __future__ import annotations

from collections.abc import Collection

from ir.lower.scope import Scope
from ir.nest.nest import Tile
from ir.spec import Expr


def before_loops(scope: Scope, needed: Collection[str], expression: Expr) -> Scope:
    """The outermost scope around `scope`, or `scope` itself, from which on an expression over tiles
    stays the same.

    needed: its indices that have a tile origin. A tile that the loop itself makes, or goes on from
    (a running maximum, a carried value), is not among those of the scopes around the loop.
    """
    read = {n.value for n in expression.walk() if isinstance(n, Tile)}
    found = scope
    for outer in scope.chain():
        if outer is scope:
            continue
        if not (set(needed) <= outer.bound and read <= _made(outer)):
            break
        found = outer
    return found


def _made(scope: Scope) -> set[str]:
    """The values that hold a tensor's tile, or what a read loads, in a scope."""
    return {v for s in scope.chain() for v in (*s.tensors.values(), *s.loads.values())}
