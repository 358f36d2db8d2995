"""Decides which pointwise equations join a later reduction as its prologue, not an epilogue.

a[i, j] = bf16(sum(...)), x[i, j] = f32(a[i, j]), s[i] = sum(x[i, j] * x[i, j], j), y[i, j] = x[i,
j] * s[i]

In the epilogue of the contraction `x` would be stored in f32. The kernel of the reduction reads the
narrower `a` instead and recomputes `x`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from ir.partition.groups import HEAVY, Group, kind_of, takes_terms
from ir.partition.views import is_pointwise
from ir.sizes import shape
from ir.spec import DTYPES, Equation, Facts, Reduce, Scan


class Terms:
    """What the readers of each tensor of a spec need.

    equations: in topological order.
    kept: tensors that are stored in any case.
    aliases: by view, the tensor whose memory it shows.
    """

    def __init__(
        self,
        equations: Sequence[Equation],
        facts: Facts,
        aliases: Mapping[str, str],
        kept: Collection[str],
    ):
        self._facts, self._aliases, self._kept = facts, aliases, kept
        # by tensor: the most consecutive reductions that it depends on
        self._levels: dict[str, int] = {}
        self._readers: dict[str, list[Equation]] = {}
        for e in equations:
            before = max((self._levels.get(s, 0) for s in e.sources()), default=0)
            self._levels[e.target] = before + isinstance(e.value, Reduce | Scan)
            for source in e.sources():
                self._readers.setdefault(source, []).append(e)
        # By tensor: whether all its readers are reductions that take terms, or come after one.
        self._late: dict[str, bool] = {}
        for e in reversed(equations):
            readers = self._readers.get(e.target, [])
            self._late[e.target] = bool(readers) and all(self._is_later(e, r) for r in readers)

    def belongs_later(self, group: Group, e: Equation) -> bool:
        """Whether an equation that could join a contraction's group is better computed by its
        readers."""
        if group.kind != HEAVY or e.target in self._kept or not self._late[e.target]:
            return False
        whole = [s for s in e.sources() if self._elements(s) == self._elements(e.target)]
        if not is_pointwise(e.value) or len(whole) != 1 or whole[0] not in group.targets:
            return False
        return self._bytes(e.target) > self._bytes(whole[0])

    def _is_later(self, e: Equation, reader: Equation) -> bool:
        if reader.target in self._aliases or reader.accumulate:
            return False
        if isinstance(reader.value, Reduce):
            return takes_terms(reader, kind_of(reader, self._facts))
        if not is_pointwise(reader.value):
            return False
        return self._levels[reader.target] > self._levels[e.target] or self._late.get(
            reader.target, False
        )

    def _elements(self, tensor: str) -> int:
        return prod(shape(self._facts.tensors[tensor], {}))

    def _bytes(self, tensor: str) -> int:
        return self._elements(tensor) * DTYPES[self._facts.tensors[tensor].dtype]
