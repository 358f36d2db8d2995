"""Finds chains contraction -> exponentials -> contraction, which one kernel can compute.

s[m, n] = sum(q[m, d] * k[n, d], d), t[m] = max(s[m, n], n), p[m, n] = exp(s[m, n] - t[m])
l[m] = sum(p[m, n], n), o[m, e] = sum(p[m, n] * v[n, e], n), y[m, e] = o[m, e] / l[m]

If the schedule makes the maximum a running maximum, that kernel stores no scores in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from ir.contraction import contraction
from ir.partition.views import is_pointwise
from ir.spec import Equation, Expr, Read, Reduce, Spec


@dataclass(frozen=True, slots=True)
class Chain:
    """Two contractions and the equations between and after them, as targets in the order of the
    spec."""

    members: tuple[str, ...]  # from the first contraction to the second, both included
    # The epilogue: pointwise equations that read the second contraction, or only other epilogue
    # equations.
    after: tuple[str, ...]
    last: str  # target of the second contraction
    weights: str  # operand of the second contraction that the other members compute


def chains(spec: Spec, aliases: Collection[str]) -> Iterator[Chain]:
    """Yields the chains of a spec in its order. No equation is in two chains.

    aliases: views of other tensors' memory under another shape. Inside a chain they stay views.
    """
    table = _Table(spec, aliases)
    taken: set[str] = set()
    for e in spec.equations:
        if e.target in taken or contraction(e) is None:
            continue
        for weights in dict.fromkeys(r.tensor for r in e.reads()):
            found = table.chain(e, weights)
            if found and not taken & {*found.members, *found.after}:
                taken |= {*found.members, *found.after}
                yield found
                break


class _Table:
    """The equations of a spec by target, and the readers of each tensor."""

    def __init__(self, spec: Spec, aliases: Collection[str]):
        self.aliases = aliases
        self.order = {e.target: n for n, e in enumerate(spec.equations)}
        self.outputs = {t.name for t in spec.outputs}
        self.equations: Mapping[str, Equation] = {e.target: e for e in spec.equations}
        self.readers: dict[str, list[str]] = {}
        for e in spec.equations:
            for source in e.sources():
                self.readers.setdefault(source, []).append(e.target)

    def chain(self, last: Equation, weights: str) -> Chain | None:
        """The longest chain whose second contraction is `last`, with `weights` as the computed
        operand."""
        before = self._before(weights)
        starts = [t for t in before if contraction(self.equations[t]) is not None]
        for start in starts:
            if found := self._between(start, before, last, weights):
                return found
        return None

    def _before(self, target: str) -> list[str]:
        """The tensors that `target` depends on, back to the nearest contractions, latest first."""
        found: dict[str, None] = {}
        todo = [target]
        while todo:
            one = todo.pop()
            e = self.equations.get(one)
            if e is None or one in found:
                continue
            found[one] = None
            if contraction(e) is None:
                todo += e.sources()
        return sorted(found, key=self.order.__getitem__, reverse=True)

    def _between(self, start: str, before: list[str], last: Equation, weights: str) -> Chain | None:
        inside = {start}
        for target in reversed(before):  # in the order of the spec
            if target != start and inside & set(self.equations[target].sources()):
                inside.add(target)
        if weights not in inside or not any(_reduces(self.equations[t], "max") for t in inside):
            return None
        after: set[str] = set()
        todo = [*inside, last.target]
        while todo:
            one = todo.pop()
            for reader in set(self.readers.get(one, ())) - inside - {last.target}:
                e = self.equations[reader]
                ends = {last.target, *after} & set(e.sources())
                if one in inside and _reduces(e, "sum"):
                    inside.add(reader)
                    todo.append(reader)
                elif self._ends(e) and (last.target in ends or ends == set(e.sources())):
                    todo += [] if reader in after else [reader]
                    after.add(reader)
                elif one in inside:
                    return None
        middle = (self.equations[t] for t in inside - {start})
        if inside & self.outputs or not all(map(self._simple, middle)):
            return None
        ordered = sorted((*inside, last.target), key=self.order.__getitem__)
        later = sorted(after, key=self.order.__getitem__)
        return Chain(tuple(ordered), tuple(later), last.target, weights)

    def _ends(self, e: Equation) -> bool:
        """Whether an equation can be in the epilogue of the second contraction."""
        return self._simple(e) and not isinstance(e.value, Reduce) and e.target not in self.aliases

    def _simple(self, e: Equation) -> bool:
        """Whether an equation is pointwise, or reduces one index by a maximum or a sum."""
        if e.accumulate or len(e.indices) != len(e.at):
            return False
        if not isinstance(e.value, Reduce):
            return is_pointwise(e.value)
        rows = _reduces(e, "max") or _reduces(e, "sum")
        return rows and not any(r.jagged for r in e.value.ranges) and is_pointwise(e.value.body)


def _reduces(e: Equation, reduction: str) -> bool:
    return (
        isinstance(e.value, Reduce)
        and e.value.reduction == reduction
        and len(e.reduced) == 1
        and contraction(e) is None
    )


def reads_in(expr: Expr, tensor: str) -> list[Read]:
    """The reads of a tensor in an expression."""
    return [n for n in expr.walk() if isinstance(n, Read) and n.tensor == tensor]
