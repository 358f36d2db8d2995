"""The archive: a grid of cells. Each cell keeps the fittest candidate whose measures fall into
it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from search.core.candidate import Candidate
from search.core.evaluation import Evaluation
from search.core.measures import Cell


class Added(Enum):
    """The effect of adding a candidate."""

    NEW = "the cell was empty"
    BETTER = "the cell's elite was replaced"
    REFUSED = "the cell's elite stays"


@dataclass(frozen=True, slots=True)
class Elite:
    """The best candidate of a cell."""

    cell: Cell
    candidate: Candidate
    evaluation: Evaluation
    fitness: float


class Archive:
    """A grid with at most one elite in each cell. At equal fitness the earlier elite stays.

    shape: the number of bins of each measure.
    """

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape
        self._elites: dict[Cell, Elite] = {}

    def add(self, elite: Elite) -> Added:
        """Adds a candidate if its cell is empty or its fitness is higher than the elite's."""
        inside = len(elite.cell) == len(self.shape) and all(
            0 <= at < bins for at, bins in zip(elite.cell, self.shape, strict=True)
        )
        assert inside, f"cell {elite.cell} is outside a grid of {self.shape}"
        holder = self._elites.get(elite.cell)
        if holder is not None and elite.fitness <= holder.fitness:
            return Added.REFUSED
        self._elites[elite.cell] = elite
        return Added.NEW if holder is None else Added.BETTER

    def __len__(self) -> int:
        return len(self._elites)

    def __iter__(self) -> Iterator[Elite]:
        """The elites in ascending order of their cells."""
        return (self._elites[cell] for cell in sorted(self._elites))

    def __getitem__(self, cell: Cell) -> Elite:
        return self._elites[cell]

    def best(self) -> Elite | None:
        """The fittest elite; at equal fitness the one in the lowest cell. None if the archive is
        empty."""
        return max(self, key=lambda e: e.fitness, default=None)

    def coverage(self) -> float:
        """The share of cells that have an elite, 0 to 1."""
        cells = 1
        for bins in self.shape:
            cells *= bins
        return len(self._elites) / cells
