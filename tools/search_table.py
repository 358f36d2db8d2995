"""Writes the tables and the plot of docs/search_ablation.md from a result file of searches.

The prose of the page is written by hand. The command replaces the text between
`<!-- table: origin -->`, `policies`, `wins`, `variations`, `kernels`, `operators` or `testbed` and
`<!-- end -->`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.search.statistics import summary
from tools.markdown import line
from tools.pages import command
from tools.search_plot import plot

PAGE = Path("docs/search_ablation.md")
DRAWING = Path("docs/search_ablation.svg")
RESULTS = "benchmarks/results/*/search.json"  # The file of one target.
OF_TESTBED = "benchmarks/results/*/search_testbed.json"  # One file for each target.
NOTHING = "Not run yet.\n"
EXAMPLES = """
examples:
  search_table
      rewrites the tables and the drawing
  search_table --check
      checks that they match the result files; exit code 1 if not
"""
_MARKED = re.compile(
    r"(<!-- table: (origin|policies|wins|variations|kernels|operators|testbed) -->\n).*?(<!-- end -->)",
    re.DOTALL,
)

File = Mapping[str, Any]


def result(root: Path) -> Path:
    """Returns the result file of a checkout. Raises FileNotFoundError if there is none."""
    found = sorted(root.glob(RESULTS))
    if not found:
        raise FileNotFoundError(f"there is no {RESULTS}")
    return found[0]


def page(text: str, found: File, beds: Sequence[File] = ()) -> str:
    """Returns the page with every marked table rewritten. beds: the files of the testbed, by
    target."""

    def table(name: str) -> str:
        return testbed(beds) if name == "testbed" else TABLES[name](found)

    return _MARKED.sub(lambda m: f"{m[1]}{table(m[2]) or NOTHING}{m[3]}", text)


def testbed(beds: Sequence[File]) -> str:
    """Returns, for each target, the origin, the policies, the kernels and the operators; then the
    policies on all targets."""
    parts = (
        "\n".join((f"On `{bed['rows'][0]['target']}`: {origin(bed)}", *(t(bed) for t in _OF_BED)))
        for bed in beds
    )
    return "\n".join(filter(None, (*parts, together(beds) if len(beds) > 1 else "")))


def together(beds: Sequence[File]) -> str:
    """Lists the policies over the blocks of all targets. Empty if no block has a baseline."""
    rows = [{**r, "kernel": f"{r['target']} {r['kernel']}"} for bed in beds for r in bed["rows"]]
    found = summary(rows)["policies"]
    targets = ", ".join(f"`{bed['rows'][0]['target']}`" for bed in beds)
    lines = [line(("policy", "mean rank", "final time / `tpe`")), line(["---", "---:", "---:"])]
    for row in found["rows"]:
        if row["over"]:
            shown = (_range(row["rank"], ".2f"), _range(row["over"], ".3f"))
            lines.append(line((f"`{row['configuration']}`", *shown)))
    if len(lines) == 2:
        return ""
    said = f"On {targets} together, {len(found['blocks'])} blocks:\n"
    return "\n".join((said, *lines)) + "\n"


def drawing(found: File) -> str:
    """Returns the plot of all policies, the best first."""
    return plot(found["rows"], [r["configuration"] for r in found["summary"]["policies"]["rows"]])


def origin(found: File) -> str:
    """Returns a sentence with the origin of the numbers."""
    rows = found["rows"]
    blocks = found["summary"]["policies"]["blocks"]
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    kinds = ", ".join(sorted({r["time_kind"] for r in rows if r["time_kind"]}))
    by = ", ".join(sorted({r["correct_by"] for r in rows if r["correct_by"]}))
    kernels = len({kernel for kernel, _ in blocks})
    sources = len({r["sources"] for r in rows})
    made_by = "one version" if sources == 1 else f"{sources} versions"
    return (
        f"`{found['command']}`, {found['date']}, {found['machine']}: {len(rows)} searches of "
        f"{rows[0]['evaluations']} evaluations each by {made_by} of the search's sources, "
        f"times {kinds}, correct by {by}; policies are compared in {len(blocks)} blocks (a kernel "
        f"with a seed) of {kernels} kernels; {found['summary']['failed']} searches found nothing "
        f"correct. {versions}.\n"
    )


def policies(found: File) -> str:
    """Lists the policies by mean rank."""
    head = (
        "policy",
        "mean rank",
        "area",
        "final time / best known",
        "final time / `tpe`",
        "evaluations until 95%",
        "got there",
    )
    lines = [line(head), line(["---", *["---:"] * 6])]
    forms = {"rank": ".2f", "area": ".4f", "final": ".4f", "over": ".3f", "near": ".0f"}
    for row in found["summary"]["policies"]["rows"]:
        figures = (_range(row[k], f) if row[k] else "not run" for k, f in forms.items())
        lines.append(line((f"`{row['configuration']}`", *figures, f"{row['got_near']:.0%}")))
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def wins(found: File) -> str:
    """Lists in which share of the blocks the policy of a line has a smaller area than that of a
    column."""
    table = found["summary"]["policies"]["wins"]
    lines = [line(("beats", *(f"`{n}`" for n in table))), line(["---", *["---:"] * len(table)])]
    for name, over in table.items():
        cells = ("" if other == name else f"{over[other]:.0%}" for other in table)
        lines.append(line((f"`{name}`", *cells)))
    return "\n".join(lines) + "\n" if table else ""


def variations(found: File) -> str:
    """Lists each variation with what it varies."""
    head = (
        "variation",
        "blocks",
        "area, difference",
        "final time, ratio",
        "evaluations until 95%, difference",
        "wins",
        "says",
    )
    lines = [line(head), line(["---", *["---:"] * 5, "---"])]
    for row in found["summary"]["variations"]:
        if row["blocks"]:
            figures = (
                _range(row[k], f) for k, f in (("area", "+.4f"), ("final", ".4f"), ("near", "+.1f"))
            )
            words = (str(row["blocks"]), *figures, f"{row['wins']:.0%}", _verdict(row["area"]))
            lines.append(line((f"`{row['configuration']}`", *words)))
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def kernels(found: File) -> str:
    """Lists for each kernel its first time, the best known time, and which policy found that."""
    best = found["summary"]["best_known_us"]
    head = ("kernel", "searches", "first, us", "best known, us", "roofline, us", "found by")
    lines = [line(head), line(["---", *["---:"] * 4, "---"])]
    for kernel, us in best.items():
        rows = [r for r in found["rows"] if r["kernel"] == kernel]
        by = sorted({r["configuration"] for r in rows if r["us"] == us})
        times = (rows[0]["first_us"], us, rows[0]["roofline_us"])
        named = ", ".join(f"`{n}`" for n in by[:3]) + (f" and {len(by) - 3} more" if by[3:] else "")
        lines.append(line((kernel, str(len(rows)), *(f"{t:.3f}" for t in times), named)))
    return "\n".join(lines) + "\n" if best else ""


def operators(found: File) -> str:
    """Lists for each operator its number of children, and how many of them were gains."""
    made: dict[str, list[int]] = {}
    for row in found["rows"]:
        for name, (count, gains) in row["operators"].items():
            had = made.setdefault(name, [0, 0])
            made[name] = [had[0] + count, had[1] + gains]
    lines = [line(("operator", "children", "gains", "of a hundred")), line(["---", *["---:"] * 3])]
    for name, (count, gains) in sorted(made.items(), key=lambda m: -m[1][1] / m[1][0]):
        lines.append(line((f"`{name}`", str(count), str(gains), f"{100 * gains / count:.1f}")))
    return "\n".join(lines) + "\n" if made else ""


def _range(found: Mapping[str, float], form: str) -> str:
    return f"{found['value']:{form}} ({found['low']:{form}} to {found['high']:{form}})"


def _verdict(area: Mapping[str, float]) -> str:
    """Returns what the interval of the difference in area says about the variation."""
    if area["low"] > 0:
        return "worse"
    return "better" if area["high"] < 0 else "no difference shown"


TABLES: Mapping[str, Callable[[File], str]] = {
    "origin": origin,
    "policies": policies,
    "wins": wins,
    "variations": variations,
    "kernels": kernels,
    "operators": operators,
}
_OF_BED = (policies, kernels, operators)


def written(root: Path) -> Mapping[Path, str]:
    """Returns the texts of the page and of the plot by their paths, below the root of a
    checkout."""
    found = json.loads(result(root).read_text(encoding="utf-8"))
    text = (root / PAGE).read_text(encoding="utf-8")
    beds = [json.loads(f.read_text(encoding="utf-8")) for f in sorted(root.glob(OF_TESTBED))]
    return {PAGE: page(text, found, beds), DRAWING: drawing(found)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage."""
    return command("search_table", __doc__, EXAMPLES, written, "the result file", arguments)


if __name__ == "__main__":
    sys.exit(main())
