"""Joins and parts: tensors put together along a dimension, taken apart, and repeated."""

from __future__ import annotations

from collections.abc import Sequence

from frontends.aten.table import rule
from frontends.aten.views import clipped, stepped
from frontends.axes import axis
from frontends.builder import Builder, Meta, Value
from frontends.expressions import both, call, cast, constant, expr, plus, times, where
from frontends.positions import counted, moved
from ir.errors import KernelError
from ir.spec import Expr, Index, Number

_IN_A_ROW = 16  # pieces that are asked for one after the other
_MANY = 4  # tensors that are taken as one where they were put together before
Metas = Meta | tuple[Meta, ...]


def _in(dtype: str, read: Expr, value: Value) -> Expr:
    return read if value.dtype == dtype else cast(dtype, read)


def _chosen(place: Expr, pieces: Sequence[tuple[Expr, Expr]]) -> Expr:
    """Of pieces, each with its end, the one that a place is in. Many are split in halves, so that
    expressions are no deeper than the language's tools can walk."""
    if len(pieces) == 1:
        return pieces[0][1]
    first = len(pieces) // 2 if len(pieces) > _IN_A_ROW else 1
    before, after = pieces[:first], pieces[first:]
    return where(place < before[-1][0], _chosen(place, before), _chosen(place, after))


@rule("cat", "concat", "concatenate")
def cat(b: Builder, out: Meta, tensors: Sequence[Value], dim: int = 0) -> Value:
    """Empty tensors of one dimension join anything, as in PyTorch."""
    tensors = [t for t in tensors if tuple(map(constant, t.shape)) != (0,)]
    dim = axis(dim, len(out.shape))
    if len(tensors) == 1 and tensors[0].meta == out:
        return tensors[0]
    names = tuple(t.name for t in tensors)
    tensors = _with_known(b, tensors, out.dtype, dim)

    def joined(*at: Index) -> Expr:
        pieces, start = [], expr(0)
        for t in tensors:
            end = plus(start, t.shape[dim])
            place = at[dim] if start == Number(0) else at[dim] - start
            read = t.at(*moved(at, dim, place), pad=0.0)
            pieces.append((end, _in(out.dtype, read, t)))
            start = end
        return _chosen(at[dim], pieces)

    b.joins[out.dtype, dim, names] = made = b.define(out, joined)
    return made


def _with_known(b: Builder, tensors: list[Value], dtype: str, dim: int) -> list[Value]:
    """The tensors, those at the head that were put together before as that one: each layer of a
    dense block takes all that the layers before it made."""
    names = tuple(t.name for t in tensors)
    for count in range(len(tensors), _MANY - 1, -1):
        if known := b.joins.get((dtype, dim, names[:count])):
            return [known, *tensors[count:]]
    return tensors


@rule("stack")
def stack(b: Builder, out: Meta, tensors: Sequence[Value], dim: int = 0) -> Value:
    dim = axis(dim, len(out.shape))

    def stacked(*at: Index) -> Expr:
        rest = at[:dim] + at[dim + 1 :]
        if len(tensors) > _IN_A_ROW:
            reads = (_in(out.dtype, t.at(*rest), t) for t in tensors)
            return _chosen(at[dim], [(expr(n + 1), read) for n, read in enumerate(reads)])
        made = _in(out.dtype, tensors[-1].at(*rest), tensors[-1])
        for n, t in reversed(list(enumerate(tensors[:-1]))):
            made = where(call("eq", at[dim], n), _in(out.dtype, t.at(*rest), t), made)
        return made

    return b.define(out, stacked)


@rule("hstack")
def hstack(b: Builder, out: Meta, tensors: Sequence[Value]) -> Value:
    return cat(b, out, [b.reshape(t, t.shape or (1,)) for t in tensors], min(len(out.shape) - 1, 1))


@rule("vstack", "row_stack")
def vstack(b: Builder, out: Meta, tensors: Sequence[Value]) -> Value:
    """Those of fewer than two dimensions are rows."""
    wide = [t if t.rank > 1 else b.reshape(t, (1, *(t.shape or (1,)))) for t in tensors]
    return cat(b, out, wide, 0)


@rule("dstack")
def dstack(b: Builder, out: Meta, tensors: Sequence[Value]) -> Value:
    """Those of fewer than three dimensions lie in the first two."""
    deep = {0: lambda s: (1, 1, 1), 1: lambda s: (1, *s, 1), 2: lambda s: (*s, 1)}
    shaped = [t if t.rank > 2 else b.reshape(t, deep[t.rank](t.shape)) for t in tensors]
    return cat(b, out, shaped, 2)


@rule(
    "split",
    "split_copy",
    "split_with_sizes",
    "split_with_sizes_copy",
    "chunk",
    "tensor_split",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "unsafe_chunk",
)
def split(
    b: Builder, out: Metas, self: Value, *_: object, dim: int = 0, **__: object
) -> tuple[Value, ...]:
    """Parts that follow each other along a dimension; PyTorch has worked out their sizes."""
    dim = axis(dim, self.rank)
    parts, start = [], expr(0)
    for meta in out if isinstance(out, tuple) else (out,):
        parts.append(_part(b, meta, self, dim, start))
        start = plus(start, meta.shape[dim])
    return tuple(parts)


def _part(b: Builder, out: Meta, self: Value, dim: int, start: Expr) -> Value:
    if self.shape == out.shape:
        return self
    return b.define(out, lambda *at: self.at(*moved(at, dim, stepped(at[dim], start))))


@rule("unbind", "unbind_copy")
def unbind(b: Builder, out: Metas, self: Value, dim: int = 0) -> tuple[Value, ...]:
    """The parts along a dimension; where the size of another depends on data, so do theirs."""
    dim = axis(dim, self.rank)
    shape = (*self.shape[:dim], *self.shape[dim + 1 :])

    def part(n: int, meta: Meta) -> Value:
        made = b.define(
            Meta(meta.dtype, shape), lambda *at: self.at(*at[:dim], Number(n), *at[dim:])
        )
        if self.name not in b.counts:
            return made
        count, counted = b.counts[self.name]
        return b.counted(made, b.values[count], counted - (counted > dim))

    return tuple(part(n, m) for n, m in enumerate(out if isinstance(out, tuple) else (out,)))


@rule("slice_scatter")
def slice_scatter(
    b: Builder,
    out: Meta,
    self: Value,
    src: Value,
    dim: int = 0,
    start: int | Expr | None = None,
    end: int | Expr | None = None,
    step: int = 1,
) -> Value:
    """`self` with a slice of it replaced."""
    return _sliced(b, out, self, src, axis(dim, self.rank), start, step)


@rule("slice_backward")
def slice_backward(
    b: Builder,
    out: Meta,
    grad_output: Value,
    input_sizes: Sequence[int],
    dim: int,
    start: int | Expr,
    end: int | Expr,
    step: int,
) -> Value:
    """Zeros, with a slice of them replaced."""
    return _sliced(b, out, None, grad_output, axis(dim, grad_output.rank), start, step)


def _sliced(
    b: Builder,
    out: Meta,
    self: Value | None,
    src: Value,
    dim: int,
    start: int | Expr | None,
    step: int,
) -> Value:
    first = clipped(start, out.shape[dim])

    def body(*at: Index) -> Expr:
        past = at[dim] - first
        held = [past >= 0, past < times(src.shape[dim], expr(step))]
        if step != 1:
            held.append(call("eq", past % step, 0))
        read = src.at(*moved(at, dim, past if step == 1 else past // step), pad=0.0)
        return where(both(*held), read, self.at(*at) if self else 0)

    return b.define(out, body)


@rule("select_scatter")
def select_scatter(
    b: Builder, out: Meta, self: Value, src: Value, dim: int, index: int | Expr
) -> Value:
    """`self` with one position of a dimension replaced."""
    return _selected(b, out, self, src, axis(dim, self.rank), index)


@rule("select_backward")
def select_backward(
    b: Builder,
    out: Meta,
    grad_output: Value,
    input_sizes: Sequence[int],
    dim: int,
    index: int | Expr,
) -> Value:
    """Zeros, with one position of a dimension replaced."""
    return _selected(b, out, None, grad_output, axis(dim, len(out.shape)), index)


def _selected(
    b: Builder, out: Meta, self: Value | None, src: Value, dim: int, index: int | Expr
) -> Value:
    place = counted(index, out.shape[dim])

    def body(*at: Index) -> Expr:
        read = src.at(*at[:dim], *at[dim + 1 :])
        return where(call("eq", at[dim], place), read, self.at(*at) if self else 0)

    return b.define(out, body)


@rule("repeat", "tile")
def repeat(b: Builder, out: Meta, self: Value, *_: object, **__: object) -> Value:
    """Whole copies side by side; a tensor of fewer dimensions has those in front with one."""

    def again(i: Index, have: Expr, want: Expr) -> Expr:
        if constant(have) == 1:
            return Number(0)
        return i if have == want else i % have

    def body(*at: Index) -> Expr:
        lead = len(at) - self.rank
        return self.at(*map(again, at[lead:], self.shape, out.shape[lead:]))

    return self if self.shape == out.shape else b.define(out, body)


@rule("repeat_interleave.self_int")
def repeat_interleave(
    b: Builder,
    out: Meta,
    self: Value,
    repeats: int,
    dim: int | None = None,
    output_size: int | None = None,
) -> Value:
    """Each element `repeats` times; without dim, of the elements in row-major order."""
    self, dim = _along(b, self, dim)
    return b.define(out, lambda *at: self.at(*moved(at, dim, at[dim] // repeats)))


@rule("repeat_interleave.self_Tensor")
def repeat_interleave_by(
    b: Builder,
    out: Meta,
    self: Value,
    repeats: Value,
    dim: int | None = None,
    output_size: int | None = None,
) -> Value:
    """Each element as often as `repeats` says, which is one for all or has one for each."""
    self, dim = _along(b, self, dim)
    source = repeat_interleave_places(b, Meta("i64", (out.shape[dim],)), repeats, output_size)
    return b.define(out, lambda *at: self.at(*moved(at, dim, source.at(at[dim]))))


@rule("repeat_interleave.Tensor")
def repeat_interleave_places(
    b: Builder, out: Meta, repeats: Value, output_size: int | None = None
) -> Value:
    """Which element stands at each place: as many runs have ended before it."""
    if output_size is None:
        raise KernelError(
            "`repeat_interleave` has a result whose size is not known",
            allowed="output_size=...",
            hint="give the number of elements of the result",
        )
    if repeats.rank == 0 or constant(repeats.shape[0]) == 1:
        one = repeats.at(*(0 for _ in repeats.shape))
        return b.define(out, lambda i: i // one)
    ends = b.scan("sum", repeats.meta, 0, repeats.at, "ends")
    return b.define(out, lambda i: b.bucketize(i + 1, ends))


def _along(b: Builder, self: Value, dim: int | None) -> tuple[Value, int]:
    """A tensor and a dimension of it; where none is given, of its elements in one row."""
    if dim is not None:
        return self, axis(dim, self.rank)
    count: Expr = Number(1)
    for size in self.shape:
        count = times(count, size)
    return b.reshape(self, (count,)), 0


@rule("kron")
def kron(b: Builder, out: Meta, self: Value, other: Value) -> Value:
    """`y[i*n + j] = x[i] * w[j]` in each dimension."""
    rank = len(out.shape)

    def body(*at: Index) -> Expr:
        sizes = (Number(1),) * (rank - other.rank) + other.shape
        over = [i if constant(n) == 1 else i // n for i, n in zip(at, sizes, strict=True)]
        under = [0 if constant(n) == 1 else i % n for i, n in zip(at, sizes, strict=True)]
        return self.wide(*over[rank - self.rank :]) * other.wide(*under[rank - other.rank :])

    return b.define(out, body)
