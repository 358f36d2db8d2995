"""Statements of a launch as loops over elements, resolved so that the template only formats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from backends.backend import BackendError
from backends.shared.expressions import CPP, Expressions
from backends.shared.texts import affine, count, flat, number, origin, size, span
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
from ir.spec import Number

REDUCTIONS = {  # of two texts; its identity text; its name in OpenMP
    "sum": ("{} + {}", "{}(0)", "+"),
    "prod": ("{} * {}", "{}(1)", "*"),
    "max": ("fn::maximum({}, {})", "-fn::kInfinity", "larger"),
    "min": ("fn::minimum({}, {})", "fn::kInfinity", "smaller"),
    "any": ("{} || {}", "false", "||"),
    "all": ("{} && {}", "true", "&&"),
}
SHORT = 16  # elements of a vector of f32: an axis with fewer does not fill one
OF_INTEGERS = {"max": ("least_of<{}>()", "max"), "min": ("most_of<{}>()", "min")}


@dataclass(frozen=True, slots=True)
class Elements:
    """A nest of loops over elements."""

    loops: tuple[tuple[str, str], ...]  # (variable, extent), outermost first
    lines: tuple[str, ...]  # the body of the innermost
    pragma: str = ""  # of the innermost
    before: tuple[str, ...] = ()  # in the loop around the innermost
    after: tuple[str, ...] = ()
    condition: str = ""  # of the whole


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop over the tiles of an index. low, high: the bounds as texts."""

    index: str
    tile: int
    low: str
    high: str
    backwards: bool
    body: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """A matmul: operands packed, multiplied, and the result put where it belongs."""

    name: str
    type: str  # of its operands
    rows: str
    columns: str
    depth: str
    batch: tuple[tuple[str, str], ...]
    parts: tuple[Elements, ...]  # what packs a and b
    onto: str  # the arguments of `run`; empty where the result is copied
    result: Elements


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
                text = number(s.number)
                yield self._each(s.value, text if "inf" not in text else f"float({text})")
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
                called = f"rank({s.borders.value}_t, {size(s.count)}, {self._read(s.source)})"
                yield self._each(s.value, called)
            case Take():
                yield self._each(s.value, f"{s.table.value}_t({self._read(s.at)})")
            case _:
                raise BackendError("emit", f"a {type(s).__name__} has no loops here")

    def _each(self, value: str, text: str) -> Elements:
        names = self.values[value].names
        return Elements(self._over(names), (f"{self._element(value)} = {text};",), "omp simd")

    def _over(self, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        return tuple((local(n), count(n)) for n in names)

    def _element(self, value: str) -> str:
        """An element of a value at the places of its own axes."""
        return self._read(Tile(value))

    def _read(self, tile: Tile, known: set[str] | None = None) -> str:
        """An element of a tile. known: the indices that are walked; others have one element."""
        windows = {w.axis: w.terms for w in tile.windows}

        def place(index: str) -> str:
            return local(index) if known is None or index in known else "0"

        at = []
        for axis in self.values[tile.value].names:
            found = affine(windows.get(axis, ((axis, 1),)), Number(0), place)
            at.append(f"{origin(axis)} + {found}" if axis in tile.shifted else found)
        return f"{tile.value}_t({flat(tuple(at), self._extents(tile.value))})"

    def _extents(self, value: str) -> tuple[str, ...]:
        return tuple(size(a.extent) for a in self.values[value].axes)

    def _expressions(self, known: set[str]) -> Expressions:
        return Expressions(
            CPP,
            lambda tile: (self._read(tile, known), self.values[tile.value].dtype),
            lambda index: local(index) if index in known else "0",
        )

    def _computed(self, tile: Tile, dtype: str) -> str:
        """An element of a tile, as a value of a dtype that is computed with."""
        known = set(tile_axes(tile, self.values))
        return self._expressions(known).assigned(tile, dtype)

    def _load(self, s: Load) -> Elements:
        names = self.values[s.value].names
        loops = tuple((local(n), self._extent(s, n)) for n in names)
        positions = tuple(self._position(one) for one in s.region)
        shape = self.shapes[s.tensor]
        text = f"{s.tensor}_g({flat(positions, shape)})"
        if s.pad is not None:
            held = CPP.types[self.values[s.value].dtype]
            pad = "float(" + number(s.pad) + ")" if held in ("f16", "bf16") else number(s.pad)
            tests = " & ".join(f"inside({p}, {n})" for p, n in zip(positions, shape, strict=True))
            text = f"{tests} ? {text} : {held}({pad})"
        return Elements(loops, (f"{self._element(s.value)} = {text};",), "omp simd")

    def _extent(self, s: Load, axis: str) -> str:
        """How many elements of an axis are loaded."""
        for one in (x for x in s.region if x.axis == axis and x.rows is None):
            if one.whole:
                extents = dict(zip(self.values[s.value].names, self._extents(s.value), strict=True))
                return extents[axis]
            return count(axis) if axis in dict(one.terms) else span(one.terms)
        return count(axis)

    def _position(self, one: Slice) -> str:
        if one.rows is not None:
            return f"Index({self._read(one.rows)})"
        start = size(one.offset) if one.whole else affine(one.terms, one.offset)
        if one.axis is None:
            return start
        step = local(one.axis) if one.step == 1 else f"{one.step} * {local(one.axis)}"
        return step if start == "0" else f"{start} + {step}"

    def _store(self, s: Store, once: bool) -> Elements:
        at = flat(tuple(self._position(one) for one in s.region), self.shapes[s.tensor])
        element = self._element(s.value)
        line = f"{s.tensor}_g({at}) = {element};"
        if s.reduction:
            line = f"add_to({s.tensor}_g, {at}, {element});"
        condition = " && ".join(f"{origin(i)} == 0" for i in s.once)
        if once and self.launch.grid:
            condition = "first"
        loops = self._over(self.values[s.value].names)
        scattered = s.reduction or any(one.rows for one in s.region)
        return Elements(loops, (line,), "" if scattered else "omp simd", condition=condition)

    def _folding(self, reduction: str, dtype: str) -> tuple[str, str, str]:
        """A reduction: of two texts, its identity text, its name in OpenMP."""
        if reduction not in REDUCTIONS:
            raise BackendError("emit", f"`{reduction}` has no reduction in this language")
        both, identity, name = REDUCTIONS[reduction]
        if reduction in OF_INTEGERS and dtype not in ("f32", "tf32", "f16", "bf16"):
            identity, name = OF_INTEGERS[reduction]
        return both, identity.format(CPP.types[dtype]), name

    def _reduction(self, s: Reduction) -> tuple[Elements, ...]:
        """Over the axes as they lie in memory; the innermost is reduced in registers, if it goes.

        Where all reduced axes are short, a kept axis is the innermost: its elements fill vectors.
        Not where the value is narrower than its sums: each step would round to the narrow dtype.
        """
        dtype = _wide(self.values[s.value].dtype)
        both, identity, name = self._folding(s.reduction, dtype)
        axes = tile_axes(s.source, self.values)
        kept = tuple(n for n in self.values[s.value].names if n not in axes)
        own = tuple(n for n in axes if n not in s.over)
        if own and self.short.issuperset(s.over) and dtype == self.values[s.value].dtype:
            axes = (*own[:-1], *s.over, own[-1])
        order = (*kept, *axes)
        item, element = self._computed(s.source, dtype), self._element(s.value)
        held = f"{CPP.types[dtype]}({element})"
        alone = not s.accumulate and s.over == axes[-1:]  # nothing else is reduced onto the value
        fresh = (self._each(s.value, identity),) if not (s.accumulate or alone) else ()
        if axes and axes[-1] in s.over:
            found = Elements(
                self._over(order),
                (f"acc = {both.format('acc', item)};",),
                f"omp simd reduction({name} : acc)",
                before=(f"{CPP.types[dtype]} acc = {identity};",),
                after=(self._put(s.value, "acc" if alone else both.format(held, "acc")),),
            )
        else:
            line = self._put(s.value, both.format(held, item))
            found = Elements(self._over(order), (line,), "omp simd" if order else "")
        return (*fresh, found)

    def _put(self, value: str, text: str) -> str:
        return f"{self._element(value)} = {CPP.types[self.values[value].dtype]}({text});"

    def _scan(self, s: Scan) -> Elements:
        dtype = _wide(self.values[s.value].dtype)
        both, _, _ = self._folding(s.reduction, dtype)
        others = tuple(n for n in self.values[s.value].names if n != s.along)
        held, item = CPP.types[dtype], self._computed(s.source, dtype)
        carry = self._element(s.carry)
        return Elements(
            self._over((*others, s.along)),
            (f"run = {both.format('run', item)};", self._put(s.value, "run")),
            before=(f"{held} run = {held}({carry});",),
            after=(self._put(s.carry, "run"),),
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
        dtype, name = _wide(self.values[s.value].dtype), f"{s.value}_p"
        of_bf16 = dtype == "f32" and {self.values[t.value].dtype for t in (a, b)} == {"bf16"}

        def packed(part: str, tile: Tile, first: tuple, second: tuple) -> Elements:
            order = tuple(n for n in axes[id(tile)] if n not in batch)
            line = f"{name}.{part}({_along(first)}, {_along(second)}) = "
            text = self._read(tile, set(axes[id(tile)])) if of_bf16 else self._computed(tile, dtype)
            return Elements(self._over(order), (f"{line}{text};",), "omp simd" if order else "")

        found = f"{name}.c({_along(rows)}, {_along(columns)})"
        element = self._element(s.value)
        line = f"{element} += {found};" if s.accumulate else f"{element} = {found};"
        inner, onto = (*rows, *columns), ""
        if len(columns) == 1 and len(rows) < 2 and names[-len(inner) :] == inner:
            places = tuple(local(n) if n in batch else "0" for n in names)
            at, row = flat(places, self._extents(s.value)), self._extents(s.value)[-1]
            onto = f"{s.value}_t, {at}, {row}, {str(s.accumulate).lower()}"
        if dtype != self.values[s.value].dtype:
            onto = ""
        return Product(
            name,
            CPP.types["bf16" if of_bf16 else dtype],
            *(" * ".join(map(count, part)) or "1" for part in (rows, columns, s.over)),
            self._over(batch),
            (packed("a", a, rows, s.over), packed("b", b, s.over, columns)),
            onto,
            Elements(self._over(inner), (line,), "omp simd" if inner else ""),
        )

    def _bound(self, bound: Bound) -> str:
        if bound.position is None:
            return size(bound.size)
        at = affine(bound.position.terms, bound.position.offset)
        return f"Index({bound.tensor}_g({at}))"


def local(index: str) -> str:
    """The variable that holds an element's place within its tile."""
    return f"{index}_i"


def _along(indices: tuple[str, ...]) -> str:
    """Several indices as one, the last the innermost."""
    return flat(tuple(map(local, indices)), tuple(map(count, indices)))


def _wide(dtype: str) -> str:
    """The dtype that is computed with."""
    return "f32" if dtype in ("f16", "bf16", "tf32") else dtype
