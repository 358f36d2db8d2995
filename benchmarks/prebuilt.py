"""Builds kernels of `benchmarks.languages` or `benchmarks.contest` on a machine without their GPU.

The machine with the GPU may lack the compiler of a backend. So this command compiles each kernel
for its tuning and check sizes, and writes the files with the digest of each. With
`--built=FOLDER`, the other two commands check and time exactly these files.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from backends.backend import Carries
from backends.registry import backend, target
from benchmarks.built import INDEX, place, sha256
from benchmarks.candidates import Candidate, asked_contests
from benchmarks.languages import CASES, Case, Row, asked, figures_of, forked, lowered, waited
from benchmarks.results import replace
from ir.errors import KernelError

SECONDS = 900.0  # Limit for the code of one kernel at all its sizes.
EXAMPLES = """
examples:
  python3 -m benchmarks.prebuilt --target=h200 --out=built
  python3 -m benchmarks.languages --target=h200 --built=built --out=benchmarks/results/h200/cutedsl.json
  python3 -m benchmarks.prebuilt --target=h200 --contests=all --backends=cutedsl --out=built
"""


def built(
    case: Case | Candidate, machine_name: str, language: str, schedules: str, folder: Path
) -> Row:
    """Builds a kernel for all its sizes into a folder. Returns its figures and the digests of its
    files."""
    one = lowered(case, machine_name, language, schedules)
    serving = one.serving
    assert isinstance(serving, Carries)
    folder.mkdir(parents=True)
    made = serving.build(serving.emit(one.nest, one.machine), one.nest, one.machine, folder)
    serving.complete(
        made, one.nest, one.machine, [one.work.timed_sizes, *case.more, *one.work.checks]
    )
    return {
        "source": made.file.name,
        "figures": dict(made.figures),
        "sha256": made.sha256,
        "files": {f.name: sha256(f) for f in sorted(folder.iterdir()) if f.is_file()},
    }


def carrying(machine_name: str) -> tuple[str, ...]:
    """Returns the backends of a target whose code runs without their compiler."""
    names = target(machine_name).backends
    return tuple(n for n in names if isinstance(backend(n), Carries))


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds, and writes the folder."""
    made = argparse.ArgumentParser(
        prog="benchmarks.prebuilt",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True, help="the target of the kernels")
    made.add_argument("--out", required=True, type=Path, help="a new folder")
    made.add_argument("--kernels", default="", help="kernels, separated by commas (default: all)")
    made.add_argument(
        "--contests", default="", help="build the candidates of these contests instead, or of `all`"
    )
    made.add_argument("--backends", default="", help="backends (default: all that can)")
    made.add_argument("--schedules", default="", help="build with its records instead")
    given = made.parse_args(arguments)
    can = carrying(given.target)
    languages = tuple(n for n in given.backends.split(",") if n) or can
    if unknown := [n for n in languages if n not in can]:
        raise KernelError(f"`{unknown[0]}` builds nothing to carry", allowed=", ".join(can))
    if given.out.exists():
        raise KernelError("the folder already exists", where=str(given.out))
    schedules = given.schedules or given.target
    pairs: list[tuple[Case | Candidate, str]] = [
        (c, b)
        for x in asked_contests(given.contests)
        for b in languages
        for c in x.candidates(schedules, b)
    ]
    if not given.contests:
        pairs = [(CASES[k], b) for k in asked(given.kernels) for b in languages]
    given.out.mkdir(parents=True)
    kernels: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as answers:
        children: dict[int, tuple[Path, float]] = {}
        for case, language in pairs:
            waited(children, os.cpu_count() or 1)
            name = place(case.name, language)
            own = (case, given.target, language, schedules, given.out / name)
            answer = Path(answers) / name
            children[forked(lambda o=own: built(*o), answer)] = answer, time.monotonic() + SECONDS
            kernels[name] = {"failure": "build: no answer in time"}
        waited(children, 1)
        for name in kernels:
            if (answer := Path(answers) / name).exists():
                kernels[name] = json.loads(answer.read_text(encoding="utf-8"))
            print(json.dumps({"kernel": name} | figures_of(kernels[name])), flush=True)
    machine = target(given.target)
    table = {
        "target": given.target,
        "schedules": schedules,
        "toolchains": {b: backend(b).available(machine).get("toolchain", "") for b in languages},
        "kernels": kernels,
    }
    replace(given.out / INDEX, json.dumps(table, indent=1) + "\n")
    return int(any("failure" in row for row in kernels.values()))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KernelError as error:
        print(f"benchmarks.prebuilt: {error}", file=sys.stderr)
        sys.exit(2)
