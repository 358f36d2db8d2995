"""Tile choices: for each index of a spec, the cuts worth trying where programs have lanes."""

from __future__ import annotations

from collections.abc import Mapping

from ir.atomic import facts_with_places, places, updated
from ir.index_roles import Roles
from ir.openings import tiled
from ir.schedule import Decision
from ir.sizes import power_of_two
from ir.sizes import value as number
from ir.spec import Spec

SIDES = (32, 64, 128, 256)  # of a product
SMALL_SIDE = 16
SUMMED = (64, 32, 128)  # by a product, at a time
SEGMENTS = (16, 32, 64)  # of a jagged range, at a time
ROWS = (1, 2, 4, 8, 16)  # at a time, where each is folded
FOLDED = (4096, 2048, 1024)  # of a row that is too long to be held whole
INNERMOST = (128, 256, 64, 32, 512, 1024, 2048)  # where nothing is folded
LONGEST_SIDE = 512  # that is held whole where a product needs all of it
SHORT, LONG = 256, 1024  # extents below and from which fewer cuts of a product are worth it
LONGEST_ROW = 16384  # elements that a program holds

Tiles = tuple[Decision, ...]


def tile_choices(
    spec: Spec, roles: Roles, sizes: Mapping[str, int]
) -> tuple[tuple[Tiles, ...], ...]:
    """The cuts of each index, what is preferred first; `()` is the index as a whole."""
    ranges = facts_with_places(spec).ranges
    extents = {i: 0 if r.jagged else number(r.high, sizes) for i, r in ranges.items()}
    scattered = _scattered(spec)
    return tuple(tuple(dict.fromkeys(_of(i, roles, extents, scattered))) for i in ranges)


def _scattered(spec: Spec) -> Mapping[str, tuple[int, ...]]:
    """The sizes of tiles of the indices of scatters: what lies contiguous, or is the last that
    tells updates apart where nothing does, in long ones."""
    found: dict[str, tuple[int, ...]] = {}
    for e in (e for e in spec.equations if e.accumulate):
        own, along = [p.name for p in places(e)], updated(e)
        found |= dict.fromkeys((*own, *along), ROWS)
        found[own[-1]] = INNERMOST
        if own[-1] not in along and along:
            found[along[-1]] = INNERMOST
    return found


def _of(
    index: str, roles: Roles, extents: Mapping[str, int], scattered: Mapping[str, tuple[int, ...]]
) -> list[Tiles]:
    extent = extents[index]
    if index in roles.jagged:
        return [tiled(index, size, "loop") for size in SEGMENTS]
    if index in roles.bounding or index in roles.batch:
        return [tiled(index, 1, "grid")]
    if index in roles.taps:
        return [tiled(index, 1, "loop")]
    if index in roles.stored and index not in roles.folded:
        return _on_grid(index, roles, extents)
    if index in roles.stored and extent <= LONGEST_SIDE:
        return [()]
    if index in roles.multiplied and extent <= SHORT:
        return _looped(index, extent, SUMMED[:2], LONGEST_SIDE)
    if index in roles.multiplied:
        return _looped(index, extent, SUMMED, LONGEST_SIDE)
    if index in scattered and index not in roles.folded:
        return _cut(index, extent, scattered[index], 0)
    return _looped(index, extent, FOLDED, LONGEST_ROW)


def _on_grid(index: str, roles: Roles, extents: Mapping[str, int]) -> list[Tiles]:
    """Cuts of an index that is stored and never folded: its tiles can lie side by side."""
    extent = extents[index]
    if index in roles.multiplied:
        inner = _innermost(index, roles)
        if index != inner:
            few = (1, 2, 4) if extents[inner] < 2 * SIDES[0] and _next(index, roles) else (1,)
            return [tiled(index, size, "grid") for size in few if size <= extent]
        sides = (SMALL_SIDE, *SIDES) if extent <= SIDES[0] else SIDES
        return _cut(index, extent, sides if extent < LONG else SIDES[1:], SIDES[-1])
    if roles.folded - roles.taps and not roles.jagged:
        return _cut(index, extent, ROWS, 0)
    if index == roles.stored[-1]:
        return _cut(index, extent, INNERMOST, max(INNERMOST))
    if len(roles.stored) > 1 and index == roles.stored[-2]:
        return _cut(index, extent, ROWS, 0)
    return [tiled(index, 1, "grid")]


def _cut(index: str, extent: int, sizes: tuple[int, ...], longest: int) -> list[Tiles]:
    """Tiles of these sizes, as far as they cut the index, and all of it where it is short."""
    made: list[Tiles] = [tiled(index, s, "grid") for s in sizes if s < power_of_two(extent)]
    return [(), *made] if extent <= longest or not made else made


def _looped(index: str, extent: int, sizes: tuple[int, ...], longest: int) -> list[Tiles]:
    """The same for an index whose tiles go one after another."""
    made: list[Tiles] = [tiled(index, s, "loop") for s in sizes if s < extent]
    if extent > longest and made:
        return made
    few = longest == LONGEST_ROW or extent <= 2 * sizes[0]
    return [(), *made] if few else [*made, ()]


def _innermost(index: str, roles: Roles) -> str:
    """Of the side of a product that an index is of, the one that changes fastest in memory."""
    for rows, columns in roles.sides:
        for side in (rows, columns):
            if index in side:
                return max(side, key=lambda i: roles.stored.index(i) if i in roles.stored else -1)
    return index


def _next(index: str, roles: Roles) -> bool:
    """Whether an index changes fastest but for one."""
    return len(roles.stored) > 1 and index == roles.stored[-2]
