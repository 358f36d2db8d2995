"""Pruning: statements whose fragments nothing reads are dropped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from backends.gpu import tile as of
from backends.gpu.threads import thread as to
from backends.gpu.tile import Name

_MADE = (to.Each, to.Positions, to.Load, to.Reduce, to.Scan, to.SharedLoad, to.Regroup, to.Part)
_UPDATED = (to.Each, to.Reduce, to.Scan)  # a value of their own that they read is none that is read
_OPERANDS = (
    "a",
    "b",
    "a_scale",
    "b_scale",
    "source",
    "before",
    "after",
    "totals",
)  # fields with the names of what is read
_READ = (to.SharedStore, to.WarpgroupWait, to.Loop)  # whose name is that of a fragment they read


def pruned(block: to.Block, read: frozenset[Name]) -> to.Block:
    """A block without what makes fragments that nothing reads. read: by `reads` of the launch."""
    made = (*_MADE, to.Shuffle, to.ScanAfter)
    return tuple(
        to.changed_inside(s, lambda block: pruned(block, read))
        for s in block
        if not (isinstance(s, made) and s.name not in read)
    )


def reads(block: Iterable[to.Statement]) -> frozenset[Name]:
    """The fragments that statements read, but for a fragment's own update."""
    found: set[Name] = set()
    for s in to.statements(tuple(block)):  # which gives those inside it by themselves
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
