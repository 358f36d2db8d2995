"""Diagnostics: the errors of a C++ compiler with their notes, candidates and source lines.

It parses the formats of GCC, Clang and NVRTC.
"""

from __future__ import annotations

import re

MOST_ERRORS = 6  # errors that are reported
MOST_LINES = 14  # lines of one error, including its notes
_SAID = re.compile(
    r"(?:.*/)?([^\s/:(]+)(?::(\d+)(?::\d+)?|\((\d+)\)): "
    r"(fatal error|error|warning|note)(?: #[\w-]+)?: +(.*)"
)
# Lines about the context of a diagnostic, and counts of diagnostics; both are dropped.
_AROUND = re.compile(
    r"In file included from |\s+from \S+:\d+|\S+: In [^:]+|\S+:\d+:\d+:\s+required from "
    r"|\d+ (?:error|warning)s? |compilation terminated|cc1plus: "
)
_BARE = re.compile(r".*\b(?:error|fatal|ERROR)\b.*|PLEASE submit.*")  # from a driver or a linker


def first_errors(text: str) -> str:
    """The first errors of a compiler's output, one after the other; empty if there is none.

    Each begins with a line `FILE, line N: what`. Indented lines follow: the source line and the
    compiler's notes (candidates, what they lack, similar names).
    """
    found: list[list[str]] = []
    told = False  # whether the current lines belong to an error
    for line in text.splitlines():
        said = _SAID.match(line)
        if said is not None:
            where, kind, words = f"{said[1]}, line {said[2] or said[3]}", said[4], said[5]
            if kind == "note" and told:
                found[-1].append(f"  note, {where}: {words}")
            elif kind == "note" or kind == "warning":
                told = False
            else:
                found.append([f"{where}: {words}"])
                told = True
        elif not line.strip() or _AROUND.match(line):
            continue
        elif told and line[:1].isspace():
            found[-1].append(f"  {line.rstrip()}")
        elif _BARE.fullmatch(line):
            found.append([line.strip()])
            told = False
    few = (_cut(each) for each in found[:MOST_ERRORS])
    left = len(found) - MOST_ERRORS
    more = [f"({left} more errors)"] if left > 0 else []
    return "\n".join([*(line for each in few for line in each), *more])


def _cut(lines: list[str]) -> list[str]:
    left = len(lines) - MOST_LINES
    return lines if left <= 0 else [*lines[:MOST_LINES], f"  ({left} more lines)"]
