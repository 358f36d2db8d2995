"""The kernels of the ablation: the library's, and a testbed whose seed schedules leave headroom."""

from __future__ import annotations

from pathlib import Path

from ir.errors import KernelError
from ir.parse.parse import parse_workload
from ir.source import near
from ir.workload import Workload
from search.cli.suite import LIBRARY

TESTBED = Path(__file__).parent / "testbed"
GROUP = "testbed"  # The name of all its kernels.
ENDING = ".kir"


def testbed_kernels() -> tuple[str, ...]:
    """Returns the names of the testbed's kernels."""
    return tuple(sorted(file.stem for file in TESTBED.glob(f"*{ENDING}")))


def named(kernel: str) -> Workload:
    """Returns a kernel of the testbed or of the library. Raises KernelError if there is none."""
    for folder in (TESTBED, LIBRARY):
        file = folder / f"{kernel}{ENDING}"
        if file.is_file():
            return parse_workload(file.read_text(encoding="utf-8"), kernel)
    names = (*testbed_kernels(), *sorted(file.stem for file in LIBRARY.glob(f"*{ENDING}")))
    raise KernelError(
        f"no kernel `{kernel}`",
        where="--kernels",
        allowed=", ".join((GROUP, *names)),
        hint=near(kernel, names),
    )


def chosen(words: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the kernels that a command names, each once. `testbed` means all its kernels."""
    found = (name for word in words for name in (testbed_kernels() if word == GROUP else (word,)))
    return tuple(dict.fromkeys(found))
