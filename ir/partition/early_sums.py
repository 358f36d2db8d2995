"""Early sums: a sum over windows of a product's rows is taken of what the product multiplies, before it.

before: c[n, o, y, x] = sum(a[n, k, y, x] * w[o, k], k)
        t[n, o, p, q] = sum(c[n, o, 2*p + i, 2*q + j], i, j)
after:  a_sums[n, k, p, q] = sum(a[n, k, 2*p + i, 2*q + j], i, j)
        c[n, o, p, q] = sum(a_sums[n, k, p, q] * w[o, k], k), t[n, o, p, q] = c[n, o, p, q]

So an average pooling after a convolution of one tap comes before it, and the product has as many times fewer
rows as a window has elements. Nothing between them but the sum: a bias or an activation keeps their order.
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

FEWER = 2  # times as few elements, at least, from which on it pays


def with_early_sums(spec: Spec) -> Spec:
    """A literal spec with such sums before their products."""
    for t in spec.equations:
        if (made := _early(spec, t)) is not None:
            spec = made
    return spec


def _early(spec: Spec, t: Equation) -> Spec | None:
    """The spec with the sum that an equation is taken early; None where it is none of a product."""
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
    places = dict(zip(c.indices, read.at, strict=True))  # of the product's indices in the sum
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
    """The spec with the sum over the positions of some of a product's indices taken of its factor."""
    assert isinstance(c.value, Reduce) and isinstance(t.value, Reduce)
    parts = factors(c.value.body)
    own = [f for f in parts if moving & {n.name for n in f.walk() if isinstance(n, Index)}]
    if len(own) != 1 or not isinstance(own[0], Read) or own[0].pad is not None:
        return None
    a, known = own[0], facts(spec)
    if not all(isinstance(p, Index) for p in a.at) or len(set(a.at)) != len(a.at):
        return None
    taken = {*known.tensors, *known.ranges}
    kept: list[
        tuple[Index, Expr, Expr]
    ] = []  # of the sums: an index, its size, where they are read
    at: list[Expr] = []  # where the factor is read
    for position in a.at:
        assert isinstance(position, Index)
        place = places.get(position.name) if position.name in moving else None
        if place is None:
            index = Index(fresh(f"{position.name}_early", taken))
            kept.append((index, known.ranges[position.name].high, position))
            at.append(index)
            continue
        found = affine(place)
        if found is None:
            return None
        outer = [i for i, _ in found.terms if i not in t.reduced]
        if len(outer) > 1:
            return None
        names = {i: Index(fresh(f"{i}_early", taken)) for i in outer}
        kept += [(index, known.ranges[i].high, Index(i)) for i, index in names.items()]
        at.append(renamed(place, names))
    sums = fresh(f"{a.tensor}_sums", taken)
    early = Equation(
        sums,
        tuple(index for index, _, _ in kept),
        replace(t.value, body=Read(a.tensor, tuple(at), pad)),
        sizes=tuple(size for _, size, _ in kept),
    )
    plain = {i: p for i, p in places.items() if i not in moving}
    theirs = {p.name for p in plain.values() if isinstance(p, Index)}
    if set(c.reduced) & (set(t.indices) | theirs):
        return None
    where = tuple(renamed(p, plain) for _, _, p in kept)
    body = product(tuple(Read(sums, where) if f is a else renamed(f, plain) for f in parts))
    late = replace(
        c,
        at=t.at,
        value=replace(c.value, body=body),
        sizes=tuple(known.ranges[i].high for i in t.indices),
    )
    shown = replace(t, value=Read(c.target, t.at), sizes=late.sizes)
    made = [
        x for e in spec.equations if e is not c for x in ((early, late, shown) if e is t else (e,))
    ]
    return replace(spec, equations=tuple(made))
