"""Computes the mean and the variance of a large tensor in one pass, part by part.

before: s[c] = sum(x[b, c, i, j], b, i, j); mean[c] = s[c] / N
        t[c] = sum(square(x[b, c, i, j] - mean[c]), b, i, j)
after:  p[c, b, i] = sum(x[b, c, i, j], j); m[c, b, i] = p[c, b, i] / J
        d[c, b, i] = sum(square(x[b, c, i, j] - m[c, b, i]), j)
        s[c] = sum(p[c, b, i], b, i); mean[c] = s[c] / N
        t[c] = sum(d[c, b, i] + J * square(m[c, b, i] - mean[c]), b, i)

A part stays on the chip between its sum and its squared deviations. This is Chan's parallel form of
Welford's algorithm, without cancellation. A part is contiguous in memory. Both sums stay as they
are if a part would be short, if a whole sum fits on the chip, or if the tensor is small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from ir.contraction import sums
from ir.deviation import deviation
from ir.partition.views import fresh
from ir.sizes import value
from ir.spec import Apply, Equation, Expr, Index, Number, Read, Reduce, Spec
from ir.verify import facts
from ir.visit import renamed

MOST, LEAST = 8192, 64  # elements of a part
# Elements of a tensor above which a pass takes longer than a launch. ROWS: for sums along
# contiguous memory, which one kernel computes otherwise. OTHERS: for other sums, which several
# kernels compute.
ROWS, OTHERS = 1 << 24, 1 << 20


def with_variances_in_parts(spec: Spec) -> Spec:
    """Rewrites the large variances of a literal spec in parts."""
    for e in spec.equations:
        found = _moments(spec, e)
        if found is not None:
            spec = found
    return spec


def _moments(spec: Spec, e: Equation) -> Spec | None:
    """The spec with the squared deviations of an equation, and the sum of their mean, in parts.

    None if the equation is no variance, or if it stays as it is.
    """
    terms = deviation(e.reduce) if sums(e) else None
    if terms is None:
        return None
    x, mean = terms
    if not isinstance(mean, Read):
        return None
    whole = _sum_of(spec, mean, e)
    if whole is None or whole.value != Reduce("sum", x, e.reduce.over, whole.reduce.ranges):
        return None
    reads = [n for n in x.walk() if isinstance(n, Read)]
    inside = _inside(spec, reads[0], e) if len(reads) == 1 and reads[0].pad is None else ()
    return _in_parts(spec, e, whole, x, mean, inside) if inside else None


def _sum_of(spec: Spec, mean: Read, e: Equation) -> Equation | None:
    """The sum whose quotient a mean is, with the indices of the deviations."""
    made = {f.target: f for f in spec.equations}
    quotient = made.get(mean.tensor)
    if quotient is None or mean.at != e.at:
        return None
    match quotient.value:
        case Apply("div", (Read(tensor, at), Number())) if at == quotient.at and tensor in made:
            found = made[tensor]
        case _:
            return None
    if not sums(found) or len(found.reduced) != len(e.reduced) or len(found.at) != len(e.at):
        return None
    if len(found.indices) != len(found.at) or len(e.indices) != len(e.at):
        return None
    names = (
        *zip(found.indices, e.indices, strict=True),
        *zip(found.reduced, e.reduced, strict=True),
    )
    to: Mapping[str, Expr] = {a: Index(b) for a, b in names}
    body = renamed(found.reduce.body, to)
    return replace(found, at=e.at, value=replace(found.reduce, body=body, over=e.reduced))


def _inside(spec: Spec, x: Read, e: Equation) -> tuple[str, ...]:
    """The reduced indices of a part, in the order of memory; empty if both sums stay as they
    are."""
    names = [at.name for at in x.at if isinstance(at, Index)]
    if len(names) != len(x.at) or set(names) != {*e.indices, *e.reduced}:
        return ()
    known = facts(spec)
    sizes = {i: known.ranges[i].high for i in names}
    if len(set(names)) != len(names) or any(known.ranges[i].jagged for i in names):
        return ()
    counts = {i: int(n.value) for i, n in sizes.items() if isinstance(n, Number)}
    found: list[str] = []
    for name in reversed(names):
        if name not in e.reduced or prod(counts[i] for i in (*found, name)) > MOST:
            break
        found.insert(0, name)
    rows = set(names[-len(e.reduced) :]) == set(e.reduced)
    enough = prod(counts.values()) >= (ROWS if rows else OTHERS)
    length = prod(counts[i] for i in found)
    several = length < prod(counts[i] for i in e.reduced)
    return tuple(found) if enough and several and length >= LEAST else ()


def _in_parts(
    spec: Spec, e: Equation, whole: Equation, x: Expr, mean: Read, inside: tuple[str, ...]
) -> Spec:
    ranges = facts(spec).ranges
    outer = tuple(i for i in e.reduced if i not in inside)
    at = (*e.at, *map(Index, outer))
    sizes = tuple(ranges[i].high for i in (*e.indices, *outer))
    length = Number(prod(value(ranges[i].high, {}) for i in inside))
    within = tuple(ranges[i] for i in inside)
    over = tuple(ranges[i] for i in outer)

    taken = {t.name for t in spec.inputs} | {f.target for f in spec.equations} | ranges.keys()

    def part(name: str, value: Expr) -> Equation:
        return Equation(fresh(f"{e.target}_{name}", taken), at, value, sizes=sizes)

    total = part("part", Reduce("sum", x, inside, within))
    own = part("mean", Apply("div", (Read(total.target, at), length)))
    away = Apply("square", (Apply("sub", (x, Read(own.target, at))),))
    apart = part("apart", Reduce("sum", away, inside, within))
    between = Apply("square", (Apply("sub", (Read(own.target, at), mean)),))
    body = Apply("add", (Read(apart.target, at), Apply("mul", (length, between))))
    new = {
        whole.target: (
            total,
            own,
            apart,
            replace(whole, value=Reduce("sum", Read(total.target, at), outer, over)),
        ),
        e.target: (replace(e, value=Reduce("sum", body, outer, over)),),
    }
    made = [one for f in spec.equations for one in new.get(f.target, (f,))]
    return replace(spec, equations=tuple(made))
