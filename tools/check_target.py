"""Checks a target file and says all that is wrong with it at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from backends.registry import REGISTRY, target
from ir.errors import KernelError


def main(argv: Sequence[str] | None = None) -> int:
    """The command; 0 where every file is right, 2 where one is wrong."""
    parser = argparse.ArgumentParser(prog="check_target", description=__doc__)
    parser.add_argument("file", metavar="FILE.toml", nargs="+", help="a target file")
    wrong = False
    for file in parser.parse_args(argv).file:
        found = REGISTRY.faults(file)
        wrong = wrong or bool(found)
        print(report(file, found))
    return 2 if wrong else 0


def report(file: str, found: Sequence[KernelError]) -> str:
    """What is wrong with a file, or what it describes."""
    if found:
        count = f"{len(found)} fault{'s' if len(found) > 1 else ''}"
        return "\n".join((f"{file}: {count}", *(str(error) for error in found)))
    read = target(file if "/" in file else f"./{file}")
    return f"{file}: right: `{read.name}` of class `{read.model.name}`, {', '.join(read.backends)}"


if __name__ == "__main__":
    sys.exit(main())
