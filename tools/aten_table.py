"""Writes the tables of docs/aten.md from benchmarks/results/<target>/aten.json.

The prose of the page is written by hand. The command replaces the text between
`<!-- table: counts -->`, `operators` or `failures` and `<!-- end -->`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.markdown import line
from tools.pages import command

PAGE = Path("docs/aten.md")
RESULTS = Path("benchmarks/results")
EXAMPLES = """
examples:
  aten_table
      rewrites the tables
  aten_table --check
      checks that they match the result files; exit code 1 if not
"""
_MARKED = re.compile(r"(<!-- table: (counts|operators|failures) -->\n).*?(<!-- end -->)", re.DOTALL)
_SIGNS = {"pass": "", "fail": "**fails**", "not expressible": "none"}

Files = Mapping[str, Mapping[str, Any]]  # Result files by target.


def files(results: Path) -> dict[str, Any]:
    """Returns the result files below a folder by target, in alphabetical order."""
    found = sorted(results.glob("*/aten.json"))
    return {p.parent.name: json.loads(p.read_text(encoding="utf-8")) for p in found}


def page(text: str, found: Files) -> str:
    """Returns the page with every marked table rewritten."""
    tables = {"counts": counts, "operators": operators, "failures": failures}
    return _MARKED.sub(lambda m: f"{m[1]}{tables[m[2]](found)}{m[3]}", text)


def counts(found: Files) -> str:
    """Counts the operators with each verdict, for each target and dtype."""
    lines = [
        line(("target", "correct by", "dtype", "operators", "pass", "fail", "no equations")),
        line(["---"] * 3 + ["---:"] * 4),
    ]
    for target, file in found.items():
        by = ", ".join(sorted({r["correct_by"] for r in file["rows"]}))
        for dtype in ("f32", "bf16", "f16", "i64", "b8"):
            group = file["summary"].get(dtype)
            if group:
                numbers = (group["rows"], *(group.get(verdict, 0) for verdict in _SIGNS))
                lines.append(line((target, by, dtype, *map(str, numbers))))
    return "\n".join(lines) + "\n"


def operators(found: Files) -> str:
    """Lists, for each operator and target, the dtypes that pass and those that do not."""
    names = {r["operator"]: None for file in found.values() for r in file["rows"]}
    lines = [line(("operator", *found)), line(["---"] * (1 + len(found)))]
    for name in sorted(names, key=lambda n: (n.strip("_"), n)):
        rows = ([r for r in f["rows"] if r["operator"] == name] for f in found.values())
        lines.append(line((f"`{name}`", *map(_cell, rows))))
    return "\n".join(lines) + "\n"


def _cell(rows: Sequence[Mapping[str, Any]]) -> str:
    order = sorted(rows, key=lambda r: ("f32", "bf16", "f16", "i64", "b8").index(r["dtype"]))
    said = (f"{r['dtype']} {_SIGNS[r['verdict']]}".strip() for r in order)
    return ", ".join(said) + (" (properties)" if _by_properties(rows) else "")


def _by_properties(rows: Sequence[Mapping[str, Any]]) -> bool:
    return any(r.get("judged_by") == "properties" for r in rows)


def failures(found: Files) -> str:
    """Lists what does not pass, with the reason."""
    lines = [
        line(("operator", "dtype", "target", "samples that pass", "reason")),
        line(["---"] * 5),
    ]
    for target, file in found.items():
        for row in file["rows"]:
            if row["verdict"] != "pass":
                share = f"{row['passed']} of {row['samples']}"
                reason = row["reason"].replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
                lines.append(line((f"`{row['operator']}`", row["dtype"], target, share, reason)))
    return "\n".join(lines) + "\n" if len(lines) > 2 else "Nothing.\n"


def written(root: Path) -> Mapping[Path, str]:
    """Returns the text of the page by its path, below the root of a checkout."""
    text = (root / PAGE).read_text(encoding="utf-8")
    return {PAGE: page(text, files(root / RESULTS))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage."""
    return command("aten_table", __doc__, EXAMPLES, written, "the result files", arguments)


if __name__ == "__main__":
    sys.exit(main())
