"""The problems of a checkout of KernelBench, by level and number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ir.errors import KernelError

_FILE = re.compile(r"(\d+)_\w+\.py")

# Problems that can be answered without the work, with the reason. They are also counted separately.
CONSTANT, ZEROS, IGNORES, DEAD, STATE = (
    "the output is constant",
    "zeros are near enough",
    "the inputs hardly matter",
    "parts are never used",
    "it keeps state between calls, or draws numbers",
)
DEGENERATE = {
    **{(1, n): ZEROS for n in (23, 37)},
    **{(1, n): IGNORES for n in (90, 95, 97, 100)},
    **{(2, n): CONSTANT for n in (9, 23, 36, 80, 83)},
    **{(2, n): IGNORES for n in (66, 84)},
    **{(3, n): DEAD for n in (36, 37, 49)},
    **{(3, n): STATE for n in (33, 35)},
}
# Problems whose work shrinks when the equations are rewritten. This is correct, and noted in the
# rows.
COLLAPSES = {*((2, n) for n in (14, 18, 42, 44, 51)), *((3, n) for n in (13, 15, 16))}


@dataclass(frozen=True, slots=True)
class ProblemFile:
    """A problem's file."""

    level: int
    number: int
    path: Path  # Path of the file.

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def degenerate(self) -> str:
        """Why the problem can be answered without the work. Empty if it cannot."""
        return DEGENERATE.get((self.level, self.number), "")


def entries(folder: Path, level: int, only: str = "") -> list[ProblemFile]:
    """Returns a level's problems sorted by number.

    folder: contains `level1` and so on.
    only: numbers and ranges, `1,5-9`. Empty for all.

    Raises KernelError for a folder without problems, and for words that are not numbers.
    """
    here = folder / f"level{level}"
    found = [
        ProblemFile(level, int(named[1]), path)
        for path in here.glob("*.py")
        if (named := _FILE.fullmatch(path.name))
    ]
    if not found:
        raise KernelError(
            "there are no problems", where=str(here), hint="give the folder that holds `level1`"
        )
    wanted = numbers(only)
    chosen = (e for e in found if not wanted or e.number in wanted)
    return sorted(chosen, key=lambda e: e.number)


def numbers(text: str) -> set[int]:
    """Parses the numbers in a text such as `1,5-9`."""
    found: set[int] = set()
    for word in filter(None, text.split(",")):
        ends = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
        if not ends:
            raise KernelError(f"`{word}` is no number of a problem", allowed="such as 1,5-9")
        found.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    return found
