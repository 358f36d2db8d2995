"""Rewrites of equations: each gives specs that are equal to one, in the algebra of numbers.

Equal means in real arithmetic; rounding differs, and that is what a search may gain or lose by.
A rewrite offers one spec for every place where it applies, and none where it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ir.associate import again, only_reader, reassociated, sums
from ir.contraction import factors, indices, product
from ir.errors import KernelError
from ir.formulation import pointwise
from ir.spec import (
    Apply,
    Bucketize,
    Equation,
    Expr,
    Index,
    Number,
    Read,
    Reduce,
    Spec,
)
from ir.verify import facts
from ir.visit import inline


def inline_pointwise(spec: Spec) -> list[Spec]:
    """before: z[m, k] = f(x[m, k]); y[m] = sum(z[m, k], k)
    after:  y[m] = sum(f(x[m, k]), k)

    When equal: z is computed point by point, is not returned, and no read of it is padded.
    """
    found = []
    returned = {t.name for t in spec.outputs}
    for e in spec.equations:
        if pointwise(e) and e.target not in returned and _inlines(spec, e.target):
            readers = (
                replace(r, value=inline(r.value, e)) for r in spec.equations if r is not e
            )
            found.append(replace(spec, equations=tuple(readers)))
    return _equal(spec, found)


def hoist_factor(spec: Spec) -> list[Spec]:
    """before: t[m] = sum(c[m] * x[m, k], k), or sum(x[m, k] / c[m], k)
    after:  u[m] = sum(x[m, k], k); t[m] = c[m] * u[m], or u[m] / c[m]

    When equal: c does not have the summed indices.
    """
    found = []
    for e in spec.equations:
        if sums(e):
            for inner, outside in _hoisted(e.value):
                found.append(_with_part(spec, e, inner, outside))
    return _equal(spec, found)


def reassociate(spec: Spec) -> list[Spec]:
    """before: t[d, k] = sum(x[i, d] * y[i, k], i); z[n, k] = sum(w[n, d] * t[d, k], d)
    after:  u[n, i] = sum(w[n, d] * x[i, d], d); z[n, k] = sum(u[n, i] * y[i, k], i)

    When equal: t is a sum of products, only z reads it, and its factors can be parted into
    those with the outer sum's indices and those without.
    """
    found = []
    for outer in spec.equations:
        for part in factors(outer.value.body) if sums(outer) else ():
            inner = only_reader(spec, outer, part)
            if inner is not None:
                name = _fresh(spec, again(inner.target))
                found += reassociated(spec, outer, inner, part, name)
    return _equal(spec, found)


def expand_square(spec: Spec) -> list[Spec]:
    """before: t[m] = sum((x[m, k] - c[m]) ** 2, k)
    after:  u[m] = sum(x[m, k] ** 2, k); v[m] = sum(x[m, k], k);
            t[m] = u[m] - 2 * c[m] * v[m] + K * c[m] ** 2

    When equal: c does not have the summed indices. Costs digits where the deviations are small
    against c, and saves the pass that waits for c.
    """
    found = []
    for e in spec.equations:
        terms = _deviation(e.value) if sums(e) else None
        if terms is not None:
            found.append(_expanded(spec, e, *terms))
    return _equal(spec, found)


REWRITES: dict[str, Callable[[Spec], list[Spec]]] = {
    r.__name__: r for r in (inline_pointwise, hoist_factor, reassociate, expand_square)
}


def _inlines(spec: Spec, name: str) -> bool:
    """Whether every use of a tensor is a read that its right side can stand in for."""
    nodes = [n for e in spec.equations for x in (*e.at, e.value) for n in x.walk()]
    reads = [n for n in nodes if isinstance(n, Read) and n.tensor == name]
    left = [n for e in spec.equations for x in e.at for n in x.walk() if isinstance(n, Read)]
    bounds = [
        n
        for e in spec.equations
        if isinstance(e.value, Reduce)
        for r in e.value.ranges
        for n in r.walk()
        if isinstance(n, Read)
    ]
    searched = any(isinstance(n, Bucketize) and n.borders == name for n in nodes)
    fixed = any(r.tensor == name for r in (*bounds, *left))
    return bool(reads) and not searched and not fixed and all(r.pad is None for r in reads)


def _hoisted(value: Reduce) -> Iterator[tuple[Expr, Callable[[Expr], Expr]]]:
    """The bodies left inside, each with what is done to their sum."""
    over = set(value.over)
    parts = factors(value.body)
    free = tuple(p for p in parts if not over & set(indices(p)))
    rest = tuple(p for p in parts if over & set(indices(p)))
    if free and rest:
        yield product(rest), lambda total: Apply("mul", (product(free), total))
    match value.body:
        case Apply("div", (above, below)) if not over & set(indices(below)):
            yield above, lambda total: Apply("div", (total, below))


def _with_part(
    spec: Spec, e: Equation, inner: Expr, outside: Callable[[Expr], Expr]
) -> Spec:
    """The spec with `u = sum(inner)` before `e`, and `e` computed from u."""
    part = _sum(_fresh(spec, f"{e.target}_sum"), inner, e)
    whole = replace(e, value=outside(Read(part.target, part.at)))
    return _replaced(spec, {e.target: (part, whole)})


def _sum(name: str, body: Expr, like: Equation) -> Equation:
    """A sum over the indices of another, at those of its left side that the body has."""
    at = tuple(x for x in like.at if set(indices(x)) <= set(indices(body)))
    return Equation(name, at, replace(like.value, body=body))


def _deviation(value: Reduce) -> tuple[Expr, Expr] | None:
    """x and c of a body `(x - c) ** 2` in which c lacks the summed indices."""
    match value.body:
        case (
            Apply("pow", (Apply("sub", (x, c)), Number(2)))
            | Apply("square", (Apply("sub", (x, c)),))
        ):
            over = set(value.over)
            if over <= set(indices(x)) and not over & set(indices(c)):
                return x, c
    return None


def _expanded(spec: Spec, e: Equation, x: Expr, c: Expr) -> Spec:
    squares = _sum(_fresh(spec, f"{e.target}_squares"), Apply("pow", (x, Number(2))), e)
    plain = _sum(_fresh(spec, f"{e.target}_sum"), x, e)
    before = spec.equations[: spec.equations.index(e)]
    known = [b for b in before if b.value == plain.value and b.at == plain.at]
    parts = (squares,) if known else (squares, plain)
    plain = known[0] if known else plain
    ranges = facts(spec).ranges
    count = product(tuple(ranges[i].high for i in e.value.over))
    cross = product((Number(2), c, Read(plain.target, plain.at)))
    rest = product((count, Apply("pow", (c, Number(2)))))
    less = Apply("sub", (Read(squares.target, squares.at), cross))
    whole = replace(e, value=Apply("add", (less, rest)))
    return _replaced(spec, {e.target: (*parts, whole)})


def _fresh(spec: Spec, name: str) -> str:
    """The name, or the name with a number where something has it already."""
    nodes = (n for e in spec.equations for x in (*e.at, e.value) for n in x.walk())
    taken = {t.name for t in spec.inputs} | {e.target for e in spec.equations}
    taken |= {n.name for n in nodes if isinstance(n, Index)} | {a for a, _ in spec.attributes}
    numbered = (f"{name}_{k}" for k in range(2, len(taken) + 3))
    return next(n for n in (name, *numbered) if n not in taken)


def _replaced(spec: Spec, new: dict[str, tuple[Equation, ...]]) -> Spec:
    lines = (new.get(e.target, (e,)) for e in spec.equations)
    return replace(spec, equations=tuple(e for line in lines for e in line))


def _equal(spec: Spec, found: Iterable[Spec]) -> list[Spec]:
    """Those that are specs still, each index over the range that it had."""
    kept = []
    for candidate in found:
        try:
            ranges = facts(candidate).ranges
        except KernelError:  # e.g. nothing is left that gives an index its range
            continue
        before = facts(spec).ranges
        if candidate != spec and all(ranges[i] == before[i] for i in ranges):
            kept.append(candidate)
    return kept
