"""Expands argmax, scatters, and exclusive or reverse scans into equations that a nest computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ir.contraction import indices
from ir.dtypes import Dtypes, is_float
from ir.errors import KernelError
from ir.functions import IDENTITY
from ir.spec import (
    Apply,
    Cast,
    Equation,
    Expr,
    Facts,
    Index,
    Number,
    Range,
    Read,
    Reduce,
    Scan,
    Spec,
)
from ir.variant.atomic import places
from ir.verify import facts
from ir.visit import inline, pruned, rebuilt, renamed

_BACK = "_back"  # suffix of the name of a scan over reversed input


def expanded(spec: Spec, added: frozenset[str] = frozenset()) -> Spec:
    """Expands argmax and argmin, scatters, and reverse or exclusive scans to reductions and plain
    scans.

    Returns the spec itself if it has none of them.

    added: targets of scatters that stay, because their updates are atomic additions.
    """
    if not any(_expands(e) and e.target not in added for e in spec.equations):
        return spec
    known = facts(spec)
    made: list[Equation] = []
    for e in spec.equations:
        stays = e.target in added or not _expands(e)
        made += [e] if stays else _expansion(spec, known, e)
    return pruned(replace(spec, equations=tuple(made)))


def top_of(target: str) -> str:
    """The name of the maximum (minimum) whose position `target` is."""
    return f"{target}_top"


def reverse_scans(spec: Spec) -> tuple[str, ...]:
    """The scans from the last term to the first."""
    scans = (e for e in spec.equations if isinstance(e.value, Scan))
    return tuple(e.target for e in scans if e.scan.reverse)


def mirrored(spec: Spec) -> Mapping[str, str]:
    """By scan over reversed input: the tensor that reads it from the end."""
    made = {e.target: e for e in spec.equations}
    found = {}
    for e in spec.equations:
        scan = made.get(f"{e.target}{_BACK}")
        if scan and isinstance(scan.value, Scan) and isinstance(e.value, Read):
            if e.value.tensor == scan.target and e.value.at != scan.at:
                found[scan.target] = e.target
    return found


def _expands(e: Equation) -> bool:
    value = e.value
    if isinstance(value, Reduce):
        return value.reduction in ("argmax", "argmin") and not e.accumulate
    if isinstance(value, Scan):
        return value.reverse or value.exclusive
    return e.accumulate


def _expansion(spec: Spec, known: Facts, e: Equation) -> list[Equation]:
    if isinstance(e.value, Reduce):
        return _extremum(spec, known, e)
    return _scan(spec, known, e) if isinstance(e.value, Scan) else [_scatter(known, e)]


def _extremum(spec: Spec, known: Facts, e: Equation) -> list[Equation]:
    """Expands an argmax or argmin.

    before: y[m] = argmax(f, n)
    after:  y_top[m] = max(f, n); y[m] = min(where((f == y_top[m]) | isnan(f), n, N), n)

    The first position wins, as in the reference. The maximum of a row with NaN is NaN, which equals
    nothing. So floats are also tested with isnan; otherwise such a row would have no position.
    """
    value = e.reduce
    _require_free(known, e, top_of(e.target))
    # Cast 16-bit terms once, so that the maximum and the comparison see the same f32 values.
    body = Cast("f32", value.body) if _narrow(value.body, known) else value.body
    top = Read(top_of(e.target), e.at)
    position: Expr = Number(0)
    count: Expr = Number(1)
    for i in value.over:
        size = known.ranges[i].high
        first = position == Number(0)
        position = Index(i) if first else _add(_mul(position, size), Index(i))
        count = size if first else _mul(count, size)
    found: Expr = Apply("eq", (body, top))
    if _real(spec, known, body):
        found = Apply("or", (found, Apply("isnan", (body,))))
    place = Apply("where", (found, position, count))
    return [
        replace(
            e, target=top.tensor, value=replace(value, reduction=value.reduction[3:], body=body)
        ),
        replace(e, value=replace(value, reduction="min", body=place)),
    ]


def _scatter(known: Facts, e: Equation) -> Equation:
    """Expands a scatter: each output element gathers its updates, which needs no atomic addition.

    before: y[i[n], d] += v[n, d]
    after:  y[y_0, d] = sum(where(i[n] == y_0, v[n, d], 0), n)
    """
    at = places(e)
    same: list[Expr] = []
    for position, own in zip(e.at, at, strict=True):
        if position is not own:
            _require_free(known, e, own.name)
            same.append(Apply("eq", (position, own)))
    kept = {p.name for p in at}
    free = dict.fromkeys(i for x in (*e.at, e.value) for i in indices(x))
    over = tuple(i for i in free if i not in kept)
    if not over or any(known.ranges[i].jagged for i in over):
        raise KernelError("this scatter is not lowered", place=e.place)
    where = same[0]
    for one in same[1:]:
        where = Apply("and", (where, one))
    body = Apply("where", (where, e.value, Number(0)))
    ranges = tuple(Range(i, Number(0), known.ranges[i].high) for i in over)
    return replace(e, at=at, value=Reduce("sum", body, over, ranges), accumulate=False)


def _scan(spec: Spec, known: Facts, e: Equation) -> list[Equation]:
    """Expands an exclusive or reverse scan.

    before: y[k] = cumsum(f[k], k, exclusive=True)
    after:  y[k] = cumsum(where(k > 0, f[k - 1], 0), k)

    before: y[k] = cumsum(f[k], k, reverse=True)
    after:  y_back[k] = cumsum(f[K - 1 - k], k), which ends a launch unless the schedule says `mirror(y)`;
            y[k] = y_back[K - 1 - k]
    """
    value = e.scan
    along = Index(value.along)
    if value.exclusive and value.reduction in ("max", "min") and not _real(spec, known, value.body):
        raise KernelError(
            f"`{e.target}`: an exclusive cum{value.reduction} of integers is not lowered",
            place=e.place,
        )
    body = value.body
    # Inline pointwise producers along the scan index: the new body reads them at other positions.
    for other in reversed(spec.equations[: spec.equations.index(e)]):
        plain = not isinstance(other.value, Reduce | Scan) and not other.accumulate
        if plain and value.along in other.indices:
            body = inline(body, other)
    last = _add(known.ranges[value.along].high, Number(-1))
    back = Apply("sub", (last, along)) if value.reverse else along
    if value.exclusive:
        step = Number(1) if value.reverse else Number(-1)
        shifted = _padded(body, value.along, _add(back, step))
        body = Apply(
            "where", (Apply("gt", (along, Number(0))), shifted, Number(IDENTITY[value.reduction]))
        )
    else:
        body = renamed(body, {value.along: back})
    plain_scan = Scan(value.reduction, body, value.along)
    if not value.reverse:
        return [replace(e, value=plain_scan)]
    name = f"{e.target}{_BACK}"
    _require_free(known, e, name)
    mirrored = tuple(back if p == along else p for p in e.at)
    return [replace(e, target=name, value=plain_scan), replace(e, value=Read(name, mirrored))]


def _padded(expr: Expr, index: str, to: Expr) -> Expr:
    """Moves `index` to position `to` in an expression; reads that this moves are padded with
    zeros."""
    if isinstance(expr, Index):
        return to if expr.name == index else expr
    moved = rebuilt(expr, lambda e: _padded(e, index, to))
    # The first step reads one element out of bounds. A `where` discards it, so any padding will do.
    if isinstance(moved, Read) and moved != expr and moved.pad is None:
        return replace(moved, pad=0.0)
    return moved


def _narrow(body: Expr, known: Facts) -> bool:
    dtypes = {known.tensors[n.tensor].dtype for n in body.walk() if isinstance(n, Read)}
    return bool(dtypes & {"f16", "bf16"})


def _real(spec: Spec, known: Facts, body: Expr) -> bool:
    """Whether an expression is a float."""
    tensors = {name: tensor.dtype for name, tensor in known.tensors.items()}
    return is_float(Dtypes(tensors, dict(spec.attributes)).of(body))


def _require_free(known: Facts, e: Equation, name: str) -> None:
    if name in known.tensors or name in known.ranges:
        raise KernelError(
            f"lowering `{e.target}` would make a second `{name}`",
            place=e.place,
            hint="rename that one in the spec",
        )


def _add(a: Expr, b: Expr) -> Expr:
    return Apply("add", (a, b))


def _mul(a: Expr, b: Expr) -> Expr:
    return Apply("mul", (a, b))
