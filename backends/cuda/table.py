"""The table `[cuda]` of a target file: the architecture that NVRTC compiles for."""

from __future__ import annotations

from backends.gpu.cubins import table
from ir.machine import Machine
from machines.fields.fields import Kind

LEAST = 80  # the first with asynchronous copies (cp.async), and with maxima that keep NaN
FIELDS = {
    # "90a": code for this architecture only, with the instructions that no other has.
    "arch": Kind(
        f'a number from {LEAST} on (90), or such a number with an "a" as text ("90a")',
        lambda v: number(v) >= LEAST,
    ),
}


def number(arch: object) -> int:
    """The number of an architecture; 0 if the value is not an architecture."""
    return arch if type(arch) is int else table.number(arch)


def check(machine: Machine) -> None:
    """Raises KernelError at the first field that is wrong, or that contradicts the general part."""
    table.check_table(machine, "cuda", FIELDS)
