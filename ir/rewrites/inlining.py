"""Inlining and its reverse: a value is computed once for each reader, or once for all readers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ir.contraction import indices
from ir.recurrence import recurrences
from ir.rewrites.equations import (
    floating,
    fresh,
    kept,
    readers,
    real,
    replaced,
    returned,
    substituted,
)
from ir.rewrites.form import form
from ir.spec import Apply, Bucketize, Equation, Expr, Index, Read, Reduce, Scan, Spec
from ir.variant.variant import pointwise
from ir.visit import inline, rereading


def inline_pointwise(spec: Spec) -> list[Spec]:
    """before: z[m, k] = f(x[m, k]); y[m] = sum(z[m, k], k)
    after:  y[m] = sum(f(x[m, k]), k)

    When equal: z is pointwise, is not returned, and no read of it is padded.
    """
    found = []
    for e in spec.equations:
        if pointwise(e) and e.target not in returned(spec) and _inlines(spec, e.target):
            after = (replace(r, value=inline(r.value, e)) for r in spec.equations if r is not e)
            found.append(replace(spec, equations=tuple(after)))
    return kept(spec, found)


def recompute(spec: Spec) -> list[Spec]:
    """before: t[m] = sum(x[m, k], k); y[m, k] = x[m, k] * t[m]; z[m] = t[m] ** 2
    after:  the same, but y reads t_copy, which is computed again

    When equal: always. A launch can compute the copy instead of reading t from memory.
    """
    found = []
    carried = {t for r in recurrences(spec) for t in r.targets}
    for e in spec.equations:
        users = [r for r in readers(spec, e.target) if r is not e]
        if len(users) < 2 or carried & {e.target, *(r.target for r in users)} or e.accumulate:
            continue
        for reader in users[1:]:
            copy = replace(e, target=fresh(spec, f"{e.target}_copy"))
            at = tuple(rereading(x, {e.target: copy.target}) for x in reader.at)
            value = rereading(reader.value, {e.target: copy.target})
            reads = replace(reader, at=at, value=value)
            found.append(replaced(spec, {reader.target: (copy, reads)}))
    return kept(spec, found)


def share_equal(spec: Spec) -> list[Spec]:
    """before: t[m] = sum(x[m, k], k); u[n] = sum(x[n, j], j); y[m] = t[m] * u[m]
    after:  t[m] = sum(x[m, k], k); y[m] = t[m] * t[m]

    When equal: the two right sides differ only in names of indices, over the same ranges, and the
    later tensor is not returned.
    """
    found = []
    carried = {t for r in recurrences(spec) for t in r.targets}
    first: dict[object, str] = {}
    for e in spec.equations:
        if e.accumulate or e.target in carried:
            continue
        name = first.setdefault(form(spec, e), e.target)
        if name != e.target and e.target not in returned(spec):
            lines = tuple(
                replace(
                    r,
                    at=tuple(rereading(x, {e.target: name}) for x in r.at),
                    value=rereading(r.value, {e.target: name}),
                )
                for r in spec.equations
                if r is not e
            )
            found.append(replace(spec, equations=lines))
    return kept(spec, found)


def name_common(spec: Spec) -> list[Spec]:
    """before: y[m, k] = exp(x[m, k] - c[m]) * a[k]; s[m] = sum(exp(x[m, k] - c[m]), k)
    after:  t[m, k] = exp(x[m, k] - c[m]); y[m, k] = t[m, k] * a[k]; s[m] = sum(t[m, k], k)

    When equal: always. The expression is a float, is computed, and occurs at least twice.
    """
    found = []
    carried = {t for r in recurrences(spec) for t in r.targets}
    places: dict[Expr, list[Equation]] = {}
    for e in spec.equations:
        if e.target in carried:
            continue
        for node in real(spec, e.value):
            if indices(node) and any(isinstance(n, Apply) for n in node.walk()):
                places.setdefault(node, []).append(e)
    jagged = _jagged(spec)
    for node, users in places.items():
        if len(users) < 2 or jagged & set(indices(node)) or node == users[0].value:
            continue
        at = tuple(map(Index, indices(node)))
        made = Equation(fresh(spec, f"{users[0].target}_common"), at, node)
        new: dict[str, tuple[Equation, ...]] = {
            e.target: (replace(e, value=substituted(e.value, {node: Read(made.target, at)})),)
            for e in users
        }
        new[users[0].target] = (made, *new[users[0].target])
        found.append(replaced(spec, new))
    return kept(spec, found)


def name_subexpression(spec: Spec) -> list[Spec]:
    """before: y[m, k] = x[m, k] * exp(c[m]) + b[k]
    after:  t[m] = exp(c[m]); y[m, k] = x[m, k] * t[m] + b[k]

    When equal: always. The subexpression is a float, is computed, and lacks an index of y.
    """
    found = []
    carried = {t for r in recurrences(spec) for t in r.targets}
    jagged = _jagged(spec)
    for e in spec.equations:
        if e.target in carried:
            continue
        every = {*e.indices, *_reduced(e)}
        for node in _outermost(spec, e.value, every):
            if jagged & set(indices(node)):
                continue
            at = tuple(map(Index, indices(node)))
            made = Equation(fresh(spec, f"{e.target}_part"), at, node)
            value = substituted(e.value, {node: Read(made.target, at)})
            found.append(replaced(spec, {e.target: (made, replace(e, value=value))}))
    return kept(spec, found)


def _outermost(spec: Spec, expr: Expr, every: set[str]) -> Iterator[Expr]:
    """The largest float subexpressions that are computed and lack some of the indices."""
    if isinstance(expr, Reduce | Scan):
        yield from _outermost(spec, expr.body, every)
        return
    inside = set(indices(expr))
    if isinstance(expr, Apply) and inside and inside < every and floating(spec, expr):
        yield expr
    elif not isinstance(expr, Read | Bucketize):
        for child in expr.children():
            yield from _outermost(spec, child, every)


def _reduced(e: Equation) -> tuple[str, ...]:
    return (e.value.along,) if isinstance(e.value, Scan) else e.reduced


def _jagged(spec: Spec) -> set[str]:
    """Indices that run over a jagged range: no intermediate tensor can have them."""
    reductions = (e.value for e in spec.equations if isinstance(e.value, Reduce))
    return {r.index for f in reductions for r in f.ranges if r.jagged}


def _inlines(spec: Spec, name: str) -> bool:
    """Whether the right side of a tensor can replace every use of it."""
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
