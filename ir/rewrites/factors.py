"""Factors and terms: hoisted out of reductions, sunk into them, collected and distributed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from ir.contraction import factors, indices, product, sums
from ir.dtypes import is_float
from ir.rewrites.equations import (
    floating,
    fresh,
    kept,
    locally,
    readers,
    reduced,
    replaced,
    returned,
)
from ir.spec import Apply, Equation, Expr, Index, Number, Read, Reduce, Spec
from ir.variant.bounds import positive
from ir.verify import facts

Outside = Callable[[Expr], Expr]


def hoist_factor(spec: Spec) -> list[Spec]:
    """before: t[m] = sum(c[m] * x[m, k], k), or sum(x[m, k] / c[m], k)
    after:  u[m] = sum(x[m, k], k); t[m] = c[m] * u[m], or u[m] / c[m]

    When equal: c does not have the reduced indices; for a maximum or minimum, c is positive too.
    """
    found = []
    for e in spec.equations:
        order = _orders(spec, e)
        for inner, outside, free in _hoisted(e.reduce) if order or sums(e) else ():
            if sums(e) or positive(spec, free):
                found.append(_with_part(spec, e, inner, outside))
    return kept(spec, found)


def hoist_term(spec: Spec) -> list[Spec]:
    """before: t[m] = max(x[m, k] + c[m], k), or with min, or with - c[m]
    after:  u[m] = max(x[m, k], k); t[m] = u[m] + c[m]

    When equal: c does not have the reduced indices.
    """
    found = []
    for e in spec.equations:
        if _orders(spec, e):
            for inner, outside in _moved_terms(e.reduce):
                found.append(_with_part(spec, e, inner, outside))
    return kept(spec, found)


def sink_factor(spec: Spec) -> list[Spec]:
    """before: u[m] = sum(x[m, k], k); t[m] = c[m] * u[m], or u[m] / c[m]
    after:  t[m] = sum(c[m] * x[m, k], k), or sum(x[m, k] / c[m], k)

    When equal: only t reads u, at its own indices, and u is not returned.
    """
    found = []
    for e in spec.equations:
        for inner, body in _sunk(spec, e):
            value = replace(inner.reduce, body=body)
            found.append(replaced(spec, {inner.target: (), e.target: (replace(e, value=value),)}))
    return kept(spec, found)


def collect_factor(spec: Spec) -> list[Spec]:
    """before: a * c + b * c, or a / c - b / c
    after:  (a + b) * c, or (a - b) / c

    When equal: always.
    """
    return locally(spec, lambda e, node: _collected(node))


def distribute_factor(spec: Spec) -> list[Spec]:
    """before: (a + b) * c, or (a - b) / c
    after:  a * c + b * c, or a / c - b / c

    When equal: always.
    """
    return locally(spec, lambda e, node: _distributed(node))


def _orders(spec: Spec, e: Equation) -> bool:
    """Whether an equation is a maximum or a minimum of floats over whole ranges."""
    value = e.value
    if not isinstance(value, Reduce) or value.reduction not in ("max", "min") or e.accumulate:
        return False
    real = is_float(facts(spec).tensors[e.target].dtype)
    return real and not any(r.jagged for r in value.ranges)


def _hoisted(value: Reduce) -> Iterator[tuple[Expr, Outside, Expr]]:
    """Each factor or term that can be hoisted: the rest of the body, the function that applies it
    to the reduction, and the factor or term itself."""
    over = set(value.over)
    parts = factors(value.body)
    free = tuple(p for p in parts if not over & set(indices(p)))
    rest = tuple(p for p in parts if over & set(indices(p)))
    if free and rest:
        out = product(free)
        yield product(rest), lambda total: Apply("mul", (out, total)), out
    match value.body:
        case Apply("div", (above, below)) if not over & set(indices(below)):
            yield above, lambda total: Apply("div", (total, below)), below


def _moved_terms(value: Reduce) -> Iterator[tuple[Expr, Outside]]:
    over = set(value.over)
    match value.body:
        case Apply("add" | "sub" as function, (a, b)) if not over & set(indices(b)):
            yield a, lambda total: Apply(function, (total, b))
        case Apply("add", (a, b)) if not over & set(indices(a)):
            yield b, lambda total: Apply("add", (a, total))


def _with_part(spec: Spec, e: Equation, inner: Expr, outside: Outside) -> Spec:
    """The spec with `u = reduction(inner)` before `e`, and `e` computed from u."""
    part = reduced(fresh(spec, f"{e.target}_{e.reduce.reduction}"), inner, e)
    whole = replace(e, value=outside(Read(part.target, part.at)))
    return replaced(spec, {e.target: (part, whole)})


def _sunk(spec: Spec, e: Equation) -> Iterator[tuple[Equation, Expr]]:
    """The sums that an equation scales, each with its body multiplied by the factor."""
    for read, rest, outside in _scaled(e.value):
        inner = next((x for x in spec.equations if x.target == read.tensor and sums(x)), None)
        if inner is None or read.pad is not None or e.accumulate or not floating(spec, read):
            continue
        mentioned = {n.tensor for n in rest.walk() if isinstance(n, Read)}
        alone = readers(spec, read.tensor) == [e] and read.tensor not in returned(spec) | mentioned
        clash = set(inner.reduce.over) & {*e.indices, *indices(rest)}
        own = read.at == inner.at and all(isinstance(x, Index) for x in e.at)
        if alone and own and not clash:
            yield inner, outside(inner.reduce.body)


def _scaled(value: Expr) -> Iterator[tuple[Read, Expr, Outside]]:
    """The reads that a value multiplies or divides, the factor, and a function that scales a body
    the same way."""
    match value:
        case Apply("div", (Read() as read, below)):
            yield read, below, lambda body: Apply("div", (body, below))
        case Apply("mul", sides):
            for one, rest in (sides, sides[::-1]):
                if isinstance(one, Read):
                    yield one, rest, partial(_times, factors(rest))


def _times(parts: tuple[Expr, ...], body: Expr) -> Expr:
    return product((*parts, *factors(body)))


def _collected(node: Expr) -> Iterable[Expr]:
    match node:
        case Apply("add" | "sub" as function, (Apply("div", (a, c)), Apply("div", (b, d)))):
            if c == d:
                yield Apply("div", (Apply(function, (a, b)), c))
        case Apply("add" | "sub" as function, (left, right)):
            ours, theirs = factors(left), list(factors(right))
            common = [p for p in ours if p in theirs and not isinstance(p, Number)]
            for c in common[:1]:
                rest = list(ours), theirs
                for side in rest:
                    side.remove(c)
                sides = (product(tuple(s)) if s else Number(1) for s in rest)
                yield Apply("mul", (Apply(function, tuple(sides)), c))


def _distributed(node: Expr) -> Iterable[Expr]:
    match node:
        case Apply("mul", (Apply("add" | "sub" as function, (a, b)), c)):
            yield Apply(function, (Apply("mul", (a, c)), Apply("mul", (b, c))))
        case Apply("mul", (c, Apply("add" | "sub" as function, (a, b)))):
            yield Apply(function, (Apply("mul", (c, a)), Apply("mul", (c, b))))
        case Apply("div", (Apply("add" | "sub" as function, (a, b)), c)):
            yield Apply(function, (Apply("div", (a, c)), Apply("div", (b, c))))
