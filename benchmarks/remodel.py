"""Models the rows of a ranking again with the current models, without a device.

Each row's schedule is lowered again at the row's shape. Builds and measurements stay. A row keeps
its old values, and has `not_remodelled`, if its schedule no longer lowers, or lowers to other
launches than were built.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, cast

from backends.backend import ModelsTime
from backends.registry import backend, served_by
from benchmarks.draws import spec_of
from benchmarks.rank_table import Row, write
from ir.errors import KernelError
from ir.estimate.cost import roofline
from ir.estimate.estimate import estimate
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.schedule import parse_schedule

BEHIND = ("command", "summary", "rows")  # Keys that are rewritten.


def remodel(file: Path, machine: Machine, command: str) -> list[Row]:
    """Renews a result file and returns its rows. Raises KernelError if there is no file.

    command: the command of the renewal. The head of the file names it next to the command that
    measured.
    """
    if not file.is_file():
        raise KernelError(f"there is no file `{file}` to model again")
    table = json.loads(file.read_text(encoding="utf-8"))
    rows = [remodelled(row, machine) for row in table["rows"]]
    measuring = table.get("measured_by", table.get("command"))
    head = {"measured_by": measuring, "modelled_by": command}
    head |= {k: v for k, v in table.items() if k not in (*BEHIND, *head, "modelled_on")}
    write(file, head | {"modelled_on": date.today().isoformat()}, rows)
    return rows


def remodelled(row: Row, machine: Machine) -> Row:
    """Returns the row with new estimates, and with new terms if it was built."""
    kept = {k: v for k, v in row.items() if k != "not_remodelled"}
    sizes: Mapping[str, int] = row["shape"]
    try:
        spec = spec_of(row["kernel"])
        language = backend(row["backend"])
        models = cast(ModelsTime, language)
        machine = served_by(machine, language)
        nest = lower(spec, parse_schedule(row["schedule_text"]), machine, sizes)
    except KernelError as error:
        return kept | {"not_remodelled": str(error).splitlines()[0]}
    new: dict[str, Any] = {
        "guessed_us": models.model(nest, machine, sizes, {}).us,
        "estimated_us": estimate(nest, machine, sizes),
        "roofline_us": roofline(spec, machine, sizes).us,
    }
    if row.get("figures"):
        timing = models.model(nest, machine, sizes, row["figures"])
        if not _built_so(nest, row["figures"], timing.figures):
            return kept | {"not_remodelled": "its nest is not the one that was built"}
        new |= {"modelled_us": timing.us, "terms": dict(timing.figures)}
        if row["time_kind"] == "modelled":
            new["us"] = timing.us
    return kept | new


def _built_so(nest: LoopNest, built: Mapping[str, float], terms: Mapping[str, float]) -> bool:
    """Whether the launches, and their program counts, are those that were built."""
    known = {name.rpartition(".")[0] for name in built if name.endswith(".registers")}
    if known != {launch.name for launch in nest.launches}:
        return False
    return all(
        launch.resident or built.get(f"{launch.name}.grid", n) == n
        for launch in nest.launches
        for n in [terms[f"{launch.name}.programs"]]
    )
