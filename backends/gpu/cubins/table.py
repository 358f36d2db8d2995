"""The table of a target file for a language that compiles to cubins: its architecture."""

from __future__ import annotations

from collections.abc import Mapping

from ir.errors import KernelError
from ir.machine import Machine
from machines.fields import faults
from machines.fields.fields import GUIDE, Checked, Kind


def number(arch: object) -> int:
    """The number of an architecture, given as text that ends with an "a"; 0 for other values."""
    text = arch[:-1] if isinstance(arch, str) and arch.endswith("a") else ""
    return int(text) if text.isdigit() else 0


def check_table(machine: Machine, name: str, fields: Mapping[str, Kind]) -> None:
    """Raises KernelError at the first field that is wrong or contradicts the general part."""
    Checked(machine, name, fields)
    if machine.warp != 32:
        faults.refuse(
            KernelError(
                f"field `levels.warp` is {machine.warp}, for backend '{name}'",
                allowed="32",
                hint=GUIDE,
            )
        )
    if "gpu" not in machine.details:
        faults.refuse(KernelError("field `gpu` is missing", allowed="a table", hint=GUIDE))
