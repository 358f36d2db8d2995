"""Contractions: sums of products of two tensors' elements."""

from __future__ import annotations

from collections.abc import Sequence

from frontends.aten.table import rule
from frontends.axes import axis
from frontends.builder import Builder, Meta, Places, Value, computed
from frontends.expressions import cast
from ir.spec import Expr, Number


def contract(
    b: Builder, out: Meta, over: Sequence[Expr], x: Value, y: Value, left: Places, right: Places
) -> Value:
    """`sum(x[left] * y[right], over)`, both positions from the result's, then the reduced ones."""

    def body(*at: Expr) -> Expr:
        return x.wide(*left(*at)) * y.wide(*right(*at))

    return b.reduce("sum", out, over, body, "product")


def wider(out: Meta, shape: Sequence[Expr] | None = None) -> Meta:
    """What a sum is before it is rounded to a result."""
    return Meta(computed(out.dtype), out.shape if shape is None else tuple(shape))


def added(
    b: Builder, out: Meta, first: Value, product: Value, beta: float = 1, alpha: float = 1
) -> Value:
    """`beta * first + alpha * product`; first is not read where beta is 0."""

    def times(x: Expr, factor: float) -> Expr:
        return x if factor == 1 else x * factor

    if beta == 0:
        return b.pointwise(out, lambda p: times(p, alpha), product, name="scaled")
    dtype = computed(out.dtype)
    return b.pointwise(
        out,
        lambda f, p: times(f, beta) + times(p, alpha),
        first,
        product,
        compute=dtype,
        name="added",
    )


@rule("mm")
def mm(b: Builder, out: Meta, self: Value, mat2: Value) -> Value:
    return matmul(b, out, self, mat2)


@rule("bmm")
def bmm(b: Builder, out: Meta, self: Value, mat2: Value) -> Value:
    return matmul(b, out, self, mat2)


@rule("_int_mm")
def int_mm(b: Builder, out: Meta, self: Value, mat2: Value) -> Value:
    """Of 8-bit integers, summed in 32 bits."""

    def term(m: Expr, n: Expr, k: Expr) -> Expr:
        return cast(out.dtype, self.at(m, k)) * cast(out.dtype, mat2.at(k, n))

    return b.reduce("sum", out, self.shape[1:], term, "product")


@rule("_weight_int8pack_mm")
def weight_int8pack_mm(b: Builder, out: Meta, self: Value, mat2: Value, scales: Value) -> Value:
    """By the rows of a matrix of 8-bit integers, each with a factor of its own."""
    wide = wider(out)

    def term(m: Expr, n: Expr, k: Expr) -> Expr:
        return self.wide(m, k) * cast(wide.dtype, mat2.at(n, k))

    made = b.reduce("sum", wide, self.shape[1:], term, "product")
    return b.pointwise(out, lambda p, s: p * s, made, scales, name="scaled")


@rule("mv")
def mv(b: Builder, out: Meta, self: Value, vec: Value) -> Value:
    return matmul(b, out, self, vec)


@rule("dot", "vdot")
def dot(b: Builder, out: Meta, self: Value, tensor: Value | None = None, other=None) -> Value:
    return matmul(b, out, self, tensor or other)


@rule("matmul")
def matmul(b: Builder, out: Meta, self: Value, other: Value) -> Value:
    """The last dimension of one with the last but one of the other, or its only one; those
    before are broadcast."""
    rows, columns = self.rank > 1, other.rank > 1
    inner = self.shape[-1]

    def left(*at: Expr) -> tuple[Expr, ...]:
        *kept, k = at
        kept = kept[:-1] if columns else kept
        return tuple(_broadcast(b, self, (*kept, k))) if rows else (k,)

    def right(*at: Expr) -> tuple[Expr, ...]:
        *kept, k = at
        if not columns:
            return (k,)
        *batch, n = kept
        batch = batch[:-1] if rows else batch
        return tuple(_broadcast(b, other, (*batch, k, n)))

    return contract(b, out, (inner,), self, other, left, right)


def _broadcast(b: Builder, x: Value, at: Sequence[Expr]) -> tuple[Expr, ...]:
    """Positions in x, whose last two dimensions are not broadcast."""
    return (*b.broadcast(x, at)[:-2], *at[-2:])


@rule("linear")
def linear(b: Builder, out: Meta, input: Value, weight: Value, bias: Value | None = None) -> Value:
    columns = weight.rank > 1

    def left(*at: Expr) -> tuple[Expr, ...]:
        *kept, k = at
        return (*(kept[:-1] if columns else kept), k)

    def right(*at: Expr) -> tuple[Expr, ...]:
        return at[-2:] if columns else at[-1:]

    meta = wider(out) if bias else out
    made = contract(b, meta, input.shape[-1:], input, weight, left, right)
    return added(b, out, bias, made) if bias else made


@rule("addmm")
def addmm(
    b: Builder,
    out: Meta,
    self: Value,
    mat1: Value,
    mat2: Value,
    beta: float = 1,
    alpha: float = 1,
) -> Value:
    return added(b, out, self, matmul(b, wider(out), mat1, mat2), beta, alpha)


@rule("addmv")
def addmv(
    b: Builder,
    out: Meta,
    self: Value,
    mat: Value,
    vec: Value,
    beta: float = 1,
    alpha: float = 1,
) -> Value:
    return added(b, out, self, matmul(b, wider(out), mat, vec), beta, alpha)


@rule("baddbmm")
def baddbmm(
    b: Builder,
    out: Meta,
    self: Value,
    batch1: Value,
    batch2: Value,
    beta: float = 1,
    alpha: float = 1,
) -> Value:
    return added(b, out, self, matmul(b, wider(out), batch1, batch2), beta, alpha)


@rule("addbmm")
def addbmm(
    b: Builder,
    out: Meta,
    self: Value,
    batch1: Value,
    batch2: Value,
    beta: float = 1,
    alpha: float = 1,
) -> Value:
    over = (batch1.shape[0], batch1.shape[2])
    made = contract(
        b,
        wider(out),
        over,
        batch1,
        batch2,
        lambda m, n, g, k: (g, m, k),
        lambda m, n, g, k: (g, k, n),
    )
    return added(b, out, self, made, beta, alpha)


@rule("outer", "ger")
def outer(b: Builder, out: Meta, self: Value, vec2: Value) -> Value:
    return b.define(out, lambda m, n: self.wide(m) * vec2.wide(n), "outer")


@rule("addr")
def addr(
    b: Builder,
    out: Meta,
    self: Value,
    vec1: Value,
    vec2: Value,
    beta: float = 1,
    alpha: float = 1,
) -> Value:
    made = b.define(wider(out), lambda m, n: vec1.wide(m) * vec2.wide(n), "outer")
    return added(b, out, self, made, beta, alpha)


@rule("tensordot")
def tensordot(
    b: Builder,
    out: Meta,
    self: Value,
    other: Value,
    dims_self: Sequence[int],
    dims_other: Sequence[int],
) -> Value:
    mine = [axis(d, self.rank) for d in dims_self]
    theirs = [axis(d, other.rank) for d in dims_other]
    free = self.rank - len(mine)

    def left(*at: Expr) -> tuple[Expr, ...]:
        return _placed(self.rank, at[:free], mine, at[len(out.shape) :])

    def right(*at: Expr) -> tuple[Expr, ...]:
        return _placed(other.rank, at[free : len(out.shape)], theirs, at[len(out.shape) :])

    return contract(b, out, [self.shape[d] for d in mine], self, other, left, right)


@rule("_trilinear")
def trilinear(
    b: Builder,
    out: Meta,
    i1: Value,
    i2: Value,
    i3: Value,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Value:
    """`sum(i1 * i2 * i3)` over some dimensions, each without the dimensions that it is expanded to."""
    rank = i1.rank + len(expand1)
    summed = [axis(d, rank) for d in sumdim]
    given = [
        (x, [d for d in range(rank) if d not in {axis(e, rank) for e in expanded}])
        for x, expanded in ((i1, expand1), (i2, expand2), (i3, expand3))
    ]
    sizes: dict[int, Expr] = {}
    for x, dims in given:
        for d, size in zip(dims, x.shape, strict=True):
            sizes[d] = sizes[d] if sizes.get(d, Number(1)) != Number(1) else size

    def body(*at: Expr) -> Expr:
        whole = _placed(rank, at[: len(out.shape)], summed, at[len(out.shape) :])
        factors = [x.wide(*b.broadcast(x, [whole[d] for d in dims])) for x, dims in given]
        return factors[0] * factors[1] * factors[2]

    return b.reduce("sum", out, [sizes[d] for d in summed], body, "product")


def _placed(
    rank: int, free: Sequence[Expr], dims: Sequence[int], reduced: Sequence[Expr]
) -> tuple[Expr, ...]:
    """Positions: the reduced ones at `dims`, in the order in which these are named."""
    given, rest = dict(zip(dims, reduced, strict=True)), iter(free)
    return tuple(given[d] if d in given else next(rest) for d in range(rank))
