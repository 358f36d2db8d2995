"""Stream-K: each thread block computes an equal share of all iterations of a loop over all tiles.

    block = number of blocks that began before;  begin, end = its share
    for tile from that of end - 1 down to that of begin:
        for k in the tile's iterations in begin..end:  acc += x @ w
        if they end the tile:    for each earlier block of it: acquire, acc += its part;  store
        else:                    store acc for a later block, publish

A block only waits for blocks with lower numbers. They have begun, as numbers are assigned in the
order in which blocks start. Each of them first computes the partial tile that others await, before
it waits itself. So there is progress, however many blocks run concurrently and in whatever order
they start. The shares follow from the numbers, and each tile adds its parts in their order, so the
result is deterministic.
"""

from __future__ import annotations

from dataclasses import replace

from backends.gpu.flags import Acquire, Publish
from backends.gpu.shapes import spread
from backends.gpu.tile import (
    Assign,
    Compute,
    Guard,
    Joined,
    Launch,
    Load,
    Loop,
    Name,
    Place,
    Shares,
    Statement,
    Store,
    Term,
    Tiles,
)
from backends.gpu.values import ZERO, product, scaled, times
from ir.nest import nest as of
from ir.nest.nest import Epilogue
from ir.spec import Apply, Expr, Number

TILE, BLOCK, SHARE = Name("tile"), Name("block"), Name("share")
BEGIN, END = Name("begin"), Name("end")  # of a block's share
FIRST = Name("tile_begin")  # the first iteration of the tile
AHEAD = Name("peer")  # a block with earlier iterations of the tile


def shared_out(launch: Launch, source: of.Launch) -> Launch:
    """A persistent launch whose blocks have equal shares of a loop's iterations."""
    shares = source.stream_k
    assert shares is not None, "asked before"
    ((place, loop),) = ((n, s) for n, s in enumerate(launch.body) if isinstance(s, Loop))
    each = Tiles(loop.high, loop.tile)
    iterations = Name("iterations", shares.index)
    last = Apply("minimum", (_minus(END, FIRST), iterations))
    skipped = Apply("maximum", (_minus(BEGIN, FIRST), ZERO))
    low, high = Name("low", shares.index), Name("high", shares.index)
    own = (
        Assign(FIRST, times(TILE, iterations)),
        Assign(low, scaled(skipped, loop.tile)),
        Assign(high, scaled(last, loop.tile)),
    )
    total = (*launch.tiles, each)
    ends = Compute("ge", (_minus(END, FIRST), iterations))
    walked = replace(loop, low=low, high=high, certain=True)
    handed = _Handed(launch, source, shares)
    rest = (*handed.taken(), *launch.body[place + 1 :])
    return replace(
        launch,
        grid=(*launch.grid, *own),
        body=(*launch.body[:place], walked, Guard(ends, rest, handed.on())),
        shares=Shares(
            iterations=total,
            counter=Place(Name("pointer", shares.flags), (Term(Number(launch.resident)),)),
            before=(
                Assign(iterations, each),
                Assign(SHARE, Tiles(product(list(total)), launch.resident)),
                Assign(BEGIN, times(BLOCK, SHARE)),
                Assign(END, Apply("minimum", (_plus(BEGIN, SHARE), product(list(total))))),
            ),
            first=Apply("floordiv", (BEGIN, iterations)),
            last=Apply("floordiv", (_minus(END, Number(1)), iterations)),
        ),
    )


class _Handed:
    """The partial sums that blocks exchange."""

    def __init__(self, launch: Launch, source: of.Launch, shares: of.StreamK):
        self.shares = shares
        self.sum = next(v for v in launch.variables if v.name == Name("value", shares.value))
        tiles, widths = dict(source.tiles), dict(launch.widths)
        assert all(widths[i] == Number(tiles[i]) for i in self.sum.axes), "else rows would overlap"
        self.extents = [tiles[i] for i in self.sum.axes]

    def on(self) -> tuple[Statement, ...]:
        """Stores a block's partial sum, for the block that ends the tile."""
        by = Epilogue("registers")  # the next block loads the same layout, so nothing is rearranged
        return (Store(self._part(BLOCK), self.sum.name, epilogue=by), Publish(self._flag(BLOCK)))

    def taken(self) -> tuple[Statement, ...]:
        """Adds the partial sums of earlier blocks, in order."""
        part = Name("value", self.shares.partials)
        body = (
            Acquire(self._flag(AHEAD)),
            Load(part, self._part(AHEAD), Number(0.0)),
            Assign(self.sum.name, Joined("sum", self.sum.name, part, False)),
        )
        return (Loop(AHEAD, Apply("floordiv", (FIRST, SHARE)), BLOCK, 1, body),)

    def _flag(self, block: Expr) -> Place:
        return Place(Name("pointer", self.shares.flags), (Term(block),))

    def _part(self, block: Expr) -> Place:
        """The elements of a block's partial sum: its axes without the origins of the tile."""
        axes, sizes = self.sum.axes, [Number(e) for e in self.extents]
        terms, origin = [], []
        for n, index in enumerate(axes):
            inner = tuple(sizes[n + 1 :])
            terms.append(Term(spread(Name("positions", index), (index,), axes), inner))
            origin.append(product([Name("origin", index), *inner]))
        begins: Expr = product([block, *sizes])
        for at in origin:
            begins = _minus(begins, at)
        return Place(Name("pointer", self.shares.partials), (Term(begins), *terms))


def _minus(a: Expr, b: Expr) -> Expr:
    return Apply("sub", (a, b))


def _plus(a: Expr, b: Expr) -> Expr:
    return Apply("add", (a, b))
