"""The result file of the device suite, which parts of the suite on several GPUs write together."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.results import save
from tests.device.commands import ROOT

ALIKE = ("command", "date", "machine", "driver", "versions")  # in all parts of a file


def write(file: Path, rows: Sequence[Mapping[str, Any]], head: Mapping[str, Any]) -> None:
    """Adds to what other parts of the suite have written this day on this machine."""
    file = file if file.is_absolute() else ROOT / file
    mine = {row["test"]: row for row in json.loads(json.dumps(rows, default=str))}
    with _alone_in(file.parent):
        all_rows = list((_other_parts(file, head) | mine).values())
        outcomes = ("passed", "failed", "skipped")
        counts = {o: sum(row["outcome"] == o for row in all_rows) for o in outcomes}
        save(file, {**head, **counts, "rows": all_rows})


def _other_parts(file: Path, head: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows of a result file by their tests, where it is of the same day, machine and versions."""
    if not file.is_file():
        return {}
    found = json.loads(file.read_text(encoding="utf-8"))
    alike = all(found.get(name) == head.get(name) for name in ALIKE)
    return {row["test"]: row for row in found["rows"]} if alike else {}


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Within it no other part of the suite writes there."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
