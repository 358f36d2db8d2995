"""Instruction mix: how many instructions of each class a program has, in total and in loops."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

CLASSES = (
    "matrix",
    "load",
    "store",
    "copy_async",
    "barrier",
    "shuffle",
    "special",
    "arithmetic",
    "shared",
    "other",
)


@dataclass(frozen=True, slots=True)
class Code:
    """A compiled program."""

    registers: int  # 32-bit registers per thread, all register files together
    spills: int  # bytes of local memory per thread
    classes: tuple[str, ...]  # the class of each instruction, in order
    loops: tuple[tuple[int, int], ...]  # first and last instruction of each

    def mix(self) -> dict[str, int]:
        """The number of instructions of each class."""
        return _counted(self.classes)

    def loop_mix(self) -> dict[str, int]:
        """The number of instructions of each class that are in a loop."""
        inside = {n for first, last in self.loops for n in range(first, last + 1)}
        return _counted(self.classes[n] for n in inside)


class Classifier:
    """Maps an instruction to its class: that of the first pattern that matches the start of its name."""

    def __init__(self, patterns: Sequence[tuple[str, str]]):
        named = [f"(?P<{name}{n}>{pattern})" for n, (name, pattern) in enumerate(patterns)]
        self.pattern = re.compile("|".join(named))
        self.known: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        if name not in self.known:
            found = self.pattern.match(name)
            group = found.lastgroup if found else None
            self.known[name] = group.rstrip("0123456789") if group else "other"
        return self.known[name]


def _counted(classes: Iterable[str]) -> dict[str, int]:
    counts = dict.fromkeys(CLASSES, 0)
    for name in classes:
        counts[name] += 1
    return counts
