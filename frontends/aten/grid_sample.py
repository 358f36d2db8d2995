"""Sampling at places of a grid: each element from the elements of the source around a place that another tensor holds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from frontends.aten.resample import cubic
from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import both, call, cast, expr, minus, where
from ir.errors import KernelError
from ir.spec import Expr, Number

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)
FARTHEST = (
    2.0**20
)  # elements outside, from where on a place is not reflected but cut off: 32-bit whole numbers hold it
# Of one dimension: positions in the source, and their weights; each of [image, *places].
Taps = list[tuple[Value, Value]]


@rule("grid_sampler_2d", "grid_sampler_3d", "cudnn_grid_sampler")
def grid_sampler(
    b: Builder,
    out: Meta,
    input: Value,
    grid: Value,
    interpolation_mode: int = BILINEAR,
    padding_mode: int = ZEROS,
    align_corners: bool = True,
) -> Value:
    """input: [N, C, *sizes]; grid: [N, *places, dimensions], the last dimension of the source first."""
    count = input.rank - 2
    if count == 3 and interpolation_mode == BICUBIC:
        raise KernelError("bicubic sampling is of images", allowed="bilinear and nearest")
    taps = [
        _Dim(b, input, grid, d, padding_mode, align_corners).taps(interpolation_mode)
        for d in range(count)
    ]

    def body(*at: Expr) -> Expr:
        image, channel, *place = at
        made = None
        for corner in product(*taps):
            term = input.wide(image, channel, *(near.at(image, *place) for near, _ in corner))
            for _, weight in corner:
                term = term * weight.at(image, *place)
            made = term if made is None else made + term
        return expr(made)

    return b.define(out, body, "sampled")


class _Dim:
    """One dimension of the source.

    d: its number.  padding: what replaces elements outside.  aligned: -1 and 1 are the centres of the first and the last element,
    else their outer ends.
    """

    def __init__(self, b: Builder, x: Value, grid: Value, d: int, padding: int, aligned: bool):
        self.b, self.grid, self.padding, self.aligned = b, grid, padding, aligned
        self.size, self.dtype = x.shape[d + 2], computed(x.dtype)
        self.column = x.rank - 3 - d  # of the last dimension of the grid
        self.shape = grid.shape[:-1]
        self.last = minus(self.size, Number(1))

    def taps(self, mode: int) -> Taps:
        """Those of all places."""
        if mode == NEAREST:
            near = self._values("near", lambda *at: call("round", self._inside(self._source(*at))))
            return [self._tap(near.at, lambda *_: Number(1.0))]
        if mode == BILINEAR:
            place = self._values("place", lambda *at: self._inside(self._source(*at)))
            low = self._values("low", lambda *at: call("floor", place.at(*at)))

            def part(*at: Expr) -> Expr:
                return place.at(*at) - low.at(*at)

            return [
                self._tap(low.at, lambda *at: 1.0 - part(*at)),
                self._tap(lambda *at: low.at(*at) + 1.0, part),
            ]
        beyond = FARTHEST if self.padding == REFLECTION else 3.0
        place = self._values("place", lambda *at: self._bounded(self._source(*at), beyond))
        low = self._values("low", lambda *at: call("floor", place.at(*at)))
        return [self._cubic(place, low, n) for n in (-1, 0, 1, 2)]

    def _cubic(self, place: Value, low: Value, n: int) -> tuple[Value, Value]:
        def weight(*at: Expr) -> Expr:
            return cubic(call("abs", place.at(*at) - low.at(*at) - float(n)), -0.75)

        return self._tap(lambda *at: self._inside(low.at(*at) + float(n)), weight)

    def _tap(self, place: Callable[..., Expr], weight: Callable[..., Expr]) -> tuple[Value, Value]:
        """A position, and its weight: none where it is outside."""

        def near(*at: Expr) -> Expr:
            return cast("i32", self._clipped(place(*at)))

        def weighed(*at: Expr) -> Expr:
            here = place(*at)
            inside = both(Number(0.0) <= here, here <= self._float(self.last))
            return where(inside, weight(*at), 0.0)

        index = self.b.define(Meta("i32", self.shape), near, "tap")
        return index, self._values("weight", weighed)

    def _values(self, name: str, body: Callable[..., Expr]) -> Value:
        return self.b.define(Meta(self.dtype, self.shape), body, name)

    def _source(self, *at: Expr) -> Expr:
        """The place in elements of the source."""
        x, size = cast(self.dtype, self.grid.at(*at, self.column)), self._float(self.size)
        if self.aligned:
            return (x + 1.0) / 2.0 * (size - 1.0)
        return ((x + 1.0) * size - 1.0) / 2.0

    def _inside(self, place: Expr) -> Expr:
        """A place as the padding has it."""
        if self.padding == BORDER:
            return self._clipped(place)
        if self.padding == REFLECTION:
            return self._clipped(self._reflected(self._bounded(place, FARTHEST)))
        return self._bounded(place, 2.0)

    def _reflected(self, place: Expr) -> Expr:
        """A place reflected at the ends until it is inside. The ends are half an element outside where corners are not aligned."""
        low = 0.0 if self.aligned else -0.5
        span = self._float(self.last) if self.aligned else self._float(self.size)
        far = call("abs", place - low)
        flips = call("floor", far / call("maximum", span, 1.0))
        rest = far - flips * span
        odd = flips - 2.0 * call("floor", flips / 2.0)
        return where(span <= 0.0, 0.0, where(odd <= 0.0, rest, span - rest) + low)

    def _clipped(self, place: Expr) -> Expr:
        return call("minimum", call("maximum", place, 0.0), self._float(self.last))

    def _bounded(self, place: Expr, beyond: float) -> Expr:
        """A place at most so far outside, where all elements are outside too: whole numbers hold it."""
        return call("minimum", call("maximum", place, -beyond), self._float(self.size) + beyond)

    def _float(self, size: Expr) -> Expr:
        return Number(float(size.value)) if isinstance(size, Number) else cast(self.dtype, size)
