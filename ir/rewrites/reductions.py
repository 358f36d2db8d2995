"""Rewrites of reductions: reassociated, split, nested, merged, and sums split or joined.

On machines with the verb `split_k` a schedule can split a reduction, too. The verb takes a number
of parts, and each part is a whole number of tiles. The rewrite takes a length of the parts, and
pads the last one. Its result is a spec that every machine can lower.
"""

from __future__ import annotations

from dataclasses import replace

from ir.contraction import factors, indices, sums
from ir.dtypes import is_float
from ir.functions import IDENTITY_ELEMENTS
from ir.rewrites.equations import fresh, kept, readers, reduced, replaced, returned
from ir.rewrites.split_index import SplitIndex
from ir.spec import (
    Apply,
    Cast,
    Equation,
    Expr,
    Index,
    Number,
    Range,
    Read,
    Reduce,
    Spec,
)
from ir.variant.associate import again, only_reader, reassociated
from ir.verify import facts

LENGTHS = (128, 1024)  # terms of a part
SPLIT = ("sum", "max", "min")  # reductions that are computed in parts


def reassociate(spec: Spec) -> list[Spec]:
    """before: t[d, k] = sum(x[i, d] * y[i, k], i); z[n, k] = sum(w[n, d] * t[d, k], d)
    after:  u[n, i] = sum(w[n, d] * x[i, d], d); z[n, k] = sum(u[n, i] * y[i, k], i)

    When equal: t is a sum of products, only z reads it, and its factors separate into those with
    the indices of the outer sum and those without.
    """
    found = []
    for outer in spec.equations:
        for part in factors(outer.reduce.body) if sums(outer) else ():
            inner = only_reader(spec, outer, part)
            if inner is not None:
                name = fresh(spec, again(inner.target))
                found += reassociated(spec, outer, inner, part, name)
    return kept(spec, found)


def split_reduction(spec: Spec) -> list[Spec]:
    """before: y[m] = sum(x[m, k], k)
    after:  y_parts[m, k_part]: [M, (K + 127) // 128] = sum(pad(x[m, 128 * k_part + k_in], 0.0),
            k_in=128); y[m] = sum(y_parts[m, k_part], k_part)

    When equal: always. Applies to sums, maxima and minima of floats over a range from 0 to a size.
    Terms past the end are the identity element.
    """
    found = []
    ranges = facts(spec).ranges
    for e in spec.equations:
        if not _plain(spec, e) or any(ranges[i].jagged for i in e.indices):
            continue
        for over in e.reduce.over:
            size = ranges[over].high
            for length in LENGTHS:
                if not isinstance(size, Number) or size.value > length:
                    found.append(_in_parts(spec, e, over, size, length))
    return kept(spec, found)


def nest_reduction(spec: Spec) -> list[Spec]:
    """before: y[o] = sum(x[o, c, i], c, i)
    after:  y_inner[o, i] = sum(x[o, c, i], c); y[o] = sum(y_inner[o, i], i)

    When equal: always. Applies to sums, maxima and minima of floats over several indices.
    """
    found = []
    for e in spec.equations:
        if not _plain(spec, e) or len(e.reduce.over) < 2:
            continue
        for over in e.reduce.over:
            rest = tuple(i for i in e.reduce.over if i != over)
            ranges = e.reduce.ranges
            kept_at = (*e.at, *map(Index, rest))
            inner = replace(
                e,
                target=fresh(spec, f"{e.target}_inner"),
                at=kept_at,
                value=replace(e.reduce, over=(over,), ranges=_of(ranges, (over,))),
                sizes=(),
            )
            if not {*e.indices, *rest} <= set(indices(e.reduce.body)):
                continue
            body = Read(inner.target, kept_at)
            outer = replace(
                e, value=replace(e.reduce, body=body, over=rest, ranges=_of(ranges, rest))
            )
            found.append(replaced(spec, {e.target: (inner, outer)}))
    return kept(spec, found)


def merge_reductions(spec: Spec) -> list[Spec]:
    """before: t[m, j] = sum(x[m, j, k], k); y[m] = sum(t[m, j], j)
    after:  y[m] = sum(x[m, j, k], j, k)

    When equal: both are the same reduction, only y reads t, at its own indices, and t is not
    returned.
    """
    found = []
    for e in spec.equations:
        body = e.reduce.body if _plain(spec, e) else None
        if not isinstance(body, Read) or body.pad is not None or body.tensor in returned(spec):
            continue
        inner = next((x for x in spec.equations if x.target == body.tensor), None)
        if inner is None or not _plain(spec, inner) or inner.reduce.reduction != e.reduce.reduction:
            continue
        apart = not set(inner.reduce.over) & {*e.indices, *e.reduce.over}
        if apart and body.at == inner.at and readers(spec, inner.target) == [e]:
            value = replace(
                inner.reduce,
                over=(*e.reduce.over, *inner.reduce.over),
                ranges=(*e.reduce.ranges, *inner.reduce.ranges),
            )
            found.append(replaced(spec, {inner.target: (), e.target: (replace(e, value=value),)}))
    return kept(spec, found)


def split_sum(spec: Spec) -> list[Spec]:
    """before: y[m] = sum(x[m, k] * a[k] + z[m, k], k)
    after:  y_left[m] = sum(x[m, k] * a[k], k); y_right[m] = sum(z[m, k], k);
            y[m] = y_left[m] + y_right[m]

    When equal: always. Both terms are floats and have the reduced indices.
    """
    found = []
    for e in spec.equations:
        if not sums(e) or not _plain(spec, e):
            continue
        match e.reduce.body:
            case Apply("add" | "sub" as function, (a, b)):
                over = set(e.reduce.over)
                if over <= set(indices(a)) and over <= set(indices(b)):
                    left = reduced(fresh(spec, f"{e.target}_left"), a, e)
                    right = reduced(fresh(spec, f"{e.target}_right"), b, e)
                    ends = (Read(left.target, left.at), Read(right.target, right.at))
                    whole = replace(e, value=Apply(function, ends))
                    found.append(replaced(spec, {e.target: (left, right, whole)}))
    return kept(spec, found)


def join_sums(spec: Spec) -> list[Spec]:
    """before: a[m] = sum(x[m, k], k); b[m] = sum(z[m, k], k); y[m] = a[m] + b[m]
    after:  y[m] = sum(x[m, k] + z[m, k], k)

    When equal: both sums run over the same indices, only y reads them, at their own indices, and
    neither is returned.
    """
    found = []
    made = {e.target: e for e in spec.equations}
    for e in spec.equations:
        match e.value:
            case Apply("add" | "sub" as function, (Read(a, at, pad), Read(b, to, other))) if a != b:
                one, two = made.get(a), made.get(b)
                if not (one and two and _only(spec, one, e) and _only(spec, two, e)):
                    continue
                alike = set(one.reduce.over) == set(two.reduce.over)
                apart = not set(one.reduce.over) & set(e.indices)
                plain = pad is None and other is None
                if alike and apart and plain and at == one.at and to == two.at:
                    body = Apply(function, (one.reduce.body, two.reduce.body))
                    whole = replace(e, value=replace(one.reduce, body=body))
                    found.append(replaced(spec, {a: (), b: (), e.target: (whole,)}))
    return kept(spec, found)


def _plain(spec: Spec, e: Equation) -> bool:
    """Whether an equation is a sum, a maximum or a minimum of floats over whole ranges."""
    value = e.value
    if not isinstance(value, Reduce) or value.reduction not in SPLIT or e.accumulate:
        return False
    whole = not any(r.jagged or r.partial for r in value.ranges)
    own = all(isinstance(x, Index) for x in e.at)
    return whole and own and is_float(facts(spec).tensors[e.target].dtype)


def _only(spec: Spec, inner: Equation, e: Equation) -> bool:
    alone = readers(spec, inner.target) == [e] and inner.target not in returned(spec)
    return alone and sums(inner) and _plain(spec, inner)


def _of(ranges: tuple[Range, ...], names: tuple[str, ...]) -> tuple[Range, ...]:
    return tuple(r for r in ranges if r.index in names)


def _in_parts(spec: Spec, e: Equation, over: str, size: Expr, length: int) -> Spec:
    """The spec with one reduction over the positions of each part, and one over the parts."""
    blocks, value = SplitIndex.of(spec, over, size, length), e.reduce
    vanishes = value.reduction == "sum" and _ends(spec, value.body, over, size)
    body = (
        blocks.at(value.body)
        if vanishes
        else blocks.masked(value.body, IDENTITY_ELEMENTS[value.reduction])
    )
    ranges = facts(spec).ranges
    others = tuple(i for i in value.over if i != over)
    first = Equation(
        fresh(spec, f"{e.target}_parts"),
        (*e.at, blocks.part),
        Reduce(
            value.reduction,
            body,
            (*others, blocks.inside.name),
            (*_of(value.ranges, others), blocks.range),
        ),
        sizes=(*(ranges[i].high for i in e.indices), blocks.count),
    )
    whole = Reduce(value.reduction, Read(first.target, first.at), (blocks.part.name,))
    return replaced(spec, {e.target: (first, replace(e, value=whole))})


def _ends(spec: Spec, body: Expr, over: str, size: Expr) -> bool:
    """Whether a product is 0 past the end of an index: one factor is read at the plain index, in a
    tensor of the same size, so its padding makes the product 0."""
    tensors = facts(spec).tensors
    for part in factors(body):
        inner = part.value if isinstance(part, Cast) else part
        if isinstance(inner, Read) and inner.pad is None:
            shape = tensors[inner.tensor].shape
            if any(p == Index(over) and s == size for p, s in zip(inner.at, shape, strict=True)):
                return True
    return False
