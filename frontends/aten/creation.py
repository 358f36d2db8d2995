"""Creation: tensors of constants, and of numbers in order."""

from __future__ import annotations

from collections.abc import Sequence

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import Term, call, cast, where
from ir.dtypes import is_bool, is_float
from ir.spec import Expr, Index

Size = Sequence[int | Expr]


def _typed(value: Term, dtype: str) -> Term:
    """A constant of the kind that a dtype holds."""
    if isinstance(value, Expr):
        return value
    return float(value) if is_float(dtype) else bool(value) if is_bool(dtype) else int(value)


@rule(
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "new_zeros",
    "zeros",
    "zeros_like",
)
def zeros(b: Builder, out: Meta, *_: object, **__: object) -> Value:
    """Nothing says what an empty tensor holds: zeros."""
    return b.define(out, lambda *_: _typed(0, out.dtype))


@rule("ones", "ones_like", "new_ones")
def ones(b: Builder, out: Meta, *_: object, **__: object) -> Value:
    return b.define(out, lambda *_: _typed(1, out.dtype))


@rule("full")
def full(b: Builder, out: Meta, size: Size, fill_value: Value | Term, **_: object) -> Value:
    return fill(b, out, None, fill_value)


@rule("full_like")
def full_like(b: Builder, out: Meta, self: Value, fill_value: Value | Term) -> Value:
    return fill(b, out, self, fill_value)


@rule("new_full")
def new_full(b: Builder, out: Meta, self: Value, size: Size, fill_value: Value | Term) -> Value:
    return fill(b, out, self, fill_value)


@rule("fill")
def fill(b: Builder, out: Meta, self: Value | None, value: Value | Term) -> Value:
    """A number everywhere; a tensor gives it by its one element."""
    if isinstance(value, Value):
        return b.define(out, lambda *at: b.operand(value, at))
    return b.define(out, lambda *_: _typed(value, out.dtype))


@rule("scalar_tensor")
def scalar_tensor(b: Builder, out: Meta, s: Term) -> Value:
    return fill(b, out, None, s)


@rule("arange")
def arange(b: Builder, out: Meta, end: Term, start: Term = 0, step: Term = 1) -> Value:
    dtype = computed(out.dtype) if is_float(out.dtype) else "i64"

    def body(i: Index) -> Expr:
        place = cast(dtype, i)
        place = place if step == 1 else place * _typed(step, dtype)
        return place if start == 0 else place + _typed(start, dtype)

    return b.define(out, body)


@rule("linspace")
def linspace(b: Builder, out: Meta, start: Value | Term, end: Value | Term, steps: int) -> Value:
    """Counted from the nearer end, so that both ends are met exactly."""
    dtype = computed(out.dtype) if is_float(out.dtype) else "f64"
    if steps == 1:
        return b.define(out, lambda i: _number(b, start, i, out.dtype))

    def body(i: Index) -> Expr:
        first, last = (_number(b, t, i, dtype) for t in (start, end))
        step = (last - first) / float(steps - 1)
        upper = last - step * cast(dtype, steps - 1 - i)
        return where(i < steps // 2, first + step * cast(dtype, i), upper)

    return b.define(out, body)


def _number(b: Builder, term: Value | Term, i: Index, dtype: str) -> Expr:
    if isinstance(term, Value):
        return b.operand(term, (i,), dtype)
    return cast(dtype, _typed(term, dtype))


@rule("logspace")
def logspace(
    b: Builder, out: Meta, start: Value | Term, end: Value | Term, steps: int, base: float = 10.0
) -> Value:
    dtype = computed(out.dtype) if is_float(out.dtype) else "f64"
    powers = linspace(b, Meta(dtype, out.shape), start, end, steps)
    return b.define(out, lambda i: call("pow", cast(dtype, float(base)), powers.at(i)))


@rule("eye")
def eye(b: Builder, out: Meta, n: int, m: int | None = None) -> Value:
    one, zero = (_typed(v, out.dtype) for v in (1, 0))
    return b.define(out, lambda i, j: where(call("eq", i, j), one, zero))
