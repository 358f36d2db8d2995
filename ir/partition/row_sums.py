"""Reduces a convolution's result along rows in its own kernel, and over the rows in another one.

before: y[b, o, i, j] = gelu(sum(x[b, c, i + r, j + s] * w[o, c, r, s], c, r, s)), t[b, o] = sum(y[b, o, i, j], i, j)
after:  t_rows[b, o, i] = sum(y[b, o, i, j], j), t[b, o] = sum(t_rows[b, o, i], i)

The first reduction is part of the convolution's epilogue. `y` is then never stored, unless
something else reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import prod

from ir.affine import affine
from ir.contraction import contraction
from ir.partition.groups import LOOPED, suits_tile, windowed
from ir.partition.views import fresh, is_plain, is_pointwise
from ir.sizes import shape
from ir.spec import Equation, Expr, Facts, Index, Number, Read, Reduce, Spec
from ir.verify import facts

LEAST = 1 << 24  # elements of a tensor above which a pass over it takes longer than a launch


def with_reductions_by_rows(spec: Spec, aliases: Mapping[str, str]) -> Spec:
    """Splits reductions of large convolution results in a literal spec into two steps.

    aliases: by view, the tensor whose memory it shows; both are stored.
    """
    known = facts(spec)
    shapes = {name: shape(t, {}) for name, t in known.tensors.items()}
    kept = {t.name for t in spec.outputs} | {*aliases, *aliases.values()}
    readers: dict[str, int] = {}
    for e in spec.equations:
        for source in e.sources():
            readers[source] = readers.get(source, 0) + 1
    taken = {*shapes, *(i for e in spec.equations for i in e.indices)}
    made: list[Equation] = []
    for e in spec.equations:
        read = _whole(e, known)
        alone = read is not None and _alone(spec, read.tensor, kept, readers)
        if read is None or not alone or prod(shapes[read.tensor]) < LEAST:
            made.append(e)
            continue
        made += _in_two(e, read, shapes[read.tensor], taken)
    return replace(spec, equations=tuple(made)) if len(made) > len(spec.equations) else spec


def _whole(e: Equation, known: Facts) -> Read | None:
    """The read of a reduction over several indices that reads each element once; None for other
    equations."""
    value = e.value
    if not isinstance(value, Reduce) or value.reduction not in LOOPED or len(value.over) < 2:
        return None
    if known.tensors[e.target].dtype != "f32":
        return None  # partial sums in a narrower dtype would be rounded
    if e.accumulate or not is_plain(e) or any(r.jagged or r.partial for r in value.ranges):
        return None
    reads = list(e.reads())
    if len(reads) != 1 or value.body != reads[0] or reads[0].pad is not None:
        return None
    names = [_only(p) for p in reads[0].at]
    whole = all(names) and sorted(names) == sorted((*e.indices, *value.over))
    sizes = known.tensors[reads[0].tensor].shape
    whole = whole and all(known.ranges[i].high == n for i, n in zip(names, sizes, strict=True))
    return reads[0] if whole and names[-1] in value.over else None


def _only(position: Expr) -> str:
    """The index that a position is; empty for other expressions."""
    form = affine(position)
    return (form.index or "") if form else ""


def _alone(spec: Spec, tensor: str, kept: Collection[str], readers: Mapping[str, int]) -> bool:
    """Whether a tensor is a convolution's result or pointwise in it, and has a single reader."""
    while tensor not in kept and readers.get(tensor) == 1:
        e = next((e for e in spec.equations if e.target == tensor), None)
        if e is None or e.accumulate or not is_plain(e):
            return False
        if contraction(e) is not None:
            return windowed(e)
        own = [r.tensor for r in e.reads() if r.at == e.at and r.pad is None]
        if not is_pointwise(e.value) or len(set(own)) != 1:
            return False
        tensor = own[0]
    return False


def _in_two(e: Equation, read: Read, sizes: tuple[int, ...], taken: set[str]) -> list[Equation]:
    """A reduction along rows and one over the rows; the equation itself if rows do not suit a
    tile."""
    value = e.value
    assert isinstance(value, Reduce)
    names = [_only(p) for p in read.at]
    row, extents = names[-1], dict(zip(names, sizes, strict=True))
    if not suits_tile(extents[row], several=True, looped=True):
        return [e]
    target = fresh(f"{e.target}_rows", taken)
    own = {i: fresh(f"{target}_{n}", taken) for n, i in enumerate(names)}
    ranges = {r.index: r for r in value.ranges}

    def of(names: list[str], body: Read, over: tuple[str, ...], to: Mapping[str, str]) -> Reduce:
        bounds = tuple(replace(ranges[i], index=to.get(i, i)) for i in over if i in ranges)
        return Reduce(value.reduction, body, tuple(to.get(i, i) for i in over), bounds)

    inside = Read(read.tensor, tuple(Index(own[i]) for i in names))
    at = tuple(Index(own[i]) for i in names[:-1])
    first = Equation(
        target,
        at,
        of(names, inside, (row,), own),
        sizes=tuple(Number(extents[i]) for i in names[:-1]),
    )
    again = Read(target, tuple(Index(i) for i in names[:-1]))
    rest = tuple(i for i in value.over if i != row)
    return [first, replace(e, value=of(names, again, rest, {}))]
