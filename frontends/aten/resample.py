"""Resampling: images of another size, each element from the nearest ones of the source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import call, cast, constant, expr, minus, times, where
from ir.spec import Expr, Number

Scales = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Dim:
    """One dimension of the source, and of the result."""

    size: Expr
    made: Expr
    scale: float | None  # of the result, where it is given

    def step(self, aligned: bool = False) -> Expr:
        """How far one element of the result is in the source; aligned: ends lie on ends."""
        size, made = constant(self.size), constant(self.made)
        if aligned:
            if size is not None and made is not None:
                return Number((size - 1) / (made - 1) if made > 1 else 0.0)
            return cast("f32", self.size - 1) / call("maximum", self.made - 1, 1)
        if self.scale:
            return Number(1.0 / self.scale)
        if size is not None and made is not None:
            return Number(size / made)
        return cast("f32", self.size) / self.made

    def source(self, at: Expr, dtype: str, aligned: bool) -> Expr:
        """Where an element lies in the source."""
        if aligned:
            return cast(dtype, at) * self.step(True)
        return (cast(dtype, at) + 0.5) * self.step() - 0.5


def dims_of(x: Value, out: Meta, count: int, scales: Scales | None) -> list[Dim]:
    given = list(scales or [None] * count)
    sizes = zip(x.shape[x.rank - count :], out.shape[x.rank - count :], given, strict=True)
    return [Dim(*one) for one in sizes]


def _nearest(dim: Dim, exact: bool, image: bool) -> Callable[[Expr], Expr]:
    """The nearest position, which PyTorch computes in f32 whatever the image holds: as a quotient
    of whole numbers that gives the same at each place.

    image: there are two dimensions, of which PyTorch takes one that keeps its size, or doubles it, as it is
    whatever the given scale.
    """
    size, made = constant(dim.size), constant(dim.made)
    if size is None or made is None:
        if exact:
            return lambda at: ((at * 2 + 1) * dim.size) // times(dim.made, Number(2))
        return lambda at: (at * dim.size) // dim.made
    if size == 1:
        return lambda at: Number(0)
    if size == made and (image or not dim.scale):
        return lambda at: at
    if image and made == 2 * size:
        return lambda at: at // 2
    step = np.float32(1.0 / dim.scale) if dim.scale else np.float32(size) / np.float32(made)
    half = np.float32(0.5 if exact else 0)
    places = np.floor((np.arange(made, dtype=np.float32) + half) * np.float32(step))
    places = np.minimum(places.astype(int), size - 1)
    return _quotient(places, Fraction(float(step)), exact, size)


def _quotient(places: np.ndarray, step: Fraction, exact: bool, size: int) -> Callable[[Expr], Expr]:
    """Whole numbers with `places[p] = minimum((p * up + by) // down, size - 1)`."""
    for largest in (64, 4096, 2**20):
        near = step.limit_denominator(largest)
        up, by, down = near.numerator, 0, near.denominator
        if exact:
            up, by, down = 2 * up, up, 2 * down
        found = (np.arange(len(places)) * up + by) // down
        if not (np.minimum(found, size - 1) == places).all():
            continue
        clipped = bool((found > size - 1).any())

        def at_place(at: Expr, up=up, by=by, down=down, clipped=clipped) -> Expr:
            place = times(at, Number(up))
            place = place + by if by else place
            place = place if down == 1 else place // down
            return call("minimum", place, size - 1) if clipped else place

        return at_place
    steps = [n for n in range(1, len(places)) if places[n] != places[n - 1]]

    def counted(at: Expr) -> Expr:
        """The steps up to a place, one by one, where no quotient gives them."""
        made: Expr = Number(int(places[0]))
        for n in steps:
            made = made + where(at < n, 0, int(places[n] - places[n - 1]))
        return made

    return counted


def factors(count: int, given: dict) -> Scales | None:
    if given.get("scale_factors"):
        return given["scale_factors"]
    names = ("scales",) if count == 1 else ("scales_d", "scales_h", "scales_w")[3 - count :]
    return [given.get(name) for name in names]


def _nearests(count: int) -> None:
    for exact in (False, True):
        name = "_upsample_nearest_exact" if exact else "upsample_nearest"

        @rule(f"{name}{count}d")
        def nearest(
            b: Builder,
            out: Meta,
            self: Value | None = None,
            input: Value | None = None,
            exact: bool = exact,
            **given: object,
        ) -> Value:
            x = self or input
            places = [
                _nearest(d, exact, count == 2 and not exact)
                for d in dims_of(x, out, count, factors(count, given))
            ]

            def body(*at: Expr) -> Expr:
                lead = at[: x.rank - count]
                last = at[x.rank - count :]
                return x.at(*lead, *(f(i) for f, i in zip(places, last, strict=True)))

            return b.define(out, body, "nearest")


Taps = list[tuple[Value, Value]]  # of each place: positions in the source, and what they weigh


def _linear(b: Builder, dim: Dim, dtype: str, aligned: bool) -> Taps:
    weight, place = Meta(dtype, (dim.made,)), Meta("i32", (dim.made,))

    def source(at: Expr) -> Expr:
        found = dim.source(at, dtype, aligned)
        return found if aligned else call("maximum", found, 0.0)

    def low(at: Expr) -> Expr:
        return call("minimum", cast("i32", call("floor", source(at))), minus(dim.size, Number(1)))

    first = b.define(place, low, "low")
    last = minus(dim.size, Number(1))
    second = b.define(place, lambda at: call("minimum", first.at(at) + 1, last), "high")
    part = b.define(
        weight,
        lambda at: call("minimum", source(at) - cast(dtype, first.at(at)), 1.0),
        "part",
    )
    return [(first, b.define(weight, lambda at: 1.0 - part.at(at), "rest")), (second, part)]


def _cubic(b: Builder, dim: Dim, dtype: str, aligned: bool) -> Taps:
    """Four taps of the cubic with A = -0.75; positions outside are those at the border."""
    weight, place = Meta(dtype, (dim.made,)), Meta("i32", (dim.made,))
    base = b.define(
        place, lambda at: cast("i32", call("floor", dim.source(at, dtype, aligned))), "base"
    )
    part = b.define(
        weight, lambda at: dim.source(at, dtype, aligned) - cast(dtype, base.at(at)), "part"
    )

    def weigh(n: int) -> Callable[[Expr], Expr]:
        return lambda at: cubic(call("abs", part.at(at) - float(n)), -0.75)

    made = []
    for n in (-1, 0, 1, 2):

        def near(at: Expr, n=n) -> Expr:
            found = base.at(at) + n if n else base.at(at)
            return call("minimum", call("maximum", found, 0), minus(dim.size, Number(1)))

        made.append((b.define(place, near, "tap"), b.define(weight, weigh(n), "weight")))
    return made


def cubic(x: Expr, a: float) -> Expr:
    """Keys' convolution kernel, of a distance that is not negative."""
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    far = ((x - 5.0) * x + 8.0) * x * a - 4.0 * a
    return where(x < 1.0, near, where(x < 2.0, far, 0.0))


def _interpolated(b: Builder, out: Meta, x: Value, taps: Sequence[Taps]) -> Value:
    lead = x.rank - len(taps)

    def body(*at: Expr) -> Expr:
        made = None
        for corner in product(*taps):
            term = x.wide(*at[:lead], *(p.at(i) for (p, _), i in zip(corner, at[lead:])))
            for (_, weight), i in zip(corner, at[lead:], strict=True):
                term = term * weight.at(i)
            made = term if made is None else made + term
        return expr(made)

    return b.define(out, body, "resampled")


def _smooth(name: str, count: int, make: Callable[..., Taps]) -> None:
    @rule(name)
    def interpolate(
        b: Builder,
        out: Meta,
        align_corners: bool,
        self: Value | None = None,
        input: Value | None = None,
        **given: object,
    ) -> Value:
        x = self or input
        dims = dims_of(x, out, count, factors(count, given))
        taps = [make(b, dim, computed(x.dtype), align_corners) for dim in dims]
        return _interpolated(b, out, x, taps)


for _count, _name in enumerate(("linear1d", "bilinear2d", "trilinear3d"), 1):
    _nearests(_count)
    _smooth(f"upsample_{_name}", _count, _linear)
_smooth("upsample_bicubic2d", 2, _cubic)
