"""What tables of the documents are made of: lines of cells, and numbers that are cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import ceil, floor
from typing import Any


def line(cells: Iterable[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def cut(ratio: float | None, digits: int = 2) -> str:
    """So many digits after the point, cut and not rounded, so never more than it is; `-` for None."""
    scale = 10**digits
    return "-" if ratio is None else f"{floor(ratio * scale + 1e-9) / scale:.{digits}f}"


def over(ratio: float | None) -> str:
    """The same for what is lost: two digits, never less than it is."""
    return "-" if ratio is None else f"{ceil(ratio * 100 - 1e-9) / 100:.2f}"


def sizes_of(found: Mapping[str, object]) -> str:
    """Sizes by name, as `M=8 N=4`."""
    return " ".join(f"{name}={size}" for name, size in found.items())


def runs_of(result: Mapping[str, Any]) -> str:
    """A sentence that names the runs of a merged file, with a blank before it; empty for one run."""
    runs = Counter(f"`{r['command']}`, {r['date']}" for r in result.get("runs", ()) if r["rows"])
    named = "; ".join(f"{name} ({n} of it)" if n > 1 else name for name, n in runs.items())
    return f" The runs: {named}." if named else ""
