"""Commands: a launch as calls of the device, so that the template only formats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from backends.backend import BackendError
from backends.shared import texts
from backends.shared.blocks import Blocks, Walk
from backends.shared.places import At, Count, Element, Position, position
from backends.sim import spelling
from ir.nest.footprint import temporaries
from ir.nest.nest import (
    Dot,
    Fill,
    Load,
    Loop,
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
from ir.nest.steps import Step, Temporary, steps, tile_axes
from ir.spec import SHORT, Expr, Number


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis as an argument."""

    name: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """A global tensor as an argument."""

    name: str


@dataclass(frozen=True, slots=True)
class Op:
    """An operation on elements."""

    name: str


@dataclass(frozen=True, slots=True)
class Combining:
    """The operation of a reduction or a scan."""

    name: str


@dataclass(frozen=True, slots=True)
class Flag:
    """Whether a command accumulates to its result."""

    accumulates: bool


@dataclass(frozen=True, slots=True)
class Group:
    """The processors along a grid index, which share a load."""

    index: str  # empty: all that have a tile


@dataclass(frozen=True, slots=True)
class Pad:
    """The value of out-of-bounds elements of a load."""

    number: str


@dataclass(frozen=True, slots=True)
class View:
    """A tile of a value's buffer."""

    value: str
    fresh: bool = False  # whether it is the next slot
    shifts: tuple[str, ...] = ()  # axes that start at the origin of their index's tile
    # (axis, its parts as (axis, stride)).
    windows: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    fixed: tuple[str, ...] = ()  # axes that are fixed at position 0


@dataclass(frozen=True, slots=True)
class Slot:
    """Selects the slot of a kept value for the tile of an index."""

    value: str
    index: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Positions from a view, along an axis; see `device::indirect` and `device::scattered`."""

    view: View
    axis: str  # empty: one position
    extent: str | Count
    along: tuple[str, ...]  # for scattered rows: the indices


@dataclass(frozen=True, slots=True)
class Call:
    """One command, `pe.method(...)`, for a statement."""

    statement: str  # its kind, for which the template has a method
    # In the order of the device's signature. Each is one of the records above, a text, or a tuple
    # of these.
    args: tuple[object, ...] = ()
    region: tuple[Position | Rows, ...] | None = None  # None: it has no region
    box: tuple[str, ...] | None = None  # indices that it iterates over; None: it has no box
    tail: tuple[object, ...] = ()
    first: bool = False  # whether only the first processor runs it
    once: tuple[str, ...] = ()  # indices at whose first tile it runs, and only there


@dataclass(frozen=True, slots=True)
class Read:
    """A loop bound that is read from a tensor."""

    index: str
    low: bool  # else it is the high bound
    element: Element


@dataclass(frozen=True, slots=True)
class Box:
    """A named box over the in-bounds parts of indices' tiles, which a command iterates over."""

    indices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Storage:
    """The circular buffer of a value."""

    name: str
    dtype: str
    box: tuple[tuple[str, str], ...]  # (axis, extent), outermost first
    stages: str  # a number, or an expression over sizes


class Commands(Blocks):
    """The commands of one launch."""

    def view(self) -> dict[str, Any]:
        """The values for templates: axes, buffers, boxes, the prologue, the body."""
        launch, once = self.launch, self.block(self.launch.once, once=True)
        body = self.block(launch.body)
        step = {launch.repeat.index} if launch.repeat else set()
        whole = frozenset(i for i, _ in launch.whole) | step
        grid = frozenset(g.index for g in launch.grid)
        shared = {g.index for c in _calls(body) for g in c.tail if isinstance(g, Group)}
        return {
            "axes": self.axes(),
            "shared": sorted(shared),
            "storage": self.storage(),
            "once_boxes": self.boxes((*once, *body), whole, needing=frozenset()),
            "once": once,
            "boxes": self.boxes(body, whole | grid, needing=grid) if grid else (),
            "body": body,
        }

    def storage(self) -> tuple[Storage, ...]:
        """All buffers: the values, followed by temporaries between steps."""
        extents: dict[str, str] = {}
        made = []
        for v in self.launch.values:
            own = self.extents(v.name)
            extents |= own
            stages = str(v.stages) if v.slots is None else texts.size(v.slots)
            made.append(Storage(v.name, v.dtype, tuple(own.items()), stages))
        for t in temporaries(self.launch):
            box = tuple((a, extents[a]) for a in t.axes)
            made.append(Storage(t.name, t.dtype, box, "1"))
        return tuple(made)

    def axes(self) -> tuple[str, ...]:
        """All axes, of indices and windows."""
        names = dict.fromkeys(i for i, _ in (*self.launch.tiles, *self.launch.whole))
        names.update(dict.fromkeys(n for v in self.launch.values for n in v.names))
        return tuple(names)

    def block(self, statements: tuple[Statement, ...], once: bool = False) -> tuple[object, ...]:
        """The calls and loops of a block. A bound that two loops share is read once."""
        found = super().block(statements, once)
        return tuple(c for n, c in enumerate(found) if not (isinstance(c, Read) and c in found[:n]))

    def boxes(
        self, block: tuple[object, ...], bound: frozenset[str], needing: frozenset[str]
    ) -> tuple[Box, ...]:
        """The boxes over `bound` indices in a block's commands, including inner loops; with
        `needing`, only boxes with one of these indices."""
        found: dict[tuple[str, ...], None] = {}
        for c in _calls(block):
            if c.box and set(c.box) <= bound and (not needing or set(c.box) & needing):
                found[c.box] = None
        return tuple(map(Box, found))

    def nodes(self, s: Statement, once: bool) -> Iterator[object]:
        """The commands of a statement."""
        match s:
            case Loop():
                yield from self._walk(s, once)
            case Map():
                yield from self._map(s)
            case Load():
                outside = () if s.pad is None else (Pad(texts.number(s.pad)),)
                group = () if s.shared is None else (Group("" if once else s.shared),)
                yield Call(
                    "SharedLoad" if group else "Load",
                    (self._fresh(s.value), Tensor(s.tensor)),
                    region=self._region(s.region, s.value),
                    tail=(*group, *outside),
                )
            case Store():
                yield self._store(s, once)
            case Recall():
                yield Slot(s.value, s.index)
            case _:
                yield self._call(s)

    def _call(self, s: Statement) -> Call:
        match s:
            case Fill():
                return Call(
                    "Fill",
                    (self._fresh(s.value), texts.number(s.number)),
                    box=self.values[s.value].names,
                )
            case Reduction():
                return Call(
                    "Reduction",
                    (self._reduction(s.reduction), self._onto(s), self._view(s.source)),
                    box=self._reduction_box(s),
                    tail=(Flag(s.accumulate),),
                )
            case Dot():
                names = dict.fromkeys((*self.values[s.value].names, *s.over))
                return Call(
                    "Dot",
                    (self._onto(s), self._view(s.a), self._view(s.b)),
                    box=tuple(names),
                    tail=(Flag(s.accumulate),),
                )
        return self._call_along_an_axis(s)

    def _call_along_an_axis(self, s: Statement) -> Call:
        match s:
            case Scan():
                return Call(
                    "Scan",
                    (
                        self._reduction(s.reduction),
                        self._fresh(s.value),
                        self._view(s.source),
                        Axis(s.along),
                        View(s.carry),
                    ),
                    box=self.values[s.value].names,
                )
            case Search():
                axis = self.values[s.borders.value].names[0]
                return Call(
                    "Search",
                    (
                        self._fresh(s.value),
                        self._view(s.source),
                        self._view(s.borders),
                        Axis(axis),
                        texts.size(s.count),
                    ),
                    box=self.values[s.value].names,
                )
            case Take():
                return Call(
                    "Take",
                    (
                        self._fresh(s.value),
                        self._view(s.table),
                        Axis(s.axis),
                        texts.size(s.count),
                        self._view(s.at),
                    ),
                    box=self.values[s.value].names,
                )
        raise BackendError("emit", f"a {type(s).__name__} has no command on this device")

    def _map(self, s: Map) -> Iterator[Call]:
        """The steps of a map. The first one that writes the value takes its next slot, unless the
        map reads the value."""
        fresh = not any(isinstance(n, Tile) and n.value == s.value for n in s.expression.walk())
        for step in steps(s, self.values):
            if isinstance(step.to, Temporary):
                yield self._step(step, View(step.to.name), step.to.axes)
                continue
            to = View(s.value, fresh=fresh)
            yield self._step(step, to, self.values[s.value].names)
            fresh = False

    def _step(self, step: Step, to: View, names: tuple[str, ...]) -> Call:
        if step.function == "iota":
            index = step.args[0].name
            return Call("Iota", (to, Axis(index), At(origins=((index, 1),))), box=names)
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
        return Call("Map", (Op(found), to, operands), box=names)

    def _dtype(self, of: Tile | Temporary) -> str:
        return of.dtype if isinstance(of, Temporary) else self.values[of.value].dtype

    def _operand(self, arg: Expr, names: tuple[str, ...]) -> object:
        """An operand. Axes with one element that the result lacks are fixed."""
        if isinstance(arg, Tile):
            lost = [i for i in tile_axes(arg, self.values) if i not in names]
            return replace(self._view(arg), fixed=tuple(lost))
        if isinstance(arg, Temporary):
            return View(arg.name)
        return texts.scalar(arg)

    def _store(self, s: Store, once: bool) -> Call:
        return Call(
            "Store",
            (Tensor(s.tensor),),
            region=self._region(s.region, s.value),
            tail=(View(s.value),),
            first=once and bool(self.launch.grid),
            once=s.once,
        )

    def _walk(self, s: Loop, once: bool) -> Iterator[object]:
        found = self.walk(s, once)
        inner = {n.index for n in _walks(found.body)}
        bound = frozenset(self._indices() - inner)
        boxes = self.boxes(found.body, bound, needing=frozenset({s.index}))
        for low, at in ((True, found.low), (False, found.high)):
            if isinstance(at, Element):
                yield Read(s.index, low, at)
        yield replace(found, body=(*boxes, *found.body))

    def _region(self, region: tuple[Slice, ...], value: str) -> tuple[Position | Rows, ...]:
        walked = [
            i
            for one in region
            for i in ([n for n, _ in one.terms] if one.rows else [one.axis])
            if i is not None
        ]
        several = any(len(one.terms) > 1 for one in region if one.rows)
        together = several or len(walked) > len(set(walked))
        extents = self.extents(value)
        return tuple(self._position(one, extents, together) for one in region)

    def _position(self, one: Slice, extents: dict[str, str], together: bool) -> Position | Rows:
        found = position(one, extents)
        if found.rows is None:
            return found
        along = tuple(i for i, _ in one.terms) if together and found.axis else ()
        return Rows(self._view(found.rows), found.axis, found.extent, along)

    def _view(self, tile: Tile) -> View:
        windows = tuple((w.axis, w.terms) for w in tile.windows)
        return View(tile.value, shifts=tuple(tile.shifted), windows=windows)

    def _fresh(self, value: str) -> View:
        return View(value, fresh=True)

    def _onto(self, s: Reduction | Dot) -> View:
        return View(s.value, fresh=not s.accumulate)

    def _reduction(self, name: str) -> Combining:
        if name not in spelling.REDUCTIONS:
            raise BackendError("emit", f"`{name}` has no reduction on this device")
        return Combining(spelling.REDUCTIONS[name])

    def _reduction_box(self, s: Reduction) -> tuple[str, ...]:
        names = (*self.values[s.value].names, *tile_axes(s.source, self.values))
        return tuple(dict.fromkeys(names))

    def _indices(self) -> set[str]:
        """All indices of the launch."""
        return {i for i, _ in (*self.launch.tiles, *self.launch.whole)}


def _calls(block: tuple[object, ...]) -> Iterator[Call]:
    for c in block:
        if isinstance(c, Walk):
            yield from _calls(c.body)
        elif isinstance(c, Call):
            yield c


def _walks(block: tuple[object, ...]) -> Iterator[Walk]:
    for c in block:
        if isinstance(c, Walk):
            yield c
            yield from _walks(c.body)
