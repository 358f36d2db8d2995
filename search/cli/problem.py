"""A problem: one kernel for one target, with all that a search for it needs."""

from __future__ import annotations

from dataclasses import dataclass

from backends.backend import Backend
from ir.machine import Machine
from ir.workload import Sizes
from search.core.settings import Settings


@dataclass(frozen=True, slots=True)
class Problem:
    """tune: the sizes that the kernel's own file names.  ours: the target is the project's, so
    that a record for it can be tested later.  library: the kernel is the library's.  run: a stored run that goes on; empty for a new
    one.  replays: a stored run whose models' answers are given again; empty for none."""

    settings: Settings
    machine: Machine
    backend: Backend
    tune: Sizes
    ours: bool
    library: bool = False
    run: str = ""
    replays: str = ""

    @property
    def title(self) -> str:
        """For a person."""
        return f"{self.settings.kernel} on {self.settings.target}"
