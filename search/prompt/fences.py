"""Code fences: lines of ``` that models put around a text, and that do not belong to it."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)")
_MARKDOWN = ("markdown", "md")


def is_fence(line: str) -> bool:
    """Whether a line opens or closes a code block."""
    return _FENCE.fullmatch(line.rstrip()) is not None


def opens(lines: Sequence[str]) -> bool:
    """Whether the first line that is not blank is a fence."""
    return is_fence(next((line for line in lines if line.strip()), ""))


def unfenced(lines: Sequence[str], markdown: bool = False) -> list[str]:
    """The lines without fences around all of them; unchanged if there are none.

    Inner fences stay, for example in a docstring. markdown: the text itself may begin and end with
    code blocks, so the fences are removed only if they belong to one block or are marked as
    Markdown.
    """
    filled = [n for n, line in enumerate(lines) if line.strip()]
    if len(filled) < 2:
        return list(lines)
    first, last = filled[0], filled[-1]
    opening, closing = (_FENCE.fullmatch(lines[n].rstrip()) for n in (first, last))
    if opening is None or closing is None or not _closes(opening, closing):
        return list(lines)
    inner = list(lines[first + 1 : last])
    if markdown and opening[2].strip().lower() not in _MARKDOWN:
        others = (_FENCE.fullmatch(line.rstrip()) for line in inner)
        return list(lines) if any(o and _closes(opening, o) for o in others) else inner
    return unfenced(inner, markdown)


def unfenced_halves(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """Two texts without one pair of fences around both; unchanged if there is none."""
    both = unfenced([*old, *new])
    first = next((n for n, line in enumerate(old) if line.strip()), 0)
    if len(both) == len(old) + len(new) or opens(new):
        return list(old), list(new)
    rest = max(0, len(old) - first - 1)
    return both[:rest], both[rest:]


def _closes(opening: re.Match[str], closing: re.Match[str]) -> bool:
    same = closing[1].startswith(opening[1])
    return same and not closing[2].strip()
