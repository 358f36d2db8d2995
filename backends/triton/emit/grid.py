"""The grid: which tile a program works on, and how many there are."""

from __future__ import annotations

from backends.triton.emit import spelling
from backends.triton.emit.lines import Line
from ir.nest.nest import GridAxis, Launch, Loop
from ir.spec import Index


def grid_lines(launch: Launch) -> tuple[Line, ...]:
    """The lines that turn the number `tile` into the origins of the grid's indices, the last of
    which changes fastest; a band walks several tiles of one index along all of another."""
    axes = _ordered(launch)
    last = _longest_last(launch)
    lines = [Line(f"{_tiles(g)} = {_count(g)}") for g in axes[1:]]
    if launch.band is None:
        lines[:0] = [Line(f"{_tiles(g)} = {_count(g)}") for g in axes[:1] if g.index in last]
        return (*lines, *_plain(axes, "tile", last))
    outer, (index, over) = axes[:-2], axes[-2:]
    size = launch.band.size
    inside = f"{_tiles(index)} * {_tiles(over)}"
    if outer:
        lines.append(Line(f"within = tile % ({inside})"))
        lines += _plain(outer, f"(tile // ({inside}))")
    else:
        lines[:0] = [Line(f"{_tiles(index)} = {_count(index)}")]
    within = "within" if outer else "tile"
    return (
        *lines,
        Line(f"band_start = {within} // ({size} * {_tiles(over)}) * {size}"),
        Line(f"band_height = min({_tiles(index)} - band_start, {size})"),
        Line(f"in_band = {within} % ({size} * {_tiles(over)})"),
        Line(
            f"{spelling.origin(index.index)} = "
            f"{_scaled('band_start + in_band % band_height', index, True)}"
        ),
        Line(f"{spelling.origin(over.index)} = {_scaled('in_band // band_height', over)}"),
    )


def tiles_text(launch: Launch) -> str:
    """How many tiles a grid has, for the launcher."""
    counts = [
        spelling.factor(g.size) if g.tile == 1 and launch.grid[1:] else _count(g, "triton.cdiv")
        for g in _ordered(launch)
    ]
    return " * ".join(counts) or "1"


def _ordered(launch: Launch) -> tuple[GridAxis, ...]:
    """The axes, those of a band last."""
    if launch.band is None:
        return launch.grid
    axes = {g.index: g for g in launch.grid}
    last = (launch.band.index, launch.band.over)
    return (*(g for g in launch.grid if g.index not in last), *(axes[i] for i in last))


def _longest_last(launch: Launch) -> frozenset[str]:
    """The indices whose later tiles have longer loops; they are walked from their end, so that
    the longest programs begin first."""
    highs = (s.high.size for s in launch.statements() if isinstance(s, Loop))
    moving = (h for h in highs if h is not None and spelling.settled(h) is not h)
    cut = {n.name for h in moving for n in h.walk() if isinstance(n, Index)}
    lows = (s.low.size for s in launch.statements() if isinstance(s, Loop))
    fixed = {n.name for low in lows if low is not None for n in low.walk() if isinstance(n, Index)}
    return frozenset(cut - fixed)


def _plain(
    axes: tuple[GridAxis, ...], number: str, last: frozenset[str] = frozenset()
) -> list[Line]:
    lines = []
    for place, g in enumerate(axes):
        inner = " * ".join(_tiles(x) for x in axes[place + 1 :])
        code = number
        if inner:
            code = f"{code} // ({inner})" if "*" in inner else f"{code} // {inner}"
        if place:
            code = f"{code} % {_tiles(g)}"
        if g.index in last:
            code = f"({_tiles(g)} - 1 - {code})"
        lines.append(Line(f"{spelling.origin(g.index)} = {_scaled(code, g)}"))
    return lines


def _scaled(code: str, g: GridAxis, loose: bool = False) -> str:
    if g.tile == 1:
        return code
    return f"({code}) * {g.tile}" if loose else f"{code} * {g.tile}"


def _tiles(g: GridAxis) -> str:
    return f"tiles_{g.index}"


def _count(g: GridAxis, divide: str = "tl.cdiv") -> str:
    size = spelling.size(g.size)
    return size if g.tile == 1 else f"{divide}({size}, {g.tile})"
