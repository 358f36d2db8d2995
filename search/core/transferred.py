"""What another machine, or an earlier run, found for the same kernel: a seed for a search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Transferred:
    """An elite of another search.

    us: its time there, at that search's sizes, had in the way `time_kind` says: never compared
    with a time here.  source: as that backend emitted it, or as it was edited; empty where it
    is not known.  edited: whether it was edited.  run: where it was found.
    """

    target: str
    backend: str
    variant: str
    schedule: str
    us: float
    time_kind: str
    run: str = ""
    source: str = ""
    edited: bool = False
