"""The decisions of a schedule on a matmul: its warp grid, its matrix instruction, its overlap."""

from __future__ import annotations

import re

from ir.schedule import Schedule
from ir.variant.derived import owner

_SHAPE = re.compile(r"m([1-9]\d{0,3})n([1-9]\d{0,3})k([1-9]\d{0,3})")


def shape_of(word: object) -> tuple[int, int, int] | None:
    """M, N and K of a word such as m16n8k16; None if it is no such word."""
    found = _SHAPE.fullmatch(str(word))
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def shape_word(shape: tuple[int, int, int]) -> str:
    """The word for a shape."""
    m, n, k = shape
    return f"m{m}n{n}k{k}"


def matmul_of(
    schedule: Schedule, target: str
) -> tuple[tuple[int, int] | None, tuple[int, int, int] | None, bool, bool]:
    """The decisions on the matmul of a target.

    The number of parts of M and N that warps compute; the shape of the instruction; both None if
    the backend chooses. Whether the matmul runs one iteration later, and whether the matmul before
    it runs one iteration ahead.
    """
    subject = owner(schedule, target)
    verbs = ("warps", "instruction", "overlap")
    warps, instruction, overlap = (schedule.find(verb, subject) for verb in verbs)
    return (
        (warps.number("m"), warps.number("n")) if warps else None,
        shape_of(instruction.option("shape")) if instruction else None,
        overlap is not None,
        overlap is not None and overlap.option("ahead") is not None,
    )
