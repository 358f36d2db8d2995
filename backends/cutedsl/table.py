"""The table `[cutedsl]` of a target file: the architecture that the compiler compiles for."""

from __future__ import annotations

from ir.errors import KernelError
from ir.machine import Machine
from machines.fields import faults
from machines.fields.fields import GUIDE, Checked, Kind

LEAST = 90  # the first with boxes and signals
FIELDS = {
    "arch": Kind(
        f'a number from {LEAST} on with an "a", as text ("90a")', lambda v: number(v) >= LEAST
    )
}


def number(arch: object) -> int:
    """The number of an architecture; 0 of what is none."""
    text = arch[:-1] if isinstance(arch, str) and arch.endswith("a") else ""
    return int(text) if text.isdigit() else 0


def check(machine: Machine) -> None:
    """KernelError at the first field that is wrong, or that the general part contradicts."""
    Checked(machine, "cutedsl", FIELDS)
    if machine.warp != 32:
        faults.refuse(
            KernelError(
                f"field `levels.warp` is {machine.warp}, for backend 'cutedsl'",
                allowed="32",
                hint=GUIDE,
            )
        )
    if "gpu" not in machine.details:
        faults.refuse(KernelError("field `gpu` is missing", allowed="a table", hint=GUIDE))
