"""The grid of MAP-Elites: an archive of `ribs`, filled with all outcomes in their order."""

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
    """The elite of a cell."""

    key: str
    cell: Cell
    fitness: float  # 1 for the fastest correct candidate, towards 0 for the slowest


@dataclass(frozen=True, slots=True)
class Arrival:
    """A correct candidate, in the order of outcomes."""

    key: str
    cell: Cell
    fitness: float
    before: float  # fitness of the cell's elite before; 0 if it had none
    entered: bool  # whether it became the elite


@dataclass(frozen=True, slots=True)
class Grid:
    """A filled archive."""

    shape: tuple[int, ...]  # number of bins of each measure
    holders: tuple[Holder, ...]
    arrivals: tuple[Arrival, ...]
    failed: frozenset[str]  # keys of failed candidates


def require() -> None:
    """Raises KernelError if the package is not installed."""
    if find_spec(PACKAGE) is None:
        raise KernelError(
            f"package `{PACKAGE}` is not installed; it keeps the archive of this policy",
            where="--policy",
            hint="install it, or choose another policy",
        )


def grid(state: State) -> Grid:
    """The archive of a state. It depends only on the state."""
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
    """Adds a candidate, by its number, to its cell if it is fitter than the elite."""
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
