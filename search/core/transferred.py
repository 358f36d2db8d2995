"""What another machine, or an earlier run, found for the same kernel: a seed for a search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Transferred:
    """An elite of another search."""

    target: str
    backend: str
    variant: str
    schedule: str
    # Its time at the sizes of that search, obtained as `time_kind` says; never compared with a
    # time here.
    us: float
    time_kind: str
    run: str = ""  # that found it
    # Emitted by that backend, or edited; empty: unknown.
    source: str = ""
    edited: bool = False  # freely
