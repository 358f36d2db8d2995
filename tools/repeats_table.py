"""The table of a race that was repeated: the spread of the speed-ups of each row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.markdown import cut, line, over, sizes_of


def repeats(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file and its rows."""
    count, said = result["repeats"], result["summary"]
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    head = ("kernel", "dtype", "shape", *(f"speed-up {n + 1}" for n in range(count)), "spread")
    lines = [line(head), line(["---"] * 3 + ["---:"] * (count + 1))]
    for row in result["rows"]:
        shape = sizes_of(row["shape"])
        known = row["spread"] is not None
        speedups = [cut(s, 3) for s in row["speedups"]] if known else ["-"] * count
        last = f"{over(100 * row['spread'])}%" if known else row["reason"]
        lines.append(line([row["kernel"], row["dtype"], shape, *speedups, last]))
    return [
        f"`{result['command']}`, {count} times, {result['date']}, {result['machine']}, driver "
        f"{result['driver']}, {versions}. {said['within']} of {said['rows']} rows are within "
        f"{result['within']:.0%}; the largest spread is {over(100 * said['largest'])}%.",
        "\n".join(lines),
    ]
