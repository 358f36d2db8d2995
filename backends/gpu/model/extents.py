"""Extents of a launch at given sizes: padded widths, loop iterations, tiles in flight."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from functools import cached_property
from math import ceil, gcd, prod
from typing import Any

from backends.gpu.blocks import Blocks
from backends.gpu.rules import Rules
from ir.nest.nest import Launch, Load, Loop, Slice, Store
from ir.sizes import power_of_two
from ir.sizes import value as number
from ir.spec import Apply, Expr, Index, Number

KNOWN_MULTIPLE = 16  # the compiler knows of an integer argument whether it is a multiple of this
PLACES = 8  # samples of a tile's position, for bounds that depend on it
TYPICAL_SEGMENT = 16.0  # entries of a jagged range, where no shape gives their number


class Extents:
    """The numeric extents of a launch. sizes: all sizes of the spec, including derived ones. rules:
    the rules of the launch's language."""

    def __init__(self, launch: Launch, sizes: Mapping[str, int], rules: Rules):
        self.launch = launch
        self.sizes = sizes
        self.blocks = Blocks(launch, rules)
        self.tiles = dict(launch.tiles)
        self.whole = {name: number(e, sizes) for name, e in launch.whole}
        self.shapes = {p.name: tuple(number(e, sizes) for e in p.shape) for p in launch.parameters}
        self.grid = {g.index: ceil(number(g.size, sizes) / g.tile) for g in launch.grid}
        self._width: dict[str, int] = {}
        self._filled: dict[str, float] = {}
        self._sizes: dict[str, float] = {}
        # Cached values of loops and moves, by `id`: the launch keeps them alive.
        self._runs: dict[int, float] = {}
        self._regions: dict[int, list[float]] = {}

    def multiple(self, size: Expr) -> int:
        """The known divisor of a size, for the compiler."""
        if isinstance(size, Number) or self.launch.specialized:
            return number(size, self.sizes)
        if isinstance(size, Apply):
            parts = [self.multiple(e) for e in size.args]
            through = {"mul": prod, "add": lambda p: gcd(*p), "sub": lambda p: gcd(*p)}
            return through.get(size.function, lambda p: 1)(parts)
        return 1 if number(size, self.sizes) % KNOWN_MULTIPLE else KNOWN_MULTIPLE

    def width(self, index: str) -> int:
        """Elements along an index in the tensors of a tile program, a power of two."""
        if index not in self._width:
            block = self.blocks[index]
            known = block.width or power_of_two(self.whole.get(index, 1))
            self._width[index] = max(known, block.least, 1)
        return self._width[index]

    def elements(self, indices: tuple[str, ...]) -> int:
        """Elements of a tensor over these indices, with padding."""
        return prod(self.width(i) for i in indices)

    def filled(self, index: str) -> float:
        """Elements of an index's tile that are in bounds, averaged over tiles."""
        if index in self.whole:
            return self.whole[index]
        if index not in self._filled:
            tile, size = self.tiles[index], self._size(index)
            self._filled[index] = size / ceil(size / tile) if size else tile
        return self._filled[index]

    @cached_property
    def programs(self) -> int:
        """Thread blocks of the launch without persistence: tiles of its grid."""
        return prod(self.grid.values())

    def iterations(self, loop: Loop) -> float:
        """Iterations of a loop, averaged over the tiles."""
        if id(loop) not in self._runs:
            self._runs[id(loop)] = self._mean_iterations(loop)
        return self._runs[id(loop)]

    def _mean_iterations(self, loop: Loop) -> float:
        if loop.high.size is None:
            return max(1.0, ceil(self._segment(loop) / loop.tile))
        moves = _moving(loop.high.size) or (loop.low.size and _moving(loop.low.size))
        places = [(n + 0.5) / PLACES for n in range(PLACES)] if moves else [0.5]
        return sum(self._iterations(loop, place) for place in places) / len(places)

    def _iterations(self, loop: Loop, place: float) -> int:
        """Iterations for a tile at a relative position (0 to 1) along its indices."""
        low = number(self._mean(loop.low.size, place), self.sizes) if loop.low.size else 0
        high = number(self._mean(loop.high.size, place), self.sizes)
        return max(0, ceil((high - low) / loop.tile))

    def at_once(self, programs: int) -> dict[str, int]:
        """For each grid index, the number of tiles in flight while `programs` thread blocks run."""
        left = float(programs)
        found = {}
        rasterization = self.launch.rasterization
        if rasterization is not None:
            found[rasterization.index] = min(
                rasterization.size, self.grid[rasterization.index], programs
            )
            left = max(1.0, left / found[rasterization.index])
            found[rasterization.over] = ceil(min(self.grid[rasterization.over], left))
            left = max(1.0, left / found[rasterization.over])
            more = min(self.grid[rasterization.index] / found[rasterization.index], left)
            found[rasterization.index] = ceil(found[rasterization.index] * more)
            left = max(1.0, left / more)
        for axis in reversed(self.launch.grid):
            if axis.index not in found:
                found[axis.index] = ceil(min(self.grid[axis.index], left))
                left = max(1.0, left / found[axis.index])
        return found

    def region(self, move: Load | Store) -> list[float]:
        """In-bounds elements along each dimension that a load or store touches."""
        if id(move) not in self._regions:
            self._regions[id(move)] = self._region(move)
        return self._regions[id(move)]

    def _region(self, move: Load | Store) -> list[float]:
        value = next(v for v in self.launch.values if v.name == move.value)
        extents = {a.name: a.extent for a in value.axes}
        walked = {i for one in move.region if one.rows is None for i, _ in one.terms}
        found = []
        for one, size in zip(move.region, self.shapes[move.tensor], strict=True):
            found.append(self._touched(one, extents, size, walked))
            walked |= set(_along(one)) if one.rows is not None else set()
        return found

    def _touched(
        self, one: Slice, extents: Mapping[str, Expr], size: int, walked: Collection[str | None]
    ) -> float:
        """Elements along one dimension. walked: indices whose positions another dimension already counts."""
        if one.axis is None:
            return 1.0
        if one.rows is not None:
            return prod(self._filled_by(i, extents) for i in _along(one) if i not in walked)
        if len(one.terms) == 1 and one.terms[0][1] == 1:
            return min(size, self.filled(one.terms[0][0]))
        return min(size, number(extents[one.axis], self.sizes))

    def _filled_by(self, index: str, extents: Mapping[str, Expr]) -> float:
        """Elements along an index of a tensor of positions (a gather)."""
        if index in self.tiles or index in self.whole:
            return self.filled(index)
        return number(extents[index], self.sizes)

    def _size(self, index: str) -> float:
        """The extent of a tiled index; of a jagged one, the mean length of its range."""
        if index not in self._sizes:
            self._sizes[index] = self._length(index)
        return self._sizes[index]

    def _length(self, index: str) -> float:
        for axis in self.launch.grid:
            if axis.index == index:
                return number(axis.size, self.sizes)
        for s in self.launch.statements():
            if isinstance(s, Loop) and s.index == index:
                if s.high.size is None:
                    return self._segment(s)
                return number(self._mean(s.high.size), self.sizes)
        return 0.0

    def _segment(self, loop: Loop) -> float:
        """The mean length of a jagged range: the extent of the dimension that it divides, over the number of ranges."""
        ranges = self.shapes.get(loop.high.tensor, (0,))[0] - 1
        for s in loop.body:
            for one, size in zip(getattr(s, "region", ()), self._shape(s), strict=False):
                if any(i == loop.index for i, _ in one.terms) and ranges > 0:
                    return size / ranges
        return TYPICAL_SEGMENT

    def _shape(self, s: object) -> tuple[int, ...]:
        return self.shapes.get(getattr(s, "tensor", ""), ())

    def _mean(self, expr: Expr, place: float = 0.5) -> Expr:
        """A bound in which each index is replaced by the origin of a tile at a relative position along it."""
        if isinstance(expr, Index):
            size, tile = self._size(expr.name), self.tiles.get(expr.name, 1)
            return Number(int(place * max(1, ceil(size / tile))) * tile)
        if isinstance(expr, Number):
            return expr
        changed: dict[str, Any] = {}
        for f in fields(expr):
            held = getattr(expr, f.name)
            if f.name != "place" and isinstance(held, tuple):
                changed[f.name] = tuple(
                    self._mean(e, place) if isinstance(e, Expr) else e for e in held
                )
        return replace(expr, **changed) if changed else expr


def _along(one: Slice) -> tuple[str, ...]:
    """The axes of a gathered slice along which positions vary; empty for a single position."""
    if one.axis is None:
        return ()
    return tuple(i for i, _ in one.terms) or (one.axis,)


def _moving(expr: Expr) -> bool:
    """Whether a bound depends on the position of a tile."""
    return any(isinstance(e, Index) for e in expr.walk())
