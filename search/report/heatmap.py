"""The archive as heat maps: two axes for each map, and one map for each bin of the other axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

from search.core import quantity
from search.report.page import ArchiveAxis, ArchiveCell, ArchiveMaps

FAINTEST = 0.14  # so that a filled cell never looks empty
LEAST_SPAN = 1.5  # smaller ratios of times do not get the full range of colours
DARK = 0.62  # from this heat on the text in a cell is light


@dataclass(frozen=True, slots=True)
class Square:
    """One cell."""

    # 0 to 1, where 1 is the fastest; None if it is empty.
    heat: float | None = None
    text: str = ""
    hint: str = ""
    dark: bool = False
    winner: bool = False


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Rows from the top and columns, each with a label."""

    title: str  # the bins of the axes that are not drawn
    across: ArchiveAxis
    upward: ArchiveAxis
    rows: tuple[tuple[str, tuple[Square, ...]], ...]


def maps(archive: ArchiveMaps) -> tuple[HeatMap, ...]:
    """The maps of an archive that have a filled cell; empty if there are no axes."""
    if not archive.axes or not archive.cells:
        return ()
    across, *rest = archive.axes
    upward, *beyond = rest or [ArchiveAxis("", ("",))]
    by_place = {cell.at: cell for cell in archive.cells}
    made = []
    for bins in product(*(range(len(axis.bins)) for axis in beyond)):
        squares = {at[:2]: cell for at, cell in by_place.items() if tuple(at[2:]) == bins}
        if squares:
            title = ", ".join(f"{a.name}: {a.bins[b]}" for a, b in zip(beyond, bins))
            made.append(HeatMap(title, across, upward, _rows(across, upward, squares, archive)))
    return tuple(made)


def _rows(
    across: ArchiveAxis,
    upward: ArchiveAxis,
    squares: dict[tuple[int, ...], ArchiveCell],
    archive: ArchiveMaps,
) -> tuple[tuple[str, tuple[Square, ...]], ...]:
    flat = upward.name == ""
    rows = []
    for y in reversed(range(len(upward.bins))):
        keys = [(x,) if flat else (x, y) for x in range(len(across.bins))]
        rows.append((upward.bins[y], tuple(_square(squares.get(k), archive) for k in keys)))
    return tuple(rows)


def _square(cell: ArchiveCell | None, archive: ArchiveMaps) -> Square:
    if cell is None:
        return Square(hint="empty")
    times = [c.us for c in archive.cells]
    behind = math.log(cell.us / min(times)) / math.log(max(LEAST_SPAN, max(times) / min(times)))
    along = 1.0 - behind
    heat = FAINTEST + (1 - FAINTEST) * along
    return Square(
        heat=round(heat, 3),
        text=quantity.time(cell.us),
        hint=f"#{cell.number}: {quantity.time(cell.us)}" + (", the winner" if cell.winner else ""),
        dark=heat >= DARK,
        winner=cell.winner,
    )
