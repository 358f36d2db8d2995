"""The table `[null]` of a target file."""

from __future__ import annotations

from dataclasses import replace

from ir.machine import Machine
from machines.fields.fields import AMOUNT, Checked

_OPTIONAL = replace(AMOUNT, optional=True)


def check(machine: Machine) -> None:
    """Raises KernelError if the table is invalid. It is optional."""
    if "null" in machine.details:
        Checked(machine, "null", {"launch_us": _OPTIONAL, "statement_us": _OPTIONAL})
