"""Writes the table of rewrites in docs/search.md from the docstrings of the rewrites.

The command replaces the text between `<!-- table: rewrites -->` and `<!-- end -->`.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ir.rewrites import REWRITES, Rewrite
from tools.markdown import line
from tools.pages import command

PAGE = Path("docs/search.md")
EXAMPLES = """
examples:
  rewrite_table
      rewrites the table
  rewrite_table --check
      checks that it matches the rewrites; exit code 1 if not
"""
_MARKED = re.compile(r"(<!-- table: rewrites -->\n).*?(<!-- end -->)", re.DOTALL)
_SAID = re.compile(r"before:(.*?)after:(.*?)When equal:(.*)", re.DOTALL)


def page(text: str, rewrites: Mapping[str, Rewrite]) -> str:
    """Returns the page with the table rewritten.

    Raises ValueError if the page has no marker, or if a rewrite does not describe itself.
    """
    if not _MARKED.search(text):
        raise ValueError("there is no `<!-- table: rewrites -->`")
    return _MARKED.sub(lambda m: f"{m[1]}{table(rewrites)}{m[2]}", text)


def table(rewrites: Mapping[str, Rewrite]) -> str:
    """Returns a line for each rewrite: its name, before, after, and when the two are equal."""
    lines = [line(("rewrite", "before", "after", "when equal")), line(["---"] * 4)]
    for name, rewrite in rewrites.items():
        found = _SAID.search(inspect.getdoc(rewrite) or "")
        if found is None:
            raise ValueError(f"`{name}` does not say what is before it and after it")
        said = (" ".join(part.split()).replace("|", "\\|") for part in found.groups())
        before, after, when = said
        lines.append(line((f"`{name}`", f"`{before}`", f"`{after}`", when)))
    return "\n".join(lines) + "\n"


def written(root: Path) -> Mapping[Path, str]:
    """Returns the text of the page by its path, below the root of a checkout."""
    return {PAGE: page((root / PAGE).read_text(encoding="utf-8"), REWRITES)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage."""
    return command("rewrite_table", __doc__, EXAMPLES, written, "the rewrites", arguments)


if __name__ == "__main__":
    sys.exit(main())
