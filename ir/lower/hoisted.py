"""Hoists loop-invariant operands: computes or converts them once, before the loop.

before: for n: q_a = bf16(q), s = q_a @ k
after:  q_a = bf16(q);   for n: s = q_a @ k
legal:  if every tile that the expression reads was made before the loop, and no index of the
        expression belongs to the loop. The value takes the same memory.
"""

from __future__ import annotations

from collections.abc import Collection

from ir.lower.scope import Scope
from ir.nest.nest import Tile
from ir.spec import Expr


def before_loops(scope: Scope, needed: Collection[str], expression: Expr) -> Scope:
    """The outermost enclosing scope in which an expression over tiles is invariant; `scope` if
    there is none.

    needed: the expression's indices that have a tile origin. A tile that the loop itself makes or
    updates (a running maximum, a loop-carried value) is not held by the scopes around the loop, so
    it prevents hoisting.
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
    """The values that hold a tensor's tile or a loaded region in a scope."""
    return {v for s in scope.chain() for v in (*s.tensors.values(), *s.loads.values())}
