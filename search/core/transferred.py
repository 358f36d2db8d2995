"""A result of another machine or of an earlier run for the same kernel: a seed for a search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Transferred:
    """An elite of another search."""

    target: str
    backend: str
    variant: str
    schedule: str
    # Its time at the sizes of that search, of kind `time_kind`. It is never compared with times of
    # this search.
    us: float
    time_kind: str
    run: str = ""  # the run that found it
    # The source, emitted by that backend or edited; empty: unknown.
    source: str = ""
    edited: bool = False  # whether the source was edited by hand or by a model
