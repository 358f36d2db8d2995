"""Writes the tables of docs/benchmarks.md from the result files of benchmarks/results/.

The page's prose is written by hand; what stands between a marker `<!-- table: MACHINE/FILE -->`
and `<!-- end -->` is replaced by the table of benchmarks/results/MACHINE/FILE.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ir.errors import KernelError

PAGE = Path("docs/benchmarks.md")
RESULTS = Path("benchmarks/results")
NOTHING = "Not measured yet.\n"
EXAMPLES = """
examples:
  results_table
      rewrites the tables
  results_table --check
      says whether they are those of the result files; exit code 1 where they are not
"""
_MARKED = re.compile(r"(<!-- table: ([\w./-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_RACED = ("eager", "compile", "max_autotune", "reduce_overhead")
_HEAD = (
    "kernel", "dtype", "shape", "us", "eager", "compile", "max-autotune", "reduce-overhead",
    "fastest", "speed-up", "of roofline", "error", "its error",
)  # fmt: skip
_LEFT = 3  # columns of words


def page(text: str, results: Path) -> str:
    """The page with every marked table made anew from the result files below a folder."""

    def fill(found: re.Match[str]) -> str:
        file = results / f"{found[2]}.json"
        if not file.is_file():
            return f"{found[1]}{NOTHING}{found[3]}"
        return f"{found[1]}{table(json.loads(file.read_text(encoding='utf-8')))}{found[3]}"

    return _MARKED.sub(fill, text)


def table(result: Mapping[str, Any]) -> str:
    """The tables of one result file: where it is from, its rows, its failures, its summary.

    Ratios are cut after two digits and not rounded.
    """
    rows = result["rows"]
    parts = [_origin(result), _rows(rows)]
    if failures := _failures(rows):
        parts.append(failures)
    if rows and any("tflops" in row for row in rows):
        parts.append(_rates(rows))
    parts.append(_summary(result["summary"]))
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit code 2 for wrong use."""
    parser = argparse.ArgumentParser(
        prog="results_table", description=__doc__.splitlines()[0], epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    asked = parser.parse_args(arguments)
    root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    try:
        before = (root / PAGE).read_text(encoding="utf-8")
        after = page(before, root / RESULTS)
    except (KernelError, OSError, ValueError, KeyError) as error:
        print(f"results_table: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    if asked.check:
        print("up to date" if before == after else f"{PAGE} is not what the result files say")
        return int(before != after)
    (root / PAGE).write_text(after, encoding="utf-8")
    return 0


def _origin(result: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    clocks = result["clocks_mhz"]
    return (
        f"`{result['command']}`, {result['date']}, {result['machine']}, driver "
        f"{result['driver']}, {versions}; clocks at the end {clocks['sm']} MHz, memory "
        f"{clocks['memory']} MHz."
    )


def _rows(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [_line(_HEAD), _line(["---"] * _LEFT + ["---:"] * (len(_HEAD) - _LEFT))]
    for row in rows:
        raced = [_time(row["baselines_us"].get(name, 0)) for name in _RACED]
        mine = _time(row["us"]) if row["correct"] else "failed"
        lines.append(_line([
            *_names(row), mine, *raced, row["fastest"] or "-", _cut(row["speedup"]),
            _cut(row["roofline_share"]), _error(row, "rel_err"), _error(row, "reference_rel_err"),
        ]))  # fmt: skip
    return "\n".join(lines)


def _failures(rows: Sequence[Mapping[str, Any]]) -> str:
    """What failed, ours and theirs, with reasons."""
    lines = [
        f"- {' '.join(_names(row))}: {row['reason']}" for row in rows if not row["correct"]
    ]
    lines += [
        f"- {' '.join(_names(row))}, baseline `{name}`: {reason}"
        for row in rows
        for name, reason in row.get("failures", {}).items()
    ]
    return "\n".join(["Failures:", "", *lines]) if lines else ""


def _rates(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [_line(("kernel", "dtype", "shape", "TFLOP/s", "fastest baseline's", "of peak")),
             _line(["---"] * _LEFT + ["---:"] * 3)]  # fmt: skip
    for row in rows:
        theirs = row["baselines_tflops"].get(row["fastest"])
        rates = (row["tflops"] if row["correct"] else None, theirs)
        share = row["peak_share"] if row["correct"] else None
        lines.append(_line([*_names(row), *map(_time, rates), _cut(share)]))
    return "\n".join(lines)


def _summary(summary: Mapping[str, Any]) -> str:
    """Never the mean alone: median, worst and how many are faster stand beside it."""
    head = ("rows", "count", "failed", "faster", "geometric mean", "median", "min", "max",
            "of roofline, geometric mean")  # fmt: skip
    lines = ["Speed-up over the fastest baseline of each row:", "", _line(head),
             _line(["---"] + ["---:"] * (len(head) - 1))]  # fmt: skip
    for name, s in summary.items():
        ratios = (s["geometric_mean"], s["median"], s["min"], s["max"],
                  s["roofline_share_geometric_mean"])  # fmt: skip
        counts = (s["rows"], s["failed"], s["faster"])
        lines.append(_line([name, *map(str, counts), *map(_cut, ratios)]))
    return "\n".join(lines)


def _names(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["kernel"], row["dtype"], " ".join(f"{k}={v}" for k, v in row["shape"].items())


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _time(us: float | None) -> str:
    """Microseconds; `failed` for None, nothing for what was not raced."""
    if us is None:
        return "failed"
    return f"{us:.1f}" if us else ""


def _error(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return "-" if value is None else f"{value:.1e}"


def _cut(ratio: float | None) -> str:
    """Two digits after the point, cut and not rounded."""
    return "-" if ratio is None else f"{int(ratio * 100 + 1e-9) / 100:.2f}"


if __name__ == "__main__":
    sys.exit(main())
