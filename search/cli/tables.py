"""Tables and sentences as lines of text that fit the width of a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

GAP = "  "
LEAST = 24  # characters that a last column must have to be broken into lines
INDENT = "    "
_KEPT = "\N{NO-BREAK SPACE}"


def columns(rows: Sequence[Sequence[str]], aligns: Sequence[str], width: int | None = None) -> str:
    """Rows of text with their cells below each other; the first row, of titles, is underlined.

    width: the most characters of a line, None for any. Where the table is wider, the last column
    is broken into lines; where that is not enough, each row is a paragraph of titles and cells.
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(aligns))]
    before = sum(widths[:-1]) + len(GAP) * (len(widths) - 1)
    if width is not None and before + widths[-1] > width:
        if width - before < LEAST or aligns[-1] != "<":
            return _paragraphs(rows, width)
        widths[-1] = width - before
    ruled = [rows[0], tuple("-" * width for width in widths), *rows[1:]]
    return "".join(_row(row, aligns, widths) for row in ruled)


def filled(text: str, width: int | None = None) -> str:
    """A sentence as lines, those after the first indented."""
    if width is None:
        return f"{text}\n"
    return "\n".join(_wrapped(text, width, GAP)) + "\n"


def _row(row: Sequence[str], aligns: Sequence[str], widths: Sequence[int]) -> str:
    """A row, its last cell in as many lines as it takes."""
    lasts = _wrapped(row[-1], widths[-1]) or [""]
    firsts = [f"{cell:{a}{w}}" for cell, a, w in zip(row[:-1], aligns, widths)]
    empty = [" " * w for w in widths[:-1]]
    lines = [
        GAP.join([*(empty if number else firsts), f"{last:{aligns[-1]}{widths[-1]}}"])
        for number, last in enumerate(lasts)
    ]
    return "".join(line.rstrip() + "\n" for line in lines)


def _paragraphs(rows: Sequence[Sequence[str]], width: int) -> str:
    """Each row as its first cell, and below it the others behind their titles; a cell and its
    title stay together where they fit on a line."""
    text = ""
    for row in rows[1:]:
        cells = [f"{title} {cell}".strip() for title, cell in zip(rows[0][1:], row[1:])]
        room = width - len(INDENT) - 1
        kept = [c.replace(" ", _KEPT) if len(c) <= min(room, 2 * LEAST) else c for c in cells]
        lines = _wrapped(", ".join(kept), width, INDENT, INDENT)
        text += "\n".join([*_wrapped(row[0], width), *lines]) + "\n"
    return text


def _wrapped(text: str, width: int, more: str = "", first: str = "") -> list[str]:
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=more, break_on_hyphens=False
    )
    return [line.replace(_KEPT, " ") for line in lines]
