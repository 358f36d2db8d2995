"""Contractions: sums of products of two tensors' elements."""

from __future__ import annotations

from collections.abc import Sequence

from frontends.aten.table import rule
from frontends.axes import axis
from frontends.builder import Builder, Meta, Places, Value, computed
from ir.spec import Expr


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


def _placed(
    rank: int, free: Sequence[Expr], dims: Sequence[int], reduced: Sequence[Expr]
) -> tuple[Expr, ...]:
    """Positions: the reduced ones at `dims`, in the order in which these are named."""
    given, rest = dict(zip(dims, reduced, strict=True)), iter(free)
    return tuple(given[d] if d in given else next(rest) for d in range(rank))
