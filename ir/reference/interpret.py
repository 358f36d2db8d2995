"""The interpreter of loop nests: runs a nest tile by tile, as a backend would.

Tests use it, and backends without a toolchain. Only the in-bounds part of a value is accessed. All
memory starts poisoned; a read of an element that was never written is a `NestFault`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ir.nest.nest import (
    Bound,
    Dot,
    Fill,
    Launch,
    Load,
    Loop,
    LoopNest,
    Map,
    Recall,
    Reduction,
    Scan,
    Search,
    Slice,
    Statement,
    Store,
    Take,
    Tile,
)
from ir.nest.steps import tile_axes
from ir.reference.labelled import Labelled, apply, counted
from ir.reference.product_sum import product_sum
from ir.reference.rounding import round_to
from ir.sizes import bind, shape
from ir.sizes import value as number
from ir.spec import FLOATS, Apply, Cast, Expr, Index, Number, Size, Tensor
from ir.visit import renamed

_REDUCTIONS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
_REDUCTIONS |= {"any": np.logical_or, "all": np.logical_and}
_ARGUMENTS = {"argmax": np.argmax, "argmin": np.argmin}
_POISON = {"f": np.nan, "i": -(2**62), "b": True}
_COMPUTING = Load | Fill | Map | Reduction | Dot | Scan | Search | Take  # these write a value
_COMPUTED_IN = {"f": np.float64, "i": np.int64, "b": np.bool_}


class NestFault(AssertionError):
    """A nest does what no backend could: it reads unwritten memory, or stores an element twice."""


def interpret(
    nest: LoopNest,
    inputs: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    *,
    rounded: bool = False,
    rng: np.random.Generator | None = None,
) -> dict[str, np.ndarray]:
    """The outputs by name: floats in float64, integers in int64.

    rounded: round what each statement writes to the dtype of its value; otherwise floats stay
        float64 and `precision` has no effect.
    rng: permutes the order of the grid's tiles.
    """
    scalars = {**bind(nest.spec, sizes), **dict(nest.spec.attributes)}
    tensors = {}
    for t in nest.variant.inputs:  # `flatten` can have flattened an input's dimensions
        data = np.asarray(inputs[t.name]).reshape(shape(t, scalars))
        tensors[t.name] = _Array.holding(t.name, t.dtype, data)
    with np.errstate(all="ignore"):
        for repeat, launches in nest.groups():
            for step in repeat.steps(scalars) if repeat else (0,):
                for launch in launches:
                    _Program(launch, tensors, scalars, rounded, step).run(rng)
    return {t.name: tensors[t.name].stored(t, scalars) for t in nest.spec.outputs}


@dataclass(slots=True)
class _Array:
    """An array that records which of its elements were written."""

    name: str
    dtype: str
    data: np.ndarray
    written: np.ndarray

    @staticmethod
    def poisoned(name: str, dtype: str, shape: tuple[int, ...]) -> _Array:
        """An array without written elements."""
        data: np.ndarray = np.full(shape, _POISON[_kind(dtype)], _COMPUTED_IN[_kind(dtype)])
        return _Array(name, dtype, data, np.zeros(shape, np.bool_))

    @staticmethod
    def holding(name: str, dtype: str, data: np.ndarray) -> _Array:
        """An array whose elements are all written."""
        made = _Array.poisoned(name, dtype, data.shape)
        made.write(..., np.asarray(data))
        return made

    def poison(self) -> None:
        """Marks all elements as never written."""
        self.data[...] = _POISON[self.data.dtype.kind]
        self.written[...] = False

    def read(self, at: Any, unread: np.ndarray | bool = False) -> np.ndarray:
        """The elements at some positions. Raises NestFault if one was never written.

        unread: a mask of positions whose value is not used.
        """
        if not (self.written[at] | unread).all():
            raise NestFault(f"`{self.name}` is read where nothing was written")
        return self.data[at]

    def stored(self, t: Tensor, sizes: Mapping[str, float]) -> np.ndarray:
        """An output, or its part of a larger tensor.

        Raises NestFault if an element was never written, or one outside the part was.
        """
        whole = tuple(number(e, sizes) for e in t.memory)
        own, written = self.data.reshape(whole)[t.window], self.written.reshape(whole)
        if not written[t.window].all():
            raise NestFault(f"`{self.name}` is read where nothing was written")
        if written.sum() > own.size:
            raise NestFault(f"`{self.name}` is a part of a larger tensor, and written beside it")
        return own

    def write(self, at: Any, data: np.ndarray, rounded: bool = False) -> None:
        """Writes elements, wrapped or rounded to the dtype if `rounded`.

        Raises NestFault for floats into integers.
        """
        if data.dtype.kind == "f" and self.data.dtype.kind != "f":
            raise NestFault(f"`{self.name}` is {self.dtype} and is given floats")
        exact = self.data.dtype.kind == "i" or rounded  # integers always wrap
        self.data[at] = round_to(data, self.dtype) if exact else data
        self.written[at] = True


class _Program:
    """One launch: its values, and its position in the grid and the loops."""

    def __init__(
        self, launch: Launch, tensors: dict[str, _Array], scalars, rounded: bool, step: int
    ):
        self.launch, self.tensors = launch, tensors
        self.scalars, self.rounded = scalars, rounded
        self.values = {v.name: v for v in launch.values}
        rooms = {v.name: tuple(self._size(a.extent) for a in v.axes) for v in launch.values}
        self.held = {v.name: _Array.poisoned(v.name, v.dtype, rooms[v.name]) for v in launch.values}
        self.tiles = dict(launch.tiles)
        self.kept: set[str] = set()  # values that `once` wrote; all tiles use them
        recalls = {(s.index, s.value) for s in launch.statements() if isinstance(s, Recall)}
        self.recalled = tuple(sorted(recalls))
        self.slots: dict[tuple[str, int], _Array] = {}  # by value and origin: tiles that loops kept
        self.origin = {index: 0 for index, _ in launch.whole}
        self.count = {index: self._size(e) for index, e in launch.whole}
        if launch.repeat:
            self.origin[launch.repeat.index], self.count[launch.repeat.index] = step, 1
        self.stored = {s.tensor for s in launch.statements() if isinstance(s, Store)}
        for p in (p for p in launch.parameters if p.name not in tensors):
            shape = tuple(self._size(e) for e in p.shape)
            tensors[p.name] = _Array.poisoned(p.name, p.dtype, shape)

    def run(self, rng: np.random.Generator | None) -> None:
        """Runs the prologue, then every tile of the grid."""
        self._block(self.launch.once)
        self.kept = {s.value for s in self.launch.once if isinstance(s, _COMPUTING)}
        tiles = list(product(*(range(0, self._size(g.size), g.tile) for g in self.launch.grid)))
        if rng is not None:
            tiles = [tiles[n] for n in rng.permutation(len(tiles))]
        for tile in tiles:
            for name in self.held.keys() - self.kept:
                self.held[name].poison()
            self.slots.clear()
            for axis, origin in zip(self.launch.grid, tile, strict=True):
                self._enter(axis.index, origin, axis.tile, self._size(axis.size))
            self._block(self.launch.body)

    def _block(self, block: tuple[Statement, ...]) -> None:
        for statement in block:
            getattr(self, f"_{type(statement).__name__.lower()}")(statement)

    def _fill(self, s: Fill) -> None:
        whole = abs(s.number) < 2**63 and s.number == int(s.number)
        self._write(s.value, Labelled((), np.asarray(int(s.number) if whole else s.number)))

    def _map(self, s: Map) -> None:
        own = any(isinstance(n, Tile) and n.value == s.value for n in s.expression.walk())
        found = self._of(s.expression)
        # An index with a tile of one has one value here, so the result needs no axis for it.
        lost = [n for n in found.axes if n not in self.values[s.value].names]
        if all(self.tiles.get(n) == 1 for n in lost):
            found = Labelled(
                tuple(n for n in found.axes if n not in lost),
                found.along((*lost, *(n for n in found.axes if n not in lost)))[(0,) * len(lost)],
            )
        self._write(s.value, found, fresh=not own)

    def _reduction(self, s: Reduction) -> None:
        self._onto(s, _reduced(s.reduction, self._of(s.source), s.over), s.reduction)

    def _search(self, s: Search) -> None:
        source, borders = self._of(s.source), self.held[s.borders.value]
        places = np.searchsorted(borders.read(slice(self._size(s.count))), source.data)
        self._write(s.value, Labelled(source.axes, np.asarray(places)))

    def _take(self, s: Take) -> None:
        rows = self._of(s.at)
        entries = self.held[s.table.value].read(slice(self._size(s.count)))
        _require_inside(s.table.value, rows.data, entries.size)
        self._write(s.value, Labelled(rows.axes, entries[rows.data]))

    def _loop(self, s: Loop) -> None:
        low, high = self._bound(s.low), self._bound(s.high)
        if s.index in self.origin:
            raise NestFault(f"`{s.index}` is looped over inside its own loop")
        origins = range(low, high, s.tile)
        for origin in reversed(origins) if s.backwards else origins:
            self._enter(s.index, origin, s.tile, high)
            self._block(s.body)
            for name in (value for index, value in self.recalled if index == s.index):
                array = self.held[name]
                kept = (array.data.copy(), array.written.copy())
                self.slots[name, origin] = _Array(name, array.dtype, *kept)
            del self.origin[s.index], self.count[s.index]

    def _recall(self, s: Recall) -> None:
        if (s.value, self.origin[s.index]) not in self.slots:
            raise NestFault(f"`{s.value}` is recalled where no loop over `{s.index}` kept it")
        found = self.slots[s.value, self.origin[s.index]]
        self.held[s.value].data[...] = found.data
        self.held[s.value].written[...] = found.written

    def _enter(self, index: str, origin: int, tile: int, end: int) -> None:
        self.origin[index], self.count[index] = origin, min(tile, end - origin)

    def _load(self, s: Load) -> None:
        source = self.tensors[s.tensor]
        if s.tensor in self.stored and not self._elsewhere(s):
            raise NestFault(f"`{s.tensor}` is loaded in the launch that stores it")
        if s.shared and any(s.shared in dict(one.terms) for one in s.region):
            raise NestFault(f"`{s.tensor}` is shared along `{s.shared}`, which places it")
        axes = self.values[s.value].names
        places = [self._places(one, s.value).along(axes) for one in s.region]
        lengths = source.data.shape
        at = tuple(p.clip(0, n - 1) for p, n in zip(places, lengths, strict=True))
        outside = np.zeros((), np.bool_)
        for place, length in zip(places, lengths, strict=True):
            if s.pad is None:
                _require_inside(s.tensor, place, length)
            outside = outside | (place < 0) | (place >= length)
        data = source.read(at, outside)
        data = np.where(outside, s.pad or 0, data).astype(data.dtype)
        self._write(s.value, Labelled(axes, data), inside=False)

    def _elsewhere(self, s: Load) -> bool:
        """Whether a load reads what another step of the recurrence stored."""
        repeat = self.launch.repeat
        steps = [one for one in s.region if repeat and repeat.index in dict(one.terms)]
        return any(one.offset != Number(0) for one in steps)

    def _store(self, s: Store) -> None:
        # In the prologue these have no origin, so the store runs.
        if any(self.origin.get(i) for i in s.once):
            return
        target, value = self.tensors[s.tensor], self.values[s.value]
        if target.dtype != value.dtype:
            raise NestFault(f"`{s.tensor}` is {target.dtype}, `{s.value}` is {value.dtype}")
        at = tuple(self._places(one, s.value).along(value.names) for one in s.region)
        if s.reduction:
            self._reduction_into(s, target, at)
            return
        if target.written[at].any():
            raise NestFault(f"a place of `{s.tensor}` is stored twice")
        target.write(at, self._of(Tile(s.value)).data, self.rounded)

    def _reduction_into(self, s: Store, target: _Array, at: tuple[np.ndarray, ...]) -> None:
        """Reduces a value into memory (atomic addition); a position can occur repeatedly."""
        for places, length in zip(at, target.data.shape, strict=True):
            _require_inside(s.tensor, places, length)
        target.read(at)  # the memory must have been initialised
        _REDUCTIONS[s.reduction].at(target.data, at, self._of(Tile(s.value)).data)
        target.write(at, target.data[at], self.rounded)

    def _dot(self, s: Dot) -> None:
        a, b = self._of(s.a), self._of(s.b)
        gone = {*a.axes, *b.axes} - set(self.values[s.value].names)
        if gone != set(s.over) or not gone <= set(a.axes) & set(b.axes):
            raise NestFault(f"the product `{s.value}` sums {s.over}, its operands lack {gone}")
        scales = [self._of(t) for t in s.scales]
        self._onto(s, product_sum([a, b, *scales], s.over), "sum")

    def _scan(self, s: Scan) -> None:
        source, carry = self._of(s.source), self._of(Tile(s.carry))
        axes = tuple(n for n in self.values[s.value].names if n != s.along) + (s.along,)
        box = [self.count[n] for n in axes]
        data = np.broadcast_to(counted(source.along(axes)), box)
        data = np.concatenate([np.broadcast_to(carry.along(axes), [*box[:-1], 1]), data], -1)
        run = _REDUCTIONS[s.reduction].accumulate(data, axis=-1)
        self._write(s.value, Labelled(axes, run[..., 1:]))
        self._write(s.carry, Labelled(axes[:-1], run[..., -1]))

    def _onto(self, s: Reduction | Dot, found: Labelled, reduction: str) -> None:
        if s.accumulate:
            if reduction not in _REDUCTIONS:
                raise NestFault(f"`{s.value}`: parts of an {reduction} cannot be put together")
            before = self._of(Tile(s.value))
            found = Labelled(
                before.axes, _REDUCTIONS[reduction](before.data, found.along(before.axes))
            )
        self._write(s.value, found, fresh=not s.accumulate)

    def _write(self, value: str, found: Labelled, fresh: bool = True, inside: bool = True) -> None:
        """Writes a value.

        fresh: poison the rest of it.
        inside: write the in-bounds part of the tile; otherwise all of `found`.
        """
        names, array = self.values[value].names, self.held[value]
        if value in self.kept or not set(found.axes) <= set(names):
            raise NestFault(f"`{value}`{list(names)} may not be given {list(found.axes)} here")
        data = found.along(names)
        box = tuple(self.count[n] for n in names) if inside else data.shape
        if any(n > room for n, room in zip(box, array.data.shape, strict=True)):
            raise NestFault(f"`{value}` has room for {array.data.shape} and is given {box}")
        if fresh:
            array.poison()
        array.write(tuple(slice(n) for n in box), np.broadcast_to(data, box), self.rounded)

    def _places(self, one: Slice, value: str) -> Labelled:
        """The positions of one dimension of a region."""
        if one.rows is not None:
            return self._of(one.rows)
        places = self._along(one, value)
        return Labelled((), places[0]) if one.axis is None else Labelled((one.axis,), places)

    def _along(self, one: Slice, value: str) -> np.ndarray:
        """The positions along the single axis of a dimension."""
        offset = self._size(one.offset)
        if one.whole:
            axis = self.values[value].names.index(one.axis)
            return offset + one.step * np.arange(self.held[value].data.shape[axis])
        start = offset + sum(c * self.origin[i] for i, c in one.terms)
        if one.axis is None:
            return np.asarray([start])
        if one.axis in dict(one.terms):
            return start + one.step * np.arange(self.count[one.axis])
        return start + np.arange(sum(c * (self.count[i] - 1) for i, c in one.terms) + 1)

    def _bound(self, bound: Bound) -> int:
        if bound.size is not None:
            return self._size(renamed(bound.size, {i: Number(o) for i, o in self.origin.items()}))
        at = self._places(bound.entry, "").data
        return int(self.tensors[bound.tensor].read((at,)))

    def _size(self, expr: Expr) -> int:
        return number(expr, self.scalars)

    def _of(self, expr: Expr) -> Labelled:
        """The values of an expression over the in-bounds parts of its indices' tiles."""
        match expr:
            case Tile():
                return self._tile(expr)
            case Number() | Size():
                value = expr.value if isinstance(expr, Number) else self.scalars[expr.name]
                return Labelled((), np.asarray(value))
            case Index(name):
                return Labelled((name,), self.origin[name] + np.arange(self.count[name]))
            case Cast(dtype, value):
                found = self._of(value)
                exact = self.rounded or _kind(dtype) == "i"
                data = round_to(found.data, dtype) if exact else found.data
                return Labelled(found.axes, data.astype(_COMPUTED_IN[_kind(dtype)]))
            case Apply(function, args):
                return apply(function, [self._of(a) for a in args], np.float64)
        raise NestFault(f"a {type(expr).__name__} is left in an expression")

    def _tile(self, tile: Tile) -> Labelled:
        names, windows = self.values[tile.value].names, {w.axis: w.terms for w in tile.windows}
        start = {a: self.origin[a] if a in tile.shifted else 0 for a in names}
        for a, room in zip(names, self.held[tile.value].data.shape, strict=True):
            if a not in windows and start[a] + self.count[a] > room:
                raise NestFault(f"`{tile.value}` has no room for `{a}` at {start[a]}")
        if not windows:
            at = tuple(slice(start[a], start[a] + self.count[a]) for a in names)
            return Labelled(names, self.held[tile.value].read(at))
        axes = tile_axes(tile, self.values)
        along = {i: Labelled((i,), np.arange(self.count[i])).along(axes) for i in axes}
        places = (start[a] + sum(c * along[i] for i, c in windows.get(a, ((a, 1),))) for a in names)
        return Labelled(axes, self.held[tile.value].read(tuple(places)))


def _kind(dtype: str) -> str:
    return "f" if dtype in FLOATS else "b" if dtype == "b8" else "i"


def _require_inside(name: str, places: np.ndarray, length: int) -> None:
    if places.size and not (places.min() >= 0 and places.max() < length):
        raise NestFault(f"`{name}` is read at {places.min()} to {places.max()} of {length}")


def _reduced(reduction: str, body: Labelled, over: tuple[str, ...]) -> Labelled:
    if not set(over) <= set(body.axes):
        raise NestFault(f"a {reduction} over {over} of what has {body.axes}")
    kept = tuple(a for a in body.axes if a not in over)
    data = body.along(kept + over)
    # Argmax returns a position in the flattened `over`.
    data = data.reshape(*data.shape[: len(kept)], -1)
    if reduction in _ARGUMENTS:
        return Labelled(kept, np.asarray(_ARGUMENTS[reduction](data, axis=-1)))
    data = counted(data) if reduction in ("sum", "prod") else data
    return Labelled(kept, np.asarray(_REDUCTIONS[reduction].reduce(data, axis=-1)))
