"""Barriers: inserts block-wide barriers where shared memory accesses require them.

A barrier precedes a statement that reads a region written since the last barrier, or that writes a
region read or written since then. Stages of a pipelined tile do not overlap in memory, and their
loop has barriers of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from backends.gpu.threads import thread as to
from backends.gpu.tile import Name


@dataclass(frozen=True, slots=True)
class _Pending:
    """Regions that were read and written since the last barrier."""

    read: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()

    def joined(self, other: _Pending) -> _Pending:
        return _Pending(self.read | other.read, self.written | other.written)


class Barriers:
    """Inserts barriers into the statements of one launch."""

    def __init__(self, shared: Mapping[Name, to.Shared]):
        self.shared = shared
        self.pending = _Pending()

    def block(self, statements: tuple[to.Statement, ...]) -> tuple[to.Statement, ...]:
        """The block with barriers."""
        found: list[to.Statement] = []
        for s in statements:
            match s:
                case to.Barrier():
                    self.pending = _Pending()
                    found.append(s)
                case to.Loop():
                    found += self._loop(s)
                case to.Guard(condition) if any(isinstance(e, to.Thread) for e in condition.walk()):
                    found += self._one(s)  # not all threads would reach a barrier inside
                case to.Guard(_, body, others):
                    before = self.pending
                    first = self.block(body)
                    after, self.pending = self.pending, before
                    second = self.block(others)
                    self.pending = self.pending.joined(after)
                    found.append(replace(s, body=first, others=second))
                case _:
                    found += self._one(s)
        return tuple(found)

    def _loop(self, s: to.Loop) -> list[to.Statement]:
        """A loop. Accesses that are pending at its end conflict with those at its beginning.
        Accesses that are pending before it get one barrier before it."""
        touched = _Pending()
        for one in to.statements(s.body):
            touched = touched.joined(self._of(one))
        met = self._met(touched)
        if met:
            self.pending = _Pending()
        before, self.pending = self.pending, _Pending()
        self.block(s.body)
        body = self.block(s.body)
        staged = self._staged(s)
        self.pending = self.pending.joined(before).joined(_Pending(staged, staged))
        loop = replace(s, body=body)
        return [to.Barrier(), loop] if met else [loop]

    def _one(self, s: to.Statement) -> list[to.Statement]:
        own = self._of(s)
        met = self._met(own)
        self.pending = own if met else self.pending.joined(own)
        return [to.Barrier(), s] if met else [s]

    def _of(self, s: to.Statement) -> _Pending:
        """The regions that a statement touches, except stages, whose loop has its own barriers."""
        if isinstance(s, to.Guard):
            parts = [self._of(one) for one in (*s.body, *s.others)]
            return reduce(_Pending.joined, parts, _Pending())
        tiles, writes = accessed(s, self.shared)
        regions = frozenset(t.region for t in tiles if t.stages == 1)
        return _Pending(written=regions) if writes else _Pending(read=regions)

    def _staged(self, s: to.Loop) -> frozenset[str]:
        """The regions of pipelined tiles in a loop, which other tiles may overlap after it."""
        tiles = (t for one in to.statements(s.body) for t in accessed(one, self.shared)[0])
        return frozenset(t.region for t in tiles if t.stages > 1)

    def _met(self, own: _Pending) -> bool:
        """Whether pending accesses conflict with these."""
        return bool(
            self.pending.written & (own.read | own.written) or self.pending.read & own.written
        )


def accessed(
    s: to.Statement, shared: Mapping[Name, to.Shared]
) -> tuple[tuple[to.Shared, ...], bool]:
    """The shared memory tiles that a statement itself accesses, and whether it writes them."""
    names: tuple[Name, ...] = ()
    match s:
        case to.SharedStore(tile) | to.Copy(tile) | to.SharedLoad(_, tile) | to.BoxStore(tile):
            names = (tile,)
        case to.WarpgroupMultiply(_, a, b) | to.TensorMultiply(_, a, b):
            names = (a, b)  # a may be a fragment
    tiles = tuple(shared[n] for n in names if n in shared)
    return tiles, isinstance(s, to.SharedStore | to.Copy)


def for_proxy(block: to.Block) -> to.Block:
    """The block with barriers that also order accesses of the async proxy."""
    barrier = to.Barrier(proxy=True)
    return tuple(
        barrier if isinstance(s, to.Barrier) else to.changed_inside(s, for_proxy) for s in block
    )
