"""Operators on complex tensors, as equations of real ones.

The language has no complex dtype. A complex tensor is a pair of real tensors, its real and its imaginary part. An operator that
is linear, or only moves elements, is applied to each part. Products, polar forms and Fourier transforms have rules here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves, tree_map

from frontends.aten.apply import apply, operator_name
from frontends.aten.pointwise import length
from frontends.builder import Body, Builder, Meta, Value
from frontends.expressions import call, cast, constant, expr, where
from ir.errors import KernelError
from ir.spec import Expr, Index, Number

REAL = {
    torch.complex32: torch.float16,
    torch.complex64: torch.float32,
    torch.complex128: torch.float64,
}
Outs = tuple[Meta | None, ...]  # of parts, where a result is complex
# Operators that are applied to both parts: the arguments that hold elements. Where such an argument is real, its imaginary
# part is zero. All other arguments are the same for both parts.
MOVES = dict.fromkeys(
    (
        *("alias", "clone", "detach", "lift_fresh_copy", "contiguous", "view", "_unsafe_view"),
        *("reshape", "unflatten", "squeeze", "unsqueeze", "expand", "permute", "transpose", "t"),
        *("select", "slice", "split", "split_with_sizes", "unbind", "narrow", "flip", "roll"),
        *("repeat", "index", "index_select", "gather", "diagonal", "as_strided", "unfold"),
        *("movedim", "tril", "triu", "_to_copy", "to"),
    ),
    ("self",),
)
LINEAR = {
    "neg": ("self",),
    "sum": ("self",),
    "mean": ("self",),
    "cumsum": ("self",),
    "add": ("self", "other"),
    "sub": ("self", "other"),
    "where": ("self", "other"),
    "cat": ("tensors",),
    "stack": ("tensors",),
    "slice_scatter": ("self", "src"),
    "select_scatter": ("self", "src"),
    "index_put": ("self", "values"),
    "copy": ("self", "src"),
    "masked_fill": ("self", "value"),
    "constant_pad_nd": ("self", "value"),
    "pad": ("self", "value"),
}
PRODUCTS = ("mm", "bmm", "mv", "dot", "matmul")


@dataclass(frozen=True, slots=True)
class Complex:
    """A complex tensor: its parts, of one shape and dtype."""

    real: Value
    imag: Value
    # The same as functions of a place, where one equation gives each. What interleaves the parts computes them itself then.
    bodies: tuple[Body, Body] | None = None

    @property
    def parts(self) -> tuple[Value, Value]:
        return self.real, self.imag

    @property
    def meta(self) -> Meta:
        """Of each part."""
        return self.real.meta


Result = Value | Complex | None
Rule = Callable[..., Result | tuple[Result, ...]]
_RULES: dict[str, Rule] = {}


def is_complex(*items: Any) -> bool:
    """Whether complex tensors, of PyTorch or as pairs, are among the leaves of items."""
    return any(
        isinstance(leaf, Complex) or isinstance(leaf, torch.Tensor) and leaf.is_complex()
        for leaf in tree_leaves(items)
    )


def apply_complex(
    builder: Builder,
    operator: OpOverload,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    out: Outs,
) -> tuple[Result, ...]:
    """The results of a call that is given complex tensors, or returns them.

    out: a Meta for each result, of its parts where it is complex. Raises KernelError for an operator without a rule for
    complex tensors.
    """
    name = operator_name(operator).partition(".")[0]
    builder.stem = name.strip("_").lower()
    if rule := _RULES.get(name):
        schema = operator._schema.arguments
        bound = {a.name: a.default_value for a in schema if a.has_default_value()}
        bound |= dict(zip((a.name for a in schema), args, strict=False)) | dict(kwargs)
        made = rule(builder, out[0] if len(out) == 1 else out, **bound)
        return made if isinstance(made, tuple) else (made,)
    elements = MOVES.get(name) or LINEAR.get(name)
    if elements is None:
        raise KernelError(
            f"the operator `aten.{operator_name(operator)}` has no equations for complex tensors",
            hint="write it with real ones: torch.view_as_real, x.real, x.imag",
        )
    parts = [
        apply(builder, operator, *_part(builder, operator, args, kwargs, elements, n), out)
        for n in (0, 1)
    ]
    pairs = zip(*parts, strict=True)
    return tuple(None if a is None or b is None else Complex(a, b) for a, b in pairs)


def _part(
    b: Builder,
    operator: OpOverload,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    elements: Sequence[str],
    part: int,
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call for one part."""

    def of(item: Any, holds: bool) -> Any:
        if isinstance(item, Complex):
            return item.parts[part]
        if holds and isinstance(item, complex | float | int) and not isinstance(item, bool):
            return item.imag if part else item.real
        if holds and part and isinstance(item, Value):
            return b.define(item.meta, lambda *_: Number(0.0), "zeros")
        return item

    names = [a.name for a in operator._schema.arguments]
    given = [
        tree_map(lambda i, n=n: of(i, n in elements), a) for n, a in zip(names, args, strict=False)
    ]
    return given, {n: tree_map(lambda i, n=n: of(i, n in elements), a) for n, a in kwargs.items()}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def registered(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, function))
        return function

    return registered


def _numbers(b: Builder, item: Any, at: Sequence[Expr]) -> tuple[Expr, Expr]:
    """Both parts of an element of an operand, broadcast to the result."""
    if isinstance(item, Complex):
        return b.operand(item.real, at), b.operand(item.imag, at)
    if isinstance(item, Value):
        return b.operand(item, at), Number(0.0)
    return Number(float(item.real)), Number(float(item.imag))


def _pair(b: Builder, out: Meta, real: Callable[..., Expr], imag: Callable[..., Expr]) -> Complex:
    stem = b.stem
    parts = b.define(out, real, f"{stem}_re"), b.define(out, imag, f"{stem}_im")
    return Complex(*parts, (real, imag))


@_rule("view_as_complex")
def _view_as_complex(b: Builder, out: Meta, self: Value) -> Complex:
    return _pair(b, out, lambda *at: self.at(*at, 0), lambda *at: self.at(*at, 1))


@_rule("view_as_real")
def _view_as_real(b: Builder, out: Meta, self: Complex) -> Value:
    real, imag = self.bodies or (self.real.at, self.imag.at)
    return b.define(out, lambda *at: where(call("eq", at[-1], 0), real(*at[:-1]), imag(*at[:-1])))


@_rule("complex")
def _complex(b: Builder, out: Meta, real: Value, imag: Value) -> Complex:
    return _pair(b, out, lambda *at: b.operand(real, at), lambda *at: b.operand(imag, at))


@_rule("polar")
def _polar(b: Builder, out: Meta, abs: Value, angle: Value) -> Complex:
    def part(function: str) -> Callable[..., Expr]:
        return lambda *at: b.operand(abs, at) * call(function, b.operand(angle, at))

    return _pair(b, out, part("cos"), part("sin"))


@_rule("real")
def _real(b: Builder, out: Meta, self: Complex) -> Value:
    return self.real


@_rule("imag")
def _imag(b: Builder, out: Meta, self: Complex) -> Value:
    return self.imag


@_rule("conj", "_conj", "conj_physical", "_conj_physical")
def _conj(b: Builder, out: Meta, self: Complex) -> Complex:
    return Complex(self.real, b.define(out, lambda *at: -self.imag.at(*at)))


@_rule("resolve_conj", "resolve_neg")
def _same(b: Builder, out: Meta, self: Complex) -> Complex:
    return self


@_rule("abs")
def _abs(b: Builder, out: Meta, self: Complex) -> Value:
    return b.define(out, lambda *at: length(self.real.wide(*at), self.imag.wide(*at)))


@_rule("angle")
def _angle(b: Builder, out: Meta, self: Complex) -> Value:
    return b.define(out, lambda *at: call("atan2", self.imag.wide(*at), self.real.wide(*at)))


@_rule("exp")
def _exp(b: Builder, out: Meta, self: Complex) -> Complex:
    def part(function: str) -> Callable[..., Expr]:
        return lambda *at: call("exp", self.real.wide(*at)) * call(function, self.imag.wide(*at))

    return _pair(b, out, part("cos"), part("sin"))


@_rule("mul")
def _mul(b: Builder, out: Meta, self: Any, other: Any) -> Complex:
    def real(*at: Index) -> Expr:
        (x, y), (u, v) = _numbers(b, self, at), _numbers(b, other, at)
        return x * u - y * v

    def imag(*at: Index) -> Expr:
        (x, y), (u, v) = _numbers(b, self, at), _numbers(b, other, at)
        return x * v + y * u

    if not (is_complex(self) or isinstance(self, complex)):
        self, other = other, self
    if not (is_complex(other) or isinstance(other, complex)):  # a real factor
        scaled = [
            lambda *at, n=n: _numbers(b, self, at)[n] * _numbers(b, other, at)[0] for n in (0, 1)
        ]
        return _pair(b, out, *scaled)
    return _pair(b, out, real, imag)


@_rule("div")
def _div(b: Builder, out: Meta, self: Any, other: Any, rounding_mode: None = None) -> Complex:
    def quotient(*at: Index) -> tuple[Expr, Expr]:
        (x, y), (u, v) = _numbers(b, self, at), _numbers(b, other, at)
        if not (is_complex(other) or isinstance(other, complex)):
            return x / u, y / u
        size = u * u + v * v
        return (x * u + y * v) / size, (y * u - x * v) / size

    return _pair(b, out, lambda *at: quotient(*at)[0], lambda *at: quotient(*at)[1])


@_rule("reciprocal")
def _reciprocal(b: Builder, out: Meta, self: Complex) -> Complex:
    return _div(b, out, 1.0, self)


@_rule("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty")
def _zeros(b: Builder, out: Meta, *_: Any, **__: Any) -> Complex:
    return _filled(b, out, 0.0)


@_rule("ones", "ones_like", "new_ones")
def _ones(b: Builder, out: Meta, *_: Any, **__: Any) -> Complex:
    return _filled(b, out, 1.0)


@_rule("full", "full_like", "new_full", "scalar_tensor")
def _full(b: Builder, out: Meta, *_: Any, **given: Any) -> Complex:
    return _filled(b, out, given["fill_value"] if "fill_value" in given else given["s"])


def _filled(b: Builder, out: Meta, value: complex) -> Complex:
    return _pair(b, out, lambda *_: Number(float(value.real)), lambda *_: Number(float(value.imag)))


def _product(name: str) -> Rule:
    operator = getattr(torch.ops.aten, name).default

    def rule(b: Builder, out: Meta, self: Any, **given: Any) -> Complex:
        """Four real products, or two where one side is real."""
        (other,) = given.values()

        def times(one: Value, two: Value) -> Value:
            (made,) = apply(b, operator, (one, two), {}, (out,))
            assert made is not None
            return made

        if not isinstance(other, Complex):
            return Complex(times(self.real, other), times(self.imag, other))
        if not isinstance(self, Complex):
            return Complex(times(self, other.real), times(self, other.imag))
        a, d = times(self.real, other.real), times(self.imag, other.imag)
        c, e = times(self.real, other.imag), times(self.imag, other.real)
        return _pair(b, out, lambda *at: a.at(*at) - d.at(*at), lambda *at: c.at(*at) + e.at(*at))

    return rule


_RULES |= {name: _product(name) for name in PRODUCTS}


@_rule("_fft_r2c")
def _fft_r2c(
    b: Builder, out: Meta, self: Value, dim: Sequence[int], normalization: int, onesided: bool
) -> Complex:
    """Of real numbers. The last dimension, of which half of the results may be left out, is first."""
    *others, last = (d % self.rank for d in dim)
    shape = list(self.shape)
    shape[last] = out.shape[last]
    made = _transformed(b, (self, None), last, Meta(out.dtype, tuple(shape)), -1)
    for d in others:
        made = _transformed(b, made.parts, d, made.meta, -1)
    return _scaled(b, made, normalization, [self.shape[d] for d in (*others, last)])


@_rule("_fft_c2c")
def _fft_c2c(
    b: Builder, out: Meta, self: Complex, dim: Sequence[int], normalization: int, forward: bool
) -> Complex:
    made = self
    for d in dim:
        made = _transformed(b, made.parts, d % made.real.rank, made.meta, -1 if forward else 1)
    return _scaled(b, made, normalization, [self.meta.shape[d] for d in dim])


@_rule("_fft_c2r")
def _fft_c2r(
    b: Builder, out: Meta, self: Complex, dim: Sequence[int], normalization: int, last_dim_size: int
) -> Value:
    """Of half of the results of real numbers: each but the first, and the last of an even size, stands for two."""
    made, rank = self, self.real.rank
    *others, last = (d % rank for d in dim)
    for d in others:
        made = _transformed(b, made.parts, d, made.meta, 1)
    size, half = int(last_dim_size), _length(made.meta.shape[last])
    lone = half - 1 if size % 2 == 0 else half  # the one that has no partner
    tables = _tables(b, size, half, size)
    sums = []
    for part, table in zip(made.parts, tables, strict=True):

        def term(*at: Index, part: Value = part, table: Value = table) -> Expr:
            *own, k = at
            place = [*own[:last], k, *own[last + 1 :]]
            weight = where(call("eq", k, 0), 1.0, where(call("eq", k, lone), 1.0, 2.0))
            return part.wide(*place) * (table.at(k, own[last]) * weight)

        sums.append(b.reduce("sum", out, [half], term, "fft"))
    real = b.define(out, lambda *at: sums[0].at(*at) - sums[1].at(*at))
    return _times(
        b, real, _factor(normalization, [*(self.meta.shape[d] for d in others), expr(size)])
    )


def _transformed(
    b: Builder, x: tuple[Value, Value | None], d: int, out: Meta, sign: int
) -> Complex:
    """A discrete Fourier transform along a dimension, as products with tables of cosines and sines.

    x: both parts; None for an imaginary part of zeros.  sign: of the exponent.
    """
    x_real, x_imag = x
    size, count = _length(x_real.shape[d]), _length(out.shape[d])
    cosines, sines = _tables(b, size, size, count)

    def product(part: Value, table: Value) -> Value:
        def term(*at: Index) -> Expr:
            *own, n = at
            return part.wide(*own[:d], n, *own[d + 1 :]) * table.at(n, own[d])

        return b.reduce("sum", out, [size], term, "fft")

    c, s = product(x_real, cosines), product(x_real, sines)
    if x_imag is None:
        return Complex(c, b.define(out, lambda *at: s.at(*at) * float(sign)))
    e, f = product(x_imag, cosines), product(x_imag, sines)
    return _pair(
        b,
        out,
        lambda *at: c.at(*at) - f.at(*at) * float(sign),
        lambda *at: e.at(*at) + s.at(*at) * float(sign),
    )


def _tables(b: Builder, size: int, rows: int, columns: int) -> tuple[Value, Value]:
    """The cosines and sines of `2 pi n k / size`, f32[rows, columns]. The product of places is reduced first, so that arguments
    stay below 2 pi."""
    meta = Meta("f32", (expr(rows), expr(columns)))

    def angles(function: str) -> Callable[..., Expr]:
        return lambda n, k: call(function, cast("f32", (n * k) % size) * (2 * pi / size))

    return b.define(meta, angles("cos"), "cosines"), b.define(meta, angles("sin"), "sines")


def _length(size: Expr) -> int:
    known = constant(size)
    if known is None:
        raise KernelError(
            "a Fourier transform is along a dimension whose size is open", allowed="a known size"
        )
    return known


def _factor(normalization: int, sizes: Sequence[Expr]) -> float:
    """What PyTorch multiplies by: 1, the inverse root of the number of elements, or its inverse."""
    count = 1
    for size in sizes:
        count *= _length(size)
    return (1.0, 1.0 / sqrt(count), 1.0 / count)[normalization]


def _scaled(b: Builder, x: Complex, normalization: int, sizes: Sequence[Expr]) -> Complex:
    factor = _factor(normalization, sizes)
    return Complex(_times(b, x.real, factor), _times(b, x.imag, factor))


def _times(b: Builder, x: Value, factor: float) -> Value:
    return x if factor == 1.0 else b.define(x.meta, lambda *at: x.at(*at) * factor)
