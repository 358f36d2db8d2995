"""The grid: which tile a thread block works on, and how many there are."""

from __future__ import annotations

from backends.gpu.tile import Assign, FromEnd, Name, Outer, Statement, Tiles
from backends.gpu.values import product, scaled, settled, times
from ir.nest.nest import GridAxis, Launch, Loop
from ir.spec import Apply, Expr, Index, Number

TILE = Name("tile")


def grid_statements(launch: Launch) -> tuple[Statement, ...]:
    """What turns the number of a tile into the origins of the grid's indices, the last of which
    changes fastest. With an L2 swizzle (GROUP_M), groups of tiles of one index run along all of
    another."""
    axes = _ordered(launch)
    last = _longest_last(launch)
    found: list[Statement] = [_counted(g) for g in axes[1:]]
    if launch.rasterization is None:
        found[:0] = [_counted(g) for g in axes[:1] if g.index in last]
        return (*found, *_plain(axes, TILE, last))
    outer, (index, over) = axes[:-2], axes[-2:]
    size = Number(launch.rasterization.size)
    swizzled = times(_tiles(index), _tiles(over))
    within = TILE
    if outer:
        within = Name("within")
        found.append(Assign(within, Apply("mod", (TILE, swizzled))))
        found += _plain(outer, Outer(TILE, swizzled))
    else:
        found[:0] = [_counted(index)]
    start, rows, place = Name("group_start"), Name("group_size"), Name("in_group")
    in_a_group = times(size, _tiles(over))
    row = Apply("add", (start, Apply("mod", (place, rows))))
    left = Apply("sub", (_tiles(index), start))
    return (
        *found,
        Assign(start, times(Apply("floordiv", (within, in_a_group)), size)),
        Assign(rows, Apply("minimum", (left, size))),
        Assign(place, Apply("mod", (within, in_a_group))),
        Assign(Name("origin", index.index), scaled(row, index.tile)),
        Assign(Name("origin", over.index), scaled(Apply("floordiv", (place, rows)), over.tile)),
    )


def tile_counts(launch: Launch) -> tuple[Expr, ...]:
    """How many tiles a grid has along each axis, for the launcher."""
    return tuple(_count(g) for g in _ordered(launch))


def _ordered(launch: Launch) -> tuple[GridAxis, ...]:
    """The axes, those of an L2 swizzle last."""
    if launch.rasterization is None:
        return launch.grid
    axes = {g.index: g for g in launch.grid}
    last = (launch.rasterization.index, launch.rasterization.over)
    return (*(g for g in launch.grid if g.index not in last), *(axes[i] for i in last))


def _longest_last(launch: Launch) -> frozenset[str]:
    """The indices whose later tiles have longer loops; they are walked from their end, so that
    the longest thread blocks begin first."""
    highs = (s.high.size for s in launch.statements() if isinstance(s, Loop))
    moving = (h for h in highs if h is not None and settled(h) is not h)
    cut = {n.name for h in moving for n in h.walk() if isinstance(n, Index)}
    lows = (s.low.size for s in launch.statements() if isinstance(s, Loop))
    fixed = {n.name for low in lows if low is not None for n in low.walk() if isinstance(n, Index)}
    return frozenset(cut - fixed)


def _plain(
    axes: tuple[GridAxis, ...], number: Expr, last: frozenset[str] = frozenset()
) -> list[Statement]:
    found: list[Statement] = []
    for place, g in enumerate(axes):
        inner = [_tiles(x) for x in axes[place + 1 :]]
        at = Apply("floordiv", (number, product(inner))) if inner else number
        if place:
            at = Apply("mod", (at, _tiles(g)))
        if g.index in last:
            at = FromEnd(_tiles(g), at)
        found.append(Assign(Name("origin", g.index), scaled(at, g.tile)))
    return found


def _tiles(g: GridAxis) -> Name:
    return Name("tiles", g.index)


def _counted(g: GridAxis) -> Assign:
    return Assign(_tiles(g), _count(g))


def _count(g: GridAxis) -> Expr:
    return g.size if g.tile == 1 else Tiles(g.size, g.tile)
