"""Finds the kernel that an argument of a command names: a library kernel or a file."""

from __future__ import annotations

from pathlib import Path

from ir.errors import KernelError
from ir.parse.parse import parse_workload
from ir.source import near
from ir.workload import LIBRARY, Workload
from search.cli.files import text_of

ENDING = ".kir"


def named(kernel: str, folder: Path = Path()) -> Workload:
    """Returns a library kernel, or the kernel in a file below a folder. Raises KernelError if there
    is none."""
    if kernel.endswith(ENDING) or "/" in kernel:
        return parse_workload(text_of(folder / kernel, "--kernel", ENDING), kernel)
    names = sorted(file.stem for file in LIBRARY.glob("*" + ENDING))
    if kernel not in names:
        raise KernelError(
            f"there is no kernel `{kernel}`",
            where="--kernel",
            allowed=", ".join(names),
            hint=near(kernel, names, f"or give the path of a {ENDING} file"),
        )
    return parse_workload((LIBRARY / (kernel + ENDING)).read_text(encoding="utf-8"), kernel)
