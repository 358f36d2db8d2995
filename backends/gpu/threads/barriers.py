"""Barriers: where threads wait for each other, derived from who reads and writes shared memory.

A barrier stands before a statement that reads a region which another statement wrote since the last
barrier, or that writes one which another read or wrote. Stages of a pipelined tile are unlike memory,
and their loop has barriers of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

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
    """Puts barriers into the statements of one launch."""

    def __init__(self, shared: Mapping[Name, to.Shared]):
        self.shared = shared
        self.pending = _Pending()

    def block(self, statements: tuple[to.Statement, ...]) -> tuple[to.Statement, ...]:
        """A block with barriers."""
        found: list[to.Statement] = []
        for s in statements:
            match s:
                case to.Barrier():
                    self.pending = _Pending()
                    found.append(s)
                case to.Loop():
                    found.append(self._loop(s))
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

    def _loop(self, s: to.Loop) -> to.Loop:
        """A loop: what its end leaves pending meets its beginning."""
        before = self.pending
        self.block(s.body)
        self.pending = self.pending.joined(before)
        body = self.block(s.body)
        self.pending = self.pending.joined(before)
        return replace(s, body=body)

    def _one(self, s: to.Statement) -> list[to.Statement]:
        tile, writes = _access(s)
        if tile is None:
            return [s]
        region = self.shared[tile].region
        met = region in self.pending.written or writes and region in self.pending.read
        if met and self.shared[tile].stages > 1:
            met = False
        if met:
            self.pending = _Pending()
        own = _Pending(
            frozenset() if writes else frozenset({region}),
            frozenset({region}) if writes else frozenset(),
        )
        self.pending = self.pending.joined(own)
        return [to.Barrier(), s] if met else [s]


def _access(s: to.Statement) -> tuple[Name | None, bool]:
    """The tile that a statement reads or writes, and whether it writes."""
    match s:
        case to.SharedStore(tile) | to.Copy(tile):
            return tile, True
        case to.SharedLoad(_, tile):
            return tile, False
    return None, False
