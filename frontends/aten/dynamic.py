"""Results whose size depends on data: a tensor of the largest size, and how much of it counts.

Where elements are chosen, `before[i]` is how many are among the first `i + 1`. So it is sorted, and
the chosen element number `c` is at the first `i` with `before[i] >= c + 1`.
"""

from __future__ import annotations

from collections.abc import Sequence

from frontends.aten.ranks import ranked, sorted_line
from frontends.aten.table import rule
from frontends.builder import Body, Builder, Meta, Value, unravelled
from frontends.expressions import call, cast, constant, expr, product, where
from ir.errors import KernelError
from ir.spec import Apply, Expr, Number


class Chosen:
    """The elements of a line for whose place a condition holds, in order.

    before: how many are among the elements up to a place.  count: how many there are.
    """

    def __init__(self, b: Builder, size: Expr, holds: Body):
        self.b, self.size = b, size
        meta = Meta("i32", (size,))
        self.before = b.scan("sum", meta, 0, lambda i: where(holds(i), 1, 0), "before")
        self.count = b.define(Meta("i64", ()), lambda: self.before.at(size - 1), "count")

    def place(self, number: Expr) -> Expr:
        """Where the chosen element of a number is; `size` for those beyond the last."""
        return self.b.bucketize(number + 1, self.before)

    def places(self, count: Expr | None = None) -> Value:
        """Where the first ones are; the last place of all for those beyond the last one."""
        meta = Meta("i32", (self.size if count is None else count,))
        last = self.size - 1
        return self.b.define(meta, lambda c: call("minimum", self.place(c), last), "places")


@rule("nonzero")
def nonzero(b: Builder, out: Meta, self: Value) -> Value:
    chosen = _true(b, self)
    places = chosen.places()
    meta = Meta(out.dtype, (chosen.size, Number(self.rank)))
    made = b.define(meta, lambda c, d: _coordinate(places.at(c), self.shape, d), "nonzero")
    return b.counted(made, chosen.count)


@rule("nonzero_static")
def nonzero_static(b: Builder, out: Meta, self: Value, size: int, fill_value: int = -1) -> Value:
    chosen = _true(b, self)
    places = chosen.places(out.shape[0])

    def coordinate(c: Expr, d: Expr) -> Expr:
        found = _coordinate(places.at(c), self.shape, d)
        return where(c < chosen.count.at(), found, fill_value)

    return b.define(out, coordinate)


@rule("masked_select")
def masked_select(b: Builder, out: Meta, self: Value, mask: Value) -> Value:
    shape = broadcast_shape((self.shape, mask.shape))
    whole = mask
    if mask.shape != shape:
        whole = b.define(Meta("b8", shape), lambda *at: b.operand(mask, at), "mask")
    chosen = _true(b, whole)
    places = chosen.places()
    made = b.define(
        Meta(out.dtype, (chosen.size,)),
        lambda c: b.operand(self, unravelled(places.at(c), shape)),
        "selected",
    )
    return b.counted(made, chosen.count)


@rule("unique_consecutive")
def unique_consecutive(
    b: Builder,
    out: tuple[Meta, ...],
    self: Value,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> tuple[Value | None, ...]:
    if dim is None or not self.rank:
        line = b.reshape(self, (product(self.shape),))
        chosen = Chosen(b, line.shape[0], lambda i: _differs(line, i))
        values = _firsts(b, out[0], line, chosen, 0)
    else:
        dim %= self.rank
        starts = _starts(b, self, dim)
        chosen = Chosen(b, self.shape[dim], starts.at)
        values = _firsts(b, out[0], self, chosen, dim)
    inverse = counts = None
    if return_inverse:
        flat = b.define(
            Meta(out[1].dtype, (chosen.size,)), lambda i: chosen.before.at(i) - 1, "inverse"
        )
        inverse = b.reshape(flat, out[1].shape)
    if return_counts:
        counts = _lengths(b, out[2], chosen)
    return values, inverse, counts


@rule("_unique2")
def _unique2(
    b: Builder,
    out: tuple[Meta, ...],
    self: Value,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Value | None, ...]:
    line = b.reshape(self, (product(self.shape),))
    ranks = ranked(b, line, 0)
    ordered = sorted_line(b, line, ranks)
    chosen = Chosen(b, line.shape[0], lambda i: _differs(ordered, i))
    values = _firsts(b, out[0], ordered, chosen, 0)
    inverse = counts = None
    if return_inverse:
        flat = b.define(
            Meta(out[1].dtype, line.shape), lambda i: chosen.before.at(ranks.at(i)) - 1, "inverse"
        )
        inverse = b.reshape(flat, self.shape)
    if return_counts:
        counts = _lengths(b, out[2], chosen)
    return values, inverse, counts


def broadcast_shape(shapes: Sequence[Sequence[Expr]]) -> tuple[Expr, ...]:
    """The sizes that tensors of these sizes are broadcast to."""
    rank = max(map(len, shapes), default=0)
    made: list[Expr] = [Number(1)] * rank
    for shape in shapes:
        for k, size in enumerate(shape, rank - len(shape)):
            made[k] = made[k] if constant(size) == 1 else size
    return tuple(made)


def _true(b: Builder, value: Value) -> Chosen:
    def holds(i: Expr) -> Expr:
        found = value.at(*unravelled(i, value.shape))
        return found if value.dtype == "b8" else Apply("ne", (found, Number(0)))

    return Chosen(b, product(value.shape), holds)


def _coordinate(place: Expr, shape: Sequence[Expr], dim: Expr) -> Expr:
    """A place in row-major order as one of its positions."""
    positions = unravelled(place, tuple(shape))
    if not positions:
        raise KernelError(
            "the places of what is not 0 in a number have no size",
            allowed="at least 1-D",
            hint="use `x != 0`",
        )
    made = positions[-1]
    for d in range(len(positions) - 2, -1, -1):
        made = where(dim <= d, positions[d], made)
    return cast("i64", made)


def _differs(line: Value, i: Expr) -> Expr:
    """Whether an element of a line is the first, or another than the one before."""
    return (i < 1) | Apply("ne", (line.at(i), line.at(call("maximum", i - 1, 0))))


def _starts(b: Builder, value: Value, dim: int) -> Value:
    """Whether a slice is the first, or another than the one before."""
    others = [size for d, size in enumerate(value.shape) if d != dim]

    def other(i: Expr, *at: Expr) -> Expr:
        def slice_at(place: Expr) -> Expr:
            return value.at(*at[:dim], place, *at[dim:])

        return (i < 1) | Apply("ne", (slice_at(i), slice_at(call("maximum", i - 1, 0))))

    return b.reduce("any", Meta("b8", (value.shape[dim],)), others, other, "starts")


def _firsts(b: Builder, out: Meta, value: Value, chosen: Chosen, dim: int) -> Value:
    """The chosen slices along a dimension."""
    places = chosen.places()
    shape = (*value.shape[:dim], chosen.size, *value.shape[dim + 1 :])

    def element(*at: Expr) -> Expr:
        return value.at(*at[:dim], places.at(at[dim]), *at[dim + 1 :])

    return b.counted(b.define(Meta(out.dtype, shape), element, "unique"), chosen.count, dim)


def _lengths(b: Builder, out: Meta, chosen: Chosen) -> Value:
    """How far the next chosen element is from each."""
    ends = b.define(Meta("i32", (expr(chosen.size),)), lambda c: chosen.place(c + 1), "ends")
    starts = b.define(ends.meta, chosen.place, "starts")
    made = b.define(Meta(out.dtype, ends.shape), lambda c: ends.at(c) - starts.at(c), "lengths")
    return b.counted(made, chosen.count)
