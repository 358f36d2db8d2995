"""Preparation before ownership: substitutes positions along padded dimensions into their uses, and
removes bulk copies.

Each distribution of an index has its own positions, and so does everything that is computed from
positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from backends.gpu import tile as of
from backends.gpu.threads.expressions import rewritten
from backends.gpu.tile import Name
from ir.spec import Expr


def inlined(
    block: tuple[of.Statement, ...], known: Mapping[Name, Expr] | None = None
) -> tuple[of.Statement, ...]:
    """The block without variables of sort "dim" and without TMA copies, for which it takes the
    fallback branch. known: variables of the enclosing blocks."""
    held = dict(known or {})
    found: list[of.Statement] = []
    for s in block:
        if isinstance(s, of.Assign) and s.name.sort == "dim":
            held[s.name] = _put(s.value, held)
        elif (
            isinstance(s, of.Guard) and isinstance(s.condition, Name) and s.condition.sort == "bulk"
        ):
            found += inlined(s.others, held)
        else:
            found.append(_put(s, held))
    return tuple(found)


def _put(node: Any, held: Mapping[Name, Expr]) -> Any:
    """A node with its variables replaced; a block in it opens a new scope."""
    if isinstance(node, Expr):
        return rewritten(node, lambda e: held.get(e) if isinstance(e, Name) else None)
    if isinstance(node, tuple):
        if node and all(isinstance(n, of.Statement) for n in node):
            return inlined(node, held)
        return tuple(_put(n, held) for n in node)
    if is_dataclass(node):
        changed = {f.name: _put(getattr(node, f.name), held) for f in fields(node)}
        return replace(node, **changed)  # type: ignore[type-var]
    return node
