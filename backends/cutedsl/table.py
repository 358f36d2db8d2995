"""The table `[cutedsl]` of a target file: the architecture that the compiler compiles for."""

from backends.gpu.cubins.table import check_table, number
from ir.machine import Machine
from machines.fields.fields import Kind

LEAST = 90  # the first with TMA and transaction barriers
FIELDS = {
    "arch": Kind(
        f'a number from {LEAST} on with an "a", as text ("90a")', lambda v: number(v) >= LEAST
    )
}


def check(machine: Machine) -> None:
    """Raises KernelError at the first field that is wrong, or that contradicts the general part."""
    check_table(machine, "cutedsl", FIELDS)
