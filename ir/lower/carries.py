"""Loop-carried values: what each step of a recurrence passes to the next one within a thread block.

before: a launch for each t: h[t, d] = a[t, d] * pad(h[t - 1, d], 0.0)
after:  one launch: h_before = 0; for t in order: h = a * h_before; h_before = h

Legal if each read of the previous step uses the indices at which its tensor is computed, so that no
thread block needs tiles of another. Loops over those indices must enclose the loop over the steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

from ir.errors import KernelError
from ir.lower.scope import Scope
from ir.nest.nest import Fill, Map, Tile, Value
from ir.recurrence import Recurrence
from ir.spec import FLOATS, Cast, Equation, Facts, Index, Read


@dataclass(frozen=True, slots=True)
class _Carry:
    """A value that holds a tensor's tile of the previous step."""

    value: str
    tensor: str
    scope: Scope  # the loop over the steps


class Demand(Protocol):
    """What `Carries` needs from the program that it is part of."""

    facts: Facts
    equations: dict[str, Equation]
    values: dict[str, Value]

    def needed(self, indices: tuple[str, ...]) -> set[str]:
        """Those of the indices that have a tile origin."""

    def tensor(self, name: str, scope: Scope) -> str:
        """The value that holds a tensor of this launch."""

    def new(
        self, name: str, tensor: str, dtype: str, indices: tuple[str, ...], stages: int = 0
    ) -> Value:
        """A new value over some indices."""


class Carries:
    """The loop-carried values of one launch."""

    def __init__(self, program: Demand):
        self.program = program
        self._made: list[tuple[tuple[str, float | None], _Carry]] = []

    def read(self, read: Read, step: Recurrence, scope: Scope) -> Tile:
        """The tile of the previous step, which is initialised before the loop over the steps."""
        steps = next((s for s in scope.chain() if step.index in s.binds), None)
        if steps is None:
            raise KernelError(
                f"`{read.tensor}` is needed outside the loop over its steps",
                place=read.place,
                hint=f"drop carry({read.tensor})",
            )
        key = (read.tensor, read.pad)
        for other, carry in self._made:
            if other == key and carry.scope is steps:
                return Tile(carry.value)
        made = self._new(read, step, steps)
        self._made.append((key, made))
        return Tile(made.value)

    def hand_on(self, scope: Scope) -> None:
        """Ends a step: copies its tiles to the loop-carried values."""
        done: list[_Carry] = []
        # Compute all new tiles before any old one is overwritten, as they can read each other.
        while left := [c for _, c in self._made if c.scope is scope and c not in done]:
            for carry in left:  # computing a tensor can add further carries
                self.program.tensor(carry.tensor, scope)
                done.append(carry)
        for carry in done:
            held = self.program.tensor(carry.tensor, scope)
            dtype = self.program.values[carry.value].dtype
            same = self.program.values[held].dtype == dtype
            scope.statements.append(
                Map(carry.value, Tile(held) if same else Cast(dtype, Tile(held)))
            )

    def _new(self, read: Read, step: Recurrence, steps: Scope) -> _Carry:
        program, equation = self.program, self.program.equations[read.tensor]
        kept = tuple(i for i in equation.indices if i != step.index)
        there = all(
            own == position or own == Index(step.index)
            for own, position in zip(equation.at, read.at, strict=True)
        )
        outside = cast(Scope, steps.parent)  # a loop over steps has a scope around it
        if not there or not program.needed(kept) <= outside.bound:
            raise KernelError(
                f"a program would need `{read.tensor}` of the step before from others: it is read "
                "at other indices than it is computed at, or has a loop of its own in each step",
                place=read.place,
                hint=f"drop carry({read.tensor}), or place its loops on the grid",
            )
        dtype = program.facts.tensors[read.tensor].dtype
        value = program.new(f"{read.tensor}_before", read.tensor, dtype, kept, stages=1)
        first = cast(float, read.pad)  # a recurrence pads the step before its first one
        outside.statements.append(Fill(value.name, first if dtype in FLOATS else int(first)))
        return _Carry(value.name, read.tensor, steps)
