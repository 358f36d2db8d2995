"""Renews the levels of a kernel that docs/how_a_spec_becomes_a_kernel.md shows.

A marker `<!-- shown: KERNEL TARGET LEVEL -->` follows its schedule, which is a text block that
begins with `schedule(KERNEL)`. The command replaces the text between the marker and `<!-- end -->`
by the level as `show` prints it. The level `own` means all levels that the target's backend adds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from backends.registry import target
from ir.errors import KernelError
from tools.kernels import named
from tools.pages import command
from tools.show import LEVELS, Lowered, levels, lowered, shown

PAGE = Path("docs/how_a_spec_becomes_a_kernel.md")
OWN = "own"
EXAMPLES = """
examples:
  walkthrough
      rewrites what is shown
  walkthrough --check
      checks that it matches the lowered kernels; exit code 1 if not
"""
_MARKED = re.compile(r"(<!-- shown: (\w+) (\w+) (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SCHEDULE = re.compile(r"```text\n(schedule\((\w+)\)\n.*?)```", re.DOTALL)
_FENCES = {"spec": "python", "variant": "python"}  # The highlighting of a level's text.
_LANGUAGES = {"py": "python", "cc": "c++"}  # The highlighting of a source, by its file extension.


def page(text: str) -> str:
    """Returns the page with every marked level printed again.

    Raises KernelError or BackendError for a marker with an unknown kernel, target or level, or for
    a schedule that does not lower.
    """

    def fill(found: re.Match[str]) -> str:
        start, kernel, name, level, end = found.groups()
        above = [m[1] for m in _SCHEDULE.finditer(text[: found.start()]) if m[2] == kernel]
        if not above and level != "spec":
            raise KernelError(
                f"no schedule of `{kernel}` stands above its marker",
                hint=f"show it as text that begins with schedule({kernel})",
            )
        one = lowered(named(kernel), target(name), above[-1] if above else "")
        return start + "\n".join(_blocks(one, level)) + end

    return _MARKED.sub(fill, text)


def _blocks(one: Lowered, level: str) -> Iterator[str]:
    """Yields one level as a fenced block, or all levels of the backend with a line above each."""
    if level != OWN:
        yield _fenced(one, level)
        return
    for name in levels(one):
        if name not in LEVELS:
            yield f"The level `{name}`:\n\n{_fenced(one, name)}"


def _fenced(one: Lowered, level: str) -> str:
    extension = one.backend.manifest.extension
    fence = _LANGUAGES.get(extension, "text") if level == "source" else _FENCES.get(level, "text")
    return f"```{fence}\n{shown(one, level).strip()}\n```\n"


def written(root: Path) -> Mapping[Path, str]:
    """Returns the text of the page by its path, below the root of a checkout."""
    return {PAGE: page((root / PAGE).read_text(encoding="utf-8"))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage."""
    return command("walkthrough", __doc__, EXAMPLES, written, "the lowered kernels", arguments)


if __name__ == "__main__":
    sys.exit(main())
