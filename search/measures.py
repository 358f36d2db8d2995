"""Measures: where a candidate sits in the archive, from the figures of its evaluation."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ir.errors import KernelError
from ir.machine import Machine

Cell = tuple[int, ...]
Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Measure:
    """One axis of the archive.

    value: of a candidate, from its figures and the machine.  borders: ascending; the bin is the
    number of borders at or below the value.  labels: of the bins, one more than the borders.
    """

    name: str
    title: str
    value: Callable[[Figures, Machine], float]
    borders: tuple[float, ...]
    labels: tuple[str, ...]

    def bin(self, figures: Figures, machine: Machine) -> int:
        """The bin of a candidate, from 0."""
        return bisect_right(self.borders, self.value(figures, machine))


def _scratch(figures: Figures, machine: Machine) -> float:
    return figures.get("scratch_bytes", 0.0) / machine.scratch_bytes


def _traffic(figures: Figures, machine: Machine) -> float:
    """Bytes moved over the bytes of inputs and outputs: 1 where nothing is moved twice."""
    return figures.get("moved_bytes", 0.0) / max(1.0, figures.get("least_bytes", 1.0))


def _launches(figures: Figures, machine: Machine) -> float:
    return figures.get("launches", 1.0)


def _waves(figures: Figures, machine: Machine) -> float:
    return figures.get("tiles", 1.0) / machine.parallel


MEASURES = {
    m.name: m
    for m in (
        Measure(
            "scratch",
            "scratch used",
            _scratch,
            (0.25, 0.5, 0.75),
            ("to 25%", "to 50%", "to 75%", "to 100%"),
        ),
        Measure(
            "traffic",
            "bytes moved, of the least possible",
            _traffic,
            (1.25, 2.0, 4.0),
            ("below 1.25", "below 2", "below 4", "4 and above"),
        ),
        Measure("launches", "launches", _launches, (2, 3, 5), ("1", "2", "3 or 4", "5 or more")),
        Measure(
            "waves",
            "grid tiles for each that runs at once",
            _waves,
            (1.0, 2.0, 8.0),
            ("below 1", "below 2", "below 8", "8 and more"),
        ),
    )
}


def named(names: tuple[str, ...]) -> tuple[Measure, ...]:
    """The measures of these names; KernelError where one is not known."""
    for name in names:
        if name not in MEASURES:
            raise KernelError(f"no measure `{name}`", allowed=", ".join(MEASURES))
    return tuple(MEASURES[name] for name in names)


def cell(measures: tuple[Measure, ...], figures: Figures, machine: Machine) -> Cell:
    """The cell of the archive where a candidate with these figures belongs."""
    return tuple(m.bin(figures, machine) for m in measures)
