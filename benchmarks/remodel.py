"""Models the rows of a ranking again, as the models are now; needs no device.

Each row's schedule is lowered again at the row's shape. What was built and measured stays; a row
whose schedule no longer lowers, or lowers to other launches than were built, keeps its old values
too, and says so as `not_remodelled`.
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

BEHIND = ("command", "summary", "rows")  # of a head: what is written anew


def remodel(file: Path, machine: Machine, command: str) -> list[Row]:
    """Renews a result file. command: that asked for it, which the file's head names beside the
    command that measured. Returns the rows; KernelError where there is no file."""
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
    """The row with new guesses, and new terms where it was built."""
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
    """Whether the launches are those that were built, with as many programs."""
    known = {name.rpartition(".")[0] for name in built if name.endswith(".registers")}
    if known != {launch.name for launch in nest.launches}:
        return False
    return all(
        launch.resident or built.get(f"{launch.name}.grid", n) == n
        for launch in nest.launches
        for n in [terms[f"{launch.name}.programs"]]
    )
