"""Open tile sizes: a launch is built once for all tile sizes, which are filled in afterwards.

before: x: f32[m, k], m has TileSize("m") elements; for k in tiles: ...
after:  x: f32[m, k], m has 64 elements; for k in tiles of 128: ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ir.affine import fold_constants
from ir.memo import by_identity, kept
from ir.nest.nest import Axis, GridAxis, Launch, Loop, Statement, Value
from ir.schedule import Schedule
from ir.spec import Apply, Equation, Expr, Index, Number, Range, Reduce
from ir.variant.derived import part_of

Sizes = Mapping[str, int]  # the tile of each tiled index
MOST = 64  # filled launches that are cached


def told_apart(equations: tuple[Equation, ...], schedule: Schedule) -> frozenset[str]:
    """The indices whose tile size affects more than extents.

    Schedules that differ in those sizes do not share a launch.
    """
    splits = schedule.of("split_k")
    if _bounded(equations, frozenset(map(part_of, splits))) or schedule.of("causal_bound"):
        return frozenset(d.subject for d in schedule.of("tile"))
    return frozenset(str(d.option("over")) for d in splits)  # a part has whole tiles


@by_identity
def _bounded(equations: tuple[Equation, ...], parts: frozenset[str]) -> bool:
    """Whether there is a jagged or a partial range: its loop needs small tiles around it.

    The equal parts of a split need none.

    parts: the indices over parts of splits.
    """
    values = (e.value for e in equations)
    ranges = [r for v in values if isinstance(v, Reduce) for r in v.ranges]
    return any(r.jagged or r.partial and not parts & _named(r) for r in ranges)


def _named(span: Range) -> set[str]:
    return {n.name for e in (span.low, span.high) for n in e.walk() if isinstance(n, Index)}


@dataclass(frozen=True, slots=True)
class TileSize(Expr):
    """The tile size of an index, as a part of an extent. No finished launch contains one."""

    index: str


@dataclass(frozen=True, slots=True)
class OpenTile:
    """Where an index's tile size comes from."""

    index: str
    size: int
    decided: str  # the index whose `tile` decision gives the size; empty if `size` is the size

    def of(self, schedule: Schedule) -> int:
        """The size under a schedule."""
        decision = schedule.find("tile", self.decided) if self.decided else None
        return decision.number("size") if decision else self.size


@dataclass(frozen=True, slots=True)
class OpenLaunch:
    """A launch whose extents contain open tile sizes.

    `launch` has the tiles of the schedule it was built for.
    """

    launch: Launch
    tiles: tuple[OpenTile, ...]  # of every tiled index
    # The launch from which this one differs only in `fields`, such as threads; these replace those
    # of its filled launch.
    inside: OpenLaunch | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    # Filled launches by tile sizes: equal sizes give the identical launch.
    made: dict[tuple[int, ...], Launch] = field(default_factory=dict, compare=False, repr=False)

    def filled(self, schedule: Schedule) -> Launch:
        """The launch with the tile sizes of a schedule that differs in nothing else."""
        key = tuple([t.of(schedule) for t in self.tiles])
        if (found := self.made.get(key)) is None:
            if len(self.made) >= MOST:
                self.made.clear()
            if self.inside is not None:
                found = replace(self.inside.filled(schedule), **self.fields)
            else:
                names = [t.index for t in self.tiles]
                found = self._filled(dict(zip(names, key, strict=True)))
            self.made[key] = found
        return found

    def having(self, fields: Mapping[str, Any]) -> OpenLaunch:
        """The launch with other values of some fields, none of which depends on tile sizes."""
        if all(getattr(self.launch, name) == value for name, value in fields.items()):
            return self
        return OpenLaunch(replace(self.launch, **fields), self.tiles, self, fields)

    def _filled(self, sizes: Sizes) -> Launch:
        launch = self.launch
        if not sizes:
            return launch
        numbers = {index: Number(size) for index, size in sizes.items()}
        axes: dict[int, Axis] = {}  # by `id`, as values share axes
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
    # `replace` takes twice as long.
    return Value(
        *(value.name, value.tensor, value.dtype, tuple(axes), value.stages, value.loaded),
        *(value.rows, slots),
    )


def _extent(expr: Expr, numbers: Mapping[str, Number]) -> Expr:
    """Fills tile sizes into an extent, and evaluates constants as if the sizes had been there."""
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
    """Fills in the tiles of a block's loops."""
    return tuple([_loop(s, sizes) if isinstance(s, Loop) else s for s in block])


def _loop(s: Loop, sizes: Sizes) -> Loop:
    body = _block(s.body, sizes)
    return Loop(s.index, sizes[s.index], s.low, s.high, body, s.backwards, s.unroll)
