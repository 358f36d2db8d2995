"""Builds the kernels of the library for one target in all its languages, and writes the build
reports.

All backends build the same schedule, the first one of a search. Nothing runs: figures are those of
the compiled code, times are modelled at the tuned sizes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from backends.backend import BackendError
from backends.registry import backend, served_by, target
from benchmarks.results import save
from benchmarks.shapes import asked_kernels
from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_workload
from ir.workload import LIBRARY

OF_BUILD = ("registers", "spills", "shared_bytes", "occupancy")
OF_LOOPS = ("matrix", "shared", "load", "arithmetic")  # Instructions in a loop.
Row = dict[str, Any]


def built(kernel: str, machine_name: str, language: str) -> Row:
    """Returns the figures of a kernel in one language, or why there are none."""
    serving = backend(language)
    machine = served_by(target(machine_name), serving)
    work = parse_workload((LIBRARY / f"{kernel}.kir").read_text(encoding="utf-8"), kernel)
    try:
        nest = lower(
            work.spec, autoschedule(work.spec, machine, work.timed_sizes), machine, work.timed_sizes
        )
        with tempfile.TemporaryDirectory() as folder:
            made = serving.build(serving.emit(nest, machine), nest, machine, Path(folder))
        found: Row = {name: made.figures[name] for name in OF_BUILD}
        for name in OF_LOOPS:
            counts = (made.figures[f"{one.name}.loop.{name}"] for one in nest.launches)
            found[f"loop.{name}"] = sum(counts)
        matrix = sum(made.figures[f"{one.name}.mix.matrix"] for one in nest.launches)
        guessed = serving.time(made, nest, machine, work.timed_sizes, {})
        if guessed.kind != "modelled":
            raise KernelError(f"`{language}` measures here: use benchmarks.languages")
        return found | {"mix.matrix": matrix, "us": round(guessed.us, 2)}
    except BackendError as error:
        return {"failure": str(error)}


def ratios(rows: Sequence[Row], one: str, other: str) -> dict[str, Any]:
    """Returns the modelled speed-up of the second language over the first."""
    found = [r[one]["us"] / r[other]["us"] for r in rows if "us" in r[one] and "us" in r[other]]
    return {
        "kernels": len(found),
        "geometric_mean": geometric_mean(found) if found else None,
        "min": min(found, default=None),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds, and writes the file."""
    made = argparse.ArgumentParser(prog="benchmarks.static_figures", description=__doc__)
    made.add_argument("--target", required=True, help="a target that several backends serve")
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument("--kernels", default="", help="kernels, separated by commas (default: all)")
    given = made.parse_args(arguments)
    names = asked_kernels(given.kernels)
    machine = target(given.target)
    languages = machine.backends
    rows = []
    for kernel in names:
        rows.append({"kernel": kernel} | {b: built(kernel, given.target, b) for b in languages})
        print(json.dumps(rows[-1]), flush=True)
    save(
        given.out,
        {
            "command": f"python3 -m benchmarks.static_figures --target={given.target} "
            f"--out={given.out.name}",
            "date": date.today().isoformat(),
            "machine": machine.title,
            "toolchains": {b: backend(b).available(machine)["toolchain"] for b in languages},
            "static": list(languages),
            "summary": {b: ratios(rows, languages[0], b) for b in languages[1:]},
            "rows": rows,
        },
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KernelError as error:
        print(f"benchmarks.static_figures: {error}", file=sys.stderr)
        sys.exit(2)
