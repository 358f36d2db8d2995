"""Scatters: elements written, added or reduced at places that other tensors hold.

What overwrites is a gather: of the updates that go to an element, the last one wins. PyTorch leaves
open which one does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from frontends.aten.dynamic import Chosen
from frontends.aten.index import Indexed, Places, line, wrapped
from frontends.aten.ranks import swapped
from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed, linear, unravelled
from frontends.expressions import Term, both, call, cast, expr, product, where
from ir.dtypes import is_float
from ir.errors import KernelError
from ir.functions import IDENTITY
from ir.spec import Apply, Expr, Number

REDUCTIONS = {
    "sum": "sum",
    "add": "sum",
    "prod": "prod",
    "multiply": "prod",
    "mean": "sum",
    "amax": "max",
    "amin": "min",
}
_ENDS = {  # the least and the largest of integers
    "b8": (0, 1),
    "u8": (0, 2**8 - 1),
    "i8": (-(2**7), 2**7 - 1),
    "i16": (-(2**15), 2**15 - 1),
    "i32": (-(2**31), 2**31 - 1),
    "i64": (-(2**63), 2**63 - 1),
}


class Updates:
    """What `scatter` and its like write along a dimension: `y[.., index[k], ..] = source[k]`."""

    def __init__(self, b: Builder, shape: Sequence[Expr], dim: int, index: Value, source):
        self.b, self.shape, self.dim = b, tuple(shape), dim
        self.index, self.source = index, source

    @property
    def whole(self) -> bool:
        """Whether the updates have all of the target's other dimensions."""
        sizes = zip(self.index.shape, self.shape, strict=True)
        return all(a == c for d, (a, c) in enumerate(sizes) if d != self.dim)

    def hits(self, *at: Expr) -> tuple[Expr, tuple[Term, ...]]:
        """For positions in the target and one of an update along the dimension: whether it goes
        there, and its positions."""
        here = swapped(at[:-1], self.dim, at[-1])
        place = self.index.at(*here, pad=None if self.whole else -1.0)
        return Apply("eq", (place, at[self.dim])), here

    def value(self, here: Sequence[Term], dtype: str) -> Expr:
        """An update, in a dtype to compute with."""
        if not isinstance(self.source, Value):
            return cast(dtype, self.source)
        fits = self.source.shape == self.shape or self.source.shape == self.index.shape
        read = self.source.at(*here, pad=None if fits and self.whole else 0.0)
        return read if self.source.dtype == dtype else cast(dtype, read)

    def last(self) -> Value:
        """The last update that goes to each element, -1 where there is none."""

        def which(*at: Expr) -> Expr:
            return where(self.hits(*at)[0], at[-1], -1)

        meta = Meta("i32", self.shape)
        return self.b.reduce("max", meta, (self.index.shape[self.dim],), which, "last")

    def reduced(self, kind: str, dtype: str, identity: Term) -> Value:
        """The reduction of all that goes to each element."""
        meta = Meta(dtype, self.shape)
        over = self.index.shape
        if kind == "sum" and self.whole and self._inside():
            return self.b.scatter(
                meta,
                over,
                lambda *at: swapped(at, self.dim, self.index.at(*at)),
                lambda *at: self.value(at, dtype),
                "added",
            )

        def one(*at: Expr) -> Expr:
            hit, here = self.hits(*at)
            return where(hit, self.value(here, dtype), identity)

        return self.b.reduce(kind, meta, (over[self.dim],), one, "reduced")

    def _inside(self) -> bool:
        return not isinstance(self.source, Value) or self.source.shape == self.index.shape

    def count(self) -> Value:
        """How many updates go to each element."""
        return Updates(self.b, self.shape, self.dim, self.index, 1).reduced("sum", "i32", 0)


@rule("scatter")
def scatter(
    b: Builder,
    out: Meta,
    self: Value,
    dim: int,
    index: Value,
    src: Value | None = None,
    value: Term = 0,
    reduce: str | None = None,
) -> Value:
    source = value if src is None else src
    if reduce is not None:
        return scatter_reduce(b, out, self, dim, index, source, reduce)
    if not self.rank:
        return _flat(b, out, scatter, self, index, source)
    updates = Updates(b, self.shape, dim % self.rank, index, source)
    last = updates.last()

    def element(*at: Expr) -> Expr:
        update = last.at(*at)
        here = swapped(at, updates.dim, call("maximum", update, 0))
        return where(update < 0, self.at(*at), updates.value(here, out.dtype))

    return b.define(out, element)


@rule("scatter_add")
def scatter_add(b: Builder, out: Meta, self: Value, dim: int, index: Value, src: Value) -> Value:
    return scatter_reduce(b, out, self, dim, index, src, "sum")


@rule("gather_backward")
def gather_backward(
    b: Builder,
    out: Meta,
    grad: Value,
    self: Value,
    dim: int,
    index: Value,
    sparse_grad: bool = False,
) -> Value:
    if sparse_grad:
        raise KernelError(
            "the gradient of gather is sparse", allowed="sparse_grad=False", hint="leave it out"
        )
    if not self.rank or not index.rank:
        made = gather_backward(
            b,
            Meta(out.dtype, line(b, self).shape),
            line(b, grad),
            line(b, self),
            0,
            line(b, index),
        )
        return b.reshape(made, out.shape)
    wide = computed(out.dtype)
    added = Updates(b, self.shape, dim % self.rank, index, grad).reduced("sum", wide, 0)
    return b.define(out, added.at)


@rule("scatter_reduce")
def scatter_reduce(
    b: Builder,
    out: Meta,
    self: Value,
    dim: int,
    index: Value,
    src: Value | Term,
    reduce: str,
    include_self: bool = True,
) -> Value:
    if not self.rank:
        return _flat(b, out, scatter_reduce, self, index, src, reduce, include_self)
    kind = REDUCTIONS[reduce]
    wide = computed(out.dtype)
    identity = _identity(kind, wide)
    updates = Updates(b, self.shape, dim % self.rank, index, src)
    found = updates.reduced(kind, wide, identity)
    counted = updates.count() if reduce == "mean" or not include_self else None

    def element(*at: Expr) -> Expr:
        own = self.wide(*at)
        made = _joined(kind, own, found.at(*at)) if include_self else found.at(*at)
        if reduce == "mean":
            many = counted.at(*at) + (1 if include_self else 0)
            made = _mean(made, cast(wide, call("maximum", many, 1)), wide)
        return made if include_self else where(counted.at(*at) > 0, made, own)

    return b.define(out, element)


@rule("index_add")
def index_add(
    b: Builder, out: Meta, self: Value, dim: int, index: Value, source: Value, alpha: Term = 1
) -> Value:
    wide = computed(out.dtype)
    index = line(b, index)
    if not self.rank:
        self, source = line(b, self), line(b, source)
        made = index_add(b, self.meta, self, 0, index, source, alpha)
        return b.reshape(made, out.shape)
    dim %= self.rank
    source = source if source.rank else b.reshape(source, index.shape)
    added = b.scatter(
        Meta(wide, self.shape),
        source.shape,
        lambda *at: swapped(at, dim, index.at(at[dim])),
        lambda *at: source.wide(*at),
        "added",
    )
    scaled = (lambda y: y) if alpha == 1 else (lambda y: y * alpha)
    return b.define(out, lambda *at: self.wide(*at) + scaled(added.at(*at)))


@rule("index_copy")
def index_copy(b: Builder, out: Meta, self: Value, dim: int, index: Value, source: Value) -> Value:
    if not self.rank:
        return b.define(out, lambda: source.at(*(Number(0) for _ in source.shape)))
    dim, index = dim % self.rank, line(b, index)
    source = source if source.rank else b.reshape(source, index.shape)
    last = _last(b, index, self.shape[dim], negative=False)

    def element(*at: Expr) -> Expr:
        update = last.at(at[dim])
        here = swapped(at, dim, call("maximum", update, 0))
        return where(update < 0, self.at(*at), source.at(*here))

    return b.define(out, element)


@rule("index_fill")
def index_fill(
    b: Builder, out: Meta, self: Value, dim: int, index: Value, value: Value | Term
) -> Value:
    index = line(b, index)
    if not self.rank:
        return b.define(out, lambda: b.operand(value, (), out.dtype))
    dim %= self.rank
    last = _last(b, index, self.shape[dim], negative=True)

    def element(*at: Expr) -> Expr:
        return where(last.at(at[dim]) < 0, self.at(*at), b.operand(value, at, out.dtype))

    return b.define(out, element)


@rule("index_put", "_unsafe_index_put")
def index_put(
    b: Builder, out: Meta, self: Value, indices: Places, values: Value, accumulate: bool = False
) -> Value:
    if any(i is not None and i.dtype in ("b8", "u8") for i in indices):
        return _put_where(b, out, self, indices, values, accumulate)
    found = Indexed(b, self.shape, indices)
    if accumulate:
        return _put_added(b, out, self, found, values)
    inner = found.broadcast

    def which(*at: Expr) -> Expr:
        own, update = at[: len(found.dims)], at[len(found.dims) :]
        places = found.places(update).values()
        hit = both(*(Apply("eq", pair) for pair in zip(places, own, strict=True)))
        return where(hit, linear(update, inner), -1)

    meta = Meta("i32", tuple(self.shape[d] for d in found.dims))
    last = b.reduce("max", meta, inner, which, "last")

    def element(*at: Expr) -> Expr:
        update = last.at(*(at[d] for d in found.dims))
        here = unravelled(call("maximum", update, 0), inner)
        source = found.joined(here, tuple(at[d] for d in found.rest))
        return where(update < 0, self.at(*at), b.operand(values, source, out.dtype))

    return b.define(out, element)


def _put_added(b: Builder, out: Meta, self: Value, found: Indexed, values: Value) -> Value:
    wide = computed(out.dtype)
    rest = tuple(self.shape[d] for d in found.rest)
    over = found.joined(found.broadcast, rest)
    added = b.scatter(
        Meta(wide, self.shape),
        over,
        lambda *at: found.source(at),
        lambda *at: b.operand(values, at, wide),
        "added",
    )
    return b.define(out, lambda *at: self.wide(*at) + added.at(*at))


def _put_where(
    b: Builder, out: Meta, self: Value, indices: Places, values: Value, accumulate: bool
) -> Value:
    """Values at the places where a mask is true, in order."""
    given = [i for i in indices if i is not None]
    if len(given) > 1:
        raise KernelError(
            "a tensor is indexed with a mask and with more",
            allowed="one mask",
            hint="write with the mask only: `torch.where(mask, values, x)`",
        )
    mask, start = given[0], list(indices).index(given[0])
    chosen = None
    inner = values.rank - (self.rank - mask.rank - start)  # values' dimensions up to the mask's
    if inner > 0 and values.shape[inner - 1] != Number(1):
        chosen = Chosen(b, product(mask.shape), lambda i: mask.at(*unravelled(i, mask.shape)))

    def element(*at: Expr) -> Expr:
        own = at[start : start + mask.rank]
        number: Term = 0
        if chosen is not None:
            number = call("maximum", chosen.before.at(linear(own, mask.shape)) - 1, 0)
        source = (*at[:start], expr(number), *at[start + mask.rank :])
        value = b.operand(values, source, computed(out.dtype))
        value = self.wide(*at) + value if accumulate else value
        return where(mask.at(*own), value, self.wide(*at))

    return b.define(out, element)


def _last(b: Builder, index: Value, size: Expr, negative: bool) -> Value:
    """The last entry of an index that points to each place, -1 where none does."""

    def which(p: Expr, k: Expr) -> Expr:
        place = wrapped(index.at(k), size) if negative else index.at(k)
        return where(Apply("eq", (place, p)), k, -1)

    return b.reduce("max", Meta("i32", (size,)), index.shape, which, "last")


def _flat(
    b: Builder,
    out: Meta,
    of: Callable[..., Value],
    self: Value,
    index: Value,
    source: Value | Term,
    *more: object,
) -> Value:
    """A rule for a tensor without dimensions, through one of a single element."""
    self, index = line(b, self), line(b, index)
    source = line(b, source) if isinstance(source, Value) else source
    if of is scatter and not isinstance(source, Value):
        return b.reshape(scatter(b, self.meta, self, 0, index, value=source), out.shape)
    return b.reshape(of(b, self.meta, self, 0, index, source, *more), out.shape)


def _identity(kind: str, dtype: str) -> Term:
    if kind in ("sum", "prod"):
        return int(IDENTITY[kind])
    if is_float(dtype):
        return IDENTITY[kind]
    return cast(dtype, _ENDS[dtype][kind == "min"])


def _joined(kind: str, a: Expr, b: Expr) -> Expr:
    return call({"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}[kind], a, b)


def _mean(total: Expr, count: Expr, dtype: str) -> Expr:
    return total / count if is_float(dtype) else total // count


@rule("bincount")
def bincount(b: Builder, out: object, self: Value, **_: object) -> NoReturn:
    raise KernelError(
        "`bincount` has as many results as its largest entry says",
        allowed="a result whose size is known",
        hint="with n bins: `torch.zeros(n).index_add(0, x, weights)`, or `F.one_hot(x, n).sum(0)`",
    )
