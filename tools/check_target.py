"""Checks target files and prints all errors of each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from backends.registry import REGISTRY, target
from ir.errors import KernelError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command. Returns 0 if every file is valid, 2 if one is not."""
    parser = argparse.ArgumentParser(prog="check_target", description=__doc__)
    parser.add_argument("file", metavar="FILE.toml", nargs="+", help="a target file")
    wrong = False
    for file in parser.parse_args(argv).file:
        found = REGISTRY.faults(file)
        wrong = wrong or bool(found)
        print(report(file, found))
    return 2 if wrong else 0


def report(file: str, found: Sequence[KernelError]) -> str:
    """Describes the errors of a file, or the target if there are none."""
    if found:
        count = f"{len(found)} fault{'s' if len(found) > 1 else ''}"
        return "\n".join((f"{file}: {count}", *(str(error) for error in found)))
    read = target(file if "/" in file else f"./{file}")
    return f"{file}: right: `{read.name}` of class `{read.model.name}`, {', '.join(read.backends)}"


if __name__ == "__main__":
    sys.exit(main())
