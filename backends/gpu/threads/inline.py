"""What comes before owners: positions along padded dimensions put where they are used, and no boxes.

Each distribution of an index has positions of its own, so what is computed from positions is, too.
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
    """A block without variables of sort "dim" and without bulk copies of boxes, whose other side is
    taken. known: the variables of the blocks around it."""
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
    """A node with the variables replaced; a block in it begins a scope of its own."""
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
