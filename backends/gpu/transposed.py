"""Transposed matmuls: computes the transpose where the matrix unit cannot read operand B in place.

A warpgroup instruction reads operand B from shared memory; 4-byte elements have to be contiguous
along K. Channels-first images are not. Threads would then transpose each element into shared memory
with 16-way bank conflicts. As operand A, they read it in place into registers. Only bulk-copied
tiles gain: threads that copy a tile transpose it to shared memory anyway, 4 bytes at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from backends.gpu.blocks import Blocks, sides
from backends.gpu.uses import tiles
from ir.nest.nest import Dot, Fill, Launch, Load, Loop, Map, Statement, Tile, Value
from ir.nest.steps import tile_axes
from ir.spec import DTYPES, Cast, Number

WIDE = 4  # bytes of elements that a warpgroup instruction reads contiguous along K only
LARGE_SIDE = 64  # M of a warpgroup instruction


def transposed_products(launch: Launch, blocks: Blocks) -> frozenset[Dot]:
    """The matmuls of a launch whose sum is computed transposed; empty in a language without flat
    sums, or one that brings operands into its own order."""
    if not (blocks.rules.k_last and blocks.rules.flat_sums):
        return frozenset()
    if not (bulk := _in_bulk(launch)):
        return frozenset()
    values, ends = {v.name: v for v in launch.values}, _ends(launch)
    dots = [s for s in launch.statements() if isinstance(s, Dot)]
    summed = {*_summed_in_loops(launch.once), *_summed_in_loops(launch.body)}
    return frozenset(
        s
        for s in dots
        if s.value in summed
        and sum(d.value == s.value for d in dots) == 1
        and right_operand(s, values, blocks).value in bulk
        and _gains(s, values, blocks, ends)
    )


def right_operand(s: Dot, values: dict[str, Value], blocks: Blocks) -> Tile:
    """Operand B without transposition: M is what the sum has first."""
    rows, columns, _ = sides(s, values)
    kept = [i for i in values[s.value].names if i in (*rows, *columns) and not blocks[i].scalar]
    return s.a if kept and kept[0] in columns else s.b


def _gains(s: Dot, values: dict[str, Value], blocks: Blocks, ends: dict[str, str]) -> bool:
    right = right_operand(s, values, blocks)
    left = s.b if right is s.a else s.a
    wide = all(DTYPES[values[t.value].dtype] == WIDE for t in (s.a, s.b))
    batch = set(tile_axes(s.a, values)) & set(tile_axes(s.b, values)) - set(s.over)
    if not wide or not s.accumulate or s.scales or batch:
        return False
    if ends.get(right.value, s.over[-1]) in s.over or ends.get(left.value, "") not in s.over:
        return False
    rows, columns, _ = sides(s, values)
    known = [blocks[i].wide for i in (rows if right is s.a else columns)]
    sizes = [w.value for w in known if isinstance(w, Number)]
    return len(sizes) == len(known) and prod(sizes) >= LARGE_SIDE


def _in_bulk(launch: Launch) -> set[str]:
    """Values that are copied in bulk, and their conversions."""
    found = {s.value for s in launch.statements() if isinstance(s, Load) and s.bulk}
    for s in launch.statements():
        held = s.expression.value if isinstance(s, Map) and isinstance(s.expression, Cast) else None
        if isinstance(s, Map) and isinstance(held, Tile) and held.value in found:
            found.add(s.value)
    return found


def _ends(launch: Launch) -> dict[str, str]:
    """The fastest index in memory of loaded values, and of values that maps compute from them."""
    found: dict[str, str] = {}
    for s in launch.statements():
        if isinstance(s, Load) and s.region and s.region[-1].axis:
            found[s.value] = s.region[-1].axis
        elif isinstance(s, Map):
            known = [found[t.value] for t in tiles(s) if t.value in found]
            found |= {s.value: known[-1]} if known else {}
    return found


def _summed_in_loops(block: tuple[Statement, ...]) -> Iterator[str]:
    """Values that are filled in a block, and onto which a loop of it only accumulates products
    before anything else reads them."""
    for n, s in enumerate(block):
        if isinstance(s, Loop):
            yield from _summed_in_loops(s.body)
        if not isinstance(s, Fill):
            continue
        later = next((x for x in block[n + 1 :] if _mentions(x, s.value)), None)
        if isinstance(later, Loop) and _only_adds(later.body, s.value):
            yield s.value


def _only_adds(block: tuple[Statement, ...], value: str) -> bool:
    """Whether a block only accumulates products onto a sum."""
    for s in block:
        if isinstance(s, Loop):
            if not _only_adds(s.body, value):
                return False
        elif _mentions(s, value) and not (isinstance(s, Dot) and value not in _read(s)):
            return False
    return True


def _mentions(s: Statement, value: str) -> bool:
    if isinstance(s, Loop):
        return any(_mentions(x, value) for x in s.body)
    return value in {getattr(s, "value", ""), getattr(s, "carry", "")} | _read(s)


def _read(s: Statement) -> set[str]:
    return {t.value for t in tiles(s)}
