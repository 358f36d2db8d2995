"""The table `[cuda]` of a target file: the architecture that the compiler compiles for."""

from __future__ import annotations

from ir.errors import KernelError
from ir.machine import Machine
from machines.fields.fields import GUIDE, Checked, Kind

LEAST = 80  # the first with copies that run ahead, and maxima that keep NaN
FIELDS = {
    "arch": Kind(f"a number from {LEAST} on (90)", lambda v: type(v) is int and v >= LEAST),
}


def check(machine: Machine) -> None:
    """KernelError at the first field that is wrong, or that the general part contradicts."""
    Checked(machine, "cuda", FIELDS)
    if machine.warp != 32:
        raise KernelError(
            f"field `levels.warp` is {machine.warp}, for backend 'cuda'", allowed="32", hint=GUIDE
        )
    if "gpu" not in machine.details:
        raise KernelError("field `gpu` is missing", allowed="a table", hint=GUIDE)
