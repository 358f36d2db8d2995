"""Renews the emitted kernels in the pages of docs/, each from the schedule above it.

A marker `<!-- emitted: KERNEL TARGET -->` follows the schedule, which is a text block that begins
with `schedule(KERNEL)`. The command replaces the text between the marker and `<!-- end -->` by the
kernel's functions as the target's backend emits them, without the heading and the launcher.
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
      checks that they match the emitted kernels; exit code 1 if not
"""
_MARKED = re.compile(r"(<!-- emitted: (\w+) (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SCHEDULE = re.compile(r"```text\n(schedule\((\w+)\)\n.*?)```", re.DOTALL)
# The text before the first function, a decorator, and the text after the last.
_FIRST, _AFTER = "\n@", "\n\ndef launch("


def page(text: str) -> str:
    """Returns the page with every marked kernel emitted again.

    Raises KernelError or BackendError for a marker without a schedule, or for a schedule that does
    not lower.
    """

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
    """Returns the device functions of a library kernel with a schedule, for a target."""
    workload = named(name)
    found = target(machine)
    nest = lower(workload.spec, parse_schedule(schedule, name), found, workload.timed_sizes)
    source = backend_for(found).emit(nest, found)
    return source[source.index(_FIRST) : source.index(_AFTER)].strip() + "\n"


def written(root: Path) -> Mapping[Path, str]:
    """Returns the texts of all pages by their paths, below the root of a checkout."""
    pages = sorted((root / DOCS).glob("*.md"))
    return {p.relative_to(root): page(p.read_text(encoding="utf-8")) for p in pages}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage."""
    return command("emitted", __doc__, EXAMPLES, written, "the emitted kernels", arguments)


if __name__ == "__main__":
    sys.exit(main())
