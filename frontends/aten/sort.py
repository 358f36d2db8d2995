"""Sorts, and what is found by order: each through the ranks of elements."""

from __future__ import annotations

from collections.abc import Callable

from frontends.aten.ranks import places, ranked, swapped
from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import Term, call, cast, constant, expr, product, where
from ir.dtypes import is_float
from ir.errors import KernelError
from ir.spec import Apply, Expr

Order = Callable[..., Term]  # of the other positions: which rank is looked for


@rule("sort")
def sort(
    b: Builder,
    out: tuple[Meta, Meta],
    self: Value,
    stable: bool | None = None,
    dim: int = -1,
    descending: bool = False,
) -> tuple[Value, Value]:
    if not self.rank:
        return b.copy(self), b.define(out[1], lambda: 0)
    dim %= self.rank
    found = places(b, ranked(b, self, dim, descending), dim)
    values = b.define(out[0], lambda *at: self.at(*swapped(at, dim, found.at(*at))), "sorted")
    return values, b.define(out[1], found.at, "order")


@rule("argsort")
def argsort(
    b: Builder,
    out: Meta,
    self: Value,
    stable: bool = False,
    dim: int = -1,
    descending: bool = False,
) -> Value:
    return sort(b, (self.meta, out), self, stable, dim, descending)[1]


@rule("msort")
def msort(b: Builder, out: Meta, self: Value) -> Value:
    return sort(b, (out, Meta("i64", out.shape)), self, dim=0)[0]


@rule("topk")
def topk(
    b: Builder,
    out: tuple[Meta, Meta],
    self: Value,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
) -> tuple[Value, Value]:
    if not self.rank:
        return b.copy(self), b.define(out[1], lambda: 0)
    dim %= self.rank
    found = places(b, ranked(b, self, dim, descending=largest), dim, out[1].shape[dim])
    values = b.define(out[0], lambda *at: self.at(*swapped(at, dim, found.at(*at))), "top")
    return values, b.define(out[1], found.at, "order")


@rule("kthvalue")
def kthvalue(
    b: Builder, out: tuple[Meta, Meta], self: Value, k: int, dim: int = -1, keepdim: bool = False
) -> tuple[Value, Value]:
    line = _Line(b, self, dim, keepdim)
    return line.element(out, lambda *_: k - 1)


@rule("median")
def median(
    b: Builder,
    out: Meta | tuple[Meta, Meta],
    self: Value,
    dim: int | None = None,
    keepdim: bool = False,
) -> Value | tuple[Value, Value]:
    """Of an even number the lower one; the first NaN where there is one."""
    return _middle(b, out, self, dim, keepdim, skipped=False)


@rule("nanmedian")
def nanmedian(
    b: Builder,
    out: Meta | tuple[Meta, Meta],
    self: Value,
    dim: int | None = None,
    keepdim: bool = False,
) -> Value | tuple[Value, Value]:
    return _middle(b, out, self, dim, keepdim, skipped=True)


def _middle(
    b: Builder,
    out: Meta | tuple[Meta, Meta],
    self: Value,
    dim: int | None,
    keepdim: bool,
    skipped: bool,
) -> Value | tuple[Value, Value]:
    if dim is None:
        flat = b.reshape(self, (product(self.shape),))
        return _middle(b, (out, Meta("i64", ())), flat, 0, False, skipped)[0]
    line = _Line(b, self, dim, keepdim)
    middle = (line.size - 1) // 2
    if not is_float(self.dtype):
        return line.element(out, lambda *_: middle)
    numbers = line.numbers()

    def order(*at: Expr) -> Expr:
        count = numbers.at(*at)
        if skipped:
            return call("maximum", (count - 1) // 2, 0)
        return where(count < line.size, count, middle)

    return line.element(out, order)


@rule("quantile")
def quantile(
    b: Builder,
    out: Meta,
    self: Value,
    q: Value | float,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Value:
    return _quantile(b, out, self, q, dim, keepdim, interpolation, skipped=False)


@rule("nanquantile")
def nanquantile(
    b: Builder,
    out: Meta,
    self: Value,
    q: Value | float,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Value:
    return _quantile(b, out, self, q, dim, keepdim, interpolation, skipped=True)


def _quantile(
    b: Builder,
    out: Meta,
    self: Value,
    q: Value | float,
    dim: int | None,
    keepdim: bool,
    interpolation: str,
    skipped: bool,
) -> Value:
    """PyTorch's dimensions of the result: that of q where it has one, then the others."""
    if dim is None:
        flat = b.reshape(self, (product(self.shape),))
        lead = q.rank if isinstance(q, Value) else 0
        made = _quantile(
            b, Meta(out.dtype, out.shape[:lead]), flat, q, 0, False, interpolation, skipped
        )
        return b.reshape(made, out.shape)
    line = _Line(b, self, dim, keepdim)
    lead = q.rank if isinstance(q, Value) else 0
    numbers = line.numbers()
    wide = computed(out.dtype)
    last = cast(wide, line.size - 1)

    def place(*at: Expr) -> Expr:
        """Where in sorted order the quantile lies, between two elements."""
        share = q.at(*at[:lead]) if isinstance(q, Value) else expr(q)
        count = numbers.at(*at[lead:])
        if skipped:
            return call("maximum", share * cast(wide, count - 1), 0.0)
        return where(count < line.size, last, share * last)

    places = b.define(Meta(wide, out.shape), place, "place")
    found = [
        line.value(
            Meta(wide, out.shape), lambda *at, f=f: cast("i32", call(f, places.at(*at))), lead
        )
        for f in _ends(interpolation)
    ]
    if len(found) == 1:
        return found[0] if wide == out.dtype else b.define(out, found[0].at)

    def between(*at: Expr) -> Expr:
        low, high = (value.at(*at) for value in found)
        share = places.at(*at) - call("floor", places.at(*at))
        share = expr(0.5) if interpolation == "midpoint" else share
        return where(share < 0.5, low + share * (high - low), high - (high - low) * (1 - share))

    return b.define(out, between)


def _ends(interpolation: str) -> tuple[str, ...]:
    """The roundings of a place that give the elements which a quantile lies between."""
    known = {
        "lower": ("floor",),
        "higher": ("ceil",),
        "nearest": ("round",),
        "linear": ("floor", "ceil"),
        "midpoint": ("floor", "ceil"),
    }
    if interpolation not in known:
        raise KernelError(
            f"there is no interpolation `{interpolation}`",
            allowed=", ".join(known),
            hint="use `linear`",
        )
    return known[interpolation]


class _Line:
    """The elements along a dimension that is reduced away, or kept with size 1."""

    def __init__(self, b: Builder, value: Value, dim: int, keepdim: bool):
        self.b, self.keepdim = b, keepdim
        self.value_of = value if value.rank else b.reshape(value, (1,))
        self.flat = not value.rank
        self.dim = dim % self.value_of.rank
        self.size = self.value_of.shape[self.dim]
        known = constant(self.size)
        if known is not None:
            self.size = expr(known)
        self.ranks = ranked(b, self.value_of, self.dim)

    def at(self, at: tuple[Expr, ...], k: Term) -> tuple[Term, ...]:
        """Positions of the result as those of an element."""
        if self.flat:
            return (k,)
        rest = at[self.dim + 1 :] if self.keepdim else at[self.dim :]
        return (*at[: self.dim], k, *rest)

    def numbers(self) -> Value:
        """How many elements are no NaN, in the shape of a result."""
        shape = self.value_of.shape
        kept = (expr(1),) if self.keepdim else ()
        shape = () if self.flat else (*shape[: self.dim], *kept, *shape[self.dim + 1 :])

        def one(*at: Expr) -> Expr:
            found = self.value_of.wide(*self.at(at[:-1], at[-1]))
            return where(call("isnan", found), 0, 1)

        return self.b.reduce("sum", Meta("i32", shape), (self.size,), one, "numbers")

    def value(self, meta: Meta, order: Order, lead: int = 0) -> Value:
        """The element of a rank. lead: the result's dimensions before the others."""

        def one(*at: Expr) -> Expr:
            here = self.at(at[lead:-1], at[-1])
            hit = Apply("eq", (self.ranks.at(*here), expr(order(*at[:-1]))))
            return where(hit, cast(meta.dtype, self.value_of.at(*here)), 0)

        return self.b.reduce("sum", meta, (self.size,), one, "element")

    def element(self, out: tuple[Meta, Meta], order: Order) -> tuple[Value, Value]:
        """The element of a rank, and where it stands."""

        def one(*at: Expr) -> Expr:
            hit = Apply("eq", (self.ranks.at(*self.at(at[:-1], at[-1])), expr(order(*at[:-1]))))
            return where(hit, at[-1], 0)

        found = self.b.reduce("sum", Meta("i32", out[1].shape), (self.size,), one, "place")
        values = self.b.define(
            out[0], lambda *at: self.value_of.at(*self.at(at, found.at(*at))), "element"
        )
        return values, self.b.define(out[1], found.at, "order")
