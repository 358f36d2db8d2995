"""Moves a sum over windows (an average pooling) before the matmul whose result it sums.

before: c[n, o, y, x] = sum(a[n, k, y, x] * w[o, k], k)
        t[n, o, p, q] = sum(c[n, o, 2*p + i, 2*q + j], i, j)
after:  a_sums[n, k, p, q] = sum(a[n, k, 2*p + i, 2*q + j], i, j)
        c[n, o, p, q] = sum(a_sums[n, k, p, q] * w[o, k], k), t[n, o, p, q] = c[n, o, p, q]

An average pooling after a 1x1 convolution thus runs before it, and the M dimension of the matmul
shrinks by the number of elements in a window. A bias or an activation between the two prevents the
rewrite. A sum over all positions stays, as it would leave no M dimension.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ir.affine import affine
from ir.contraction import contraction, factors, product
from ir.partition.views import fresh, is_plain
from ir.recurrence import stepped
from ir.sizes import shape
from ir.spec import Equation, Expr, Index, Read, Reduce, Spec
from ir.verify import facts
from ir.visit import renamed

FEWER = 2  # least ratio of the matmul's elements to the sum's for which the rewrite pays


def with_early_sums(spec: Spec) -> Spec:
    """Moves sums over windows of a literal spec before their matmuls."""
    for t in spec.equations:
        if (made := _early(spec, t)) is not None:
            spec = made
    return spec


def _early(spec: Spec, t: Equation) -> Spec | None:
    """The spec with the sum of equation `t` moved; None if `t` is not a sum over a matmul's
    result."""
    read = t.value.body if isinstance(t.value, Reduce) and t.value.reduction == "sum" else None
    if not isinstance(read, Read) or read.pad not in (None, 0) or not is_plain(t) or t.accumulate:
        return None
    c = next((e for e in spec.equations if e.target == read.tensor), None)
    if c is None or contraction(c) is None or not is_plain(c) or stepped(spec, c.target):
        return None
    alone = [e for e in spec.equations if c.target in e.sources()] == [t]
    known = facts(spec)
    size = {name: prod(shape(known.tensors[name], {})) for name in (c.target, t.target)}
    if not alone or size[c.target] < FEWER * size[t.target]:
        return None
    if c.target in {o.name for o in spec.outputs}:
        return None
    # by index of the matmul: the position at which the sum reads it
    places = dict(zip(c.indices, read.at, strict=True))
    moving = {i for i, p in places.items() if not isinstance(p, Index) or p.name in t.reduced}
    return _moved(spec, t, c, places, moving, read.pad) if moving else None


def _moved(
    spec: Spec,
    t: Equation,
    c: Equation,
    places: dict[str, Expr],
    moving: set[str],
    pad: float | int | None,
) -> Spec | None:
    """Applies the sum to the operand that has the matmul's `moving` indices; None if not exactly
    one has."""
    parts = factors(c.reduce.body)
    own = [f for f in parts if moving & {n.name for n in f.walk() if isinstance(n, Index)}]
    plain = {i: p for i, p in places.items() if i not in moving}
    theirs = {p.name for p in plain.values() if isinstance(p, Index)}
    if len(own) != 1 or set(c.reduced) & {*t.indices, *theirs}:
        return None
    (a,) = own
    known = facts(spec)
    taken = {*known.tensors, *known.ranges}
    if not isinstance(a, Read) or (found := _early_at(a, t, places, moving, taken)) is None:
        return None
    at, kept = found
    early = Equation(
        fresh(f"{a.tensor}_sums", taken),
        tuple(index for index, _ in kept),
        replace(t.reduce, body=Read(a.tensor, at, pad)),
        sizes=tuple(known.ranges[of.name].high for _, of in kept),
    )
    read = Read(early.target, tuple(renamed(of, plain) for _, of in kept))
    body = product(tuple(read if f is a else renamed(f, plain) for f in parts))
    sizes = tuple(known.ranges[i].high for i in t.indices)
    late = replace(c, at=t.at, value=replace(c.reduce, body=body), sizes=sizes)
    shown = replace(t, value=Read(c.target, t.at), sizes=sizes)
    left = (e for e in spec.equations if e is not c)
    made = (x for e in left for x in ((early, late, shown) if e is t else (e,)))
    return replace(spec, equations=tuple(made))


def _early_at(
    a: Read, t: Equation, places: dict[str, Expr], moving: set[str], taken: set[str]
) -> tuple[tuple[Expr, ...], list[tuple[Index, Index]]] | None:
    """The positions at which an early sum reads the operand, and the early sum's own indices.

    Each index is paired with the index of the matmul or of the late sum that it takes the place of.
    None where a window moves along several indices, or where the sum covers all positions.
    """
    at: list[Expr] = []
    kept: list[tuple[Index, Index]] = []
    if a.pad is not None or len(set(a.at)) != len(a.at):
        return None
    for position in a.at:
        if not isinstance(position, Index):
            return None
        if position.name not in moving:
            kept.append((Index(fresh(f"{position.name}_early", taken)), position))
            at.append(kept[-1][0])
            continue
        found = affine(places[position.name])
        outer = [i for i, _ in found.terms if i not in t.reduced] if found else []
        if found is None or len(outer) != 1:
            return None
        names = {i: Index(fresh(f"{i}_early", taken)) for i in outer}
        kept += [(index, Index(i)) for i, index in names.items()]
        at.append(renamed(places[position.name], names))
    return tuple(at), kept
