"""Writes the tables of docs/starter_kernels.md from the records of kernels_generated/.

The prose of the page is written by hand. The command replaces the text between a marker
`<!-- table: TARGET -->` and `<!-- end -->` by the table of the target.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping, Sequence
from math import exp, log
from pathlib import Path
from statistics import median

from backends.registry import target_names
from ir.errors import KernelError
from search.record.record import Record, read_record, record_folders
from tools.markdown import cut
from tools.pages import command

PAGE = Path("docs/starter_kernels.md")
NOTHING = "No records yet.\n"
EXAMPLES = """
examples:
  kernel_table
      rewrites the tables
  kernel_table --check
      checks that they match the records; exit code 1 if not
"""
_MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_HEAD = (
    "| kernel | shape | plain us | first us | best us | over first | over plain | of roofline |",
    "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
)


def table(records: Sequence[Record]) -> str:
    """Returns the table of one target's records, sorted by kernel name.

    Geometric means and medians follow the table. Ratios are truncated to two digits, never rounded
    up.

    Raises KernelError if the times were obtained in different ways.
    """
    kinds = {_how(r) for r in records}
    if len(kinds) != 1:
        raise KernelError(f"records obtained in different ways stand in one table: {kinds}")
    alone, correct_by, time_kind, device = kinds.pop()
    ratios = [r.first_us / r.us for r in records if r.first_us is not None]
    shares = [r.roofline_us / r.us for r in records if r.roofline_us is not None]
    lines = [*_HEAD, *(_row(r) for r in records)]
    lines.append("")
    lines.append(
        f"{f'By `{alone}` alone. ' if alone else ''}Correct by {correct_by}, time {time_kind}{f' on {device}' if device else ''}. "
        f"Over the first schedule: {_middle(ratios)}. Share of the roofline: {_middle(shares)}."
    )
    return "\n".join(lines) + "\n"


def page(text: str, records: Sequence[Record], targets: Collection[str]) -> str:
    """Returns the page with every marked table rewritten.

    If the records of a target were obtained in different ways, it has several tables. A target
    without records gets a line that says so. Raises KernelError for an unknown target.
    """

    def fill(found: re.Match[str]) -> str:
        if found[2] not in targets:
            raise KernelError(f"there is no target `{found[2]}`", allowed=", ".join(targets))
        rows = sorted((r for r in records if r.target == found[2]), key=lambda r: r.kernel)
        if not rows:
            return f"{found[1]}{NOTHING}{found[3]}"
        groups = {how: [r for r in rows if _how(r) == how] for how in sorted(set(map(_how, rows)))}
        return f"{found[1]}{chr(10).join(map(table, groups.values()))}{found[3]}"

    return _MARKED.sub(fill, text)


def written(root: Path) -> Mapping[Path, str]:
    """Returns the text of the page by its path, below the root of a checkout."""
    folders = record_folders(root / "kernels_generated")
    records = [read_record(folder).record for folder in folders]
    text = (root / PAGE).read_text(encoding="utf-8")
    return {PAGE: page(text, records, target_names())}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage."""
    return command("kernel_table", __doc__, EXAMPLES, written, "the records", arguments)


def _row(r: Record) -> str:
    shape = " ".join(f"{k}={v}" for k, v in r.shape.items())
    if r.workload:
        shape = f"{len(r.workload)} shapes, in the mean"
    ratios = (us and cut(us / r.us) for us in (r.first_us, r.plain_us, r.roofline_us))
    times = (us and f"{us:.2f}" for us in (r.plain_us, r.first_us, r.us))
    return f"| {r.kernel} | {shape} | {' | '.join(cell or '-' for cell in (*times, *ratios))} |"


def _how(r: Record) -> tuple[str, str, str, str]:
    """Returns what must be equal for all records of a table: the backend if the search used only
    one, and how results and times were obtained."""
    return r.backend if r.narrowed else "", r.correct_by, r.time_kind, r.device or ""


def _middle(ratios: Sequence[float]) -> str:
    if not ratios:
        return "not known"
    return f"geometric mean {cut(_geometric(ratios))}, median {cut(median(ratios))}"


def _geometric(ratios: Sequence[float]) -> float:
    return exp(sum(log(x) for x in ratios) / len(ratios))


if __name__ == "__main__":
    sys.exit(main())
