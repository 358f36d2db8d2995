"""Blocks: the width of each index of a launch in tensors, and the masks that it needs.

Widths are powers of two. Those of matmul operands are at least what the language's rules require. A
tile of one element has no axis: its index is a scalar.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from backends.gpu.rules import Rules
from backends.gpu.tile import BlockWidth, Even, Name
from backends.gpu.values import ZERO, moves, settled
from ir.nest.nest import Dot, Launch, Loop, Slice, Value
from ir.nest.steps import tile_axes
from ir.sizes import power_of_two
from ir.spec import EIGHT, Apply, Expr, Number


@dataclass(frozen=True, slots=True)
class IndexBlock:
    """The block of one index."""

    index: str
    width: int  # elements of its axis; 0 where only the launch knows
    tile: int  # elements of its tile; 0: all
    size: Expr  # of the index
    least: int  # the narrowest width
    checks: bool  # whether positions may be out of bounds
    flag: bool  # whether a launch constant tells that no position is out of bounds

    @property
    def scalar(self) -> bool:
        """Whether the index has no axis."""
        return self.width == 1

    @property
    def zero(self) -> bool:
        """Whether the index is always 0, as it has one element."""
        return self.scalar and not self.tile

    @property
    def wide(self) -> Expr:
        """The width in the kernel."""
        return Number(self.width) if self.width else Name("width", self.index)

    @property
    def launched(self) -> Expr:
        """The width in the launcher."""
        return Number(self.width) if self.width else BlockWidth(self.size, self.least)


class Blocks:
    """The blocks of a launch, by index."""

    def __init__(self, launch: Launch, rules: Rules):
        self.launch = launch
        self.rules = rules
        self.values: dict[str, Value] = {v.name: v for v in launch.values}
        least = self._least()
        sizes = _sizes(launch)
        tiles = dict(launch.tiles)
        self.blocks: dict[str, IndexBlock] = {}
        for index in (*tiles, *dict(launch.whole)):
            tile, size = tiles.get(index, 0), sizes[index]
            known = tile or (_number(size) if isinstance(size, Number) else 0)
            width = max(least.get(index, 1), power_of_two(known)) if known else 0
            self.blocks[index] = IndexBlock(
                index,
                width,
                tile,
                size,
                least.get(index, 1),
                checks=self._checks(index, width, tile, size),
                flag=self._flag(index, width, tile, size),
            )

    def __getitem__(self, index: str) -> IndexBlock:
        return self.blocks[index]

    def axes(self, indices: tuple[str, ...]) -> tuple[str, ...]:
        """The indices that have an axis."""
        return tuple(i for i in indices if not self.blocks[i].scalar)

    def shape(self, axes: tuple[str, ...]) -> tuple[Expr, ...]:
        """The shape of a tensor over these axes."""
        return tuple(self.blocks[a].wide for a in axes)

    def covers(self, one: Slice, size: Expr) -> bool:
        """Whether a tile has all elements along a dimension of a tensor, and no others."""
        if not is_one_index(one):
            return False
        block = self.blocks[one.terms[0][0]]
        return not (block.scalar or block.tile or block.checks) and block.wide == size

    def constants(self) -> Iterator[tuple[Name, Expr]]:
        """The constants that a launch passes, each with the expression that the launcher computes."""
        for b in self.blocks.values():
            if not b.width:
                yield Name("width", b.index), b.launched
            if b.flag:
                yield Name("even", b.index), Even(b.size, b.launched)

    def _checks(self, index: str, width: int, tile: int, size: Expr) -> bool:
        """Whether positions of an index's tile may be outside of the tile or of the index."""
        if tile == 1 and width == 1:
            return False
        known = size.value if isinstance(size, Number) else 0
        return not (known and width and known % width == 0 and tile in (0, width))

    def _flag(self, index: str, width: int, tile: int, size: Expr) -> bool:
        """Whether the launcher can determine that no position is out of bounds."""
        if not self._checks(index, width, tile, size) or isinstance(size, Number):
            return False
        if tile and tile != width:
            return False
        return all(_plain(loop) for loop in _loops(self.launch, index))

    def _least(self) -> dict[str, int]:
        """The least width of each index that matmul operands require."""
        least: dict[str, int] = {}
        tiles = dict(self.launch.tiles)
        sizes = dict(self.launch.whole)
        for dot in (s for s in self.launch.statements() if isinstance(s, Dot)):
            for number, side in enumerate(sides(dot, self.values)):
                short = number == 2 and self.values[dot.a.value].dtype in EIGHT
                needed = self.rules.least_depth if short else self.rules.least_side
                if (
                    number == 2 and dot.scales
                ):  # of the last index, elements of a block, none is added
                    needed = self.rules.scaled_depth // _known(side[-1], tiles, sizes)
                    side = side[:-1]
                widths = {i: _known(i, tiles, sizes) for i in side}
                known = prod(widths.values())
                if known < needed and side:
                    widest = _widest(side, tiles, sizes)
                    need = needed // (known // widths[widest])
                    least[widest] = max(least.get(widest, 1), need)
        return least


def is_one_index(one: Slice) -> bool:
    """Whether positions along a dimension are those of one index."""
    alone = len(one.terms) == 1 and one.terms[0][1] == one.step == 1
    return alone and one.offset == ZERO and one.rows is None


def sides(dot: Dot, values: dict[str, Value]) -> tuple[tuple[str, ...], ...]:
    """The M, N and K indices of a matmul."""
    a, b = tile_axes(dot.a, values), tile_axes(dot.b, values)
    out = values[dot.value].names
    rows = tuple(i for i in out if i in a and i not in b)
    columns = tuple(i for i in out if i in b and i not in a)
    return rows, columns, tuple(i for i in a if i in dot.over)


def _known(index: str, tiles: dict[str, int], sizes: dict[str, Expr]) -> int:
    """The natural width of an index; 1 where only the launch knows it."""
    size = sizes.get(index)
    return power_of_two(tiles.get(index) or (_number(size) if isinstance(size, Number) else 1))


def _widest(side: tuple[str, ...], tiles: dict[str, int], sizes: dict[str, Expr]) -> str:
    """The index to widen along M, N or K: an untiled one of unknown size, else the one with the largest tile."""
    for i in side:
        if i not in tiles and not isinstance(sizes[i], Number):
            return i
    return max(side, key=lambda i: tiles.get(i) or _number(sizes[i]))


def _number(size: Expr) -> int:
    """The value of a constant size."""
    assert isinstance(size, Number) and isinstance(size.value, int)
    return size.value


def _sizes(launch: Launch) -> dict[str, Expr]:
    """The size of every index; 0 for jagged ones, whose size is in the data."""
    found = dict(launch.whole) | {g.index: g.size for g in launch.grid}
    if launch.repeat:
        found[launch.repeat.index] = launch.repeat.size
    for index, _ in launch.tiles:
        for loop in _loops(launch, index):
            found.setdefault(index, _end(loop))
    return found


def _loops(launch: Launch, index: str) -> list[Loop]:
    return [s for s in launch.statements() if isinstance(s, Loop) and s.index == index]


def _end(loop: Loop) -> Expr:
    return settled(loop.high.size) if loop.high.size is not None else Number(0)


def _plain(loop: Loop) -> bool:
    """Whether a loop runs over whole tiles up to a size."""
    if loop.low.size is None or loop.high.size is None:
        return False
    return _multiple(loop.low.size, loop.tile) and not moves(_end(loop))


def _multiple(expr: Expr, of: int) -> bool:
    """Whether a size is certainly a multiple of a number."""
    if isinstance(expr, Number):
        return expr.value % of == 0
    if not isinstance(expr, Apply) or expr.function != "mul":
        return False
    return any(_multiple(a, of) for a in expr.args)
