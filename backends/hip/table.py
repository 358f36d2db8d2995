"""The table `[hip]` of a target file: the architecture to compile for."""

from __future__ import annotations

from dataclasses import replace

from ir.errors import KernelError
from ir.machine import Machine
from machines.fields.fields import GUIDE, Checked, Kind, words

ARCHITECTURES = {"gfx942": "mfma_cdna3", "gfx950": "mfma_cdna4"}  # with their matrix instructions
RENDERED = ("evict_first",)  # cache hints in kernel.h
FIELDS = {
    "arch": Kind(f"one of {', '.join(ARCHITECTURES)}", lambda v: v in ARCHITECTURES),
    "cache_hints": replace(words(RENDERED), optional=True),
}


def check(machine: Machine) -> None:
    """Raises KernelError at the first field that is invalid, or inconsistent with the general
    part."""
    found = Checked(machine, "hip", FIELDS)
    if machine.warp != 64:
        raise KernelError(
            f"field `levels.warp` is {machine.warp}, for backend 'hip'", allowed="64", hint=GUIDE
        )
    if "gpu" not in machine.details:
        raise KernelError("field `gpu` is missing", allowed="a table", hint=GUIDE)
    family, arch = ARCHITECTURES[found.table["arch"]], found.table["arch"]
    others = set(ARCHITECTURES.values()) - {family}
    for named in machine.details["gpu"].get("instructions", ()):
        if named in others:
            raise KernelError(
                f"field `gpu.instructions` has '{named}', and `hip.arch` is {arch}",
                allowed=family,
                hint=GUIDE,
            )
