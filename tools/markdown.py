"""Parts of the tables in the documents: lines of cells, and truncated numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import ceil, floor
from typing import Any


def line(cells: Iterable[str]) -> str:
    """Returns a line of a table."""
    return f"| {' | '.join(cells)} |"


def cut(ratio: float | None, digits: int = 2) -> str:
    """Formats a ratio with so many digits after the point, truncated. None gives `-`.

    Truncation never overstates a gain.
    """
    scale = 10**digits
    return "-" if ratio is None else f"{floor(ratio * scale + 1e-9) / scale:.{digits}f}"


def over(ratio: float | None) -> str:
    """Formats a loss with two digits after the point, rounded up. None gives `-`.

    Rounding up never understates a loss.
    """
    return "-" if ratio is None else f"{ceil(ratio * 100 - 1e-9) / 100:.2f}"


def sizes_of(found: Mapping[str, object]) -> str:
    """Formats sizes by name, as `M=8 N=4`."""
    return " ".join(f"{name}={size}" for name, size in found.items())


def runs_of(result: Mapping[str, Any]) -> str:
    """Returns a sentence that names the runs of a merged file, with a leading space. Empty for one
    run."""
    runs = Counter(f"`{r['command']}`, {r['date']}" for r in result.get("runs", ()) if r["rows"])
    named = "; ".join(f"{name} ({n} of it)" if n > 1 else name for name, n in runs.items())
    return f" The runs: {named}." if named else ""
