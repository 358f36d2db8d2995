"""Computes per-channel statistics of a concatenation from those of its operands.

before: t[n, c, y] = where(c < C, pad(x[n, c, y], 0.0), pad(a[n, c - C, y], 0.0))
        s[c] = sum(x[n, c, y], n, y)
        u[c] = sum(t[n, c, y], n, y), m[c] = u[c] / N
after:  s[c] = sum(x[n, c, y], n, y)
        v[c] = sum(a[n, c, y], n, y)
        u[c] = where(c < C, pad(s[c], 0.0), pad(v[c - C], 0.0)), m[c] likewise

The rewrite applies if all operands but one have their statistics already. Each layer of a dense
block normalises the results of all earlier layers, so it then reads only the new operand. The
kernel that computes this operand can reduce it, too. An operand can itself be a concatenation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from ir.partition.joins import JoinPart, joined, joined_parts
from ir.partition.views import fresh, is_plain, is_pointwise
from ir.recurrence import recurrences
from ir.sizes import shape
from ir.spec import DTYPES, Equation, Index, Number, Reduce, Spec
from ir.verify import facts
from ir.visit import pruned, reindexed, rereading

# Bytes of the operands that are not read again. Concatenating vectors takes one more launch. By its
# time model that takes an H200 8 us, as long as reading these bytes.
LEAST = 1 << 25


def with_part_statistics(spec: Spec, aliases: Mapping[str, str], least: int = LEAST) -> Spec:
    """Computes statistics of concatenations in a literal spec from those of the operands.

    aliases: views of other tensors' memory, which stay.
    least: bytes of operands that must be saved.
    """
    return _Statistics(spec, aliases, least).made()


@dataclass(slots=True)
class _Join:
    """A concatenation, and the equations that depend on it alone, channel by channel."""

    target: str
    parts: tuple[JoinPart, ...]
    # By tensor: the concatenated dimension; the concatenation itself comes first.
    dims: dict[str, int]
    members: list[Equation] = field(default_factory=list)


class _Statistics:
    """The rewrite of one spec."""

    def __init__(self, spec: Spec, aliases: Mapping[str, str], least: int):
        known = facts(spec)
        self.spec, self.least = spec, least
        self.ranges, self.tensors = known.ranges, known.tensors
        self.dtypes = {name: t.dtype for name, t in known.tensors.items()}
        self.shapes = {name: shape(t, {}) for name, t in known.tensors.items()}
        self.outputs = {t.name for t in spec.outputs}
        self.apart = {*self.outputs, *aliases, *aliases.values()}
        self.apart |= {t for r in recurrences(spec) for t in r.targets}
        self.taken = {*self.shapes, *self.ranges}
        self.home: dict[str, _Join] = {}  # by concatenation and by each of its statistics
        self.computed: dict[object, str] = {}  # by canonical key: the tensor that holds it

    def made(self) -> Spec:
        """The rewritten spec; the same spec if there is nothing to rewrite."""
        joins = self._joins()
        if not joins:
            return self.spec
        instead: dict[str, list[Equation]] = {}
        later: dict[str, Equation] = {}  # concatenations, by the last of their statistics
        for e in self.spec.equations:
            if e.target in joins and (found := self._replaced(joins[e.target])):
                instead |= found
                if self._after(joins[e.target]):
                    # Readers of both can then be computed together with the concatenation.
                    later[joins[e.target].members[-1].target] = e
                    instead[e.target] = []
            if not e.accumulate and is_plain(e) and e.target not in self.apart - self.outputs:
                sizes = [self._size(i) for i in (*e.indices, *e.reduced)]
                self.computed.setdefault(self._key(e, sizes, e.target), e.target)
        if not instead:
            return self.spec
        for last, e in later.items():
            instead[last].append(e)
        equations = (one for e in self.spec.equations for one in instead.get(e.target, (e,)))
        return pruned(replace(self.spec, equations=tuple(equations)))

    def _joins(self) -> dict[str, _Join]:
        """The concatenations that have reductions, by name."""
        for e in self.spec.equations:
            if e.target not in self.apart and (parts := joined_parts(e, self.tensors)):
                dim, found = parts
                self.home[e.target] = _Join(e.target, found, {e.target: dim})
                continue
            joins = {id(j): j for s in e.sources() for j in [self.home.get(s)] if j}
            if len(joins) == 1 and all(s in self.home for s in e.sources()):
                (join,) = joins.values()
                self._take(join, e)
        for join in self.home.values():
            join.members = _reductions(join.members)
        return {j.target: j for j in self.home.values() if j.members}

    def _after(self, join: _Join) -> bool:
        """Whether a concatenation can be computed after its statistics, as nothing else reads it
        before them."""
        own = {e.target for e in join.members}
        for e in self.spec.equations:
            if e.target == join.members[-1].target:
                return True
            if join.target in e.sources() and e.target not in own:
                return False
        raise AssertionError("its statistics are equations of the spec")

    def _size(self, index: str) -> int | None:
        """The number of values of an index; None if that is not constant."""
        r = self.ranges[index]
        plain = not r.jagged and not r.partial and r.low == Number(0)
        return int(r.high.value) if plain and isinstance(r.high, Number) else None

    def _take(self, join: _Join, e: Equation) -> None:
        """Adds an equation to the members of a concatenation, if it depends on that alone, channel
        by channel."""
        if e.target in self.apart or e.accumulate or not is_plain(e):
            return
        if isinstance(e.value, Reduce):
            whole = all(self._size(i) is not None for i in e.reduced)
            if e.value.reduction.startswith("arg") or not whole or not is_pointwise(e.value.body):
                return
        elif join.target in e.sources() or not is_pointwise(e.value):
            return
        reads = e.reads()
        along = {r.at[join.dims[r.tensor]] for r in reads if r.pad is None}
        (index,) = along if len(along) == 1 else (None,)
        if not isinstance(index, Index) or any(r.pad is not None for r in reads):
            return
        # The channel index occurs once in each read and nowhere else, so the value depends on the
        # channel only through what is read there.
        if sum(n == index for n in e.value.walk()) != len(reads) or index.name not in e.indices:
            return
        join.members.append(e)
        join.dims[e.target] = e.indices.index(index.name)
        self.home[e.target] = join

    def _replaced(self, join: _Join) -> dict[str, list[Equation]]:
        """The equations that replace the statistics of a concatenation, by target; empty if that
        does not pay."""
        computed = dict(self.computed)
        instead: dict[str, list[Equation]] = {e.target: [] for e in join.members}
        of: dict[str, list[str]] = {join.target: [p.tensor for p in join.parts]}
        new: set[str] = set()  # operands with a statistic that is not computed yet
        for e in join.members:
            of[e.target] = []
            for n, part in enumerate(join.parts):
                names = {name: own[n] for name, own in of.items() if name != e.target}
                made, sizes = self._of_part(e, join, part, names)
                key = self._key(made, sizes, e.target)
                if key not in computed:
                    computed[key] = made.target
                    instead[e.target].append(made)
                    new |= {part.tensor} if isinstance(e.value, Reduce) else set()
                of[e.target].append(computed[key])
            instead[e.target].append(self._joined(e, join, of[e.target]))
        old = {p.tensor for p in join.parts} - new
        spared = sum(DTYPES[self.dtypes[t]] * prod(self.shapes[t]) for t in old)
        if len(new) > 1 or spared < self.least:
            return {}
        self.computed = computed
        return instead

    def _of_part(
        self, e: Equation, join: _Join, part: JoinPart, names: Mapping[str, str]
    ) -> tuple[Equation, list[int | None]]:
        """A statistic of one operand, and the sizes of its indices. names: the tensors that it
        reads instead."""
        own = {i: fresh(f"{i}_part", self.taken) for i in (*e.indices, *e.reduced)}
        dim, length = join.dims[e.target], part.end - part.start
        sizes = [self._size(i) for i in (*e.indices, *e.reduced)]
        sizes[dim] = length
        made = Equation(
            fresh(f"{e.target}_part", self.taken),
            tuple(Index(own[i]) for i in e.indices),
            reindexed(rereading(e.value, names), lambda i: own.get(i, i)),
            sizes=tuple(
                Number(length if d == dim else n) for d, n in enumerate(self.shapes[e.target])
            ),
        )
        return made, sizes

    def _key(self, e: Equation, sizes: Sequence[int | None], like: str) -> object:
        """A key that is equal for equations that are equal up to index names.

        sizes: of the indices, those of the target first.
        like: a tensor of the target's dtype.
        """
        names = {i: f"#{n}" for n, i in enumerate((*e.indices, *e.reduced))}
        value = e.value
        if isinstance(value, Reduce) and None not in sizes:
            value = replace(value, ranges=())
        return tuple(sizes), self.dtypes[like], reindexed(value, lambda i: names.get(i, i))

    def _joined(self, e: Equation, join: _Join, names: Sequence[str]) -> Equation:
        """A statistic of a concatenation, concatenated from those of its operands. names: these, in
        order."""
        dim = join.dims[e.target]
        parts = [replace(p, tensor=name) for p, name in zip(join.parts, names, strict=True)]
        value = joined(e.at, dim, parts)
        return replace(e, value=value, sizes=tuple(map(Number, self.shapes[e.target])))


def _reductions(members: Sequence[Equation]) -> list[Equation]:
    """The reductions among some equations and the equations that they depend on, in order."""
    needed: set[str] = set()
    kept: list[Equation] = []
    for e in reversed(members):
        if isinstance(e.value, Reduce) or e.target in needed:
            needed |= set(e.sources())
            kept.insert(0, e)
    return kept
