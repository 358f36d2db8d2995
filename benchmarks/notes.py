"""Notes: a row of a result file while it is made, in a file that others read when the process is not there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backends.backend import BackendError
from ir.errors import KernelError

ELSEWHERE = ("build", "run")  # stages that compilers and interpreters do
MOST_WORDS = 400  # characters of a reason


class Notes:
    """A row under construction: what a file knows of an attempt, with the stage it is in.

    clock: for how long all stages take; else each has the one that fits it.
    """

    def __init__(self, file: Path, clock: Callable[[], float] | None = None):
        self.file, self.clock = file, clock
        self.row: dict[str, Any] = {"correct": False}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A stage, and how long it takes, in seconds: of this process, which other work on the
        machine does not lengthen, or by the clock where other processes do the stage's work."""
        self.note(stage=name)
        clock = self.clock or (time.perf_counter if name in ELSEWHERE else time.process_time)
        began = clock()
        yield
        self.note(**{f"{name}_s": round(clock() - began, 3)})

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Within it, whatever goes wrong is the row's reason, and goes no further."""
        try:
            yield
        except BackendError as error:
            self.failed(f"{error.stage}: {error.reason}")
        except KernelError as error:
            self.failed(str(error))
        except Exception as error:  # a problem is code of others, and so is a kernel
            self.failed(f"{type(error).__name__}: {error}")

    def failed(self, reason: str) -> None:
        self.note(correct=False, reason=reason[:MOST_WORDS])

    def note(self, **facts: Any) -> None:
        """Adds to the row. The file holds a whole row at any time: its process may be killed."""
        self.row |= facts
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.row), encoding="utf-8")
        new.replace(self.file)
