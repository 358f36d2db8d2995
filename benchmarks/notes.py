"""Notes: a row of a result file in progress, in a file that survives its process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backends.backend import BackendError
from ir.errors import KernelError

ELSEWHERE = ("build", "run")  # Stages that compilers and interpreters do.
MOST_WORDS = 400  # Limit of a reason, in characters.


class Notes:
    """A row in progress: the known part of an attempt, with its current stage.

    clock: times all stages. By default each stage has a suitable clock.
    """

    def __init__(self, file: Path, clock: Callable[[], float] | None = None):
        self.file, self.clock = file, clock
        self.row: dict[str, Any] = {"correct": False}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Records a stage and how long it takes, in seconds.

        It uses the process's own time, which other work on the machine does not lengthen, or the
        wall clock if other processes do the work.
        """
        self.note(stage=name)
        clock = self.clock or (time.perf_counter if name in ELSEWHERE else time.process_time)
        began = clock()
        yield
        self.note(**{f"{name}_s": round(clock() - began, 3)})

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Makes every exception the row's reason and suppresses it, inside the context."""
        try:
            yield
        except BackendError as error:
            self.failed(f"{error.stage}: {error.reason}")
        except KernelError as error:
            self.failed(str(error))
        except Exception as error:  # Problems and kernels are foreign code.
            self.failed(f"{type(error).__name__}: {error}")

    def failed(self, reason: str) -> None:
        self.note(correct=False, reason=reason[:MOST_WORDS])

    def note(self, **facts: Any) -> None:
        """Adds facts to the row. The file always holds a whole row, because its process may be
        killed."""
        self.row |= facts
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.row), encoding="utf-8")
        new.replace(self.file)
