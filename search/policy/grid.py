"""The grid of MAP-Elites: an archive of `ribs`, filled with all that was told, in that order."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from ir.errors import KernelError
from search.core.evaluation import Evaluation
from search.core.measures import Cell, cell
from search.loop.state import State
from search.policy.ranking import standing

PACKAGE = "ribs"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a cell."""

    key: str
    cell: Cell
    fitness: float  # 1 the fastest of all that are correct, towards 0 the slowest


@dataclass(frozen=True, slots=True)
class Arrival:
    """A correct candidate in the order of telling."""

    key: str
    cell: Cell
    fitness: float
    before: float  # how fit the cell's holder was then, 0 where it had none
    entered: bool  # whether it became the holder


@dataclass(frozen=True, slots=True)
class Grid:
    """A filled archive."""

    shape: tuple[int, ...]  # bins of each measure
    holders: tuple[Holder, ...]
    arrivals: tuple[Arrival, ...]
    failed: frozenset[str]  # keys of what was told and is not correct


def require() -> None:
    """KernelError where the package is not installed."""
    if find_spec(PACKAGE) is None:
        raise KernelError(
            f"package `{PACKAGE}` is not installed; it keeps the archive of this policy",
            where="--policy",
            hint="install it, or choose another policy",
        )


def grid(state: State) -> Grid:
    """The archive of a state; with the order of telling it tells the same story every time."""
    require()
    shape = tuple(len(m.labels) for m in state.measures) or (1,)
    fitness = standing(state)
    told = [k for k in state.outcomes if k in fitness and k in state.graph]
    archive = _archive(shape)
    arrivals = [_arrive(archive, n, _cell(state, k), k, fitness[k]) for n, k in enumerate(told)]
    numbers = sorted(int(n) for n in archive.data("solution")[:, 0])
    holders = (arrivals[n] for n in numbers)
    return Grid(
        shape,
        tuple(sorted((Holder(a.key, a.cell, a.fitness) for a in holders), key=lambda h: h.cell)),
        tuple(arrivals),
        frozenset(k for k in state.outcomes if k not in fitness),
    )


def _archive(shape: tuple[int, ...]) -> Any:
    from ribs.archives import GridArchive

    return GridArchive(solution_dim=1, dims=shape, ranges=[(-0.5, n - 0.5) for n in shape])


def _arrive(archive: Any, number: int, at: Cell, key: str, fitness: float) -> Arrival:
    """Lets a candidate, by its number, compete for its cell."""
    occupied, holder = archive.retrieve_single(at)
    before = float(holder["objective"]) if occupied else 0.0
    entered = int(archive.add_single([number], fitness, at)["status"]) > 0
    return Arrival(key, at, fitness, before, entered)


def _cell(state: State, key: str) -> Cell:
    outcome = state.outcomes[key]
    assert isinstance(outcome, Evaluation), f"{key} is not correct"
    if not state.measures or state.machine is None:
        return (0,)
    return cell(state.measures, outcome.figures, state.machine)
