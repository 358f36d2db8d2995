"""Commands: a launch as the device's calls, resolved so that the template only formats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from backends.backend import BackendError
from backends.shared import texts
from backends.sim import spelling
from ir.nest.footprint import temporaries
from ir.nest.nest import (
    Bound,
    Dot,
    Fill,
    Launch,
    Load,
    Loop,
    Map,
    Reduction,
    Scan,
    Search,
    Slice,
    Statement,
    Store,
    Take,
    Tile,
)
from ir.nest.steps import Step, Temporary, steps, tile_axes
from ir.spec import SHORT, Expr, Number


@dataclass(frozen=True, slots=True)
class View:
    """A tile of a buffer. fresh: its next slot.  fixed: axes of which the first place is meant.
    shifts: (axis, start).  windows: (axis, its parts as (axis, stride))."""

    buffer: str
    fresh: bool = False
    shifts: tuple[tuple[str, str], ...] = ()
    windows: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Position:
    """One dimension of a region; see `device::Slice`. along: (axis, extent) of scattered rows."""

    start: str
    axis: str = ""
    extent: str = ""
    step: int = 1
    rows: View | None = None
    along: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One command: `pe.method(...)`; args in the order of the device's signature, each a View,
    a text, or a tuple of Views and texts; region, box: None: takes none."""

    method: str
    args: tuple[object, ...] = ()
    region: tuple[Position, ...] | None = None
    box: tuple[str, ...] | None = None
    tail: tuple[str, ...] = ()
    condition: str = ""

    @property
    def walk(self) -> str:
        """The box's name; an empty one needs none."""
        return spelling.box(self.box) if self.box else "{}"


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop over the tiles of an index; a bound is a text or a number read from a tensor."""

    origin: str
    count: str
    tile: int
    low: str
    high: str
    low_read: tuple[str, str] | None
    high_read: tuple[str, str] | None
    index: str
    body: tuple[object, ...]
    boxes: tuple[Box, ...]
    backwards: bool


@dataclass(frozen=True, slots=True)
class Box:
    """A named box: what a command walks. spans: (axis, extent)."""

    name: str
    spans: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Storage:
    """A circular buffer: its variable, name, dtype, (axis, extent) outermost first, depth."""

    variable: str
    name: str
    dtype: str
    box: tuple[tuple[str, str], ...]
    depth: int


class Commands:
    """The commands of one launch."""

    def __init__(self, launch: Launch):
        self.launch = launch
        self.values = {v.name: v for v in launch.values}

    def storage(self) -> tuple[Storage, ...]:
        """Every buffer: the values, then the temporaries between steps."""
        extents = {a.name: a.extent for v in self.launch.values for a in v.axes}
        made = [
            Storage(
                spelling.buffer(v.name),
                v.name,
                v.dtype,
                tuple((spelling.axis(a.name), texts.size(a.extent)) for a in v.axes),
                v.depth,
            )
            for v in self.launch.values
        ]
        for t in temporaries(self.launch):
            box = tuple((spelling.axis(a), texts.size(extents[a])) for a in t.axes)
            made.append(Storage(spelling.buffer(t.name), t.name, t.dtype, box, 1))
        return tuple(made)

    def axes(self) -> tuple[str, ...]:
        """Every axis that occurs, indices and windows."""
        names = dict.fromkeys(i for i, _ in (*self.launch.tiles, *self.launch.whole))
        names.update(dict.fromkeys(n for v in self.launch.values for n in v.names))
        return tuple(spelling.axis(n).removeprefix("axis::") for n in names)

    def block(self, statements: tuple[Statement, ...], once: bool = False) -> tuple[object, ...]:
        """Calls and walks of a block; in the prologue one processor does the stores."""
        return tuple(c for s in statements for c in self._commands(s, once))

    def boxes(
        self, block: tuple[object, ...], bound: frozenset[str], needing: frozenset[str]
    ) -> tuple[Box, ...]:
        """The boxes of `bound` indices that the commands of a block walk, loops included;
        where `needing` names indices, those that have one of them."""
        found: dict[tuple[str, ...], None] = {}
        for c in _calls(block):
            if c.box and set(c.box) <= bound and (not needing or set(c.box) & needing):
                found[c.box] = None
        return tuple(
            Box(spelling.box(names), tuple((spelling.axis(n), texts.count(n)) for n in names))
            for names in found
        )

    def _commands(self, s: Statement, once: bool) -> Iterator[object]:
        match s:
            case Loop():
                yield self._walk(s, once)
            case Map():
                yield from self._map(s)
            case Load():
                outside = () if s.pad is None else (f"pad({texts.number(s.pad)})",)
                group = () if s.shared is None else (spelling.group(s.shared),)
                yield Call(
                    "load_shared" if group else "load",
                    (self._fresh(s.value), spelling.tensor(s.tensor)),
                    region=self._region(s.region, s.value),
                    tail=(*group, *outside),
                )
            case Store():
                yield self._store(s, once)
            case _:
                yield self._call(s)

    def _call(self, s: Statement) -> Call:
        match s:
            case Fill():
                return Call(
                    "fill",
                    (self._fresh(s.value), texts.number(s.number)),
                    box=self.values[s.value].names,
                )
            case Reduction():
                return Call(
                    "reduce",
                    (self._reduction(s.reduction), self._onto(s), self._view(s.source)),
                    box=self._reduction_box(s),
                    tail=(self._flag(s),),
                )
            case Dot():
                names = dict.fromkeys((*self.values[s.value].names, *s.over))
                return Call(
                    "matmul",
                    (self._onto(s), self._view(s.a), self._view(s.b)),
                    box=tuple(names),
                    tail=(self._flag(s),),
                )
        return self._call_along_an_axis(s)

    def _call_along_an_axis(self, s: Statement) -> Call:
        match s:
            case Scan():
                return Call(
                    "scan",
                    (
                        self._reduction(s.reduction),
                        self._fresh(s.value),
                        self._view(s.source),
                        spelling.axis(s.along),
                        View(spelling.buffer(s.carry)),
                    ),
                    box=self.values[s.value].names,
                )
            case Search():
                axis = self.values[s.borders.value].names[0]
                return Call(
                    "bucketize",
                    (
                        self._fresh(s.value),
                        self._view(s.source),
                        self._view(s.borders),
                        spelling.axis(axis),
                        texts.size(s.count),
                    ),
                    box=self.values[s.value].names,
                )
            case Take():
                return Call(
                    "take",
                    (
                        self._fresh(s.value),
                        self._view(s.table),
                        spelling.axis(s.axis),
                        texts.size(s.count),
                        self._view(s.at),
                    ),
                    box=self.values[s.value].names,
                )
        raise BackendError("emit", f"a {type(s).__name__} has no command on this device")

    def _map(self, s: Map) -> Iterator[Call]:
        """The steps of a map; the first that writes the value takes its next slot, unless the
        map reads what the value holds."""
        fresh = not any(isinstance(n, Tile) and n.value == s.value for n in s.expression.walk())
        for step in steps(s, self.values):
            if isinstance(step.to, Temporary):
                yield self._step(step, View(spelling.buffer(step.to.name)), step.to.axes)
                continue
            to = View(spelling.buffer(s.value), fresh=fresh)
            yield self._step(step, to, self.values[s.value].names)
            fresh = False

    def _step(self, step: Step, to: View, names: tuple[str, ...]) -> Call:
        if step.function == "iota":
            index = step.args[0].name
            return Call("iota", (to, spelling.axis(index), texts.origin(index)), box=names)
        function, args = step.function, step.args
        if function == "relu":
            function, args = "maximum", (*args, Number(0.0))
        elif function == "square":
            function, args = "mul", (*args, *args)
        if function not in spelling.OPS:
            raise BackendError("emit", f"`{function}` has no operation on this device")
        whole = self._dtype(step.to) in ("i32", "i64", *SHORT)
        found = whole and spelling.OF_INTEGERS.get(function) or spelling.OPS[function]
        operands = tuple(self._operand(a, names) for a in args)
        return Call("map", (f"Op::{found}", to, operands), box=names)

    def _dtype(self, of: Tile | Temporary) -> str:
        return of.dtype if isinstance(of, Temporary) else self.values[of.value].dtype

    def _operand(self, arg: Expr, names: tuple[str, ...]) -> object:
        """An operand; of an axis of one element that the result lacks, that element."""
        if isinstance(arg, Tile):
            lost = [i for i in tile_axes(arg, self.values) if i not in names]
            return replace(self._view(arg), fixed=tuple(map(spelling.axis, lost)))
        if isinstance(arg, Temporary):
            return View(spelling.buffer(arg.name))
        return texts.scalar(arg)

    def _store(self, s: Store, once: bool) -> Call:
        origins = " && ".join(f"{texts.origin(i)} == 0" for i in s.once)
        return Call(
            "store",
            (spelling.tensor(s.tensor),),
            region=self._region(s.region, s.value),
            tail=(View(spelling.buffer(s.value)),),
            condition="pe.id() == 0" if once and self.launch.grid else origins,
        )

    def _walk(self, s: Loop, once: bool) -> Walk:
        body = self.block(s.body, once)
        inner = {n.index for n in _walks(body)}
        bound = frozenset(self._indices() - inner)
        boxes = self.boxes(body, bound, needing=frozenset({s.index}))
        return Walk(
            index=s.index,
            origin=texts.origin(s.index),
            count=texts.count(s.index),
            tile=s.tile,
            low=self._bound(s.low),
            high=self._bound(s.high),
            low_read=self._read(s.low),
            high_read=self._read(s.high),
            body=body,
            boxes=boxes,
            backwards=s.backwards,
        )

    def _bound(self, bound: Bound) -> str:
        return texts.size(bound.size) if bound.size is not None else ""

    def _read(self, bound: Bound) -> tuple[str, str] | None:
        if bound.position is None:
            return None
        at = texts.affine(bound.position.terms, bound.position.offset)
        return spelling.tensor(bound.tensor), at

    def _region(self, region: tuple[Slice, ...], value: str) -> tuple[Position, ...]:
        walked = [
            i
            for one in region
            for i in ([n for n, _ in one.terms] if one.rows else [one.axis])
            if i is not None
        ]
        several = any(len(one.terms) > 1 for one in region if one.rows)
        together = several or len(walked) > len(set(walked))
        return tuple(self._position(one, value, together) for one in region)

    def _position(self, one: Slice, value: str, together: bool) -> Position:
        if one.axis is None and one.rows is not None:
            return Position("", "kNoAxis", "1", 1, self._view(one.rows))
        if one.axis is None:
            return Position(texts.affine(one.terms, one.offset))
        name = spelling.axis(one.axis)
        if one.rows is not None:
            box = tuple((spelling.axis(i), texts.count(i)) for i, _ in one.terms)
            rows = self._view(one.rows)
            return Position("", name, texts.count(one.axis), 1, rows, box if together else ())
        if one.whole:
            extent = next(a.extent for a in self.values[value].axes if a.name == one.axis)
            return Position(texts.size(one.offset), name, texts.size(extent), one.step)
        start = texts.affine(one.terms, one.offset)
        if len(one.terms) == 1 and one.axis == one.terms[0][0]:
            return Position(start, name, texts.count(one.axis), one.step)
        return Position(start, name, texts.span(one.terms))

    def _view(self, tile: Tile) -> View:
        windows = tuple(
            (spelling.axis(w.axis), tuple((spelling.axis(i), c) for i, c in w.terms))
            for w in tile.windows
        )
        shifts = tuple((spelling.axis(a), texts.origin(a)) for a in tile.shifted)
        return View(spelling.buffer(tile.value), shifts=shifts, windows=windows)

    def _fresh(self, value: str) -> View:
        return View(spelling.buffer(value), fresh=True)

    def _onto(self, s: Reduction | Dot) -> View:
        return View(spelling.buffer(s.value), fresh=not s.accumulate)

    def _flag(self, s: Reduction | Dot) -> str:
        return "accumulate" if s.accumulate else "afresh"

    def _reduction(self, name: str) -> str:
        if name not in spelling.REDUCTIONS:
            raise BackendError("emit", f"`{name}` has no reduction on this device")
        return f"Reduction::{spelling.REDUCTIONS[name]}"

    def _reduction_box(self, s: Reduction) -> tuple[str, ...]:
        names = (*self.values[s.value].names, *tile_axes(s.source, self.values))
        return tuple(dict.fromkeys(names))

    def _indices(self) -> set[str]:
        """Every index of the launch."""
        return {i for i, _ in (*self.launch.tiles, *self.launch.whole)}


def _calls(block: tuple[object, ...]) -> Iterator[Call]:
    for c in block:
        if isinstance(c, Walk):
            yield from _calls(c.body)
        else:
            yield c


def _walks(block: tuple[object, ...]) -> Iterator[Walk]:
    for c in block:
        if isinstance(c, Walk):
            yield c
            yield from _walks(c.body)
