"""Variance: sums of squared deviations in one pass instead of two, or in parts."""

from __future__ import annotations

from dataclasses import replace

from ir.contraction import indices, product, sums
from ir.deviation import deviation
from ir.rewrites.equations import floating, fresh, kept, reduced, replaced
from ir.rewrites.split_index import SplitIndex
from ir.spec import Apply, Equation, Expr, Number, Read, Reduce, Spec
from ir.verify import facts
from ir.visit import renamed

LENGTH = 128  # of a part


def expand_square(spec: Spec) -> list[Spec]:
    """before: t[m] = sum((x[m, k] - c[m]) ** 2, k)
    after:  u[m] = sum(x[m, k] ** 2, k); v[m] = sum(x[m, k], k);
            t[m] = u[m] - 2 * c[m] * v[m] + K * c[m] ** 2

    When equal: c does not have the reduced indices. It saves the pass that waits for c, and cancels
    digits where the deviations are small compared with c.
    """
    found = []
    for e in spec.equations:
        terms = deviation(e.reduce) if sums(e) else None
        if terms is not None:
            found.append(_expanded(spec, e, *terms))
    return kept(spec, found)


def shift_square(spec: Spec) -> list[Spec]:
    """before: t[m] = sum((x[m, k] - c[m]) ** 2, k)
    after:  o[m] = x[m, 0]; u[m] = sum((x[m, k] - o[m]) ** 2, k); v[m] = sum(x[m, k] - o[m], k);
            t[m] = u[m] - 2 * (c[m] - o[m]) * v[m] + K * (c[m] - o[m]) ** 2

    When equal: c does not have the reduced indices, and x reads only inputs, without padding. One
    pass, as in expand_square; digits cancel only where deviations are small compared with
    x[m, 0] - c[m].
    """
    found = []
    inputs = {t.name for t in spec.inputs}
    for e in spec.equations:
        terms = deviation(e.reduce) if sums(e) and not e.reduce.ranges else None
        if terms is None:
            continue
        x, c = terms
        reads = [n for n in x.walk() if isinstance(n, Read)]
        if all(r.tensor in inputs and r.pad is None for r in reads) and floating(spec, x):
            first = renamed(x, {i: Number(0) for i in e.reduce.over})
            at = tuple(p for p in e.at if set(indices(p)) <= set(indices(first)))
            origin = Equation(fresh(spec, f"{e.target}_origin"), at, first)
            from_origin = Read(origin.target, at)
            apart, away = (Apply("sub", (v, from_origin)) for v in (x, c))
            found.append(_expanded(spec, e, apart, away, (origin,)))
    return kept(spec, found)


def merge_deviations(spec: Spec) -> list[Spec]:
    """before: t[m] = sum((x[m, k] - c[m]) ** 2, k)
    after:  s[m, p] = sum(x[m, 128 * p + j], j=128); u[m, p] = s[m, p] / n[p];
            d[m, p] = sum((x[m, 128 * p + j] - u[m, p]) ** 2, j=128);
            t[m] = sum(d[m, p] + n[p] * (u[m, p] - c[m]) ** 2, p)

    When equal: c does not have the reduced index; n[p] is 128, or the rest in the last part. These
    are Welford's sums in Chan's form for parallel parts: one pass over x where a part stays on
    chip, and no cancellation.
    """
    found = []
    ranges = facts(spec).ranges
    for e in spec.equations:
        terms = deviation(e.reduce) if sums(e) and len(e.reduce.over) == 1 else None
        if terms is None or any(ranges[i].jagged for i in e.indices):
            continue
        size = ranges[e.reduce.over[0]].high
        whole = isinstance(size, Number) and size.value <= LENGTH
        if floating(spec, terms[0]) and set(e.indices) <= set(indices(terms[0])) and not whole:
            found.append(_merged(spec, e, size, *terms))
    return kept(spec, found)


def _merged(spec: Spec, e: Equation, size: Expr, x: Expr, c: Expr) -> Spec:
    """The spec with the deviations of each part from its own mean, combined."""
    blocks = SplitIndex.of(spec, e.reduce.over[0], size, LENGTH)
    at = (*e.at, blocks.part)
    sizes = (*(facts(spec).ranges[i].high for i in e.indices), blocks.count)

    def part(name: str, body: Expr, reductions: bool) -> Equation:
        value = Reduce("sum", body, (blocks.inside.name,), (blocks.range,)) if reductions else body
        return Equation(fresh(spec, f"{e.target}_{name}"), at, value, sizes=sizes)

    total = part("part", blocks.masked(x, 0.0), True)
    mean = part("mean", Apply("div", (Read(total.target, at), blocks.filled)), False)
    own = Apply("sub", (blocks.at(x), Read(mean.target, at)))
    within = Apply("lt", (blocks.place, size))
    apart = part("apart", Apply("where", (within, Apply("mul", (own, own)), Number(0.0))), True)
    away = Apply("sub", (Read(mean.target, at), c))
    between = Apply("mul", (blocks.filled, Apply("pow", (away, Number(2)))))
    body = Apply("add", (Read(apart.target, at), between))
    whole = replace(e, value=Reduce("sum", body, (blocks.part.name,)))
    return replaced(spec, {e.target: (total, mean, apart, whole)})


def _expanded(spec: Spec, e: Equation, x: Expr, c: Expr, first: tuple[Equation, ...] = ()) -> Spec:
    """The spec with the sum of (x - c) ** 2 computed from the sums of x ** 2 and x. The equations
    that these need come first."""
    squares = reduced(fresh(spec, f"{e.target}_squares"), Apply("pow", (x, Number(2))), e)
    plain = reduced(fresh(spec, f"{e.target}_sum"), x, e)
    before = spec.equations[: spec.equations.index(e)]
    known = [b for b in before if b.value == plain.value and b.at == plain.at]
    parts = (squares,) if known else (squares, plain)
    plain = known[0] if known else plain
    ranges = facts(spec).ranges
    count = product(tuple(ranges[i].high for i in e.reduce.over))
    cross = product((Number(2), c, Read(plain.target, plain.at)))
    rest = product((count, Apply("pow", (c, Number(2)))))
    less = Apply("sub", (Read(squares.target, squares.at), cross))
    whole = replace(e, value=Apply("add", (less, rest)))
    return replaced(spec, {e.target: (*first, *parts, whole)})
