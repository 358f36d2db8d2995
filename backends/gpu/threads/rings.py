"""Circular buffers: stages of shared memory that producers fill and consumers read."""

from __future__ import annotations

from backends.gpu import tile as of
from backends.gpu.threads import thread as to
from backends.gpu.threads.staging import advanced
from backends.gpu.tile import Name
from ir.spec import Apply, Expr, Number


class Ring:
    """A circular buffer of shared memory stages, and the position of each role in it."""

    def __init__(
        self,
        stem: str,
        number: int,
        stages: int,
        tiles: tuple[Name, ...],
        divided: tuple[str, ...],
    ):
        self.stem = stem
        self.number = number
        self.stages = stages
        self.tiles = tiles
        self.divided = divided  # for each tile, the axis that a cluster's blocks share; empty: none
        self.shared = any(divided)
        self.loop = (stages, self.shared)  # what all loops of one circular buffer have in common
        self.full, self.empty = self._name("full"), self._name("empty")

    def _name(self, sort: str) -> Name:
        return Name(sort, self.stem, copy=self.number)

    def stage(self, role: str) -> Expr:
        """The current stage of a role. role: "read" or "write"."""
        return to.Element(self._name(f"{role}_stage")) if self.stages > 1 else Number(0)

    def parity(self, role: str) -> to.Element:
        """The parity of the phase for which a role waits."""
        return to.Element(self._name(f"{role}_parity"))

    def freed(self, stage: Expr) -> to.Arrive:
        """Releases a stage to the producers of all blocks that copy to it."""
        return to.Arrive(self.empty, stage, warps=True, everywhere=self.shared)

    def begun(self, role: str, parity: int) -> list[to.Each]:
        """Initialises a role's stage and parity."""
        stage = [to.Each(self._name(f"{role}_stage"), Number(0))] if self.stages > 1 else []
        return [*stage, to.Each(self._name(f"{role}_parity"), Number(parity))]

    def next(self, role: str) -> list[to.Each]:
        """Advances a role to the next stage; the parity changes with each round."""
        parity = self.parity(role)
        other: Expr = Apply("sub", (Number(1), parity))
        if self.stages == 1:
            return [to.Each(parity.name, other)]
        last = of.Compute("eq", (self.stage(role), Number(self.stages - 1)))
        flipped = to.Each(parity.name, of.Compute("where", (last, other, parity)))
        return [flipped, advanced(self._name(f"{role}_stage"), self.stages)]

    def after(self, role: str, last: Expr) -> tuple[tuple[to.Each, ...], Expr, Expr]:
        """Statements that compute the next stage and its parity, or the current ones where `last`
        holds; the stage; and the parity."""
        stage, parity = (to.Element(self._name(f"ahead_{what}")) for what in ("stage", "parity"))
        here = self.stage(role), self.parity(role)
        first = of.Compute("eq", (here[0], Number(self.stages - 1)))
        next_stage = of.Compute("where", (first, Number(0), Apply("add", (here[0], Number(1)))))
        flipped = of.Compute("where", (first, Apply("sub", (Number(1), here[1])), here[1]))
        made = (
            to.Each(stage.name, of.Compute("where", (last, here[0], next_stage))),
            to.Each(parity.name, of.Compute("where", (last, here[1], flipped))),
        )
        return made, stage, parity

    def before(self, role: str) -> Expr:
        """The stage before a role's current one."""
        stage = self.stage(role)
        first = of.Compute("eq", (stage, Number(0)))
        less = Apply("sub", (stage, Number(1)))
        return of.Compute("where", (first, Number(self.stages - 1), less))
