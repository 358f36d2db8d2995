"""Statements of a launch as loops over elements, resolved so that the template only spells them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from backends.backend import BackendError
from backends.shared.expressions import Constant, Converted, Expressions
from backends.shared.places import At, Count, Element, Place, Row, affine, flat
from backends.shared.texts import number, size, span
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
from ir.nest.steps import tile_axes

REDUCTIONS = frozenset("sum prod max min any all".split())
FLOATS = ("f32", "tf32", "f16", "bf16")
SHORT = 16  # elements of a vector of f32: an axis with fewer does not fill one
ACC, RUN = "acc", "run"  # the variables of a reduction and of a scan

Loops = tuple[tuple[str, str | Count], ...]  # (index, extent), outermost first


@dataclass(frozen=True, slots=True)
class Local:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Combined:
    """Two values by a reduction."""

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
    """A value where all positions are inside their sizes, else a number."""

    tests: tuple[tuple[At | Row, str], ...]
    value: Element
    dtype: str
    pad: Constant | Converted


@dataclass(frozen=True, slots=True)
class Ranked:
    """How many of the first entries of a sorted table are less than a key."""

    table: str
    count: str
    key: Element


@dataclass(frozen=True, slots=True)
class Packed:
    """An element of an operand or of the result of a matmul."""

    product: str
    part: str
    row: Place
    column: Place


@dataclass(frozen=True, slots=True)
class Assign:
    """A value put to an element or a variable."""

    to: object
    value: object
    accumulates: bool = False


@dataclass(frozen=True, slots=True)
class Declare:
    """A new variable."""

    dtype: str
    name: str
    value: object


@dataclass(frozen=True, slots=True)
class Scatter:
    """A value added to an element in memory, atomically."""

    to: Element
    value: object


@dataclass(frozen=True, slots=True)
class Elements:
    """A nest of loops over elements."""

    loops: Loops
    body: tuple[object, ...]  # of the innermost
    simd: bool = False  # whether the innermost has no order
    reduces: Identity | None = None  # what it reduces to the variable `acc`
    before: tuple[object, ...] = ()  # in the loop around the innermost
    after: tuple[object, ...] = ()
    first: bool = False  # only one thread does it
    once: tuple[str, ...] = ()  # only at the first tile of these indices


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop over the tiles of an index; a bound is a text or an element in memory."""

    index: str
    tile: int
    low: str | Element
    high: str | Element
    backwards: bool
    body: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """A matmul: operands packed, multiplied, and the result put where it belongs."""

    value: str
    dtype: str  # of its operands
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    over: tuple[str, ...]
    batch: Loops
    parts: tuple[Elements, ...]  # what packs a and b
    onto: tuple[Place, str] | None  # where the result begins, and the length of its rows
    accumulates: bool
    result: Elements  # what copies the result where there is no `onto`


class Statements:
    """The statements of one launch."""

    def __init__(self, launch: Launch):
        self.launch = launch
        self.values = {v.name: v for v in launch.values}
        self.shapes = {p.name: tuple(map(size, p.shape)) for p in launch.parameters}
        self.short = {i for i, e in launch.whole if size(e).isdigit() and int(size(e)) < SHORT}

    def block(self, statements: tuple[Statement, ...], once: bool = False) -> tuple[object, ...]:
        """What a block does, in order. once: in the prologue, where one thread stores."""
        return tuple(e for s in statements for e in self._elements(s, once))

    def _elements(self, s: Statement, once: bool) -> Iterator[object]:
        match s:
            case Loop():
                low, high = self._bound(s.low), self._bound(s.high)
                yield Walk(s.index, s.tile, low, high, s.backwards, self.block(s.body, once))
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
            case Dot():
                yield self._product(s)
            case Scan():
                yield self._scan(s)
            case Search():
                key = self._read(s.source)
                yield self._each(s.value, Ranked(s.borders.value, size(s.count), key))
            case Take():
                yield self._each(s.value, Element(s.table.value, self._read(s.at)))
            case _:
                raise BackendError("emit", f"a {type(s).__name__} has no loops here")

    def _each(self, value: str, found: object) -> Elements:
        names = self.values[value].names
        return Elements(_over(names), (Assign(self._element(value), found),), simd=True)

    def _element(self, value: str) -> Element:
        """An element of a value at the places of its own axes."""
        return self._read(Tile(value))

    def _read(self, tile: Tile, known: set[str] | None = None) -> Element:
        """An element of a tile. known: the indices that are walked; others have one element."""
        windows = {w.axis: w.terms for w in tile.windows}
        at = []
        for axis in self.values[tile.value].names:
            terms = windows.get(axis, ((axis, 1),))
            places = tuple((i if known is None or i in known else "", by) for i, by in terms)
            at.append(At(((axis, 1),) if axis in tile.shifted else (), places=places))
        return Element(tile.value, flat(at, self._extents(tile.value)))

    def _extents(self, value: str) -> tuple[str, ...]:
        return tuple(size(a.extent) for a in self.values[value].axes)

    def _expressions(self, known: set[str]) -> Expressions:
        return Expressions(
            lambda tile: (self._read(tile, known), self.values[tile.value].dtype),
            lambda index: index if index in known else "",
        )

    def _computed(self, tile: Tile, dtype: str) -> object:
        """An element of a tile, as a value of a dtype that is computed with."""
        known = set(tile_axes(tile, self.values))
        return self._expressions(known).assigned(tile, dtype)

    def _load(self, s: Load) -> Elements:
        loops = tuple((n, self._extent(s, n)) for n in self.values[s.value].names)
        positions = tuple(self._position(one) for one in s.region)
        shape = self.shapes[s.tensor]
        found: object = Element(s.tensor, flat(positions, shape), in_memory=True)
        if s.pad is not None:
            dtype, pad = self.values[s.value].dtype, Constant(number(s.pad))
            held = Converted("f32", pad) if dtype in ("f16", "bf16") else pad
            found = Guarded(tuple(zip(positions, shape, strict=True)), found, dtype, held)
        return Elements(loops, (Assign(self._element(s.value), found),), simd=True)

    def _extent(self, s: Load, axis: str) -> str | Count:
        """How many elements of an axis are loaded."""
        for one in (x for x in s.region if x.axis == axis and x.rows is None):
            if one.whole:
                extents = dict(zip(self.values[s.value].names, self._extents(s.value), strict=True))
                return extents[axis]
            return Count(axis) if axis in dict(one.terms) else span(one.terms)
        return Count(axis)

    def _position(self, one: Slice) -> At | Row:
        if one.rows is not None:
            return Row(self._read(one.rows))
        start = At(offset=size(one.offset)) if one.whole else affine(one.terms, one.offset)
        if one.axis is None:
            return start
        return At(start.origins, "" if start.zero else start.offset, ((one.axis, one.step),))

    def _store(self, s: Store, once: bool) -> Elements:
        at = flat(tuple(self._position(one) for one in s.region), self.shapes[s.tensor])
        to, element = Element(s.tensor, at, in_memory=True), self._element(s.value)
        scattered = bool(s.reduction) or any(one.rows for one in s.region)
        return Elements(
            _over(self.values[s.value].names),
            (Scatter(to, element) if s.reduction else Assign(to, element),),
            simd=not scattered,
            first=once and bool(self.launch.grid),
            once=s.once,
        )

    def _reduction(self, s: Reduction) -> tuple[Elements, ...]:
        """Over the axes as they lie in memory; the innermost is reduced in registers, if it goes.

        Where all reduced axes are short, a kept axis is the innermost: its elements fill vectors.
        Not where the value is narrower than its sums: each step would round to the narrow dtype.
        """
        dtype = _wide(self.values[s.value].dtype)
        identity = _identity(s.reduction, dtype)
        axes = tile_axes(s.source, self.values)
        kept = tuple(n for n in self.values[s.value].names if n not in axes)
        own = tuple(n for n in axes if n not in s.over)
        if own and self.short.issuperset(s.over) and dtype == self.values[s.value].dtype:
            axes = (*own[:-1], *s.over, own[-1])
        item, held = self._computed(s.source, dtype), Converted(dtype, self._element(s.value))
        alone = not s.accumulate and s.over == axes[-1:]  # nothing else is reduced onto the value
        fresh = (self._each(s.value, identity),) if not (s.accumulate or alone) else ()
        loops = _over((*kept, *axes))
        if not axes or axes[-1] not in s.over:
            put = self._put(s.value, Combined(s.reduction, held, item))
            return (*fresh, Elements(loops, (put,), simd=bool(loops)))
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
        return Assign(self._element(value), Converted(self.values[value].dtype, found))

    def _scan(self, s: Scan) -> Elements:
        dtype, run = _wide(self.values[s.value].dtype), Local(RUN)
        _identity(s.reduction, dtype)
        others = tuple(n for n in self.values[s.value].names if n != s.along)
        step = Combined(s.reduction, run, self._computed(s.source, dtype))
        return Elements(
            _over((*others, s.along)),
            (Assign(run, step), self._put(s.value, run)),
            before=(Declare(dtype, RUN, Converted(dtype, self._element(s.carry))),),
            after=(self._put(s.carry, run),),
        )

    def _product(self, s: Dot) -> Product:
        """a is what has the rows of the value: the last axis of the value is always b's."""
        names, a, b = self.values[s.value].names, s.a, s.b
        axes = {id(t): tile_axes(t, self.values) for t in (a, b)}
        own = [n for n in names if (n in axes[id(a)]) != (n in axes[id(b)])]
        if own and own[-1] in axes[id(a)]:
            a, b = b, a
        both = set(axes[id(a)]) & set(axes[id(b)])
        batch = tuple(n for n in names if n in both or n not in (*axes[id(a)], *axes[id(b)]))
        rows = tuple(n for n in names if n in axes[id(a)] and n not in batch)
        columns = tuple(n for n in names if n in axes[id(b)] and n not in batch)
        dtype = _wide(self.values[s.value].dtype)
        of_bf16 = dtype == "f32" and {self.values[t.value].dtype for t in (a, b)} == {"bf16"}

        def packed(part: str, tile: Tile, first: tuple, second: tuple) -> Elements:
            order = tuple(n for n in axes[id(tile)] if n not in batch)
            to = Packed(s.value, part, _along(first), _along(second))
            plain = self._read(tile, set(axes[id(tile)])) if of_bf16 else None
            found = plain or self._computed(tile, dtype)
            return Elements(_over(order), (Assign(to, found),), simd=bool(order))

        inner, onto = (*rows, *columns), None
        in_place = len(columns) == 1 and len(rows) < 2 and names[-len(inner) :] == inner
        if in_place and dtype == self.values[s.value].dtype:
            places = tuple(At(places=((n if n in batch else "", 1),)) for n in names)
            onto = flat(places, self._extents(s.value)), self._extents(s.value)[-1]
        found = Packed(s.value, "c", _along(rows), _along(columns))
        copied = Assign(self._element(s.value), found, s.accumulate)
        return Product(
            value=s.value,
            dtype="bf16" if of_bf16 else dtype,
            rows=rows,
            columns=columns,
            over=s.over,
            batch=_over(batch),
            parts=(packed("a", a, rows, s.over), packed("b", b, s.over, columns)),
            onto=onto,
            accumulates=s.accumulate,
            result=Elements(_over(inner), (copied,), simd=bool(inner)),
        )

    def _bound(self, bound: Bound) -> str | Element:
        if bound.position is None:
            return size(bound.size)
        at = affine(bound.position.terms, bound.position.offset)
        return Element(bound.tensor, at, in_memory=True)


def _over(names: tuple[str, ...]) -> Loops:
    return tuple((n, Count(n)) for n in names)


def _along(indices: tuple[str, ...]) -> Place:
    """Several indices as one, the last the innermost."""
    return flat([At(places=((i, 1),)) for i in indices], list(map(Count, indices)))


def _identity(reduction: str, dtype: str) -> Identity:
    if reduction not in REDUCTIONS:
        raise BackendError("emit", f"`{reduction}` has no reduction in this language")
    return Identity(reduction, dtype)


def _wide(dtype: str) -> str:
    """The dtype that is computed with."""
    return "f32" if dtype in ("f16", "bf16", "tf32") else dtype
