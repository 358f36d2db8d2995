"""The table of searches for the kernels of contests: what each found, the handwritten kernel, and
PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.markdown import cut, line, sizes_of

_HEAD = ("contest", "sizes", "backend")
_NUMBERS = (
    "evaluations",
    "seed, us",
    "found, us",
    "by hand, us",
    "hand / found",
    "fastest of PyTorch, us",
    "PyTorch / found",
    "of roofline",
)
_BEFORE = ("found before, us", "before / found")  # Only if the file has them.


def searches(result: Mapping[str, Any]) -> list[str]:
    """Returns the origin of the file, its rows, their schedules and the failures."""
    rows = result["rows"]
    good = [r for r in rows if "reason" not in r]
    return [_origin(result), _rows(good), _schedules(good), *_failures(rows)]


def _rows(rows: Sequence[Mapping[str, Any]]) -> str:
    again = any("before_us" in row for row in rows)
    numbers = (*_NUMBERS, *(_BEFORE if again else ()))
    lines = [line((*_HEAD, *numbers)), line(["---"] * len(_HEAD) + ["---:"] * len(numbers))]
    for row in rows:
        us, hand, theirs = row["best_us"], row.get("by_hand_us"), row.get("baseline_us")
        first, before = row["first_us"], row.get("before_us")
        cells = [
            row["contest"],
            sizes_of(row["shape"]),
            row["backend"],
            str(row["evaluations"]),
            f"{first:.1f}" if first else "-",
            f"{us:.1f}",
            f"{hand:.1f}" if hand else "-",
            cut(hand / us if hand else None),
            f"{theirs:.1f}" if theirs else "-",
            cut(theirs / us if theirs else None),
            cut(row["roofline_us"] / us),
        ]
        if again:
            cells += [f"{before:.1f}" if before else "-", cut(before / us if before else None)]
        lines.append(line(cells))
    return "\n".join(lines)


def _schedules(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lists the decisions of each schedule on one line."""
    found = []
    for row in rows:
        decisions = row["schedule"].strip().splitlines()[1:]
        found.append(f"- {row['contest']}: `{'; '.join(decisions)}`")
    return "\n".join(["Schedules:", "", *found])


def _failures(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    found = [f"- {row['contest']}: {row['reason']}." for row in rows if "reason" in row]
    return ["\n".join(["What failed:", "", *found])] if found else []


def _origin(result: Mapping[str, Any]) -> str:
    kinds = sorted({r["time_kind"] for r in result["rows"] if "reason" not in r})
    by = sorted({r["correct_by"] for r in result["rows"] if "reason" not in r})
    devices = sorted({f"{r['device']}, {r['toolchain']}" for r in result["rows"]})
    return (
        f"`{result['command']}`, {result['date']}, {', '.join(devices)}. From the equations, seed 1. Times "
        f"{' and '.join(kinds)} with a cold cache, medians; right by {' and '.join(by)} at all check sizes. By hand: the "
        "fastest candidate of the contests above; these and PyTorch's times are of that file, of another H200."
    )
