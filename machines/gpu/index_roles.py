"""Roles: what each index of a spec does, as far as it determines how the index is tiled."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ir.affine import affine
from ir.autoschedule.seeds import integers, launch_ends, reduced_by
from ir.contraction import Contraction, contraction, fills
from ir.functions import POINTWISE
from ir.recurrence import recurrences, stepped
from ir.schedule import Schedule
from ir.sizes import bind
from ir.sizes import value as number
from ir.spec import Apply, Equation, Expr, Index, Number, Spec
from ir.verify import facts as facts_of


@dataclass(frozen=True, slots=True)
class Roles:
    """The role of each index of a spec, as sets of indices."""

    reduced: frozenset[str]  # reduced or scanned over
    jagged: frozenset[str]  # their range depends on data
    bounding: frozenset[str]  # the range of a jagged index depends on them
    taps: frozenset[str]  # reduced, and added to another index in a read position: filter taps
    # Indices of the other stored tensors, then of the last output; without reduced indices
    stored: tuple[str, ...]
    fastest: frozenset[str]  # the contiguous index of each of these other tensors
    # M and N indices of each contraction that has both
    sides: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    summed: frozenset[str]  # K indices of contractions
    batch: frozenset[str]  # batch indices of contractions
    stepped: frozenset[str]  # a recurrence runs along them

    @property
    def multiplied(self) -> frozenset[str]:
        """Indices along M, N or K of a matmul."""
        return self.summed | {i for rows, columns in self.sides for i in (*rows, *columns)}


def extents(spec: Spec, sizes: Mapping[str, int]) -> dict[str, int]:
    """The extent of each index at these sizes, without jagged indices."""
    bound = bind(spec, sizes)
    return {i: number(r.high, bound) for i, r in facts_of(spec).ranges.items() if not r.jagged}


def cut_once(schedule: Schedule, own: Roles) -> tuple[str, str, str] | None:
    """The M, N and K index along which a schedule tiles the one matmul of a spec. None where one of
    the three is tiled along several indices or none."""
    placed = {d.subject.removesuffix(".outer"): d.option("level") for d in schedule.of("place")}
    (sides,) = own.sides
    rows, columns = ([i for i in side if placed.get(i) == "grid"] for side in sides)
    steps = [i for i in own.summed if placed.get(i) == "loop"]
    if not len(rows) == len(columns) == len(steps) == 1:
        return None
    return rows[0], columns[0], steps[0]


def is_special(spec: Spec) -> bool:
    """Whether the spec uses the special function unit."""
    return any(
        isinstance(node, Apply) and POINTWISE[node.function].unit == "special"
        for e in spec.equations
        for node in e.value.walk()
    )


def roles(spec: Spec, plain: Collection[str] = ()) -> Roles:
    """The roles of a spec's indices. plain: matmuls that are treated as ordinary reductions."""
    ranges = facts_of(spec).ranges
    products = [
        c
        for e in spec.equations
        if e.target not in plain
        and (c := contraction(e))
        and fills(c, ranges)
        and not integers(spec, c)
    ]
    reduced = frozenset(i for e in spec.equations for i in reduced_by(e.value))
    jagged = frozenset(i for i, r in ranges.items() if r.jagged)
    last = last_stored(spec)
    leaving = [] if recurrences(spec) else _leaving(spec)
    batch = _batch(products)
    others = (i for e in leaving for i in e.indices if i not in reduced and i not in last)
    return Roles(
        reduced=reduced,
        jagged=jagged,
        bounding=frozenset(
            n.name
            for i in jagged
            for e in (ranges[i].low, ranges[i].high)
            for n in e.walk()
            if isinstance(n, Index)
        ),
        taps=_taps(spec, reduced, batch),
        stored=(*dict.fromkeys(others), *last),
        fastest=frozenset(e.indices[-1] for e in leaving if e.indices) - {*reduced, *last},
        sides=tuple((c.rows, c.columns) for c in products),
        summed=frozenset(i for c in products for i in c.over),
        batch=batch,
        stepped=frozenset(r.index for r in recurrences(spec)),
    )


def last_stored(spec: Spec) -> tuple[str, ...]:
    """The indices of the last output; of the last output of a recurrence, where there is one."""
    names = [t.name for t in spec.outputs]
    carried = [n for n in names if stepped(spec, n)]
    return spec.equation((carried or names)[-1]).indices


def _leaving(spec: Spec) -> list[Equation]:
    """The equations whose results a launch stores."""
    left = {t.name for t in spec.outputs} | {d.subject for d in launch_ends(spec)}
    return [e for e in spec.equations if e.target in left]


def _taps(spec: Spec, reduced: frozenset[str], batch: frozenset[str]) -> frozenset[str]:
    """The filter taps of a spec. An index that is added only to batch indices is no tap: a block
    has one batch, in which the channels of a group are contiguous."""
    found = set()
    for e, read in ((of, r) for of in spec.equations for r in of.reads()):
        # An index along which an epilogue reduces the result of a matmul is no filter tap.
        summed = reduced - set(e.indices) if contraction(e) else reduced
        for position in read.at:
            form = affine(position)
            if form is None:  # a quotient or remainder of flattened pixels, to which taps are added
                found |= {i for i in _added(position) if i in summed}
                continue
            if len(form.terms) < 2:
                continue
            names = [i for i, _ in form.terms]
            found |= {i for i in names[1:] if i in summed and not {*names} - {i} <= batch}
    return frozenset(found)


def _added(position: Expr) -> set[str]:
    """The indices that are terms of a sum, possibly times a number."""
    if isinstance(position, Index):
        return {position.name}
    if isinstance(position, Apply) and position.function in ("add", "sub", "mul"):
        parts = [p for p in position.args if not isinstance(p, Number)]
        if position.function != "mul" or len(parts) == 1:
            return {i for p in parts for i in _added(p)}
    return set()


def _batch(products: list[Contraction]) -> frozenset[str]:
    """Indices that are batch indices of every matmul that has them."""
    found = {i for c in products for i in c.batch}
    other = {i for c in products for i in (*c.rows, *c.columns, *c.over)}
    return frozenset(found - other)
