"""Writes the tables in pages of docs/ from the result files of benchmarks/results/.

The prose of a page is written by hand. The command replaces the text between a marker
`<!-- table: MACHINE/FILE -->` and `<!-- end -->` by the table of
benchmarks/results/MACHINE/FILE.json.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.results import settle, summary
from tools.autotuners_table import autotuners
from tools.cheats_table import cheats, published_cheats
from tools.check_times_table import check_times
from tools.compile_time_table import compile_time
from tools.contests_table import contests
from tools.coverage_table import coverage
from tools.device_table import device
from tools.gate_table import gate
from tools.harness_table import harness
from tools.languages_table import languages
from tools.local_table import local
from tools.markdown import cut, line
from tools.modules_table import modules
from tools.pages import command
from tools.published_table import published
from tools.ranking_table import ranking
from tools.repeats_table import repeats
from tools.scale_table import scale
from tools.searches_table import searches
from tools.static_table import static
from tools.suite_table import suite
from tools.throughput_table import throughput
from tools.verb_table import verbs

PAGE = Path("docs/benchmarks.md")
RESULTS = Path("benchmarks/results")
NOTHING = "Not measured yet.\n"
EXAMPLES = """
examples:
  results_table
      rewrites the tables
  results_table --check
      checks that they match the result files; exit code 1 if not
"""
_MARKED = re.compile(r"(<!-- table: (\w+/[\w./-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_RACED = ("eager", "compile", "max_autotune", "reduce_overhead")
_HEAD = (
    "kernel",
    "dtype",
    "shape",
    "us",
    "eager",
    "compile",
    "max-autotune",
    "reduce-overhead",
    "fastest",
    "speed-up",
    "of roofline",
    "error",
    "its error",
)
_LEFT = 3  # The first columns, which contain text.
_FOLDER = r"--out=\S*/"  # The folder of the output does not matter to readers.


def pages(root: Path) -> list[Path]:
    """Returns the pages of a checkout with such tables. Every checkout has `PAGE`."""
    found = {p for p in (root / PAGE.parent).glob("*.md") if _MARKED.search(p.read_text("utf-8"))}
    return sorted({p.relative_to(root) for p in found} | {PAGE})


def page(text: str, results: Path) -> str:
    """Returns the page with every marked table rewritten from the result files below a folder."""

    def fill(found: re.Match[str]) -> str:
        file = results / f"{found[2]}.json"
        if not file.is_file():
            return f"{found[1]}{NOTHING}{found[3]}"
        return f"{found[1]}{table(json.loads(file.read_text(encoding='utf-8')))}{found[3]}"

    return _MARKED.sub(fill, text)


def table(result: Mapping[str, Any]) -> str:
    """Returns the tables of one result file: its origin, rows, failures and summary.

    Ratios are truncated to two digits.
    """
    if "checked_through" in result:
        return "\n\n".join(check_times(result)) + "\n"
    if "gate" in result:
        return "\n\n".join(gate(result)) + "\n"
    if "cheats" in result:
        return "\n\n".join(cheats(result)) + "\n"
    if result.get("judged") == "published cheats":
        return "\n\n".join(published_cheats(result)) + "\n"
    if "benchmarks.autotuners" in result.get("command", ""):
        return "\n\n".join(autotuners(result)) + "\n"
    if "published" in result:
        return "\n\n".join(published(result)) + "\n"
    if "static" in result:
        return "\n\n".join(static(result)) + "\n"
    if "languages" in result:
        return "\n\n".join(languages(result)) + "\n"
    if "scale" in result:
        return "\n\n".join(scale(result)) + "\n"
    if "total_wall_s" in next(iter(result["rows"]), {}):
        return "\n\n".join(compile_time(result)) + "\n"
    if "contest" in next(iter(result["rows"]), {}):
        return "\n\n".join(searches(result)) + "\n"
    if "candidates" in next(iter(result["rows"]), {}):
        return "\n\n".join(contests(result)) + "\n"
    if "workers" in result:
        return "\n\n".join(throughput(result)) + "\n"
    if "topic" in next(iter(result["rows"]), {}):
        return "\n\n".join(verbs(result)) + "\n"
    if "repeats" in result:
        return "\n\n".join(repeats(result)) + "\n"
    if "rounds" in result:
        return "\n\n".join(local(result)) + "\n"
    if result.get("suite") == "kernelbench_harness":
        return "\n\n".join(harness(result)) + "\n"
    if result.get("suite") == "modules":
        return "\n\n".join(modules(result)) + "\n"
    if "suite" in result:
        return "\n\n".join(suite(result)) + "\n"
    if "skipped" in result:
        return "\n\n".join(device(result)) + "\n"
    if "reduced" in result:
        return "\n\n".join(coverage(result)) + "\n"
    ranked = "overall" in result["summary"]
    parts = [_origin(result), *(ranking(result) if ranked else _race(result))]
    return "\n\n".join(parts) + "\n"


def _race(result: Mapping[str, Any]) -> list[str]:
    rows = result["rows"]
    parts = [_rows(rows), _unraced(rows), _others(rows), _failures(rows)]
    if any("tflops" in row for row in rows):
        parts.append(_rates(rows))
    groups = result["summary"]
    written = [_as_written(row) for row in rows]
    if any(w["fastest"] != row["fastest"] for w, row in zip(written, rows, strict=True)):
        groups = {**groups, "all, over the plain form": summary(written)["all"]}
    return [p for p in (*parts, _summary(groups), _slower(rows)) if p]


def _as_written(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a row with only the baselines of the plain form, in any mode."""
    plain = {name: us for name, us in row["baselines_us"].items() if name in _RACED}
    made = {**row, "baselines_us": plain}
    settle(made)
    return made


def written(root: Path) -> Mapping[Path, str]:
    """Returns the texts of the pages by their paths, below the root of a checkout."""
    texts = {path: (root / path).read_text(encoding="utf-8") for path in pages(root)}
    return {path: page(text, root / RESULTS) for path, text in texts.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage."""
    return command("results_table", __doc__, EXAMPLES, written, "the result files", arguments)


def _origin(result: Mapping[str, Any]) -> str:
    commands = [result.get(k) for k in ("command", "measured_by", "modelled_by")]
    said = ", then ".join(f"`{re.sub(_FOLDER, '--out=', c)}`" for c in commands if c)
    if "measured_on" in result:
        return f"{said}, {result['date']}; measured on {'; '.join(result['measured_on'])}."
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    clocks = result["clocks_mhz"]
    return (
        f"{said}, {result['date']}, {result['machine']}, driver "
        f"{result['driver']}, {versions}; clocks at the end {clocks['sm']} MHz, memory "
        f"{clocks['memory']} MHz."
    )


def _rows(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [line(_HEAD), line(["---"] * _LEFT + ["---:"] * (len(_HEAD) - _LEFT))]
    for row in rows:
        raced = [_time(row["baselines_us"].get(name, 0)) for name in _RACED]
        mine = _time(row["us"]) if row["correct"] else "failed"
        lines.append(
            line(
                [
                    *_names(row),
                    mine,
                    *raced,
                    row["fastest"] or "-",
                    cut(row["speedup"]),
                    cut(row["roofline_share"]),
                    _error(row, "rel_err"),
                    _error(row, "reference_rel_err"),
                ]
            )
        )
    return "\n".join(lines)


def _unraced(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lists the modes that no row was raced against."""
    raced = {name for row in rows for name in (*row["baselines_us"], *row.get("failures", {}))}
    left = [name for name in _RACED if name not in raced]
    return f"Not raced in any row: {', '.join(f'`{n}`' for n in left)}." if rows and left else ""


def _others(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lists the baselines that are written in another way, which only some kernels have."""
    lines = []
    for row in rows:
        times = {k: us for k, us in row["baselines_us"].items() if k not in _RACED}
        if times:
            said = ", ".join(f"`{name}` {_time(us)}" for name, us in times.items())
            lines.append(f"- {' '.join(_names(row))}: {said}")
    return "\n".join(["Other forms of the baseline, us:", "", *lines]) if lines else ""


def _slower(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lists the rows that are slower than a baseline, the slowest first."""
    lost = sorted((r for r in rows if (r["speedup"] or 1) < 1), key=lambda r: r["speedup"])
    lines = [
        f"- {cut(r['speedup'])}: {' '.join(_names(r))}, against `{r['fastest']}`" for r in lost
    ]
    return "\n".join(["Slower than the fastest baseline:", "", *lines]) if lines else ""


def _failures(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lists the failures of kernels and baselines, with reasons."""
    lines = [f"- {' '.join(_names(row))}: {row['reason']}" for row in rows if not row["correct"]]
    lines += [
        f"- {' '.join(_names(row))}, baseline `{name}`: {reason}"
        for row in rows
        for name, reason in row.get("failures", {}).items()
    ]
    return "\n".join(["Failures:", "", *lines]) if lines else ""


def _rates(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        line(("kernel", "dtype", "shape", "TFLOP/s", "fastest baseline's", "of peak")),
        line(["---"] * _LEFT + ["---:"] * 3),
    ]
    for row in rows:
        theirs = row["baselines_tflops"].get(row["fastest"])
        rates = (row["tflops"] if row["correct"] else None, theirs)
        share = row["peak_share"] if row["correct"] else None
        lines.append(line([*_names(row), *map(_time, rates), cut(share)]))
    return "\n".join(lines)


def _summary(groups: Mapping[str, Any]) -> str:
    """Lists the geometric means. A mean never appears without the median, the worst and the count
    of faster rows."""
    head = (
        "rows",
        "count",
        "failed",
        "faster",
        "geometric mean",
        "median",
        "min",
        "max",
        "of roofline, geometric mean",
    )
    lines = [
        "Speed-up over the fastest baseline of each row:",
        "",
        line(head),
        line(["---"] + ["---:"] * (len(head) - 1)),
    ]
    for name, s in groups.items():
        ratios = (
            s["geometric_mean"],
            s["median"],
            s["min"],
            s["max"],
            s["roofline_share_geometric_mean"],
        )
        counts = (s["rows"], s["failed"], s["faster"])
        lines.append(line([name, *map(str, counts), *map(cut, ratios)]))
    return "\n".join(lines)


def _names(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["kernel"], row["dtype"], " ".join(f"{k}={v}" for k, v in row["shape"].items())


def _time(us: float | None) -> str:
    """Formats microseconds. None gives `failed`; a time that was not raced gives nothing."""
    if us is None:
        return "failed"
    return f"{us:.1f}" if us else ""


def _error(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return "-" if value is None else f"{value:.1e}"


if __name__ == "__main__":
    sys.exit(main())
