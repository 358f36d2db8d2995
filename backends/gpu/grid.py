"""Grid mapping: the tile of a thread block, and the number of tiles."""

from __future__ import annotations

from backends.gpu.tile import CLUSTER, Assign, FromEnd, Name, Outer, Statement, Tiles
from backends.gpu.values import product, scaled, settled, times
from ir.nest.nest import GridAxis, Launch, Loop
from ir.spec import Apply, Expr, Index, Number

TILE = Name("tile")
Cluster = tuple[Name, int, Expr]  # of a launch of `backends/gpu/tile.py`


def grid_statements(launch: Launch) -> tuple[Statement, ...]:
    """The statements that compute the origins of the grid's indices from the tile number, the last
    index fastest. With an L2 swizzle (GROUP_M), groups of tiles of one index run along all tiles of
    another. Tiles of a cluster are consecutive; along its index, clusters are counted."""
    axes, last, cluster = _ordered(launch), _longest_last(launch), cluster_of(launch)
    number: Expr = Outer(TILE, cluster[0]) if cluster else TILE
    found: list[Statement] = [_counted(g, cluster) for g in axes[1:]]
    if launch.rasterization is None:
        found[:0] = [_counted(g, cluster) for g in axes[:1] if g.index in last]
        return (*found, *_plain(axes, number, cluster, last))
    outer, (index, over) = axes[:-2], axes[-2:]
    size: Expr = Number(launch.rasterization.size)
    if cluster and cluster[0].stem == index.index:
        size = Apply("floordiv", (size, cluster[0]))
    swizzled = times(_tiles(index), _tiles(over))
    within = number
    if outer:
        within = Name("within")
        found.append(Assign(within, Apply("mod", (number, swizzled))))
        found += _plain(outer, Outer(number, swizzled), cluster)
    else:
        found[:0] = [_counted(index, cluster)]
    start, rows, place = Name("group_start"), Name("group_size"), Name("in_group")
    in_a_group = times(size, _tiles(over))
    row = Apply("add", (start, Apply("mod", (place, rows))))
    left = Apply("sub", (_tiles(index), start))
    return (
        *found,
        Assign(start, times(Apply("floordiv", (within, in_a_group)), size)),
        Assign(rows, Apply("minimum", (left, size))),
        Assign(place, Apply("mod", (within, in_a_group))),
        _origin(index, row, cluster),
        _origin(over, Apply("floordiv", (place, rows)), cluster),
    )


def cluster_of(launch: Launch) -> Cluster | None:
    """The constant with the cluster size, its value where the grid has whole clusters, and the
    number of tiles along its index; None: there are no clusters."""
    if launch.cluster is None:
        return None
    index = launch.cluster.index
    along = next(_count(g) for g in launch.grid if g.index == index)
    return Name(CLUSTER, index), launch.cluster.size, along


def tile_counts(launch: Launch) -> tuple[Expr, ...]:
    """The number of tiles of a grid along each axis, for the launcher."""
    return tuple(_count(g) for g in _ordered(launch))


def _ordered(launch: Launch) -> tuple[GridAxis, ...]:
    """The axes, those of an L2 swizzle last."""
    if launch.rasterization is None:
        return launch.grid
    axes = {g.index: g for g in launch.grid}
    last = (launch.rasterization.index, launch.rasterization.over)
    return (*(g for g in launch.grid if g.index not in last), *(axes[i] for i in last))


def _longest_last(launch: Launch) -> frozenset[str]:
    """The indices whose later tiles have longer loops. They are processed in reverse, so that the
    longest thread blocks start first."""
    highs = (s.high.size for s in launch.statements() if isinstance(s, Loop))
    moving = (h for h in highs if h is not None and settled(h) is not h)
    cut = {n.name for h in moving for n in h.walk() if isinstance(n, Index)}
    lows = (s.low.size for s in launch.statements() if isinstance(s, Loop))
    fixed = {n.name for low in lows if low is not None for n in low.walk() if isinstance(n, Index)}
    return frozenset(cut - fixed)


def _plain(
    axes: tuple[GridAxis, ...],
    number: Expr,
    cluster: Cluster | None,
    last: frozenset[str] = frozenset(),
) -> list[Statement]:
    found: list[Statement] = []
    for place, g in enumerate(axes):
        inner: list[Expr] = [_tiles(x) for x in axes[place + 1 :]]
        at = Apply("floordiv", (number, product(inner))) if inner else number
        if place:
            at = Apply("mod", (at, _tiles(g)))
        if g.index in last:
            at = FromEnd(_tiles(g), at)
        found.append(_origin(g, at, cluster))
    return found


def _origin(g: GridAxis, at: Expr, cluster: Cluster | None) -> Assign:
    """The origin of an index from the number of its tile, or of its cluster."""
    if cluster and cluster[0].stem == g.index:
        at = Apply("add", (times(at, cluster[0]), Apply("mod", (TILE, cluster[0]))))
    return Assign(Name("origin", g.index), scaled(at, g.tile))


def _tiles(g: GridAxis) -> Name:
    return Name("tiles", g.index)


def _counted(g: GridAxis, cluster: Cluster | None) -> Assign:
    count = _count(g)
    if cluster and cluster[0].stem == g.index:
        count = Outer(count, cluster[0])
    return Assign(_tiles(g), count)


def _count(g: GridAxis) -> Expr:
    return g.size if g.tile == 1 else Tiles(g.size, g.tile)
