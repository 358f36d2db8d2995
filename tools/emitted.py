"""Renews the emitted kernels that pages of docs/ show, each from the schedule shown above it.

A marker `<!-- emitted: KERNEL TARGET -->` follows the schedule, a block of text that begins with
`schedule(KERNEL)`; what stands between it and `<!-- end -->` is replaced by the kernel's functions
as the target's backend emits them, without heading and launcher.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from backends.registry import backend_for, target
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.schedule import parse_schedule
from tools.kernels import named
from tools.pages import command

DOCS = Path("docs")
EXAMPLES = """
examples:
  emitted
      rewrites the kernels
  emitted --check
      says whether they are what is emitted; exit code 1 where they are not
"""
_MARKED = re.compile(r"(<!-- emitted: (\w+) (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SCHEDULE = re.compile(r"```text\n(schedule\((\w+)\)\n.*?)```", re.DOTALL)
_FIRST, _AFTER = "\n@", "\n\ndef launch("  # of the functions: a decorator, and what follows


def page(text: str) -> str:
    """The page with every marked kernel emitted anew; KernelError, BackendError for a marker
    without a schedule, or one that does not lower."""

    def fill(found: re.Match[str]) -> str:
        shown = [m[1] for m in _SCHEDULE.finditer(text[: found.start()]) if m[2] == found[2]]
        if not shown:
            raise KernelError(
                f"no schedule of `{found[2]}` stands above its marker",
                hint=f"show it as text that begins with schedule({found[2]})",
            )
        return f"{found[1]}```python\n{kernels(found[2], shown[-1], found[3])}```\n{found[4]}"

    return _MARKED.sub(fill, text)


def kernels(name: str, schedule: str, machine: str) -> str:
    """The device's functions of a kernel of the library, with a schedule, for a target."""
    workload = named(name)
    found = target(machine)
    nest = lower(workload.spec, parse_schedule(schedule, name), found, workload.timed_sizes)
    source = backend_for(found).emit(nest, found)
    return source[source.index(_FIRST) : source.index(_AFTER)].strip() + "\n"


def written(root: Path) -> Mapping[Path, str]:
    """The texts of all pages by their paths, below the root of a tree."""
    pages = sorted((root / DOCS).glob("*.md"))
    return {p.relative_to(root): page(p.read_text(encoding="utf-8")) for p in pages}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit code 2 for wrong use."""
    return command("emitted", __doc__, EXAMPLES, written, "is emitted", arguments)


if __name__ == "__main__":
    sys.exit(main())
