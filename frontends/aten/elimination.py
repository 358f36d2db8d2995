"""Small systems of linear equations: elimination, a column in each step of a recurrence.

Matrices [..., N, N] are seen as [G, N, N]. What each step leaves of them is kept, N times as much as
they have, so this is for small ones. Where PyTorch refuses a singular matrix, infinities and NaN
are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Shape, Value, computed
from frontends.expressions import call, cast, minus, product, where
from ir.spec import Expr, Number

Entry = Callable[[Expr, Expr, Expr], Expr]  # an element by its group, row and column


class _Steps:
    """The recurrence of an elimination. Each of its tensors has a first index that counts steps,
    which is also the column that is eliminated.

    first: what there is before the first step, [groups, rows, columns].
    """

    def __init__(
        self, b: Builder, dtype: str, first: Entry, groups: Expr, rows: Expr, columns: Expr
    ):
        self.b, self.dtype = b, dtype
        self.groups, self.rows, self.columns = groups, rows, columns
        self.step = b.indices(1)[0]
        self.left = b.declare(Meta(dtype, (rows, groups, rows, columns)), "left")

        def before(t: Expr, g: Expr, i: Expr, j: Expr) -> Expr:
            return where(call("eq", t, 0), first(g, i, j), self.left.at(t - 1, g, i, j, pad=0.0))

        self.before = self.made("before", (groups, rows, columns), before)

    def made(
        self,
        name: str,
        sizes: Shape,
        body: Callable[..., Expr],
        over: Shape = (),
        kind: str = "sum",
        dtype: str = "",
    ) -> Value:
        """A tensor of each step, maybe a reduction."""
        value = self.b.declare(Meta(dtype or self.dtype, (self.rows, *sizes)), name)
        self.b.settle(value, body, over, kind, step=self.step)
        return value

    def settle(self, body: Callable[..., Expr]) -> None:
        """The equation of what a step leaves."""
        self.b.settle(self.left, body, step=self.step)


def _substituted(
    b: Builder, dtype: str, a: Entry, first: Entry, groups: Expr, rows: Expr, columns: Expr
) -> Value:
    """`x[t, g, j]` of `sum(a[g, i, t] * x[t, g, j], t) = first[g, i, j]`, a with zeros above its
    diagonal: row after row, whose multiples are taken off those below."""
    s = _Steps(b, dtype, first, groups, rows, columns)
    row = s.made("row", (groups, columns), lambda t, g, j: s.before.at(t, g, t, j) / a(g, t, t))

    def left(t: Expr, g: Expr, i: Expr, j: Expr) -> Expr:
        old = s.before.at(t, g, i, j)
        return where(i > t, old - a(g, i, t) * row.at(t, g, j), old)

    s.settle(left)
    return row


def _factor(b: Builder, dtype: str, a: Entry, groups: Expr, rows: Expr) -> tuple[Value, Value]:
    """`l[t, g, i]`, column t of Cholesky's factor, and what it is the root of on the diagonal."""
    s = _Steps(b, dtype, a, groups, rows, rows)
    square = s.made("square", (groups,), lambda t, g: s.before.at(t, g, t, t))

    def below(t: Expr, g: Expr, i: Expr) -> Expr:
        return where(i < t, 0.0, s.before.at(t, g, i, t) / call("sqrt", square.at(t, g)))

    column = s.made("column", (groups, rows), below)

    def left(t: Expr, g: Expr, i: Expr, j: Expr) -> Expr:
        return s.before.at(t, g, i, j) - column.at(t, g, i) * column.at(t, g, j)

    s.settle(left)
    return column, square


def _eliminated(
    b: Builder, dtype: str, first: Entry, groups: Expr, rows: Expr, columns: Expr, singular: bool
) -> tuple[Value, Value, Value]:
    """Gauss-Jordan elimination of the first columns, with the largest pivot of each column: what
    each step leaves, its pivot, and the row from which that came. singular: whether a column may
    be zero, which then stays."""
    s = _Steps(b, dtype, first, groups, rows, columns)

    def size(t: Expr, g: Expr, i: Expr) -> Expr:
        return where(i < t, -1.0, call("abs", s.before.at(t, g, i, t)))

    place = s.made("place", (groups,), size, (rows,), "argmax", "i32")

    def chosen(t: Expr, g: Expr, j: Expr, i: Expr) -> Expr:
        return where(call("eq", i, place.at(t, g)), s.before.at(t, g, i, j), 0.0)

    top = s.made("top", (groups, columns), chosen, (rows,))
    pivot = s.made("pivot", (groups,), lambda t, g: top.at(t, g, t))

    def swapped(t: Expr, g: Expr, i: Expr, j: Expr) -> Expr:
        moved = call("eq", i, place.at(t, g))
        return where(moved, s.before.at(t, g, t, j), s.before.at(t, g, i, j))

    def left(t: Expr, g: Expr, i: Expr, j: Expr) -> Expr:
        by = pivot.at(t, g)
        row = top.at(t, g, j) / (where(call("eq", by, 0.0), 1.0, by) if singular else by)
        return where(call("eq", i, t), row, swapped(t, g, i, j) - swapped(t, g, i, t) * row)

    s.settle(left)
    return s.left, pivot, place


def _grouped(b: Builder, x: Value, batch: Shape) -> Value:
    """[G, N, M] of [..., N, M], broadcast to a batch."""
    shape = (*batch, *x.shape[-2:])
    if x.shape != shape:
        x = b.define(Meta(x.dtype, shape), lambda *at: x.at(*_within(b, x, at)), "matrices")
    return b.reshape(x, (product(batch), *shape[-2:]), "matrices")


def _within(b: Builder, x: Value, at: Sequence[Expr]) -> tuple[Expr, ...]:
    return (*b.broadcast(x, at)[:-2], *at[-2:])


def _batched(b: Builder, out: Meta, body: Callable[..., Expr]) -> Value:
    """A result [..., N, M] of a function of group, row and column."""
    made = b.define(Meta(out.dtype, (product(out.shape[:-2]), *out.shape[-2:])), body, "solved")
    return b.reshape(made, out.shape)


def _first_bad(b: Builder, out: Meta, bad: Callable[[Expr, Expr], Expr], rows: Expr) -> Value:
    """The number of the first step, from 1, whose pivot is bad; 0 where none is."""
    groups = product(out.shape)
    whole = Meta("i32", (groups,))
    first = b.reduce("min", whole, (rows,), lambda g, t: where(bad(t, g), t + 1, rows + 1), "first")
    made = b.pointwise(whole, lambda n: where(n > rows, 0, n), first, name="info")
    return b.reshape(made, out.shape)


@rule("linalg_solve_triangular")
def solve_triangular(
    b: Builder,
    out: Meta,
    self: Value,
    B: Value,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Value:
    """Of an upper matrix the last row is the first; from the right, both matrices are transposed."""
    batch, rows = out.shape[:-2], self.shape[-1]
    a, given = _grouped(b, self, batch), _grouped(b, B, batch)
    columns = given.shape[2 if left else 1]
    flips = upper if left else not upper

    def place(i: Expr) -> Expr:
        return minus(rows, Number(1)) - i if flips else i

    def entry(g: Expr, i: Expr, j: Expr) -> Expr:
        at = (place(i), place(j)) if left else (place(j), place(i))
        return where(call("eq", i, j), 1.0, a.wide(g, *at)) if unitriangular else a.wide(g, *at)

    def first(g: Expr, i: Expr, j: Expr) -> Expr:
        return given.wide(g, *((place(i), j) if left else (j, place(i))))

    groups = product(batch)
    row = _substituted(b, computed(out.dtype), entry, first, groups, rows, columns)
    return _batched(
        b, out, lambda g, i, j: row.at(place(i), g, j) if left else row.at(place(j), g, i)
    )


@rule("cholesky_solve")
def cholesky_solve(b: Builder, out: Meta, self: Value, input2: Value, upper: bool = False) -> Value:
    half = solve_triangular(b, out, _transposed(b, input2) if upper else input2, self, False)
    return solve_triangular(b, out, input2 if upper else _transposed(b, input2), half, True)


def _transposed(b: Builder, x: Value) -> Value:
    *batch, rows, columns = x.shape
    return b.define(
        Meta(x.dtype, (*batch, columns, rows)),
        lambda *at: x.at(*at[:-2], at[-1], at[-2]),
        "flipped",
    )


@rule("linalg_cholesky_ex")
def cholesky(
    b: Builder, out: tuple[Meta, Meta], self: Value, upper: bool = False, check_errors: bool = False
) -> tuple[Value, Value]:
    """The half of the matrix that the result does not have is not read."""
    rows, groups = self.shape[-1], product(self.shape[:-2])
    given = _grouped(b, self, self.shape[:-2])

    def entry(g: Expr, i: Expr, j: Expr) -> Expr:
        low, high = call("minimum", i, j), call("maximum", i, j)
        return given.wide(g, *((low, high) if upper else (high, low)))

    column, square = _factor(b, computed(self.dtype), entry, groups, rows)
    made = _batched(b, out[0], lambda g, i, j: column.at(i, g, j) if upper else column.at(j, g, i))
    return made, _first_bad(b, out[1], lambda t, g: call("not", square.at(t, g) > 0.0), rows)


@rule("cholesky")
def cholesky_alone(b: Builder, out: Meta, self: Value, upper: bool = False) -> Value:
    return cholesky(b, (out, Meta("i32", out.shape[:-2])), self, upper)[0]


@rule("linalg_inv_ex")
def inverse(
    b: Builder, out: tuple[Meta, Meta], A: Value, check_errors: bool = False
) -> tuple[Value, Value]:
    return _solved(b, out[0], out[1], A, None)


@rule("_linalg_solve_ex")
def solve(
    b: Builder,
    out: tuple[Meta, ...],
    A: Value,
    B: Value,
    left: bool = True,
    check_errors: bool = False,
) -> tuple[Value | None, ...]:
    """PyTorch's factors are not computed. From the right, all matrices are transposed."""
    vectors = B.rank == A.rank - 1 and B.shape == A.shape[:-1]
    given = b.reshape(B, (*B.shape, 1)) if vectors else B
    meta = Meta(out[0].dtype, (*out[0].shape, Number(1))) if vectors else out[0]
    if not left:
        *batch, rows, columns = meta.shape
        flat = Meta(meta.dtype, (*batch, columns, rows))
        made, info = _solved(b, flat, out[3], _transposed(b, A), _transposed(b, given))
        made = _transposed(b, made)
    else:
        made, info = _solved(b, meta, out[3], A, given)
    return b.reshape(made, out[0].shape), None, None, info


def _solved(
    b: Builder, out: Meta, info: Meta, a: Value, given: Value | None
) -> tuple[Value, Value]:
    """The solution for given columns, or for those of the unit matrix."""
    batch, rows = out.shape[:-2], a.shape[-1]
    left = _grouped(b, a, batch)
    right = _grouped(b, given, batch) if given else None
    dtype, columns = computed(out.dtype), out.shape[-1]

    def first(g: Expr, i: Expr, j: Expr) -> Expr:
        if right is None:
            beyond = cast(dtype, call("eq", j - rows, i))
        else:
            beyond = right.wide(g, i, j - rows, pad=0.0)
        return where(j < rows, left.wide(g, i, j, pad=0.0), beyond)

    last, pivot, _ = _eliminated(
        b, dtype, first, product(batch), rows, rows + columns, singular=False
    )
    made = _batched(b, out, lambda g, i, j: last.at(minus(rows, Number(1)), g, i, j + rows))
    return made, _first_bad(b, info, lambda t, g: call("eq", pivot.at(t, g), 0.0), rows)


def _pivots(b: Builder, a: Value) -> tuple[Value, Callable[[Expr, Expr], Expr]]:
    """The pivots of each step, and -1.0 for each exchange of rows."""
    groups, rows = product(a.shape[:-2]), a.shape[-1]
    given = _grouped(b, a, a.shape[:-2])
    first: Entry = given.wide
    dtype = computed(a.dtype)
    _, pivot, place = _eliminated(b, dtype, first, groups, rows, rows, singular=True)

    def sign(t: Expr, g: Expr) -> Expr:
        return where(call("eq", place.at(t, g), t), 1.0, -1.0)

    return pivot, sign


@rule("_linalg_det")
def det(b: Builder, out: tuple[Meta, ...], A: Value) -> tuple[Value | None, ...]:
    """PyTorch's factors are not computed."""
    pivot, sign = _pivots(b, A)
    meta = Meta(out[0].dtype, (product(out[0].shape),))
    made = b.reduce(
        "prod", meta, A.shape[-1:], lambda g, t: pivot.at(t, g) * sign(t, g), "determinant"
    )
    return b.reshape(made, out[0].shape), None, None


@rule("_linalg_slogdet")
def slogdet(b: Builder, out: tuple[Meta, ...], A: Value) -> tuple[Value | None, ...]:
    """PyTorch's factors are not computed."""
    pivot, sign = _pivots(b, A)
    meta, rows = Meta(out[0].dtype, (product(out[0].shape),)), A.shape[-1:]
    signs = b.reduce(
        "prod", meta, rows, lambda g, t: call("sign", pivot.at(t, g)) * sign(t, g), "signs"
    )
    logs = b.reduce(
        "sum", meta, rows, lambda g, t: call("log", call("abs", pivot.at(t, g))), "logs"
    )
    return b.reshape(signs, out[0].shape), b.reshape(logs, out[1].shape), None, None
