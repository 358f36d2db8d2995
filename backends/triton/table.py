"""The table `[triton]` of a target file: the compiler's target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ir.errors import KernelError
from ir.machine import Machine
from machines.fields import faults
from machines.fields.fields import GUIDE, Checked, Kind, one_of
from machines.gpu.facts import facts

FIELDS = {
    "backend": one_of("cuda", "hip"),
    "arch": Kind(
        "a number for cuda (90), a text for hip ('gfx942')", lambda v: type(v) in (int, str)
    ),
}


def table(machine: Machine) -> Mapping[str, Any]:
    """The chip's facts, and the compiler's target."""
    return {**facts(machine), **machine.details["triton"]}


def check(machine: Machine) -> None:
    """Raises KernelError at the first field that is wrong or contradicts the general part."""
    found = Checked(machine, "triton", FIELDS)
    backend, arch = found.table["backend"], found.table["arch"]
    if not (arch > 0 if isinstance(arch, int) else arch.startswith("gfx")) or (
        isinstance(arch, int) != (backend == "cuda")
    ):
        found.refuse("arch", f"is {arch!r}, for backend {backend!r}", FIELDS["arch"].allowed)
    warps = (32,) if backend == "cuda" else (32, 64)
    if machine.warp not in warps:
        faults.refuse(
            KernelError(
                f"field `levels.warp` is {machine.warp}, for backend {backend!r}",
                allowed=" or ".join(map(str, warps)),
                hint=GUIDE,
            )
        )
    if "gpu" not in machine.details:
        faults.refuse(KernelError("field `gpu` is missing", allowed="a table", hint=GUIDE))
    if "matrix" in machine.units and any(n & (n - 1) for n in machine.units["matrix"].step):
        faults.refuse(
            KernelError(
                f"field `units.matrix.step` is {list(machine.units['matrix'].step)}",
                allowed="powers of two, as blocks of Triton are",
                hint=GUIDE,
            )
        )
