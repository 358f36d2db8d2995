"""Tile choices: the tile sizes worth trying for each index of a spec, where blocks have threads."""

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

SIDES = (32, 64, 128, 256)  # M and N of a matmul
SMALL_SIDE = 16
REDUCED_SIDES = (128, 64, 32)  # of M or N that an epilogue reduces, per iteration
FEW_BESIDE = (2, 4, 8, 16)  # of an index whose next faster index is short and whole
SUMMED = (64, 32, 128)  # K of a matmul, per iteration
WIDE_SUMMED = 32  # the same for several f32 matmuls in one launch, as recurrences have
SEGMENTS = (16, 32, 64)  # of a jagged range, per iteration
ROWS = (1, 2, 4, 8, 16)  # per block, where each row is reduced
# The same for a part of a split sum: a hinge loss took 984 us on an H200 with 8 and 512 threads,
# and 940 us with 4
FEW = ROWS[:3]
# Most contiguous phases of a stored tensor, and periods of a tile
FEW_PHASES, PERIODS = 4, (128, 64, 32, 16)
FEW_ROWS = (1, 4, 16)  # of the outer ones of several reduced indices
COLUMNS = (32, 64, 128)  # of rows that are contiguous, where the reduced index is strided
# The same for long rows. On an H200 a norm over channels of 15 GB took 3.98 ms with 32 columns of
# f32 and 3.68 ms with these.
LONG_COLUMNS = (64, 128)
ACROSS = (256, 64, 32)  # of the strided reduced index, per iteration
REDUCED = (4096, 2048, 1024)  # of a row that is too long to be held whole
# The same for a long part of a sum. And for long unaligned rows, of which each element is a load of
# its own: the largest that does not extend the padding at the end of a row. On an H200 two norms of
# rows of 65,535 took 8.0 ms in tiles of 2048, and one of them 6.2 ms in tiles of 16384. With
# serpentine passes, tiles of 16384 and 32768 took 5.42 and 5.34 ms there, and 7.02 and 6.85 ms on
# an H100.
LONG_PART, UNALIGNED = (1 << 16, (4096,)), (1 << 15, (32768, 16384))
# The same for a scan. On an H100 rows of 32,768 took 3.00 ms in tiles of 1024, and 2.93 ms in these.
SCANNED = (4096,)
# The same for many rows so long that no cache holds those in progress. On an H200 a softmax of 4096
# rows of 393,216 took 4.76 ms in tiles of 4096, and 4.63 ms in these.
LONGEST, MANY = (1 << 18, (16384,)), 1024
VECTOR = 4  # elements of f32 of a vector access
STEPS = (1, 4, 8, 16)  # of a recurrence, in a matmul outside of it
INNERMOST = (128, 256, 64, 32, 512, 1024, 2048)  # where nothing is reduced
LONGEST_SIDE = 512  # longest M, N or K that is held whole where a matmul needs all of it
SHORT, LONG = 256, 1024  # extents below and from which fewer tiles of a matmul are tried
LONGEST_ROW = 16384  # elements that a block holds
HELD = 8192  # the same for several reduced indices
INNER = (1024, 2048, 4096, 512, 256)  # of the last of several reduced indices, per iteration

Tiles = tuple[Decision, ...]


def tile_choices(
    spec: Spec,
    roles: Roles,
    sizes: Mapping[str, int],
    parts: Mapping[str, int] = MappingProxyType({}),
    cut: Collection[str] = (),
) -> tuple[tuple[Tiles, ...], ...]:
    """The tile choices of each index, preferred ones first; `()` leaves the index whole.

    parts: split-K parts of an index. cut: indices whose tiles are already decided.
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
    """Additional sizes for both indices where one reduced index is strided in every read and one
    stored index is contiguous."""
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
    """The indices of long contiguous rows whose starts are not aligned to a vector."""
    places = [r.at for e in spec.equations for r in e.reads() if len(r.at) > 1]
    ends = {at[-1].name for at in places if isinstance(at[-1], Index)}
    return frozenset(i for i in ends if extents[i] >= UNALIGNED[0] and extents[i] % VECTOR)


def _beside(
    index: str, extents: Mapping[str, int], across: Mapping[str, tuple[int, ...]], level: str
) -> list[Tiles]:
    """The additional sizes of an index at one level. On the grid: sizes of contiguous rows, which
    come first because they make accesses longer. In a loop: sizes of the strided reduced index."""
    if level != ("loop" if across.get(index) == ACROSS else "grid"):
        return []
    return [tiled(index, s, level) for s in across.get(index, ()) if s < extents[index]]


def _several(spec: Spec, roles: Roles, extents: Mapping[str, int]) -> tuple[str, ...]:
    """The reduced indices, the fastest in memory last, where a block cannot hold their whole range;
    empty where it can."""
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
    """Tile choices of one of several reduced indices. An index that is also stored is tiled on the
    grid. inner: sizes of the last of them."""
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
    """Tile choices of an index whose reduction is split. extents: of a part."""
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
    """Tile sizes of the indices of scatters. The contiguous index gets long tiles; so does the last
    index that distinguishes updates, where no contiguous one does."""
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
        # Results of a matmul that its epilogue reduces: the usual tiles.
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
    """The reduced indices of many rows that are so long that one tile keeps a block busy."""
    long = [i for i in roles.reduced if extents[i] >= LONGEST[0]]
    rows = {i: prod(extents[s] for s in roles.stored if s != i) for i in long}
    return frozenset(i for i in long if rows[i] >= MANY)


def _on_grid(index: str, roles: Roles, extents: Mapping[str, int]) -> list[Tiles]:
    """Tile choices of an index that is stored and never reduced: its tiles are on the grid."""
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
            # Many images of a batch at one pixel also fill M or N. On an H200 two convolutions of
            # 13 x 13 pixels took 1.44 and 2.21 ms so, and 1.80 and 2.90 ms with tiles of pixels.
            return _cut(index, extent, (*FEW_BESIDE, *SIDES[:3]), 0)
        # A step of a recurrence is short, so many small tiles share it.
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
        # Short rows, such as pixels of a few channels: several rows are contiguous.
        room = ACROSS[0] // power_of_two(extents[roles.stored[-1]])
        more = (size for size in SIDES if size <= room)
        return _cut(index, extent, (*ROWS, *more), 0)
    return [tiled(index, 1, "grid")]


def _of_phases(index: str, roles: Roles, extents: Mapping[str, int]) -> list[Tiles] | None:
    """Tile choices where the last stored dimension is a few contiguous phases: all phases, many
    periods, and a few rows. None where the last dimension is something else."""
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
    """Grid tiles of these sizes that are smaller than the index, and the whole index where it is short."""
    made: list[Tiles] = [tiled(index, s, "grid") for s in sizes if s < power_of_two(extent)]
    return [(), *made] if extent <= longest or not made else made


def _looped(index: str, extent: int, sizes: tuple[int, ...], longest: int) -> list[Tiles]:
    """The same for tiles of a loop."""
    made: list[Tiles] = [tiled(index, s, "loop") for s in sizes if s < extent]
    if extent > longest and made:
        return made
    few = longest == LONGEST_ROW or extent <= 2 * sizes[0]
    return [(), *made] if few else [*made, ()]


def _finer(extent: int) -> tuple[int, ...]:
    """A smaller K tile, where it leaves less of the last tile out of bounds."""
    outside = [-extent % size for size in (SMALL_SIDE, SUMMED[1])]
    return (SMALL_SIDE,) if SUMMED[1] < extent and outside[0] < outside[1] else ()


def _innermost(index: str, roles: Roles, extents: Mapping[str, int]) -> str:
    """The fastest index in memory of the same matmul dimension, among indices that fill the matrix
    unit, if any, else among the longest."""
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
    """Whether the next faster index belongs to the same matmul dimension and is too short to fill it."""
    after = roles.stored[_rank(index, roles) + 1 :][:1]
    sides = [s for pair in roles.sides for s in pair if index in s]
    return any(i in side and extents[i] < SMALL_SIDE for i in after for side in sides)


def _after(index: str, other: str, roles: Roles) -> bool:
    """Whether an index is faster in memory than another one."""
    return _rank(index, roles) > _rank(other, roles)


def _rank(index: str, roles: Roles) -> int:
    return roles.stored.index(index) if index in roles.stored else -1


def _next(index: str, roles: Roles) -> bool:
    """Whether an index is the second fastest one in memory."""
    return len(roles.stored) > 1 and index == roles.stored[-2]
