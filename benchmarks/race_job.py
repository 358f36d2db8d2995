"""A contender whose time another process takes, too."""

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
    name: str = ""  # of a baseline, where there is no entrant
