"""Blocks: how wide each index of a launch is in Triton's tensors, and what masks it needs.

Triton's tensors are powers of two along each axis, and operands of a product at least 16 along
each side, and 32 along the summed one where they have 8 bits; a tile of one element has no axis
at all: its index is a scalar.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from backends.triton.emit import spelling
from ir.nest.nest import Dot, Launch, Loop, Value
from ir.nest.steps import tile_axes
from ir.sizes import power_of_two
from ir.spec import EIGHT, Apply, Expr, Number

LEAST_DOT = 16
LEAST_DEPTH = 32  # along the summed side of operands of 8 bits


@dataclass(frozen=True, slots=True)
class Block:
    """One index. width: elements of its axis, 0 where only the launch knows.  tile: elements of
    its tile, 0: all.  size: of the index.  end: what positions are compared with.  least: the
    narrowest width.  checks: whether positions can lie outside.  flag: whether a constant tells
    that none does."""

    index: str
    width: int
    tile: int
    size: Expr
    least: int
    checks: bool
    flag: bool

    @property
    def scalar(self) -> bool:
        """Whether the index has no axis."""
        return self.width == 1

    @property
    def zero(self) -> bool:
        """Whether the index is 0 throughout: all of it is one element."""
        return self.scalar and not self.tile

    @property
    def text(self) -> str:
        """The width as written in the kernel."""
        return str(self.width) if self.width else spelling.block(self.index)


class Blocks:
    """The blocks of a launch, by index."""

    def __init__(self, launch: Launch):
        self.launch = launch
        self.values: dict[str, Value] = {v.name: v for v in launch.values}
        least = self._least()
        sizes = _sizes(launch)
        tiles = dict(launch.tiles)
        self.blocks: dict[str, Block] = {}
        for index in (*tiles, *dict(launch.whole)):
            tile, size = tiles.get(index, 0), sizes[index]
            known = tile or (size.value if isinstance(size, Number) else 0)
            width = max(least.get(index, 1), power_of_two(known)) if known else 0
            self.blocks[index] = Block(
                index,
                width,
                tile,
                size,
                least.get(index, 1),
                checks=self._checks(index, width, tile, size),
                flag=self._flag(index, width, tile, size),
            )

    def __getitem__(self, index: str) -> Block:
        return self.blocks[index]

    def axes(self, indices: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the indices that have an axis."""
        return tuple(i for i in indices if not self.blocks[i].scalar)

    def shape(self, axes: tuple[str, ...]) -> str:
        """The shape of a tensor over axes, as written in the kernel."""
        return f"[{', '.join(self.blocks[a].text for a in axes)}]"

    def constants(self) -> Iterator[tuple[str, str]]:
        """The constants that a launch passes: (name, what the launcher computes)."""
        for b in self.blocks.values():
            size = spelling.size(b.size)
            if not b.width:
                wide = f"triton.next_power_of_2({size})"
                yield spelling.block(b.index), f"max({b.least}, {wide})" if b.least > 1 else wide
            if b.flag and b.width:
                yield spelling.even(b.index), f"{spelling.factor(b.size)} % {b.width} == 0"
            elif b.flag:
                name = f"max({b.least}, triton.next_power_of_2({size}))"
                wide = name if b.least > 1 else f"triton.next_power_of_2({size})"
                yield spelling.even(b.index), f"{size} == {wide}"

    def _checks(self, index: str, width: int, tile: int, size: Expr) -> bool:
        """Whether positions of an index's tile can lie outside the tile or the index."""
        if tile == 1 and width == 1:
            return False
        known = size.value if isinstance(size, Number) else 0
        return not (known and width and known % width == 0 and tile in (0, width))

    def _flag(self, index: str, width: int, tile: int, size: Expr) -> bool:
        """Whether the launcher can tell that no position lies outside."""
        if not self._checks(index, width, tile, size) or isinstance(size, Number):
            return False
        if tile and tile != width:
            return False
        return all(_plain(loop) for loop in _loops(self.launch, index))

    def _least(self) -> dict[str, int]:
        """The narrowest width of each index that operands of products need."""
        least: dict[str, int] = {}
        tiles = dict(self.launch.tiles)
        sizes = dict(self.launch.whole)
        for dot in (s for s in self.launch.statements() if isinstance(s, Dot)):
            for number, side in enumerate(sides(dot, self.values)):
                short = number == 2 and self.values[dot.a.value].dtype in EIGHT
                needed = LEAST_DEPTH if short else LEAST_DOT
                widths = {i: _known(i, tiles, sizes) for i in side}
                known = prod(widths.values())
                if known < needed and side:
                    widest = _widest(side, tiles, sizes)
                    need = needed // (known // widths[widest])
                    least[widest] = max(least.get(widest, 1), need)
        return least


def sides(dot: Dot, values: dict[str, Value]) -> tuple[tuple[str, ...], ...]:
    """The rows, the columns and the summed indices of a product."""
    a, b = tile_axes(dot.a, values), tile_axes(dot.b, values)
    out = values[dot.value].names
    rows = tuple(i for i in out if i in a and i not in b)
    columns = tuple(i for i in out if i in b and i not in a)
    return rows, columns, tuple(i for i in a if i in dot.over)


def _known(index: str, tiles: dict[str, int], sizes: dict[str, Expr]) -> int:
    """The width that an index has of itself; 1 where only the launch knows."""
    size = sizes.get(index)
    return power_of_two(tiles.get(index) or (size.value if isinstance(size, Number) else 1))


def _widest(side: tuple[str, ...], tiles: dict[str, int], sizes: dict[str, Expr]) -> str:
    """The index of a side that is widened: an untiled one whose size is not known, else that
    of the largest tile."""
    for i in side:
        if i not in tiles and not isinstance(sizes[i], Number):
            return i
    return max(side, key=lambda i: tiles.get(i) or sizes[i].value)


def _sizes(launch: Launch) -> dict[str, Expr]:
    """The size of every index; 0 of a jagged one, where only the data tell."""
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
    return spelling.settled(loop.high.size) if loop.high.size is not None else Number(0)


def _plain(loop: Loop) -> bool:
    """Whether a loop runs through whole tiles up to a size."""
    if loop.low.size is None or loop.high.size is None:
        return False
    return _multiple(loop.low.size, loop.tile) and not spelling.moves(_end(loop))


def _multiple(expr: Expr, of: int) -> bool:
    """Whether a size is certainly a multiple of a number."""
    if isinstance(expr, Number):
        return expr.value % of == 0
    product = isinstance(expr, Apply) and expr.function == "mul"
    return product and any(_multiple(a, of) for a in expr.args)
