"""Open tile sizes: a launch is built once for all tile sizes, which are filled in afterwards.

before: x: f32[m, k], m has TileSize("m") elements; for k in tiles: ...
after:  x: f32[m, k], m has 64 elements; for k in tiles of 128: ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ir.affine import fold_constants
from ir.memo import by_identity, kept
from ir.nest.nest import Axis, GridAxis, Launch, Loop, Statement, Value
from ir.schedule import Schedule
from ir.spec import Apply, Equation, Expr, Number, Reduce

Sizes = Mapping[str, int]  # the tile of each tiled index
MOST = 64  # launches with other tile sizes that are kept
SIZED = ("split_k", "causal_bound")  # verbs whose rewrites and loop bounds depend on tile sizes


def told_apart(equations: tuple[Equation, ...], schedule: Schedule) -> bool:
    """Whether more than extents depends on tile sizes."""
    return _bounded(equations) or any(schedule.of(verb) for verb in SIZED)


@by_identity
def _bounded(equations: tuple[Equation, ...]) -> bool:
    """Whether there is a jagged range or a part of one: its loop needs small tiles around it."""
    values = (e.value for e in equations)
    return any(r.jagged or r.partial for v in values if isinstance(v, Reduce) for r in v.ranges)


@dataclass(frozen=True, slots=True)
class TileSize(Expr):
    """The tile of an index, as a part of an extent; no finished launch has one."""

    index: str


@dataclass(frozen=True, slots=True)
class OpenTile:
    """Where an index's tile comes from."""

    index: str
    size: int
    decided: str  # the index whose `tile` decision gives the size; empty: it is `size`

    def of(self, schedule: Schedule) -> int:
        """The size under a schedule."""
        decision = schedule.find("tile", self.decided) if self.decided else None
        return decision.number("size") if decision else self.size


@dataclass(frozen=True, slots=True)
class OpenLaunch:
    """A launch whose extents name tile sizes. Its tiles are those of the schedule it was built
    for."""

    launch: Launch
    tiles: tuple[OpenTile, ...]  # of every tiled index
    # The launches so far by their tiles, as a launch beside others keeps its own.
    made: dict[tuple[int, ...], Launch] = field(default_factory=dict, compare=False, repr=False)

    def filled(self, schedule: Schedule) -> Launch:
        """The launch with the tile sizes of a schedule that differs in nothing else."""
        key = tuple([t.of(schedule) for t in self.tiles])
        if (found := self.made.get(key)) is None:
            if len(self.made) >= MOST:
                self.made.clear()
            names = [t.index for t in self.tiles]
            self.made[key] = found = self._filled(dict(zip(names, key, strict=True)))
        return found

    def _filled(self, sizes: Sizes) -> Launch:
        launch = self.launch
        if not sizes:
            return launch
        numbers = {index: Number(size) for index, size in sizes.items()}
        axes: dict[int, Axis] = {}  # by `id`, as values share them
        return replace(
            launch,
            grid=tuple([GridAxis(g.index, sizes[g.index], g.size) for g in launch.grid]),
            values=tuple([_value(v, numbers, axes) for v in launch.values]),
            once=_block(launch.once, sizes),
            body=_block(launch.body, sizes),
            tiles=tuple(sizes.items()),
        )


def _value(value: Value, numbers: Mapping[str, Number], made: dict[int, Axis]) -> Value:
    axes = []
    for axis in value.axes:
        if (found := made.get(id(axis))) is None:
            extent = _extent(axis.extent, numbers)
            found = axis if extent is axis.extent else Axis(axis.name, extent)
            made[id(axis)] = found
        axes.append(found)
    slots = None if value.slots is None else _extent(value.slots, numbers)
    return replace(value, axes=tuple(axes), slots=slots)


def _extent(expr: Expr, numbers: Mapping[str, Number]) -> Expr:
    """An extent with tile sizes filled in, and constants evaluated as if they had been there."""
    if isinstance(expr, TileSize):
        return numbers[expr.index]
    if isinstance(expr, Apply) and _is_open(expr):
        a, b = (_extent(e, numbers) for e in expr.args)
        return (
            fold_constants(expr.function, a, b)
            if expr.function in ("add", "mul")
            else Apply(expr.function, (a, b))
        )
    return expr


@kept
def _is_open(expr: Expr) -> bool:
    return any(isinstance(n, TileSize) for n in expr.walk())


def _block(block: tuple[Statement, ...], sizes: Sizes) -> tuple[Statement, ...]:
    """A block with the tiles of its loops filled in."""
    return tuple([_loop(s, sizes) if isinstance(s, Loop) else s for s in block])


def _loop(s: Loop, sizes: Sizes) -> Loop:
    body = _block(s.body, sizes)
    return Loop(s.index, sizes[s.index], s.low, s.high, body, s.backwards, s.unroll)
