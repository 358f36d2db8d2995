"""A contender that other processes time too."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.entrant import Entrant
from benchmarks.shapes import Row
from ir.spec import Spec


@dataclass(frozen=True, slots=True)
class RaceJob:
    """Our kernel of a row, or one of its baselines."""

    row: Row
    spec: Spec
    entrant: Entrant | None = None
    name: str = ""  # Name of a baseline, if there is no entrant.
