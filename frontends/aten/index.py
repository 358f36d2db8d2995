"""Gathers: elements read at places that other tensors hold, and masks."""

from __future__ import annotations

from collections.abc import Sequence

from frontends.aten.dynamic import broadcast_shape, nonzero
from frontends.aten.ranks import swapped
from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value
from frontends.expressions import cast, product, where
from ir.errors import KernelError
from ir.spec import Apply, Expr, Number

Places = Sequence[Value | None]  # what indexes each of the first dimensions; None for all of it


def wrapped(place: Expr, size: Expr) -> Expr:
    """A position that counts from the end where it is negative."""
    return where(place < 0, place + size, place)


def line(b: Builder, value: Value) -> Value:
    """A tensor without dimensions as one of a single element; any other as it is."""
    return value if value.rank else b.reshape(value, (1,))


@rule("gather")
def gather(
    b: Builder, out: Meta, self: Value, dim: int, index: Value, sparse_grad: bool = False
) -> Value:
    if not self.rank or not index.rank:
        self, index = line(b, self), line(b, index)
        return b.reshape(gather(b, Meta(out.dtype, index.shape), self, 0, index), out.shape)
    dim %= self.rank
    return b.define(out, lambda *at: self.at(*swapped(at, dim, index.at(*at))))


@rule("take_along_dim")
def take_along_dim(
    b: Builder, out: Meta, self: Value, indices: Value, dim: int | None = None
) -> Value:
    if dim is None:
        return take(b, out, self, indices)
    dim %= self.rank

    def element(*at: Expr) -> Expr:
        own = list(b.broadcast(self, at))
        return self.at(*swapped(own, dim, indices.at(*b.broadcast(indices, at))))

    return b.define(out, element)


@rule("index_select")
def index_select(b: Builder, out: Meta, self: Value, dim: int, index: Value) -> Value:
    index = line(b, index)
    if not self.rank:
        return b.define(out, lambda: self.at())
    dim %= self.rank
    return b.define(out, lambda *at: self.at(*swapped(at, dim, index.at(at[dim]))))


@rule("take")
def take(b: Builder, out: Meta, self: Value, index: Value) -> Value:
    flat = b.reshape(self, (_total(self),))
    return b.define(out, lambda *at: flat.at(wrapped(index.at(*at), flat.shape[0])))


@rule("one_hot")
def one_hot(b: Builder, out: Meta, self: Value, num_classes: int = -1) -> Value:
    def hot(*at: Expr) -> Expr:
        return cast(out.dtype, Apply("eq", (self.at(*at[:-1]), at[-1])))

    return b.define(out, hot)


@rule("masked_scatter")
def masked_scatter(b: Builder, out: Meta, self: Value, mask: Value, source: Value) -> Value:
    if not out.shape:
        first = b.reshape(source, (_total(source),))
        return b.define(out, lambda: where(mask.at(), first.at(0), self.at()))
    whole = b.define(Meta("b8", out.shape), lambda *at: b.operand(mask, at), "mask")
    size = _total(whole)
    flat, given = b.reshape(whole, (size,)), b.reshape(source, (_total(source),))
    before = b.scan("sum", Meta("i32", (size,)), 0, lambda i: where(flat.at(i), 1, 0), "before")
    taken = b.reshape(before, out.shape)

    def element(*at: Expr) -> Expr:
        chosen = given.at(taken.at(*at) - 1, pad=0.0)
        return where(whole.at(*at), chosen, b.operand(self, at))

    return b.define(out, element)


class Indexed:
    """An indexing `x[i, :, j]`: which dimensions have which index, and where the dimensions of
    the indices stand in the result."""

    def __init__(self, b: Builder, shape: Sequence[Expr], indices: Places):
        self.b, self.shape = b, tuple(shape)
        self.dims = [d for d, index in enumerate(indices) if index is not None]
        self.indices = [index for index in indices if index is not None]
        self.rank = max((i.rank for i in self.indices), default=0)  # of what is broadcast
        alone = self.dims == list(range(self.dims[0], self.dims[-1] + 1)) if self.dims else True
        self.start = self.dims[0] if alone and self.dims else 0
        self.rest = [d for d in range(len(shape)) if d not in self.dims]

    @property
    def broadcast(self) -> tuple[Expr, ...]:
        """The sizes of the indices together."""
        return broadcast_shape([i.shape for i in self.indices])

    def split(self, at: Sequence[Expr]) -> tuple[Sequence[Expr], dict[int, Expr]]:
        """Positions of the result as those of the indices, and those of the other dimensions."""
        end = self.start + self.rank
        others = (*at[: self.start], *at[end:])
        return at[self.start : end], dict(zip(self.rest, others, strict=True))

    def joined(self, inner: Sequence[Expr], others: Sequence[Expr]) -> tuple[Expr, ...]:
        """Positions of the result from those of the indices and those of the other dimensions."""
        return (*others[: self.start], *inner, *others[self.start :])

    def places(self, inner: Sequence[Expr]) -> dict[int, Expr]:
        """Where the indices point, by dimension."""
        return {
            d: wrapped(index.at(*self.b.broadcast(index, inner)), self.shape[d])
            for d, index in zip(self.dims, self.indices, strict=True)
        }

    def source(self, at: Sequence[Expr]) -> tuple[Expr, ...]:
        """Where an element of the result comes from."""
        inner, others = self.split(at)
        found = {**self.places(inner), **others}
        return tuple(found[d] for d in range(len(self.shape)))


@rule("index", "_unsafe_index")
def index(b: Builder, out: Meta, self: Value, indices: Places) -> Value:
    masks = [i for i in indices if i is not None and i.dtype in ("b8", "u8")]
    count = None
    if masks:
        indices, count = _unmasked(b, indices)
    found = Indexed(b, self.shape, indices)
    if count is None:
        return b.define(out, lambda *at: self.at(*found.source(at)))
    shape = list(out.shape)
    shape[found.start] = found.broadcast[0]
    made = b.define(Meta(out.dtype, tuple(shape)), lambda *at: self.at(*found.source(at)))
    return b.counted(made, count, found.start)


def _unmasked(b: Builder, indices: Places) -> tuple[Places, Value]:
    """Indices with a mask as the places where it is true, and how many these are."""
    given = [i for i in indices if i is not None]
    if len(given) > 1 or not given[0].rank:
        raise KernelError(
            "a tensor is indexed with a mask and with more",
            allowed="one mask, of at least 1-D",
            hint="index twice, the second time with the mask",
        )
    mask = given[0]
    places = nonzero(b, Meta("i64", (_total(mask), Number(mask.rank))), mask)
    count, _ = b.counts[places.name]
    line = Meta("i64", places.shape[:1])
    columns = [b.define(line, lambda i, d=d: places.at(i, d)) for d in range(mask.rank)]
    made: list[Value | None] = []
    for i in indices:
        made += [None] if i is None else columns
    return made, b.values[count]


def _total(value: Value) -> Expr:
    return product(value.shape)
