"""Random operators: what PyTorch draws, by its distribution; the numbers are others.

Every number is a function of the input `seed` and of its place among all that a builder draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed, linear
from frontends.expressions import Term, both, call, cast, either, product, where
from frontends.positions import known
from ir.dtypes import is_float
from ir.spec import Expr, Index, Number

Size = Sequence[int | Expr]
_BITS = {"f16": 11, "bf16": 8}  # of dtypes that cannot hold all 24: more would be rounded up to 1
_FINE = 2**24  # how many values a uniform number has


def _uniform(b: Builder, out: Meta) -> Callable[..., Expr]:
    """A number in [0, 1) for each element of a result, which the dtype holds exactly."""
    drawn = b.draw(product(out.shape))

    def at(*at: Index) -> Expr:
        u = drawn(linear(at, out.shape))
        if out.dtype not in _BITS:
            return u
        count = float(2 ** _BITS[out.dtype])
        return call("floor", u * count) / count

    return at


def _normal(b: Builder, out: Meta) -> Callable[..., Expr]:
    """A normally distributed number for each element, of two uniform ones (Box and Muller)."""
    drawn = b.draw(product((*out.shape, Number(2))))
    kind = computed(out.dtype) if is_float(out.dtype) else "f32"

    def at(*at: Index) -> Expr:
        place = linear(at, out.shape) * 2
        u, v = cast(kind, drawn(place)), cast(kind, drawn(place + 1))
        return call("sqrt", -2.0 * call("log", 1.0 - u)) * call("cos", 2.0 * math.pi * v)

    return at


@rule("rand", "rand_like")
def rand(b: Builder, out: Meta, *_: object, **__: object) -> Value:
    return b.define(out, _uniform(b, out))


@rule("uniform")
def uniform(b: Builder, out: Meta, self: Value, **bounds: float) -> Value:
    low, high = float(bounds.get("from", 0)), float(bounds.get("to", 1))
    drawn = _uniform(b, out)
    return b.define(out, lambda *at: drawn(*at) * (high - low) + low)


@rule("randn", "randn_like")
def randn(b: Builder, out: Meta, *_: object, **__: object) -> Value:
    return b.define(out, _normal(b, out))


@rule("normal", "normal_functional")
def normal(
    b: Builder, out: Meta, mean: Value | Term = 0, std: Value | Term = 1, **_: object
) -> Value:
    """Means and deviations are numbers, or tensors that are broadcast."""
    drawn, kind = _normal(b, out), computed(out.dtype)
    mean, std = (float(t) if isinstance(t, int) else t for t in (mean, std))

    def body(*at: Index) -> Expr:
        return drawn(*at) * b.operand(std, at, kind) + b.operand(mean, at, kind)

    return b.define(out, body)


@rule("exponential")
def exponential(b: Builder, out: Meta, self: Value, lambd: float = 1) -> Value:
    drawn = _uniform(b, Meta("f32", out.shape))
    return b.define(out, lambda *at: -call("log", 1.0 - drawn(*at)) / float(lambd))


@rule("randint", "randint_like")
def randint(b: Builder, out: Meta, high: int, low: int = 0, **_: object) -> Value:
    """low to high - 1. Beyond 2^16 values two numbers are drawn for each, so that all of them are
    met alike."""
    low, high = (known(n, "a bound of `randint`") for n in (low, high))
    span = high - low
    if span <= 2**16:
        drawn = _uniform(b, Meta("f32", out.shape))
        return b.define(out, lambda *at: cast("i64", drawn(*at) * float(span)) + low)
    upper, lower = (_uniform(b, Meta("f32", out.shape)) for _ in range(2))

    def body(*at: Index) -> Expr:
        bits = (cast("i64", part(*at) * float(_FINE)) for part in (upper, lower))
        return (next(bits) * _FINE + next(bits)) % span + low

    return b.define(out, body)


def _ranks(b: Builder, keys: Value) -> Value:
    """How many keys of the last dimension stand before each; of equal ones the first does."""

    def before(*at: Index) -> Expr:
        *rest, i, j = at
        mine, other = keys.at(*rest, i), keys.at(*rest, j)
        return cast("i64", either(other < mine, both(call("eq", other, mine), j < i)))

    return b.reduce("sum", Meta("i64", keys.shape), keys.shape[-1:], before, "ranks")


@rule("randperm")
def randperm(b: Builder, out: Meta, n: int) -> Value:
    """The ranks of random numbers."""
    keys = Meta("f32", out.shape)
    ranks = _ranks(b, b.define(keys, _uniform(b, keys), "keys"))
    return ranks if ranks.meta == out else b.define(out, ranks.at)


@rule("bernoulli")
def bernoulli(b: Builder, out: Meta, self: Value, p: Value | float | None = None) -> Value:
    """Ones with the probability p, which the elements themselves are where it is not given."""
    drawn = _uniform(b, Meta("f32", out.shape))
    chance = self if p is None else p

    def body(*at: Index) -> Expr:
        kind = computed(chance.dtype) if isinstance(chance, Value) else None
        return drawn(*at) < b.operand(chance, at, kind)

    return b.define(out, body)


@rule("native_dropout")
def native_dropout(
    b: Builder, out: tuple[Meta, Meta], input: Value, p: float, train: bool | None = True
) -> tuple[Value, Value]:
    """Elements that stay, divided by the share that does, and which they are."""
    if train is False or p == 0:
        return input, b.define(out[1], lambda *_: True)
    drawn = _uniform(b, Meta("f32", input.shape))
    mask = b.define(out[1], lambda *at: drawn(*at) >= float(p), "mask")
    return _scaled(b, out[0], input, mask, 1.0 / (1.0 - p) if p < 1 else 0.0), mask


@rule("native_dropout_backward")
def native_dropout_backward(
    b: Builder, out: Meta, grad_output: Value, mask: Value, scale: float
) -> Value:
    return _scaled(b, out, grad_output, mask, scale)


@rule("dropout")
def dropout(b: Builder, out: Meta, input: Value, p: float, train: bool) -> Value:
    mask = Meta("b8", input.shape)
    return native_dropout(b, (out, mask), input, p, train)[0]


def _scaled(b: Builder, out: Meta, value: Value, mask: Value, scale: float) -> Value:
    return b.define(
        out, lambda *at: where(mask.at(*at), value.wide(*at) * float(scale), 0.0), "dropped"
    )


@rule("multinomial")
def multinomial(
    b: Builder, out: Meta, self: Value, num_samples: int, replacement: bool = False
) -> Value:
    """Places of the last dimension, as likely as their weights say."""
    return (_again if replacement else _at_most_once)(b, out, self)


def _at_most_once(b: Builder, out: Meta, self: Value) -> Value:
    """A race: the places whose exponentially distributed times are shortest, in their order."""
    keys = Meta("f64" if self.dtype == "f64" else "f32", self.shape)
    drawn = _uniform(b, keys)

    def time(*at: Index) -> Expr:
        weight = self.wide(*at)
        return where(weight > 0.0, -call("log", 1.0 - drawn(*at)) / weight, math.inf)

    ranks = _ranks(b, b.define(keys, time, "times"))

    def chosen(*at: Index) -> Expr:
        *rest, place, i = at
        return where(call("eq", ranks.at(*rest, i), place), cast("i64", i), 0)

    return b.reduce("sum", out, self.shape[-1:], chosen)


def _again(b: Builder, out: Meta, self: Value) -> Value:
    """Where a uniform share of the sum of all weights falls among their running sums."""
    kind = computed(self.dtype)
    sums = b.scan("sum", Meta(kind, self.shape), self.rank - 1, self.wide, "sums")
    drawn = _uniform(b, Meta("f32", out.shape))
    last = self.shape[-1] - 1

    def share(*at: Index) -> Expr:
        return drawn(*at) * sums.at(*at[:-1], last)

    shares = b.define(Meta(kind, out.shape), share, "shares")

    def passed(*at: Index) -> Expr:
        *rest, place, i = at
        return cast("i64", sums.at(*rest, i) <= shares.at(*rest, place))

    return b.reduce("sum", out, self.shape[-1:], passed)


@rule("rrelu_with_noise_functional")
def rrelu(
    b: Builder,
    out: tuple[Meta, Meta],
    self: Value,
    noise: Value,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
) -> tuple[Value, Value]:
    """A leaky ReLU, whose slope is drawn for each element in training, and is the mean of both bounds otherwise."""
    if not training:
        slope = float(lower + upper) / 2
        return b.pointwise(out[0], lambda x: where(x > 0.0, x, x * slope), self), b.copy(noise)
    drawn = _uniform(b, out[1])

    def factor(*at: Index) -> Expr:
        return where(self.at(*at) > 0.0, 1.0, drawn(*at) * float(upper - lower) + float(lower))

    slopes = b.define(out[1], factor, "slopes")
    return b.pointwise(out[0], lambda x, s: x * s, self, slopes), slopes
