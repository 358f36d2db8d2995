"""The logarithm of the gamma function and its derivative, exact to about 1e-15 in f64.

Steps of one bring an argument below 8.5 to 2 + d, |d| <= 1/2, where a power series holds:
`log gamma(2 + d) = (1 - g) d + sum((-1)^k (zeta(k) - 1) d^k / k, k = 2...)`. Stirling's series holds for
larger ones, and a reflection brings those below 0 to positive ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import both, call, where
from ir.spec import Expr, Number

_EULER = 0.5772156649015329
_LARGE = 8.5  # from where on Stirling's series is used
_MOST = 6  # steps down from an argument below it
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def _zeta_less_one(k: int) -> float:
    """`sum(n^-k, n = 2...)`: terms up to 99, and the rest by Euler and Maclaurin."""
    rest = 100.0 ** (1 - k) / (k - 1) + 100.0**-k / 2 + k * 100.0 ** (-k - 1) / 12
    rest -= k * (k + 1) * (k + 2) * 100.0 ** (-k - 3) / 720
    return math.fsum((*(float(n) ** -k for n in range(2, 100)), rest))


_ZETAS = [(-1) ** k * _zeta_less_one(k) for k in range(2, 27)]
_LOG_GAMMA = (0.0, 1 - _EULER, *(z / k for k, z in enumerate(_ZETAS, 2)))
_DIGAMMA = (1 - _EULER, *_ZETAS)
_LOG_GAMMA_LARGE = [v / (2 * k * (2 * k - 1)) for k, v in enumerate(_BERNOULLI, 1)]
_DIGAMMA_LARGE = [v / (2 * k) for k, v in enumerate(_BERNOULLI, 1)]


def _series(x: Expr, terms: Sequence[float]) -> Expr:
    """`terms[0] + terms[1] x + ...`"""
    made: Expr = Number(terms[-1])
    for term in reversed(terms[:-1]):
        made = made * x + term
    return made


class _Argument:
    """An argument x, the positive y that it is reflected to, and how many steps down and up bring y to 2 + d."""

    def __init__(self, b: Builder, out: Meta, x: Value):
        self.b, self.x = b, x
        self.meta = Meta(computed(out.dtype), out.shape)
        self.y = self.made(lambda x: where(x < 0.0, 1.0 - x, x), "positive", x)
        self.down = self.made(_steps_down, "down", self.y)
        self.up = self.made(lambda y: where(y < 0.5, 2.0, where(y < 1.5, 1.0, 0.0)), "up", self.y)
        self.d = self.made(lambda y, n, m: y - n + m - 2.0, "d", self.y, self.down, self.up)

    def made(self, function: Callable[..., Expr], name: str, *of: Value) -> Value:
        return self.b.pointwise(self.meta, function, *of, name=name)


def _steps_down(y: Expr) -> Expr:
    return call("minimum", call("maximum", call("floor", y - 1.5), 0.0), float(_MOST))


def _fraction(x: Expr) -> Expr:
    """Pi times what x is above the nearest integer: sine and cosine of it are exact near those."""
    return math.pi * (x - call("round", x))


@rule("lgamma")
def lgamma(b: Builder, out: Meta, self: Value) -> Value:
    a = _Argument(b, out, self)

    def near(y: Expr, n: Expr, m: Expr, d: Expr) -> Expr:
        over, under = where(m > 0.0, y, 1.0), where(m > 1.0, y + 1.0, 1.0)
        product: Expr = Number(1.0)
        for k in range(1, _MOST + 1):
            product = product * where(n >= float(k), y - float(k), 1.0)
        return call("log", product) - call("log", over * under) + _series(d, _LOG_GAMMA)

    def large(y: Expr) -> Expr:
        rest = _series(1.0 / (y * y), _LOG_GAMMA_LARGE) / y
        return (y - 0.5) * (call("log", y) - 1.0) + (math.log(2 * math.pi) - 1) / 2 + rest

    def reflected(x: Expr, y: Expr, near: Expr) -> Expr:
        positive = where(y < _LARGE, near, large(y))
        sine = call("abs", call("sin", _fraction(x)))
        below = where(call("isinf", x), math.inf, math.log(math.pi) - call("log", sine) - positive)
        return where(x < 0.0, below, positive)

    found = a.made(near, "near", a.y, a.down, a.up, a.d)
    return b.pointwise(out, reflected, self, a.y, found)


@rule("digamma")
def digamma(b: Builder, out: Meta, self: Value) -> Value:
    a = _Argument(b, out, self)

    def near(y: Expr, n: Expr, m: Expr, d: Expr) -> Expr:
        made = _series(d, _DIGAMMA)
        made = made - where(m > 0.0, 1.0 / y, 0.0) - where(m > 1.0, 1.0 / (y + 1.0), 0.0)
        for k in range(1, _MOST + 1):
            made = made + where(n >= float(k), 1.0 / (y - float(k)), 0.0)
        return made

    def large(y: Expr) -> Expr:
        square = 1.0 / (y * y)
        return call("log", y) - 0.5 / y - square * _series(square, _DIGAMMA_LARGE)

    def reflected(x: Expr, y: Expr, near: Expr) -> Expr:
        positive, part = where(y < _LARGE, near, large(y)), _fraction(x)
        below = positive - math.pi * call("cos", part) / call("sin", part)
        pole = both(x < 0.0, call("eq", part, 0.0))
        return where(pole, math.nan, where(x < 0.0, below, positive))

    found = a.made(near, "near", a.y, a.down, a.up, a.d)
    return b.pointwise(out, reflected, self, a.y, found)
