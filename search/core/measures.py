"""Measures: the coordinates of a candidate in the archive, from the figures of its evaluation.

`memory`, `algorithm` and `synchronisation` are KernelFoundry's axes (arXiv 2603.12440). They are
computed from what a loop nest does (`ir/estimate/kernel_features.py`), not from its source text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ir.errors import KernelError
from ir.estimate.kernel_features import BUSY
from ir.machine import Machine

MOSTLY = 0.5  # a kernel belongs to a kind from this share on
KINDS = (1, 2, 3)  # borders of a measure whose values are bin numbers

Cell = tuple[int, ...]
Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Measure:
    """One axis of the archive."""

    name: str
    title: str
    # computed from the candidate's figures and the machine
    value: Callable[[Figures, Machine], float]
    # Ascending. The bin is the number of borders that are at most the value.
    borders: tuple[float, ...]
    labels: tuple[str, ...]  # of the bins: one more than the borders

    def bin(self, figures: Figures, machine: Machine) -> int:
        """The bin of a candidate, counted from 0."""
        return bisect_right(self.borders, self.value(figures, machine))


def _on_chip(figures: Figures, machine: Machine) -> float:
    return figures.get("on_chip_bytes", 0.0) / machine.on_chip_bytes


def _traffic(figures: Figures, machine: Machine) -> float:
    """Bytes moved, over the bytes of inputs and outputs; 1 if nothing is moved twice."""
    return figures.get("moved_bytes", 0.0) / max(1.0, figures.get("least_bytes", 1.0))


def _launches(figures: Figures, machine: Machine) -> float:
    return figures.get("launches", 1.0)


def _waves(figures: Figures, machine: Machine) -> float:
    return figures.get("tiles", 1.0) / machine.parallel


def _intensity(figures: Figures, machine: Machine) -> float:
    return figures.get("operations", 0.0) / max(1.0, figures.get("moved_bytes", 1.0))


def _bound(figures: Figures, machine: Machine) -> float:
    """0 if nothing is busy for half of the time; else 1 + the position of the busiest in `BUSY`."""
    shares = [figures.get(f"busy_{name}", 0.0) for name in BUSY]
    return 1.0 + shares.index(max(shares)) if max(shares) >= MOSTLY else 0.0


def _memory(figures: Figures, machine: Machine) -> float:
    if figures.get("reused", 0.0) >= MOSTLY:
        return 3.0 if figures.get("ahead", 0.0) >= MOSTLY else 2.0
    return 1.0 if figures.get("coalesced", 1.0) >= MOSTLY else 0.0


def _algorithm(figures: Figures, machine: Machine) -> float:
    if figures.get("passes", 1.0) > 1:
        return 0.0
    if figures.get("matrix_share", 0.0) >= MOSTLY:
        return 3.0
    return 2.0 if figures.get("carried", 0.0) else 1.0


def _synchronisation(figures: Figures, machine: Machine) -> float:
    found = [n for n in ("barriers", "collectives", "atomics") if figures.get(n, 0.0)]
    if len(found) < 2:
        return 2.0 if found == ["collectives"] else float(len(found))
    return 3.0


MEASURES = {
    m.name: m
    for m in (
        Measure(
            "on_chip",
            "on-chip memory used",
            _on_chip,
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
        Measure(
            "intensity",
            "operations for each byte moved",
            _intensity,
            (1.0, 8.0, 64.0),
            ("below 1", "below 8", "below 64", "64 and more"),
        ),
        Measure(
            "bound",
            "what bounds it",
            _bound,
            KINDS,
            ("launches and waiting", "memory", "vector units", "matrix unit"),
        ),
        Measure(
            "memory",
            "how it goes about memory",
            _memory,
            KINDS,
            ("naive", "coalesced", "tiled on chip", "tiled and prefetched"),
        ),
        Measure(
            "algorithm",
            "how it goes over its data",
            _algorithm,
            KINDS,
            ("in several passes", "fused", "in one pass, tile by tile", "on the matrix unit"),
        ),
        Measure(
            "synchronisation",
            "where programs or threads meet",
            _synchronisation,
            KINDS,
            ("nowhere", "at barriers or in memory", "in reductions", "at several levels"),
        ),
    )
}


def named(names: tuple[str, ...]) -> tuple[Measure, ...]:
    """The measures with these names. Raises KernelError for an unknown name."""
    for name in names:
        if name not in MEASURES:
            raise KernelError(f"no measure `{name}`", allowed=", ".join(MEASURES))
    return tuple(MEASURES[name] for name in names)


def cell(measures: tuple[Measure, ...], figures: Figures, machine: Machine) -> Cell:
    """The cell of the archive for a candidate with these figures."""
    return tuple(m.bin(figures, machine) for m in measures)
