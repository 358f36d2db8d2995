"""A builder: tensors and equations as rules make them, one operator after another.

What it holds is a spec of its own at any time. Index names are of one equation each; which
equations share a kernel, and so an index, is decided later (`ir/partition/partition.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from frontends.expressions import Term, both, call, cast, constant, expr, plus, product, where
from ir.dtypes import Dtypes, is_float, promote, strong
from ir.parse.expression import RESERVED
from ir.spec import (
    Bucketize,
    Equation,
    Expr,
    Index,
    Number,
    Range,
    Read,
    Reduce,
    Scan,
    Spec,
    Tensor,
)

NARROW = ("f16", "bf16")  # floats that PyTorch computes with as f32
Shape = tuple[Expr, ...]
Body = Callable[..., Term]
Segment = Callable[..., tuple[Expr, Expr]]
Places = Callable[..., Sequence[Term]]  # in a tensor


@dataclass(frozen=True, slots=True)
class Meta:
    """What is known of a result before it is computed."""

    dtype: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor: an input, or what an equation defines."""

    name: str
    dtype: str
    shape: Shape  # sizes, as expressions

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def meta(self) -> Meta:
        return Meta(self.dtype, self.shape)

    def at(self, *positions: Term, pad: float | None = None) -> Expr:
        """An element. pad: what a position outside reads as."""
        if len(positions) != self.rank:
            raise AssertionError(f"`{self.name}` has {self.rank} dimensions, not {len(positions)}")
        return Read(self.name, tuple(map(expr, positions)), pad)

    def wide(self, *positions: Term, pad: float | None = None) -> Expr:
        """An element to compute with: f32 where the tensor holds 16-bit floats."""
        read = self.at(*positions, pad=pad)
        return cast("f32", read) if self.dtype in NARROW else read


def computed(dtype: str) -> str:
    """The dtype in which values of a dtype are computed: f32 for 16-bit floats."""
    return "f32" if dtype in NARROW else dtype


class Builder:
    """Equations under construction.

    aliases: results that hold the elements of another tensor in the same order, under another
    shape.  counts: results whose size along a dimension depends on data: the tensor has its largest
    size there, and only what lies below a count, an i64 without dimensions, is the result: by
    name, the count's name and the dimension.  drawn: how many random numbers are drawn already.
    stem: what tensors are called that are given no name: after the operator at work.  joins: by
    dtype, dimension and names, what tensors put together are.
    """

    def __init__(self, drawn: Expr = Number(0)) -> None:
        self.inputs: list[Value] = []
        self.equations: list[Equation] = []
        self.values: dict[str, Value] = {}
        self.aliases: dict[str, str] = {}
        self.counts: dict[str, tuple[str, int]] = {}
        self.joins: dict[tuple[str, int, tuple[str, ...]], Value] = {}
        self.stem = "t"
        self._dtypes: dict[str, str] = {}
        self._indices = 0
        self.drawn = drawn
        self.seeded: Value | None = None

    def input(self, name: str, dtype: str, shape: Sequence[Expr | int]) -> Value:
        """A tensor that is given."""
        made = self._made(name, Meta(dtype, tuple(map(expr, shape))))
        self.inputs.append(made)
        return made

    def seed(self) -> Value:
        """The input that all random numbers are drawn from: `seed: i64[1]`."""
        self.seeded = self.seeded or self.input("seed", "i64", [1])
        return self.seeded

    def draw(self, count: Expr | int) -> Callable[[Term], Expr]:
        """`count` random numbers, uniform in [0, 1), that nothing else draws: a function of the
        place of one, from 0."""
        seed, first = self.seed(), self.drawn
        self.drawn = plus(first, expr(count))

        def at(place: Term) -> Expr:
            return call("uniform", seed.at(0), plus(first, expr(place)))

        return at

    def define(self, meta: Meta, body: Body, name: str = "") -> Value:
        """`t[i, j] = body(i, j)`, rounded to the dtype of `meta`. The body may be a reduction, of
        `reduce`, or a scan."""
        at = self.indices(len(meta.shape))
        return self._stored(meta, at, expr(body(*at)), name)

    def reduce(
        self,
        kind: str,
        meta: Meta,
        over: Sequence[Expr | int | Segment],
        body: Body,
        name: str = "",
    ) -> Value:
        """`t[i] = sum(body(i, k), k)`. kind: of `ir.functions.REDUCTIONS`.  over: the sizes of the
        reduced indices; of one, a function of the result's indices that gives both ends, as reads
        of 1-D tensors.  body: is given the indices of the result, then the reduced ones. One of
        size 1 that it does not have is left out."""
        at = self.indices(len(meta.shape))
        reduced = self.indices(len(over))
        value = expr(body(*at, *reduced))
        ends = [size(*at) if callable(size) else (Number(0), expr(size)) for size in over]
        ranges = tuple(
            Range(i.name, low, high)
            for i, (low, high) in zip(reduced, ends, strict=True)
            if constant(high) != 1 or i in value.walk()
        )
        if not ranges:
            return self._stored(meta, at, Number(0) if kind.startswith("arg") else value, name)
        value = Reduce(kind, value, tuple(r.index for r in ranges), ranges)
        return self._stored(meta, at, value, name)

    def scan(
        self,
        kind: str,
        meta: Meta,
        dim: int,
        body: Body,
        name: str = "",
        reverse: bool = False,
        exclusive: bool = False,
    ) -> Value:
        """`t[i, k] = cumsum(body(i, k), k)` along one dimension. kind: sum, prod, max or min."""
        at = self.indices(len(meta.shape))
        value = expr(body(*at))
        if exclusive or constant(meta.shape[dim]) != 1:
            value = Scan(kind, value, at[dim].name, reverse, exclusive)
        return self._stored(meta, at, value, name)

    def scatter(
        self, meta: Meta, over: Sequence[Expr | int], to: Places, body: Body, name: str = ""
    ) -> Value:
        """`t[to(k)...] += body(k)` for all k, from zeros. over: the sizes of k, which reads of
        tensors must tell too.  to: gives the positions, of which one at least is no plain index;
        those outside are the caller's fault. The language has no sizes for it: it is returned, or
        something reads it at plain indices, which gives it its own."""
        at = self.indices(len(over))
        positions, value = tuple(map(expr, to(*at))), expr(body(*at))
        if not any(isinstance(n, Index) for e in (*positions, value) for n in e.walk()):
            return self.define(meta, lambda *own: where(_equal(positions, own), value, 0), name)
        made = self._made(name, meta)
        self.equations.append(Equation(made.name, positions, value, accumulate=True))
        return made

    def declare(self, meta: Meta, name: str = "") -> Value:
        """A tensor that is read before its equation stands, as recurrences do; see `settle`."""
        return self._made(name, meta)

    def settle(
        self,
        value: Value,
        body: Body,
        over: Sequence[Expr | int] = (),
        kind: str = "sum",
        step: Index | None = None,
    ) -> None:
        """The equation of a declared tensor; with `over`, a reduction as of `reduction`. step: the
        index of the first dimension, which all equations of a recurrence share; see `indices`."""
        at, reduced = self.indices(value.rank), self.indices(len(over))
        at = (step, *at[1:]) if step else at
        made = expr(body(*at, *reduced))
        if reduced:
            ranges = tuple(
                Range(i.name, Number(0), expr(s)) for i, s in zip(reduced, over, strict=True)
            )
            made = Reduce(kind, made, tuple(i.name for i in reduced), ranges)
        self.equations.append(Equation(value.name, at, made, sizes=value.shape))

    def pointwise(
        self,
        meta: Meta,
        function: Body,
        *operands: Value | Term,
        compute: str | None = None,
        name: str = "",
    ) -> Value:
        """`t[i, j] = function(a[i, j], b[j], 2.0)`, broadcast as PyTorch does.

        compute: the dtype in which operands meet; else the result's where that is a float, with f32
        for 16 bits, and for other results what the operands promote to.
        """
        kinds = [o.dtype for o in operands if isinstance(o, Value)]
        if compute is None and is_float(meta.dtype):
            compute = computed(meta.dtype)
        elif compute is None and kinds:
            compute = kinds[0]
            for kind in kinds[1:]:
                compute = promote(compute, kind)
            compute = computed(compute)

        def body(*at: Index) -> Expr:
            return expr(function(*(self.operand(o, at, compute) for o in operands)))

        return self.define(meta, body, name)

    def operand(self, operand: Value | Term, at: Sequence[Term], dtype: str | None = None) -> Expr:
        """What an operand has at a result's positions, broadcast, in a dtype or as it is."""
        if not isinstance(operand, Value):
            return expr(operand)
        read = operand.at(*self.broadcast(operand, at))
        return read if dtype in (None, operand.dtype) else cast(dtype, read)

    def broadcast(self, value: Value, at: Sequence[Term]) -> tuple[Expr, ...]:
        """Where a result's positions read a tensor that is broadcast to it: from the last
        dimension, 0 where it has one element."""
        last = at[len(at) - value.rank :]
        return tuple(
            Number(0) if constant(size) == 1 else expr(i)
            for i, size in zip(last, value.shape, strict=True)
        )

    def reshape(self, value: Value, shape: Sequence[Expr | int], name: str = "") -> Value:
        """The same elements in the same order under another shape."""
        sizes = tuple(map(expr, shape))
        if sizes == value.shape:
            return value

        def body(*at: Index) -> Expr:
            place = linear(at, sizes)
            return value.at(*unravelled(place, value.shape))

        made = self.define(Meta(value.dtype, sizes), body, name)
        self.aliases[made.name] = value.name
        return made

    def counted(self, value: Value, count: Value, dim: int = 0) -> Value:
        """The value, of which only what lies below a count along a dimension is the result."""
        self.counts[value.name] = (count.name, dim)
        return value

    def copy(self, value: Value, name: str = "") -> Value:
        """An equation of its own for the same elements."""
        return self.define(value.meta, value.at, name)

    def bucketize(self, term: Term, borders: Value) -> Expr:
        """How many entries of sorted borders are less than a term, which is compared in their
        dtype where that holds it."""
        value = expr(term)
        found = self.dtype_of(value)
        if found != borders.dtype and promote(found, borders.dtype) == borders.dtype:
            value = cast(borders.dtype, value)
        return Bucketize(value, borders.name)

    def indices(self, count: int) -> tuple[Index, ...]:
        """Indices that no other equation has."""
        made: list[Index] = []
        while len(made) < count:
            name = f"i{self._indices}"
            self._indices += 1
            if name not in RESERVED:  # i8 is a dtype
                made.append(Index(name))
        return tuple(made)

    def fresh(self, name: str) -> str:
        """A tensor's name that is not taken, nor a word of the language; without one, after the
        operator at work."""
        stem, number = name or self.stem, 1
        made = stem
        while made in self.values or made in RESERVED:
            number += 1
            made = f"{stem}_{number}"
        return made

    def dtype_of(self, value: Expr) -> str:
        """The dtype of an expression over what is defined."""
        return strong(Dtypes(self._dtypes, {}).of(value))

    def _stored(self, meta: Meta, at: tuple[Index, ...], value: Expr, name: str) -> Value:
        found = self.dtype_of(value)
        if found != meta.dtype and isinstance(value, Reduce | Scan):
            whole = self._stored(Meta(found, meta.shape), at, value, f"{name or self.stem}_sum")
            at = self.indices(len(at))
            value = whole.at(*at)
        made = self._made(name, meta)
        if found != meta.dtype:
            value = cast(meta.dtype, value)
        self.equations.append(Equation(made.name, at, value, sizes=meta.shape))
        return made

    def _made(self, name: str, meta: Meta) -> Value:
        """A tensor under a name that is not taken."""
        made = Value(self.fresh(name), meta.dtype, meta.shape)
        self.values[made.name], self._dtypes[made.name] = made, made.dtype
        return made

    def spec(self, name: str, outputs: Sequence[Value], doc: str = "") -> Spec:
        """What the outputs need, as a spec. An output that is an input is copied."""
        given = {v.name for v in self.inputs}
        kept = [self.copy(v, f"{v.name}_out") if v.name in given else v for v in outputs]
        tensors = [Tensor(v.name, v.dtype, v.shape) for v in kept]
        needed = self._needed({v.name for v in kept})
        return Spec(
            name,
            doc or name,
            tuple(Tensor(v.name, v.dtype, v.shape) for v in self.inputs if v.name in needed),
            tuple(dict.fromkeys(tensors)),
            tuple(e for e in self.equations if e.target in needed),
        )

    def _needed(self, names: set[str]) -> set[str]:
        """These tensors and all that they are computed from."""
        defined = {e.target: e for e in self.equations}
        found, todo = set(names), list(names)
        while todo:
            e = defined.get(todo.pop())
            fresh = set(e.sources()) - found if e else set()
            found |= fresh
            todo.extend(fresh)
        return found


def _equal(positions: Sequence[Expr], others: Sequence[Expr]) -> Expr:
    return both(*(call("eq", a, b) for a, b in zip(positions, others, strict=True)))


def linear(at: Sequence[Expr], shape: Shape) -> Expr:
    """The place of an element in row-major order."""
    place: Expr = Number(0)
    for position, size in zip(at, shape, strict=True):
        place = position if place == Number(0) else place * size + position
    return place


def unravelled(place: Expr, shape: Shape) -> tuple[Expr, ...]:
    """Positions of the element at a place in row-major order."""
    made: list[Expr] = []
    below: Expr = Number(1)
    for n, size in reversed(list(enumerate(shape))):
        position = place if below == Number(1) else place // below
        if constant(size) == 1:
            position = Number(0)
        elif n and any(constant(s) != 1 for s in shape[:n]):
            position = position % size
        made.insert(0, position)
        below = product((below, size))
    return tuple(made)
