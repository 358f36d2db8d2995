"""Lets batched contractions read and write tensors through views, without permuted copies.

before: t[b, h, p, l] = x[b, l, h, p]          q[i, p, l] shows t[i // H, i % H, p, l]
        c[i, p, n] = sum(q[i, p, l] * w[i, l, n], l)
        z[b, p, h] = v[b, h, p, 2]             v[b, h, p, n] shows c[b * H + h, p, n]
after:  z[b, p, h] = sum(x[b, l, h, p] * w_parts[b, h, l, 2], l)

No operand is copied, and only the elements of the result that are read are computed. If the only
reader is a pointwise equation, the contraction is computed at the reader's indices and the reader
becomes its epilogue. The M, N and K indices of a contraction are kept: only a batch index is split.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import prod

from ir.contraction import contraction, factors, product
from ir.partition.chains import Chain, chains
from ir.partition.heads import split
from ir.partition.views import fresh, is_plain, is_pointwise, root
from ir.recurrence import recurrences
from ir.sizes import shape
from ir.spec import Equation, Expr, Index, Read, Reduce, Spec
from ir.verify import facts
from ir.visit import pruned, rebuilt, renamed, reordered


def with_direct_products(spec: Spec, aliases: Mapping[str, str]) -> tuple[Spec, dict[str, str]]:
    """Rewrites the batched contractions of a literal spec; returns the spec and its aliases.

    aliases: by view, the tensor whose elements it shows in the same order under another shape.
    """
    aliases = dict(aliases)
    apart = {t for r in recurrences(spec) for t in r.targets}
    for chain in chains(spec, aliases):
        apart |= {*chain.members, *chain.after}
    for target in [e.target for e in spec.equations if contraction(e) and e.target not in apart]:
        spec = _turned(spec, target, apart | aliases.keys())
    for target in [e.target for e in spec.equations if _batched(e) and e.target not in apart]:
        for made, own in _candidates(spec, aliases, target, apart):
            there = {e.target for e in made.equations}
            shown = {name: source for name, source in aliases.items() if name in there}
            e = made.equation(own)
            found = contraction(e)
            whole = {*e.indices, *e.reduced} - set(found.batch if found else ())
            if done := split(made, shown, Chain((own,), (), own, own), whole):
                spec, aliases = done
                break
    return spec, aliases


def _batched(e: Equation) -> bool:
    found = contraction(e)
    return found is not None and bool(found.batch) and is_plain(e)


def _turned(spec: Spec, target: str, apart: Collection[str]) -> Spec:
    """Permutes the result of a contraction into the index order of its only reader, if that is
    pointwise.

    A thread block then stores its tile in the order in which it holds it. The spec is returned
    unchanged if the orders agree already, or if the reader is one of `apart`.
    """
    e = spec.equation(target)
    readers = [r for r in spec.equations if target in r.sources()]
    if len(readers) != 1 or target in {t.name for t in spec.outputs} or not is_plain(e):
        return spec
    (reader,) = readers
    if reader.target in apart or not is_plain(reader) or reader.accumulate:
        return spec
    places = {r.at: r.pad for r in reader.reads() if r.tensor == target}
    ((at, pad),) = places.items() if len(places) == 1 else (((), 0.0),)
    names = [p.name for p in at if isinstance(p, Index)]
    same = sorted(names) == sorted(reader.indices) and len(names) == len(at)
    if not same or pad is not None or tuple(names) == reader.indices:
        return spec
    if not is_pointwise(reader.value):
        return spec
    spec = reordered(spec, target, tuple(names.index(i) for i in reader.indices))
    made = (_oriented(o) if o.target == target else o for o in spec.equations)
    return replace(spec, equations=tuple(made))


def _oriented(e: Equation) -> Equation:
    """Swaps the operands of a contraction whose last output index is an M index, so that it is an N
    index."""
    found = contraction(e)
    if found is None or e.indices[-1] not in found.rows or not isinstance(e.value, Reduce):
        return e
    return replace(e, value=replace(e.value, body=product(factors(e.value.body)[::-1])))


def _is_view(e: Equation) -> bool:
    """Whether an equation only shows elements of another tensor (a view or a permuted copy)."""
    return isinstance(e.value, Read) and e.value.pad is None and not e.accumulate and is_plain(e)


def _candidates(
    spec: Spec, aliases: Mapping[str, str], target: str, apart: set[str]
) -> Iterator[tuple[Spec, str]]:
    """Yields specs with the contraction moved towards its readers, the best first, each with the
    new target."""
    passed = [spec.equation(target)]
    outputs, known = {t.name for t in spec.outputs}, facts(spec)
    elements = prod(shape(known.tensors[target], {}))
    reader: Equation | None = None
    positions: tuple[Expr, ...] = tuple(map(Index, passed[0].indices))
    found: list[tuple[Equation, tuple[Expr, ...]]] = []
    while passed[-1].target not in outputs:
        last = passed[-1].target
        readers = [r for r in spec.equations if last in r.sources()]
        reader = readers[0] if len(readers) == 1 else None
        if reader is None or not _is_view(reader) or set(reader.indices) & set(passed[0].reduced):
            break
        names = dict(zip(passed[-1].indices, reader.reads()[0].at, strict=True))
        positions = tuple(renamed(p, names) for p in positions)
        passed.append(reader)
        reader = None
        fewer = prod(shape(known.tensors[passed[-1].target], {})) <= elements
        if fewer and passed[-1].target not in aliases:
            found.append((passed[-1], positions))
    if reader is not None and reader.target not in apart | aliases.keys():
        if made := _as_epilogue(spec, passed, positions, reader):
            yield made
    if found:
        e, positions = found[-1]
        moved = _oriented(replace(e, value=_body(passed[0], positions)))
        gone = {p.target for p in passed[: passed.index(e)]}
        yield _put(spec, gone, {e.target: (moved,)}), e.target
    if _reads_copy(spec, aliases, target):
        yield spec, target


def _as_epilogue(
    spec: Spec, passed: list[Equation], positions: tuple[Expr, ...], reader: Equation
) -> tuple[Spec, str] | None:
    """Computes a contraction at the indices of its pointwise reader, so that the reader is its
    epilogue.

    None if the reader reads the contraction directly already, or would compute elements of it
    several times.
    """
    last = passed[-1]
    reads = [r for r in reader.reads() if r.tensor == last.target]
    known = facts(spec)
    if len(passed) == 1 or len(reads) != 1 or reads[0].pad is not None:
        return None
    if not is_plain(reader) or reader.accumulate or not is_pointwise(reader.value):
        return None
    sizes = [shape(known.tensors[t], {}) for t in (passed[0].target, reader.target)]
    if prod(sizes[0]) != prod(sizes[1]):
        return None
    taken = {*known.tensors, *known.ranges}
    names = {i: Index(fresh(f"{i}_at", taken)) for i in reader.indices}
    shown = dict(zip(last.indices, (renamed(p, names) for p in reads[0].at), strict=True))
    positions = tuple(renamed(p, shown) for p in positions)
    made = replace(
        passed[0],
        target=fresh(f"{passed[0].target}_at", taken),
        at=tuple(names[i] for i in reader.indices),
        sizes=tuple(known.ranges[i].high for i in reader.indices),
        value=_body(passed[0], positions),
    )
    made = _oriented(made)
    then = replace(reader, value=_instead(reader.value, reads[0], Read(made.target, reader.at)))
    gone = {p.target for p in passed}
    return _put(spec, gone, {reader.target: (made, then)}), made.target


def _body(e: Equation, positions: tuple[Expr, ...]) -> Expr:
    """What an equation computes at the given positions."""
    return renamed(e.value, dict(zip(e.indices, positions, strict=True)))


def _instead(expr: Expr, old: Read, new: Read) -> Expr:
    return new if expr == old else rebuilt(expr, lambda part: _instead(part, old, new))


def _put(spec: Spec, gone: set[str], instead: Mapping[str, tuple[Equation, ...]]) -> Spec:
    """Removes the equations of some targets and replaces those of others; unused equations go as
    well."""
    made = (x for e in spec.equations for x in instead.get(e.target, (e,)) if x.target not in gone)
    return pruned(replace(spec, equations=tuple(made)))


def _reads_copy(spec: Spec, aliases: Mapping[str, str], target: str) -> bool:
    """Whether an equation reads a view of a tensor that is a copy of another tensor's elements."""
    equations = {e.target: e for e in spec.equations}
    shown = {root(s, aliases) for s in equations[target].sources() if s in aliases}
    return any(s in equations and _is_view(equations[s]) for s in shown)
