"""Tile choices: for each index of a spec, the cuts worth trying where programs have threads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod
from types import MappingProxyType

from ir.autoschedule.seeds import tiled
from ir.schedule import Decision
from ir.sizes import power_of_two
from ir.sizes import value as number
from ir.spec import Index, Scan, Spec
from ir.variant.atomic import facts_with_places, places, updated
from ir.variant.precision import narrowest
from machines.gpu.index_roles import Roles

SIDES = (32, 64, 128, 256)  # of a product
SMALL_SIDE = 16
REDUCED_SIDES = (128, 64, 32)  # at a time, of a side that an epilogue reduces
FEW_BESIDE = (2, 4, 8, 16)  # of an index whose next faster one is short and whole
SUMMED = (64, 32, 128)  # by a product, at a time
WIDE_SUMMED = 32  # at a time, by several products of f32 in one launch, as recurrences have
SEGMENTS = (16, 32, 64)  # of a jagged range, at a time
ROWS = (1, 2, 4, 8, 16)  # at a time, where each is reduced
# The same of a part of a sum: a hinge loss took 984 us on an H200 with 8 and 512 threads, and 940 us with 4
FEW = ROWS[:3]
# Phases of what is stored that are contiguous, and periods of a tile
FEW_PHASES, PERIODS = 4, (128, 64, 32, 16)
FEW_ROWS = (1, 4, 16)  # of several reduced indices
COLUMNS = (32, 64, 128)  # the same, where rows are contiguous and not one after the other
# The same of long rows. On an H200 a norm over channels of 15 GB took 3.98 ms with 32 of f32 and 3.68 ms with these.
LONG_COLUMNS = (64, 128)
ACROSS = (256, 64, 32)  # of such a row at a time
REDUCED = (4096, 2048, 1024)  # of a row that is too long to be held whole
# The same of a long part of a sum, and of long rows that begin anywhere in a vector, of which each element is a load: the
# largest that adds nothing to the end of a row. On an H200 two norms of rows of 65,535 took 8.0 ms in tiles of 2048, and
# one of them 6.2 ms in tiles of 16384. With serpentine passes, tiles of 16384 and 32768 took 5.42 and 5.34 ms there, and
# 7.02 and 6.85 ms on an H100.
LONG_PART, UNALIGNED = (1 << 16, (4096,)), (1 << 15, (32768, 16384))
# The same of a scan. On an H100 rows of 32,768 took 3.00 ms in tiles of 1024, and 2.93 ms so.
SCANNED = (4096,)
# The same of many rows so long that no cache holds those in progress. On an H200 a softmax of 4096 rows of 393,216 took
# 4.76 ms in tiles of 4096, and 4.63 ms so.
LONGEST, MANY = (1 << 18, (16384,)), 1024
VECTOR = 4  # elements of f32 that are loaded at once
STEPS = (1, 4, 8, 16)  # of a recurrence, in a product outside of it
INNERMOST = (128, 256, 64, 32, 512, 1024, 2048)  # where nothing is reduced
LONGEST_SIDE = 512  # that is held whole where a product needs all of it
SHORT, LONG = 256, 1024  # extents below and from which fewer cuts of a product are worth it
LONGEST_ROW = 16384  # elements that a program holds
HELD = 8192  # the same, of several reduced indices
INNER = (1024, 2048, 4096, 512, 256)  # of the last of several reduced indices, at a time

Tiles = tuple[Decision, ...]


def tile_choices(
    spec: Spec,
    roles: Roles,
    sizes: Mapping[str, int],
    parts: Mapping[str, int] = MappingProxyType({}),
    cut: Collection[str] = (),
) -> tuple[tuple[Tiles, ...], ...]:
    """The cuts of each index, what is preferred first; `()` is the index as a whole.

    parts: into how many a reduction over an index is split.  cut: indices that have their tiles.
    """
    ranges = facts_with_places(spec).ranges
    extents = {i: 0 if r.jagged else number(r.high, sizes) for i, r in ranges.items()}
    extents |= {i: -(-extents[i] // n) for i, n in parts.items()}
    scattered, across = _scattered(spec), _across(spec, roles, extents)
    several = _several(spec, roles, extents)
    unaligned = _unaligned(spec, extents)
    scanned = {e.scan.along for e in spec.equations if isinstance(e.value, Scan)}
    wide = roles.summed - set(roles.stored) if roles.stepped and not narrowest(spec) else ()
    return tuple(
        tuple(
            dict.fromkeys(
                [()]
                if i in cut
                else _split(i, roles, extents, several)
                if i in parts
                else _reduced(i, roles, extents, several, INNER[:1] if parts else INNER)
                if i in several
                else _looped(i, extents[i], (WIDE_SUMMED,), WIDE_SUMMED)
                if i in wide
                else [
                    *_beside(i, extents, across, "grid"),
                    *(
                        _of(i, roles, extents, scattered, unaligned, scanned)
                        if across.get(i) != LONG_COLUMNS
                        else ()
                    ),
                    *_beside(i, extents, across, "loop"),
                ]
            )
        )
        for i in ranges
    )


def _across(spec: Spec, roles: Roles, extents: Mapping[str, int]) -> Mapping[str, tuple[int, ...]]:
    """More sizes where one index is reduced that lies apart in memory in all that is read, and one
    that is stored lies contiguous: of both."""
    places = [r.at for e in spec.equations for r in e.reads() if len(r.at) > 1]
    ends = {at[-1].name for at in places if isinstance(at[-1], Index)}
    plain = {p.name for at in places for p in at if isinstance(p, Index)}
    apart = roles.taps | roles.jagged | roles.multiplied | roles.stepped
    reduced = [i for i in roles.reduced if i in plain and i not in apart]
    rows = [i for i in ends if i in roles.stored and i not in roles.reduced | apart]
    if len(reduced) != 1 or len(rows) != 1 or reduced[0] in ends:
        return {}
    fits = power_of_two(max(1, extents[reduced[0]])) * LONG_COLUMNS[0] <= HELD
    long = fits and extents[rows[0]] >= LONG
    return {reduced[0]: ACROSS, rows[0]: LONG_COLUMNS if long else COLUMNS}


def _unaligned(spec: Spec, extents: Mapping[str, int]) -> frozenset[str]:
    """The indices of long rows, of several, that begin anywhere in a vector."""
    places = [r.at for e in spec.equations for r in e.reads() if len(r.at) > 1]
    ends = {at[-1].name for at in places if isinstance(at[-1], Index)}
    return frozenset(i for i in ends if extents[i] >= UNALIGNED[0] and extents[i] % VECTOR)


def _beside(
    index: str, extents: Mapping[str, int], across: Mapping[str, tuple[int, ...]], level: str
) -> list[Tiles]:
    """Cuts of an index into some of these sizes: of rows that are contiguous, which come before
    others, as more of a row lies contiguous, or of what is reduced in a loop."""
    if level != ("loop" if across.get(index) == ACROSS else "grid"):
        return []
    return [tiled(index, s, level) for s in across.get(index, ()) if s < extents[index]]


def _several(spec: Spec, roles: Roles, extents: Mapping[str, int]) -> tuple[str, ...]:
    """The reduced indices, the one that changes fastest in memory last, where a program cannot
    hold all that they run over; none where it can."""
    apart = roles.jagged | roles.taps | roles.multiplied | roles.batch
    found = [i for i in extents if i in roles.reduced and i not in apart]
    if len(found) < 2 or prod(power_of_two(extents[i]) for i in found) <= HELD:
        return ()
    ends = [r.at[-1] for e in spec.equations for r in e.reads() if r.at]
    fastest = next((p.name for p in ends if isinstance(p, Index) and p.name in found), found[-1])
    return (*(i for i in found if i != fastest), fastest)


def _reduced(
    index: str,
    roles: Roles,
    extents: Mapping[str, int],
    several: tuple[str, ...],
    inner: tuple[int, ...],
) -> list[Tiles]:
    """Cuts of one of several reduced indices; where it is stored too, its tiles are contiguous
    in launches that do not reduce it. inner: sizes of the last of them."""
    extent, level = extents[index], "grid" if index in roles.stored else "loop"
    if index == several[-1]:
        made: list[Tiles] = [tiled(index, size, level) for size in inner if size < extent]
        return [(), *made] if extent <= inner[0] or not made else made
    within = several[several.index(index) + 1 :]
    room = HELD // min(HELD, prod(min(INNER[0], power_of_two(extents[i])) for i in within))
    most = min(room, power_of_two(extent) - 1)
    rows = (size for size in dict.fromkeys((*FEW_ROWS, room)) if size == 1 or size <= most)
    return [tiled(index, size, level) for size in rows]


def _split(
    index: str, roles: Roles, extents: Mapping[str, int], several: tuple[str, ...]
) -> list[Tiles]:
    """Cuts of an index whose reduction is split; extents: of a part."""
    wide = power_of_two(extents[index])
    sizes: tuple[int, ...] = (*REDUCED, *INNER)
    if index in several[:-1]:
        sizes = FEW
    elif index in roles.multiplied:
        sizes = SUMMED
    elif not several and extents[index] >= LONG_PART[0]:
        sizes = LONG_PART[1]
    level = "grid" if index in roles.stored else "loop"
    return [tiled(index, size, level) for size in sizes if size <= wide] or [
        tiled(index, wide, level)
    ]


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
    index: str,
    roles: Roles,
    extents: Mapping[str, int],
    scattered: Mapping[str, tuple[int, ...]],
    unaligned: Collection[str],
    scanned: Collection[str],
) -> list[Tiles]:
    extent = extents[index]
    if index in roles.jagged:
        return [tiled(index, size, "loop") for size in SEGMENTS]
    if index in roles.bounding or index in roles.batch:
        return [tiled(index, 1, "grid")]
    if index in roles.stepped and index not in roles.multiplied | roles.reduced:
        return [tiled(index, 1, "grid")]
    if index in roles.taps:
        return [tiled(index, 1, "loop")]
    if index in roles.stored and index not in roles.reduced:
        return _on_grid(index, roles, extents)
    if index in roles.stored and extent <= LONGEST_SIDE:
        return [()]
    if index in roles.multiplied - roles.summed and index not in roles.stored:
        # Results of a product, which its epilogue reduces: in the tiles that they have else.
        inner = _innermost(index, roles, extents)
        few = () if index == inner else FEW_ROWS
        return _looped(index, extent, (*few, *REDUCED_SIDES), LONGEST_SIDE)
    if index in roles.multiplied and extent <= SHORT:
        return _looped(index, extent, (*SUMMED[:2], *_finer(extent)), LONGEST_SIDE)
    if index in roles.multiplied:
        return _looped(index, extent, SUMMED, LONGEST_SIDE)
    if index in scattered and index not in roles.reduced:
        return _cut(index, extent, scattered[index], 0)
    sizes = SCANNED if index in scanned else REDUCED
    if index in unaligned:
        padded = {size: -extent % size for size in UNALIGNED[1]}
        sizes = (next(s for s in UNALIGNED[1] if padded[s] <= padded[UNALIGNED[1][-1]]),)
    if index in _longest(roles, extents):
        sizes = LONGEST[1]
    return _looped(index, extent, sizes, LONGEST_ROW)


def _longest(roles: Roles, extents: Mapping[str, int]) -> frozenset[str]:
    """The reduced indices of many rows so long that a tile of one of them keeps a program busy."""
    long = [i for i in roles.reduced if extents[i] >= LONGEST[0]]
    rows = {i: prod(extents[s] for s in roles.stored if s != i) for i in long}
    return frozenset(i for i in long if rows[i] >= MANY)


def _on_grid(index: str, roles: Roles, extents: Mapping[str, int]) -> list[Tiles]:
    """Cuts of an index that is stored and never reduced: its tiles can are contiguous."""
    extent = extents[index]
    if index in roles.multiplied:
        inner = _innermost(index, roles, extents)
        if index != inner:
            if extent < SMALL_SIDE and _after(index, inner, roles):
                whole: list[Tiles] = [()] if _rank(index, roles) == _rank(inner, roles) + 1 else []
                return [*whole, tiled(index, 1, "grid")]
            if index in roles.stepped:
                return [tiled(index, s, "grid") for s in STEPS if s <= extent]
            few = (1, 2, 4) if extents[inner] < 2 * SIDES[0] and _next(index, roles) else (1,)
            return [tiled(index, size, "grid") for size in few if size <= extent]
        if _short_next(index, roles, extents):
            # Many of a batch at one pixel fill a side, too. On an H200 two convolutions of 13 x 13 pixels took 1.44 and 2.21 ms
            # so, and 1.80 and 2.90 ms with tiles of pixels.
            return _cut(index, extent, (*FEW_BESIDE, *SIDES[:3]), 0)
        # A step of a recurrence is short, so that many small tiles share it.
        small = extent <= SIDES[0] or roles.stepped
        sides = (SMALL_SIDE, *SIDES) if small else SIDES
        return _cut(index, extent, sides if extent < LONG else SIDES[1:], SIDES[-1])
    if (beside := _of_phases(index, roles, extents)) is not None:
        return beside
    if index in roles.fastest:
        return _cut(index, extent, INNERMOST, max(INNERMOST))
    if _longest(roles, extents):
        return [tiled(index, 1, "grid")]
    if roles.reduced - roles.taps and not roles.jagged:
        return _cut(index, extent, ROWS, SMALL_SIDE if roles.stepped else 0)
    if index == roles.stored[-1]:
        return _cut(index, extent, INNERMOST, max(INNERMOST))
    if len(roles.stored) > 1 and index == roles.stored[-2]:
        # Short rows, as pixels of a few channels: many are contiguous.
        room = ACROSS[0] // power_of_two(extents[roles.stored[-1]])
        more = (size for size in SIDES if size <= room)
        return _cut(index, extent, (*ROWS, *more), 0)
    return [tiled(index, 1, "grid")]


def _of_phases(index: str, roles: Roles, extents: Mapping[str, int]) -> list[Tiles] | None:
    """Cuts where the last dimension of what is stored is a few phases: all of these, as they are contiguous, of periods as
    many as of other rows, and a few such rows. None where it takes none."""
    places = [i for i in roles.stored if extents[i] > FEW_PHASES]
    if not places or roles.stored[-1] in places or extents[roles.stored[-1]] < 2:
        return None
    if index not in places:
        return [()] if index == roles.stored[-1] else [tiled(index, 1, "grid")]
    if index == places[-1]:
        return _cut(index, extents[index], PERIODS, max(PERIODS))
    return (
        _cut(index, extents[index], ROWS, 0) if index == places[-2] else [tiled(index, 1, "grid")]
    )


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


def _finer(extent: int) -> tuple[int, ...]:
    """A smaller tile of what a product sums, where less of the last one is outside then."""
    outside = [-extent % size for size in (SMALL_SIDE, SUMMED[1])]
    return (SMALL_SIDE,) if SUMMED[1] < extent and outside[0] < outside[1] else ()


def _innermost(index: str, roles: Roles, extents: Mapping[str, int]) -> str:
    """Of the side of a product that an index is of, the one that changes fastest in memory; of
    those that fill a side of the matrix unit, where any does, else of the longest."""
    for rows, columns in roles.sides:
        for side in (rows, columns):
            if index in side:
                filling = [i for i in side if extents[i] >= SMALL_SIDE]
                longest = max(extents[i] for i in side)
                filling = filling or [i for i in side if 2 * extents[i] >= longest]
                if filling[-1] not in roles.stored:
                    return filling[-1]  # rows that an epilogue reduces
                return max(filling, key=lambda i: _rank(i, roles))
    return index


def _short_next(index: str, roles: Roles, extents: Mapping[str, int]) -> bool:
    """Whether the next faster index is of the same side and too short to fill it."""
    after = roles.stored[_rank(index, roles) + 1 :][:1]
    sides = [s for pair in roles.sides for s in pair if index in s]
    return any(i in side and extents[i] < SMALL_SIDE for i in after for side in sides)


def _after(index: str, other: str, roles: Roles) -> bool:
    """Whether an index changes faster in memory than another one."""
    return _rank(index, roles) > _rank(other, roles)


def _rank(index: str, roles: Roles) -> int:
    return roles.stored.index(index) if index in roles.stored else -1


def _next(index: str, roles: Roles) -> bool:
    """Whether an index changes fastest but for one."""
    return len(roles.stored) > 1 and index == roles.stored[-2]
