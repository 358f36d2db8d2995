"""The workshop: builds the entrants of many rows in parallel processes.

The processes are forked at once. Open a workshop before the device, because a fork of a process
that has opened a device cannot use it. Rows are built while others race.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

from backends.backend import Backend, BackendError
from benchmarks.entrant import Entrant, choose, enter
from benchmarks.shapes import Row
from ir.errors import KernelError
from ir.machine import Machine
from ir.spec import Spec

MOST = 8  # Limit of processes.


class Workshop:
    """Builds the entrants of some rows. `entrant` waits for one; `close` cancels the rest."""

    def __init__(
        self,
        chosen: Iterable[tuple[Row, Spec]],
        machine: Machine,
        backend: Backend,
        folder: Path,
        schedules: str = "",
    ):
        workers = max(1, min(MOST, (os.cpu_count() or 1) - 2))
        fork = multiprocessing.get_context("fork")
        self.pool = ProcessPoolExecutor(workers, fork)
        self.jobs: dict[str, Future[Entrant | str]] = {
            row.key: self.pool.submit(
                built, row, spec, machine, backend, folder / row.key, schedules
            )
            for row, spec in chosen
        }

    def entrant(self, row: Row) -> Entrant | str:
        """Returns the entrant of a row, or why there is none."""
        try:
            return self.jobs[row.key].result()
        except Exception as error:  # From a process that died, or a value that could not be sent.
            return f"{type(error).__name__}: {error}"

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


def built(
    row: Row, spec: Spec, machine: Machine, backend: Backend, folder: Path, schedules: str = ""
) -> Entrant | str:
    """Returns the entrant of a row, or why there is none. schedules: as in `choose`."""
    try:
        choice = choose(row, spec, machine, schedules=schedules)
        return enter(choice, backend, machine, folder)
    except (KernelError, BackendError) as error:
        return f"{type(error).__name__}: {error}"
