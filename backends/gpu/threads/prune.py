"""Pruning: removes statements whose results nothing reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from backends.gpu import tile as of
from backends.gpu.threads import thread as to
from backends.gpu.tile import Name

_MADE = (to.Each, to.Positions, to.Load, to.Reduce, to.Scan, to.SharedLoad, to.Regroup, to.Part)
_UPDATED = (to.Each, to.Reduce, to.Scan)  # their reads of their own value do not count
_OPERANDS = (
    "a",
    "b",
    "a_scale",
    "b_scale",
    "source",
    "before",
    "after",
    "totals",
)  # fields with the names of operands
_READ = (to.SharedStore, to.WarpgroupWait, to.Loop)  # which read the fragment that they name


def pruned(block: to.Block, read: frozenset[Name]) -> to.Block:
    """The block without statements whose fragments nothing reads. read: the fragments that the
    launch reads, by `reads`."""
    made = (*_MADE, to.Shuffle, to.ScanAfter)
    return tuple(
        to.changed_inside(s, lambda block: pruned(block, read))
        for s in block
        if not (isinstance(s, made) and s.name not in read)
    )


def reads(block: Iterable[to.Statement]) -> frozenset[Name]:
    """The fragments that statements read, not counting a fragment's own update."""
    found: set[Name] = set()
    for s in to.statements(tuple(block)):  # which yields nested statements separately
        own = [f.name for f in fields(s) if f.name not in ("body", "others")]
        names = {
            e.name
            for e in of.expressions(*(getattr(s, f) for f in own))
            if isinstance(e, to.Element)
        }
        found |= names - ({s.name} if isinstance(s, _UPDATED) else set())
        operands = (*_OPERANDS, "name") if isinstance(s, _READ) else _OPERANDS
        found |= {getattr(s, f) for f in operands if isinstance(getattr(s, f, None), Name)}
    return frozenset(found)
