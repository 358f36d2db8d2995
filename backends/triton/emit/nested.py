"""Nested loops as one: how often it runs, where each of them is in a step; see `ir.nest.nested`."""

from __future__ import annotations

from math import prod

from backends.triton.emit import spelling
from backends.triton.emit.lines import Line
from ir.nest.nest import Loop


def trips(loops: tuple[Loop, ...]) -> str:
    """How often all of them together run."""
    return _product([_trips(s) for s in loops])


def origins(loops: tuple[Loop, ...], step: str) -> tuple[Line, ...]:
    """The lines that give each loop's origin in a step of all, the innermost changing fastest."""
    lines = []
    for place, loop in enumerate(loops):
        code, within = step, _product([_trips(s) for s in loops[place + 1 :]])
        if place + 1 < len(loops):
            code = f"{code} // {within if within.isdigit() else f'({within})'}"
        if place:
            code = f"{code} % {_trips(loop)}"
        tile = "" if loop.tile == 1 else f" * {loop.tile}"
        lines.append(Line(f"{spelling.origin(loop.index)} = {code}{tile}"))
    return tuple(lines)


def _trips(loop: Loop) -> str:
    size = spelling.size(loop.high.size)
    if loop.tile == 1:
        return size
    return str(-(-int(size) // loop.tile)) if size.isdigit() else f"tl.cdiv({size}, {loop.tile})"


def _product(counts: list[str]) -> str:
    known = prod(int(c) for c in counts if c.isdigit())
    unknown = [c for c in counts if not c.isdigit()]
    return " * ".join([*unknown, *([str(known)] if known != 1 or not unknown else [])])
