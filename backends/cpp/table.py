"""The table `[cpp]` of a target file: it has no fields, as everything is read off the machine."""

from __future__ import annotations

from ir.machine import Machine
from machines.fields.fields import Checked


def check(machine: Machine) -> None:
    """KernelError where the table has a field; it may be left out."""
    if "cpp" in machine.details:
        Checked(machine, "cpp", {})
