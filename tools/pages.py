"""A command that rewrites pages, or checks that they are up to date."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from backends.backend import BackendError
from ir.errors import KernelError

_FAULTS = (KernelError, BackendError, OSError, ValueError, KeyError)


def command(
    name: str,
    doc: str,
    examples: str,
    made: Callable[[Path], Mapping[Path, str]],
    source: str,
    arguments: Sequence[str] | None,
) -> int:
    """Runs the command.

    Returns exit code 1 if `--check` finds a different text, 2 for wrong usage or input.

    doc: docstring of the command's module. Its first line is the description.
    made: given the root of a checkout, returns the texts by their paths below it.
    source: names the origin of the texts, in words.
    """
    parser = argparse.ArgumentParser(
        prog=name,
        description=doc.splitlines()[0],
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    asked = parser.parse_args(arguments)
    root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    try:
        texts = made(root)
    except _FAULTS as error:
        said = error if isinstance(error, KernelError) else f"{type(error).__name__}: {error}"
        print(f"{name}: {said}", file=sys.stderr)
        return 2
    stale = [path for path, text in texts.items() if _text(root / path) != text]
    if asked.check:
        lines = [f"{path} does not match {source}" for path in stale]
        print("\n".join(lines) or "up to date")
        return int(bool(stale))
    for path in stale:
        (root / path).write_text(texts[path], encoding="utf-8")
    return 0


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
