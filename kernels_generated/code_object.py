"""Compiles a record's source to the code object that a device loads; a Bazel rule runs it for each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from backends.backend import BackendError
from backends.registry import compile_source, target
from ir.errors import KernelError
from search.record.record import RECORD, parse_record


def main(words: Sequence[str]) -> int:
    """The command; exit code 1 where the source does not compile."""
    parser = argparse.ArgumentParser(prog="code_object", description=__doc__)
    parser.add_argument("--source", required=True, type=Path, help="beside its record.toml")
    parser.add_argument("--out", required=True, type=Path, help="the code object")
    asked = parser.parse_args(words)
    file = asked.source.parent / RECORD
    try:
        record = parse_record(file.read_text(encoding="utf-8"), str(file))
        compile_source(record.backend, asked.source, target(record.target), asked.out)
    except (KernelError, BackendError) as error:
        print(f"code_object: {asked.source}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
