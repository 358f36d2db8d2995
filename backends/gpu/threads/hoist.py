"""Hoisting: moves loop-invariant stores to shared memory out of loops.

A matmul operand in a loop may be the same in all iterations. Its tile is then written once before
the loop, which saves one barrier per iteration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from backends.gpu.threads import thread as to
from backends.gpu.threads.barriers import accessed
from backends.gpu.threads.prune import reads
from backends.gpu.tile import Name

_MOVED = (to.Each, to.SharedStore)


def hoisted(
    block: tuple[to.Statement, ...], shared: Mapping[Name, to.Shared]
) -> tuple[to.Statement, ...]:
    """The block with loop-invariant stores and their operands before the loops.

    A loop without iterations then stores values that nothing reads.
    """
    found: list[to.Statement] = []
    for s in block:
        match s:
            case to.Loop(body=body):
                loop = replace(s, body=hoisted(body, shared))
                before = _invariant(loop, shared)
                left = tuple(x for x in loop.body if id(x) not in {id(b) for b in before})
                found += (*before, replace(loop, body=left))
            case _:
                found.append(to.changed_inside(s, lambda block: hoisted(block, shared)))
    return tuple(found)


def _invariant(loop: to.Loop, shared: Mapping[Name, to.Shared]) -> list[to.Statement]:
    """The loop-invariant stores of a loop, with the statements on which they depend."""
    every = list(to.statements(loop.body))
    written = Counter({loop.name: 2}) + Counter(n for s in every for n in _written(s))
    touched = [
        (tile.region, writes)
        for tiles, writes in (accessed(s, shared) for s in every)
        for tile in tiles
    ]
    stores = Counter(region for region, writes in touched if writes)
    alone = {region for region, writes in touched if not writes and stores[region] == 1}
    moved: list[to.Statement] = []
    made: set[Name] = set()
    for s in loop.body:
        if not isinstance(s, _MOVED) or any(n in written and n not in made for n in _read(s)):
            continue
        if isinstance(s, to.Each) and written[s.name] == 1 and s.name not in _read(s):
            made.add(s.name)
            moved.append(s)
        elif isinstance(s, to.SharedStore) and s.stage is None:
            if shared[s.tile].region in alone:
                moved.append(s)
    kept = [s for s in moved if isinstance(s, to.SharedStore)]
    needed = {n for s in kept for n in _read(s)}
    for s in reversed(moved):  # statements that compute stored values
        if isinstance(s, to.Each) and s.name in needed:
            needed |= _read(s)
            kept.insert(0, s)  # type: ignore[arg-type]
    return [s for s in moved if any(s is k for k in kept)]


def _read(s: to.Statement) -> set[Name]:
    return set(reads((s,)))


def _written(s: to.Statement) -> set[Name]:
    """The fragments that a statement writes."""
    fields = ("to",) if isinstance(s, to.SharedStore) else ("to", "name")
    return {n for f in fields if isinstance(n := getattr(s, f, None), Name)}
