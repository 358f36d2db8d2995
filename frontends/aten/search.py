"""Searches: where values stand among sorted borders, and whether they are among others."""

from __future__ import annotations

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value
from frontends.expressions import Term, both, call, cast, constant, expr, where
from ir.spec import Apply, Expr


@rule("bucketize")
def bucketize(
    b: Builder,
    out: Meta,
    self: Value | Term,
    boundaries: Value,
    out_int32: bool = False,
    right: bool = False,
) -> Value:
    return _searched(b, out, boundaries, self, None, right)


@rule("searchsorted")
def searchsorted(
    b: Builder,
    out: Meta,
    sorted_sequence: Value,
    self: Value | Term,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    right = right if side is None else side == "right"
    return _searched(b, out, sorted_sequence, self, sorter, right)


def _searched(
    b: Builder, out: Meta, borders: Value, values: Value | Term, sorter: Value | None, right: bool
) -> Value:
    """How many borders come before a value: those less than it, or with `right` those not above it.
    NaN comes after all. One line of borders serves all values, several the values of theirs."""
    count = borders.shape[-1]

    def term(*at: Expr) -> Expr:
        return values.wide(*at) if isinstance(values, Value) else expr(values)

    one = borders.rank == 1 and sorter is None and not right and constant(count) != 0
    if one and isinstance(values, Value) and values.dtype == borders.dtype:
        read = values.at
        return b.define(out, lambda *at: b.bucketize(read(*at), borders))

    def before(*at: Expr) -> Expr:
        own, k = at[:-1], at[-1]
        place = own[: borders.rank - 1] if borders.rank > 1 else ()
        border = borders.wide(*place, k if sorter is None else sorter.at(*place, k))
        later = call("gt" if right else "ge", border, term(*own))
        return where(later, 0, 1)

    meta = Meta("i32", out.shape)
    found = b.reduce("sum", meta, (count,), before, "before")
    return b.define(out, found.at, "bucket")


@rule("isin")
def isin(
    b: Builder,
    out: Meta,
    elements: Value | None = None,
    test_elements: Value | None = None,
    element: Term = 0,
    test_element: Term = 0,
    assume_unique: bool = False,
    invert: bool = False,
) -> Value:
    tests = test_elements.shape if test_elements is not None else ()

    def same(*at: Expr) -> Expr:
        own, other = at[: len(out.shape)], at[len(out.shape) :]
        mine = elements.at(*own) if elements is not None else expr(element)
        theirs = test_elements.at(*other) if test_elements is not None else expr(test_element)
        return Apply("eq", (mine, theirs))

    found = b.reduce("any", out, tests, same, "among")
    return b.define(out, lambda *at: ~found.at(*at), "not_among") if invert else found


@rule("histc")
def histc(
    b: Builder, out: Meta, self: Value, bins: int = 100, min: Term = 0, max: Term = 0
) -> Value:
    """Bins of one width; where both ends are the same, those of the data are taken."""
    wide = "f64" if self.dtype == "f64" else "f32"
    low, high = _ends(b, self, min, max, wide)
    count = out.shape[0]

    def one(p: Expr, *at: Expr) -> Expr:
        value = self.at(*at) if self.dtype == wide else cast(wide, self.at(*at))
        first, last = low.at(), high.at()
        place = cast("i32", call("floor", (value - first) * cast(wide, count) / (last - first)))
        inside = both(call("ge", value, first), call("le", value, last))
        hit = Apply("eq", (call("minimum", place, count - 1), p))
        return where(inside & hit, 1, 0)

    found = b.reduce("sum", Meta("i32", out.shape), self.shape, one, "counts")
    return b.define(out, lambda p: cast(out.dtype, found.at(p)), "histogram")


def _ends(b: Builder, value: Value, low: Term, high: Term, wide: str) -> tuple[Value, Value]:
    """The ends of the bins, apart from each other."""
    meta = Meta(wide, ())
    if low != high:
        return b.define(meta, lambda: cast(wide, low)), b.define(meta, lambda: cast(wide, high))
    ends = [
        b.reduce(kind, meta, value.shape, lambda *at: cast(wide, value.at(*at)), kind)
        for kind in ("min", "max")
    ]

    def apart(step: float) -> Value:
        own = ends[step > 0]
        alike = Apply("eq", (ends[0].at(), ends[1].at()))
        return b.define(meta, lambda: where(alike, own.at() + step, own.at()), "end")

    return apart(-1.0), apart(1.0)
