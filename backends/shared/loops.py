"""The statements of a launch as loops over elements, which a language's templates format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from backends.backend import BackendError
from backends.shared.blocks import Blocks
from backends.shared.expressions import Constant, Converted, Expressions
from backends.shared.places import At, Count, Element, Position, Row, flat, position
from backends.shared.texts import number, size
from ir.nest.nest import (
    Fill,
    Launch,
    Load,
    Loop,
    Map,
    Reduction,
    Scan,
    Search,
    Statement,
    Store,
    Take,
    Tile,
)
from ir.nest.steps import tile_axes
from ir.spec import FLOATS

REDUCTIONS = frozenset("sum prod max min any all".split())
ACC, RUN = "acc", "run"  # variables of a reduction and of a scan

Extents = tuple[tuple[str, str | Count], ...]  # (index, extent), outermost first


@dataclass(frozen=True, slots=True)
class Local:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Combined:
    """Two values combined by a reduction."""

    reduction: str
    a: object
    b: object


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity element of a reduction."""

    reduction: str
    dtype: str

    @property
    def of_integers(self) -> bool:
        """Whether the dtype has no infinity."""
        return self.dtype not in FLOATS


@dataclass(frozen=True, slots=True)
class Guarded:
    """A value if all positions are in bounds, else a number."""

    tests: tuple[tuple[At | Row, str], ...]
    value: Element
    dtype: str
    pad: Constant | Converted


@dataclass(frozen=True, slots=True)
class Ranked:
    """The number of the first entries of a sorted table that are less than a key."""

    table: str
    count: str
    key: Element


@dataclass(frozen=True, slots=True)
class Assign:
    """Assigns a value to an element or a variable."""

    to: object
    value: object
    accumulates: bool = False


@dataclass(frozen=True, slots=True)
class Declare:
    """Declares a variable."""

    dtype: str
    name: str
    value: object


@dataclass(frozen=True, slots=True)
class Scatter:
    """Adds a value to an element in memory, atomically."""

    to: Element
    value: object


@dataclass(frozen=True, slots=True)
class Elements:
    """A nest of loops over elements."""

    loops: Extents
    body: tuple[object, ...]  # body of the innermost loop
    unordered: bool = False  # whether the steps of the innermost loop may run in any order
    reduces: Identity | None = None  # if present, the innermost loop reduces to the variable `acc`
    before: tuple[object, ...] = ()  # statements of the loop around the innermost
    after: tuple[object, ...] = ()
    first: bool = False  # whether only one of the cooperating threads runs it
    once: tuple[str, ...] = ()  # indices at whose first tile it runs, and only there


class Loops(Blocks):
    """The statements of one launch."""

    vector = 1  # f32 elements in a vector of the machine

    def __init__(self, launch: Launch):
        super().__init__(launch)
        self.shapes = {p.name: tuple(map(size, p.shape)) for p in launch.parameters}
        lengths = ((i, size(e)) for i, e in launch.whole)
        self.short = {i for i, n in lengths if n.isdigit() and int(n) < self.vector}

    def view(self) -> dict[str, Any]:
        """The values for templates: the tiles of the launch, its prologue, its body."""
        held = ((v, self.extents(v.name)) for v in self.launch.values)
        return {
            "held": [(v.name, v.dtype, tuple(e.values())) for v, e in held],
            "once": self.block(self.launch.once, once=True),
            "body": self.block(self.launch.body),
        }

    def nodes(self, s: Statement, once: bool) -> Iterator[object]:
        """The nodes of a statement. Languages define those of a matmul."""
        match s:
            case Loop():
                yield self.walk(s, once)
            case Load():
                yield self._load(s)
            case Store():
                yield self._store(s, once)
            case Fill():
                found = Constant(number(s.number))
                yield self._each(s.value, Converted("f32", found) if "inf" in found.text else found)
            case Map():
                dtype = self.values[s.value].dtype
                expressions = self._expressions(set(self.values[s.value].names))
                yield self._each(s.value, expressions.assigned(s.expression, dtype))
            case Reduction():
                yield from self._reduction(s)
            case Scan():
                yield self._scan(s)
            case Search():
                key = self.read(s.source)
                yield self._each(s.value, Ranked(s.borders.value, size(s.count), key))
            case Take():
                yield self._each(s.value, Element(s.table.value, self.read(s.at)))
            case _:
                raise BackendError("emit", f"a {type(s).__name__} has no loops here")

    def element(self, value: str) -> Element:
        """The element of a value at the positions of its own axes."""
        return self.read(Tile(value))

    def read(self, tile: Tile, known: set[str] | None = None) -> Element:
        """An element of a tile. known: indices with loops; others have one element."""
        windows = {w.axis: w.terms for w in tile.windows}
        at = []
        for axis in self.values[tile.value].names:
            terms = windows.get(axis, ((axis, 1),))
            places = tuple((i if known is None or i in known else "", by) for i, by in terms)
            at.append(At(((axis, 1),) if axis in tile.shifted else (), places=places))
        return Element(tile.value, flat(at, tuple(self.extents(tile.value).values())))

    def computed(self, tile: Tile, dtype: str) -> object:
        """An element of a tile, converted to a dtype for computations."""
        known = set(tile_axes(tile, self.values))
        return self._expressions(known).assigned(tile, dtype)

    def _each(self, value: str, found: object) -> Elements:
        names = self.values[value].names
        return Elements(over(names), (Assign(self.element(value), found),), unordered=True)

    def _expressions(self, known: set[str]) -> Expressions:
        return Expressions(
            lambda tile: (self.read(tile, known), self.values[tile.value].dtype),
            lambda index: index if index in known else "",
        )

    def _region(self, s: Load | Store) -> tuple[Position, ...]:
        extents = self.extents(s.value)
        return tuple(position(one, extents) for one in s.region)

    def _place(self, p: Position) -> At | Row:
        """The position of one element."""
        if p.rows is not None:
            return Row(self.read(p.rows))
        if not p.axis:
            return p.start
        return At(p.start.origins, "" if p.start.zero else p.start.offset, ((p.axis, p.step),))

    def _load(self, s: Load) -> Elements:
        region, shape = self._region(s), self.shapes[s.tensor]
        extents = {p.axis: p.extent for p in region if p.rows is None}
        loops = tuple((n, extents.get(n, Count(n))) for n in self.values[s.value].names)
        places = tuple(map(self._place, region))
        element = Element(s.tensor, flat(places, shape), in_memory=True)
        found: object = element
        if s.pad is not None:
            dtype, pad = self.values[s.value].dtype, Constant(number(s.pad))
            held = Converted("f32", pad) if dtype in ("f16", "bf16") else pad
            found = Guarded(tuple(zip(places, shape, strict=True)), element, dtype, held)
        return Elements(loops, (Assign(self.element(s.value), found),), unordered=True)

    def _store(self, s: Store, once: bool) -> Elements:
        at = flat(tuple(map(self._place, self._region(s))), self.shapes[s.tensor])
        to, element = Element(s.tensor, at, in_memory=True), self.element(s.value)
        scattered = bool(s.reduction) or any(one.rows for one in s.region)
        return Elements(
            over(self.values[s.value].names),
            (Scatter(to, element) if s.reduction else Assign(to, element),),
            unordered=not scattered,
            first=once and bool(self.launch.grid),
            once=s.once,
        )

    def _reduction(self, s: Reduction) -> tuple[Elements, ...]:
        """Reduces over the axes in memory order; the innermost axis is reduced in a register if
        possible.

        If all reduced axes are short, a kept axis is the innermost, so that its elements fill
        vectors. That is not done if the value is narrower than its sums, because each step would
        round.
        """
        dtype = computed_dtype(self.values[s.value].dtype)
        identity = _identity(s.reduction, dtype)
        axes = tile_axes(s.source, self.values)
        kept = tuple(n for n in self.values[s.value].names if n not in axes)
        own = tuple(n for n in axes if n not in s.over)
        if own and self.short.issuperset(s.over) and dtype == self.values[s.value].dtype:
            axes = (*own[:-1], *s.over, own[-1])
        item, held = self.computed(s.source, dtype), Converted(dtype, self.element(s.value))
        # whether this is the only reduction to the value
        alone = not s.accumulate and s.over == axes[-1:]
        fresh = (self._each(s.value, identity),) if not (s.accumulate or alone) else ()
        loops = over((*kept, *axes))
        if not axes or axes[-1] not in s.over:
            put = self._put(s.value, Combined(s.reduction, held, item))
            return (*fresh, Elements(loops, (put,), unordered=bool(loops)))
        acc = Local(ACC)
        whole = acc if alone else Combined(s.reduction, held, acc)
        found = Elements(
            loops,
            (Assign(acc, Combined(s.reduction, acc, item)),),
            reduces=identity,
            before=(Declare(dtype, ACC, identity),),
            after=(self._put(s.value, whole),),
        )
        return (*fresh, found)

    def _put(self, value: str, found: object) -> Assign:
        return Assign(self.element(value), Converted(self.values[value].dtype, found))

    def _scan(self, s: Scan) -> Elements:
        dtype, run = computed_dtype(self.values[s.value].dtype), Local(RUN)
        _identity(s.reduction, dtype)
        others = tuple(n for n in self.values[s.value].names if n != s.along)
        step = Combined(s.reduction, run, self.computed(s.source, dtype))
        return Elements(
            over((*others, s.along)),
            (Assign(run, step), self._put(s.value, run)),
            before=(Declare(dtype, RUN, Converted(dtype, self.element(s.carry))),),
            after=(self._put(s.carry, run),),
        )


def over(names: Iterable[str]) -> Extents:
    """Loops over the elements of tiles."""
    return tuple((n, Count(n)) for n in names)


def computed_dtype(dtype: str) -> str:
    """The dtype in which values of a dtype are computed."""
    return "f32" if dtype in ("f16", "bf16", "tf32") else dtype


def _identity(reduction: str, dtype: str) -> Identity:
    if reduction not in REDUCTIONS:
        raise BackendError("emit", f"`{reduction}` has no reduction in this language")
    return Identity(reduction, dtype)
