"""Kept tiles: tiles that a loop loads or computes stay in a buffer, where later loops read them.

before: for n: a = ..., mx = max(mx, a);   for n: a = ..., o += exp(a - mx)
after:  for n: a = ..., mx = max(mx, a);   for n: a = kept at n, o += exp(a - mx)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ir.errors import KernelError
from ir.lower.launches import LOOP, Segment, Tiling
from ir.lower.scope import Scope
from ir.lower.tile_sizes import TileSize
from ir.nest.nest import Recall, Value
from ir.schedule import Schedule
from ir.spec import Apply, Equation, Expr, Number


class Demand(Protocol):
    """What `Kept` needs from the program that it is part of."""

    schedule: Schedule
    segment: Segment
    tilings: Mapping[str, Tiling]
    equations: dict[str, Equation]
    values: dict[str, Value]

    def needed(self, indices: tuple[str, ...]) -> set[str]:
        """Those of the indices that have a tile origin."""

    def tensor(self, name: str, scope: Scope) -> str:
        """The value that holds a tensor of the launch, computed where it is first needed."""


class Kept:
    """The tiles that one launch keeps."""

    def __init__(self, program: Demand):
        self.program = program
        self._over = {d.subject: str(d.option("over")) for d in program.schedule.of("keep")}

    def slots(self, tensor: str, indices: Iterable[str]) -> Expr | None:
        """The number of slots of a kept tensor's value, one per iteration of the loop; None for
        other tensors.

        indices: those that address the value's tile.
        """
        cut = self._loop(tensor)
        if cut is None or cut.index not in indices:
            return None
        end = Apply("add", (cut.range.high, Apply("add", (TileSize(cut.index), Number(-1)))))
        return Apply("floordiv", (end, TileSize(cut.index)))

    def note(self, tensor: str, key: object, value: str, home: Scope) -> None:
        """Records that a value holds a tensor, or a read of one, in `home`.

        key: the tensor's name, or the number of the load.
        """
        cut = self._loop(tensor)
        # A value that was made for another tensor has no slots for this one.
        own = self.program.values[value].slots is not None
        if cut is not None and own and home.parent is not None and cut.index in home.binds:
            home.parent.kept[key] = value

    def tensor(self, name: str, scope: Scope) -> str | None:
        """The value in which an earlier loop kept a tensor's tile; None if none did."""
        if found := self._recalled(name, name, scope):
            found[1].tensors[name] = found[0]
        return found[0] if found else None

    def load(self, tensor: str, number: int, scope: Scope) -> str | None:
        """The value in which an earlier loop kept a loaded region; None if none did."""
        if found := self._recalled(tensor, number, scope):
            found[1].loads[number] = found[0]
        return found[0] if found else None

    def _recalled(self, tensor: str, key: object, scope: Scope) -> tuple[str, Scope] | None:
        """A kept value, and the scope in which it holds the tile again."""
        cut = self._loop(tensor)
        if cut is None:
            return None
        for s in scope.chain():
            if cut.index in s.binds and s.parent is not None and key in s.parent.kept:
                value = s.parent.kept[key]
                s.statements.append(Recall(value, cut.index))
                return value, s
        return None

    def first(self, targets: Iterable[str], home: Scope) -> None:
        """Computes the loop-invariant tensors that the loops of these tensors need.

        Lowering is driven by demand, so the last loop comes first. This lowers the loops before it
        first, so that the tiles that they keep are known.
        """
        if not self._over or self._in_steps():
            return
        left = list(targets)
        seen = set(left)
        while left:
            for source in self.program.equations[left.pop()].sources():
                if source in seen or source not in self.program.equations:
                    continue
                seen.add(source)
                if self.program.needed(self.program.equations[source].indices) <= home.bound:
                    self.program.tensor(source, home)
                else:
                    left.append(source)

    def _loop(self, tensor: str) -> Tiling | None:
        """The loop over whose tiles a tensor is kept in this launch; None if it is not kept."""
        cut = self.program.tilings.get(self._over.get(tensor, "").removesuffix(".outer"))
        if cut is None or cut.level != LOOP or self._in_steps():
            return None
        if cut.range.jagged or cut.range.low != Number(0):
            decision = self.program.schedule.find("keep", tensor)
            raise KernelError(
                f"`{cut.index}` runs over a range that the data bound, so the number of tiles of "
                f"`{tensor}` to keep is not known",
                place=decision.place if decision else None,
                hint=f"drop keep({tensor}, ...)",
            )
        return cut

    def _in_steps(self) -> bool:
        """Whether the launch is part of a recurrence, whose loops carry values of their own."""
        return bool(self.program.segment.carried or self.program.segment.recurrence)
