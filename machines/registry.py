"""The registry of machine classes: reads the table of a target file as a machine of its class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ir.errors import KernelError
from ir.machine import Machine, MachineClass
from machines.fields import faults
from machines.gpu.gpu import GPU
from machines.table import GUIDE, machine
from machines.tiles.tiles import TILES

CLASSES: Mapping[str, MachineClass] = {one.name: one for one in (TILES, GPU)}


def read(table: Mapping[str, Any], where: str = "") -> Machine:
    """A machine from the table of a target file. Raises KernelError, within `where`, at the first
    field that is missing, wrong, or inconsistent with the machine's class."""
    found = machine(table, CLASSES, where)
    wanted = found.model.name == GPU.name
    if wanted != ("register" in found.spaces):
        what = "is missing" if wanted else "is given"
        faults.refuse(
            KernelError(
                f"field `spaces.register` {what}, and `class` is {found.model.name!r}",
                where=where,
                allowed=f"`spaces.register` where `class` is {GPU.name!r}, and only there",
                hint=GUIDE,
            ),
            of_field=True,
        )
    try:
        found.model.check(found)
    except faults.Unchecked:
        pass
    except KernelError as error:
        raise error.within(where) from None
    return found
