"""Builds the statements that add updates to global memory atomically."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ir.contraction import indices
from ir.lower.launches import Tiling
from ir.lower.scope import Scope
from ir.nest.nest import Map, Slice, Store, Tile, Value
from ir.spec import Cast, Equation, Expr, Index, Number, Read
from ir.variant.atomic import updated


class Demand(Protocol):
    """What scatters need from the program that they are part of."""

    tilings: Mapping[str, Tiling]
    values: dict[str, Value]
    top: Scope
    grid: Scope

    def needed(self, indices: tuple[str, ...]) -> set[str]:
        """Those of the indices that have a tile origin."""

    def stored_dtype(self, name: str) -> str:
        """The dtype that a stored tensor has in global memory."""

    def new(
        self, name: str, tensor: str, dtype: str, indices: tuple[str, ...], stages: int = 0
    ) -> Value:
        """A new value over some indices."""

    def expression(self, expr: Expr, scope: Scope) -> Expr:
        """The expression over tiles that are available in the scope."""

    def rows(self, tensor: str, position: Expr, scope: Scope) -> Tile:
        """A tile of the positions along one dimension of a tensor."""

    def touch(self, tensor: str) -> None:
        """Records that the launch uses a global tensor."""


def add_updates(program: Demand, equation: Equation, scope: Scope) -> None:
    """Adds the updates of a scatter to its target, in the scope where all their indices have
    origins.

    Each tile of updates is added once. Along a grid index that the updates lack, only the first
    tile adds them.
    """
    names = updated(equation)
    home = scope.home(program.needed(names)) or scope
    # Every thread block runs the prologue, so updates there would be added many times.
    home = program.grid if home is program.top else home
    value = _value(program, equation, names, home)
    region = tuple(_slice(program, equation.target, p, home) for p in equation.at)
    missing = tuple(sorted(program.grid.binds - set(names)))
    home.statements.append(Store(equation.target, region, value, missing, reduction="sum"))
    program.touch(equation.target)


def _value(program: Demand, equation: Equation, names: tuple[str, ...], home: Scope) -> str:
    """The value that holds the updates, with an axis for each of their indices."""
    name = equation.target
    dtype = program.stored_dtype(name)
    found = program.expression(equation.value, home)
    if isinstance(found, Tile) and not found.windows and not found.shifted:
        held = program.values[found.value]
        if held.dtype == dtype and set(held.names) == set(names):
            return held.name
    value = program.new(f"{name}_add", name, dtype, names, stages=1)
    home.statements.append(Map(value.name, Cast(dtype, found)))
    return value.name


def _slice(program: Demand, tensor: str, position: Expr, home: Scope) -> Slice:
    """Where the updates go along one dimension: at an index, or at positions that a value holds."""
    free = tuple(i for i in program.tilings if i in indices(position))
    if isinstance(position, Index):
        return Slice(position.name, ((position.name, 1),), Number(0))
    if not free and not any(isinstance(n, Read) for n in position.walk()):
        return Slice(None, (), position)
    rows = program.rows(tensor, position, home)
    return Slice(free[0] if free else None, tuple((i, 1) for i in free), Number(0), rows=rows)
