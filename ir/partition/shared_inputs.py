"""Merges matmuls that share an input and have fixed weights into one, with concatenated columns.

before: q[m, j] = sum(f32(x[m, k]) * f32(a[j, k]), k), p[m, j] = bf16(q[m, j] + f32(c[j]))
        r[m, j] = sum(f32(x[m, k]) * f32(b[j, k]), k), s[m, j] = bf16(r[m, j] + f32(d[j]))
after:  w[j, k] = where(j < 64, a[j, k], b[j - 64, k]), v[j] = where(j < 64, c[j], d[j - 64])
        q[m, j] = sum(f32(x[m, k]) * f32(w[j, k]), k), t[m, j] = bf16(q[m, j] + f32(v[j]))
        p[m, j] = t[m, j], s[m, j] = t[m, j + 64]

The kernel reads the input once, and its tiles fill the chip where those of a single matmul would
not. Weights and vectors are fixed, so they are concatenated before the calls; `p` and `s` are
views. The query, key and value projections of a transformer merge in this way. Matmuls whose
results are read by pointwise equations stay separate: these are epilogues of one of the matmuls
(gate and up of SwiGLU), or would read a part of each row (rotary embedding).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from ir.contraction import contraction
from ir.partition.views import fresh, is_plain, is_pointwise, root
from ir.sizes import value as number
from ir.spec import Apply, Cast, Equation, Expr, Index, Number, Read, Reduce, Spec
from ir.verify import Facts, facts
from ir.visit import reindexed, rereading


def with_shared_inputs(spec: Spec, aliases: Mapping[str, str], fixed: Collection[str]) -> Spec:
    """Merges matmuls of a literal spec that share an input and have fixed weights.

    aliases: by view, the tensor whose memory it shows.
    fixed: inputs that do not change between calls.
    """
    known = facts(spec)
    groups: dict[Hashable, list[_Matmul]] = defaultdict(list)
    for e in spec.equations:
        if (found := _matmul(spec, known, e, fixed)) is not None:
            groups[found.key].append(found)
    for group in groups.values():
        if len(group) > 1 and _contracted(spec, aliases, group):
            spec = _joined(spec, known, group)
    return spec


@dataclass(frozen=True, slots=True)
class _Matmul:
    """A matmul with a fixed weight, and the pointwise equation after it, if there is one."""

    key: Hashable  # equal for matmuls that can be merged
    sum: Equation
    last: Equation  # the pointwise equation, or the sum itself
    weight: Read
    vectors: tuple[str, ...]  # the vectors that the last equation reads at the column index


def _matmul(spec: Spec, known: Facts, e: Equation, fixed: Collection[str]) -> _Matmul | None:
    product = contraction(e)
    if product is None or not is_plain(e) or e.accumulate or len(product.over) != 1:
        return None
    *_, column = e.indices
    sides = [r for side in (product.a, product.b) if (r := _read(side)) is not None]
    weights = [r for r in sides if r.tensor in fixed]
    if len(weights) != 1 or len(sides) != 2 or product.batch:
        return None
    (weight,), (over,) = weights, product.over
    if {weight.at[0], weight.at[-1]} != {Index(column), Index(over)} or len(weight.at) != 2:
        return None
    if any(column in (n.name for n in r.at if isinstance(n, Index)) for r in sides if r != weight):
        return None
    last, vectors = _after(spec, e, fixed)
    shape = known.tensors[last.target].shape
    own = {weight.tensor: "#w", e.target: "#s"} | {v: f"#v{n}" for n, v in enumerate(vectors)}
    dtypes = tuple(known.tensors[t].dtype for t in (weight.tensor, *vectors, e.target, last.target))
    form = (_named(e, own), _named(last, own) if last is not e else None)
    key = (form, dtypes, shape[:-1], known.ranges[over].high, last.target in _kept(spec))
    return _Matmul(key, e, last, weight, vectors)


def _after(spec: Spec, e: Equation, fixed: Collection[str]) -> tuple[Equation, tuple[str, ...]]:
    """The only reader of a matmul, if it is pointwise in the same order, and the vectors that it
    reads.

    The matmul itself if there is no such reader.
    """
    readers = [r for r in spec.equations if e.target in r.sources()]
    if len(readers) != 1 or e.target in _kept(spec):
        return e, ()
    (last,) = readers
    reads = [r for r in last.reads() if r.tensor != e.target]
    column = last.at[-1] if last.at else None
    whole = all(r.at == last.at for r in last.reads() if r.tensor == e.target)
    beside = all(r.tensor in fixed and r.at == (column,) and r.pad is None for r in reads)
    moved = isinstance(last.value, Read)
    if not is_plain(last) or not is_pointwise(last.value) or last.accumulate or moved:
        return e, ()
    return (last, tuple(dict.fromkeys(r.tensor for r in reads))) if whole and beside else (e, ())


def _contracted(spec: Spec, aliases: Mapping[str, str], group: Sequence[_Matmul]) -> bool:
    """Whether only contractions read the results, possibly through views."""
    seen = {m.last.target for m in group}
    for e in spec.equations:
        if not seen & set(e.sources()):
            continue
        if e.target in aliases or isinstance(e.value, Read):
            seen.add(e.target)
        elif contraction(e) is None:
            return False
    return not {root(name, aliases) for name in _kept(spec)} & seen


def _joined(spec: Spec, known: Facts, group: Sequence[_Matmul]) -> Spec:
    """The spec with a group merged into one matmul, in the place of its first one."""
    # A weight can be in several groups, so the names of merged weights are taken, too.
    first = group[0]
    taken = {*(t.name for t in spec.inputs), *(e.target for e in spec.equations)}
    widths = [number(known.tensors[m.last.target].shape[-1], {}) for m in group]
    at = first.weight.at.index(Index(first.sum.indices[-1]))
    weight = fresh(f"{first.weight.tensor}_beside", taken)
    made = [_beside(weight, [m.weight.tensor for m in group], at, widths, known)]
    names = {first.weight.tensor: weight}
    for n, vector in enumerate(first.vectors):
        names[vector] = fresh(f"{vector}_beside", taken)
        made.append(_beside(names[vector], [m.vectors[n] for m in group], 0, widths, known))
    names[first.sum.target] = fresh(f"{first.sum.target}_beside", taken)
    names[first.last.target] = whole = names.get(
        first.last.target, fresh(f"{first.last.target}_beside", taken)
    )
    for e in (first.sum, first.last) if first.last is not first.sum else (first.sum,):
        shape = (*known.tensors[e.target].shape[:-1], Number(sum(widths)))
        made.append(_under(replace(e, sizes=shape), names))
    start, views = 0, {}
    for m, width in zip(group, widths, strict=True):
        *lead, column = m.last.at
        place = Apply("add", (column, Number(start))) if start else column
        shape = known.tensors[m.last.target].shape
        views[m.last.target] = replace(m.last, value=Read(whole, (*lead, place)), sizes=shape)
        start += width
    sums = {m.sum.target for m in group if m.last is not m.sum}
    equations: list[Equation] = []
    for e in spec.equations:
        if e.target == first.sum.target:
            equations += made
        if e.target not in sums:
            equations.append(views.get(e.target, e))
    return replace(spec, equations=tuple(equations))


def _beside(
    name: str, parts: Sequence[str], at: int, widths: Sequence[int], known: Facts
) -> Equation:
    """Concatenates fixed tensors along one dimension."""
    shape = [*known.tensors[parts[0]].shape]
    shape[at] = Number(sum(widths))
    places = [Index(f"{name}_{d}") for d in range(len(shape))]
    start = sum(widths)
    value: Expr | None = None
    for part, width in zip(reversed(parts), reversed(widths), strict=True):
        start -= width
        moved: list[Expr] = [*places]
        if start:
            moved[at] = Apply("sub", (places[at], Number(start)))
        read = Read(part, tuple(moved), 0.0)
        before = Apply("lt", (places[at], Number(start + width)))
        value = read if value is None else Apply("where", (before, read, value))
    assert value is not None, "there are parts"
    return Equation(name, tuple(places), value, sizes=tuple(shape))


def _under(e: Equation, names: Mapping[str, str]) -> Equation:
    """Renames an equation, the tensors that it reads, and its indices."""
    target = names[e.target]

    def part(expr: Expr) -> Expr:
        return reindexed(rereading(expr, names), lambda i: f"{i}_{target}")

    return replace(e, target=target, at=tuple(map(part, e.at)), value=part(e.value))


def _named(e: Equation, own: Mapping[str, str]) -> Expr:
    """The right side of an equation, equal for equations that differ only in these tensors and in
    index names."""
    names = {index: f"#{n}" for n, index in enumerate(e.indices)}
    value = replace(e.value, ranges=()) if isinstance(e.value, Reduce) else e.value
    return rereading(reindexed(value, lambda i: names.setdefault(i, f"#{len(names)}")), own)


def _kept(spec: Spec) -> set[str]:
    return {t.name for t in spec.outputs}


def _read(side: Expr) -> Read | None:
    inner = side.value if isinstance(side, Cast) else side
    return inner if isinstance(inner, Read) and inner.pad is None else None
