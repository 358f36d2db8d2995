"""Times variants of schedules on a GPU, to show the effect of single decisions.

Each variant is built, checked at the kernel's check sizes and timed, in its own process. Builds
come first, in parallel. A variant that does not lower, does not build or is wrong has a reason
instead of a time. The file is written after each row. Rows of other topics stay. Without the GPU,
variants are built, checked elsewhere and modelled, and the file says so.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from datetime import date
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from backends.backend import BackendError, Built
from backends.gpu.child import in_child
from backends.measure import check
from backends.registry import backend, served_by, target
from benchmarks.results import Table, read, save
from benchmarks.verb_cases import VerbCase, verb_cases
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_schedule
from ir.reference.inputs import random_inputs

EXAMPLES = """
examples:
  python3 -m benchmarks.verb_effects --target=h200 --backend=cuda --out=benchmarks/results/h200/verb_effects.json
  python3 -m benchmarks.verb_effects --target=h100 --backend=cuda --topics=roles,epilogue --out=x.json
"""
FIGURES = ("registers", "spills", "shared_bytes", "occupancy")
RUN_SECONDS = 60.0
SEED = 21  # Seed of the inputs.


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns 0 if all variants were tried, 2 for wrong usage."""
    asked = _parser().parse_args(arguments)
    every = list(verb_cases())
    topics = [t for t in asked.topics.split(",") if t]
    known = dict.fromkeys(c.topic for c in every)
    try:
        for topic in topics:
            if topic not in known:
                raise KernelError(f"there is no topic `{topic}`", allowed=", ".join(known))
        machine = served_by(target(asked.target), backend(asked.backend))
    except KernelError as error:
        print(f"verb_effects: {error}", file=sys.stderr)
        return 2
    said = backend(asked.backend).available(machine)
    command = (
        f"python3 -m benchmarks.verb_effects --target={asked.target} --backend={asked.backend}"
    )
    head: Table = {
        "command": f"{command} --out=FILE",
        "date": date.today().isoformat(),
        "machine": machine.title,
        "backend": asked.backend,
        "toolchain": said.get("toolchain", ""),
        "correct_by": said["correct_by"],
    }
    mine = [c for c in every if not topics or c.topic in topics]
    rows = [r for r in read(asked.out)["rows"] if r["topic"] not in {c.topic for c in mine}]
    for row in effects(mine, machine, asked.backend):
        rows.append(row)
        save(asked.out, head | {"rows": sorted(rows, key=lambda r: list(known).index(r["topic"]))})
    if said["correct_by"] == "device":
        from benchmarks.device import facts  # This opens the GPU. Afterwards no child could.

        head |= facts()
    save(asked.out, head | {"rows": read(asked.out)["rows"]})
    return 0


def effects(cases: Sequence[VerbCase], machine: Machine, language: str) -> Iterator[Table]:
    """Yields the row of each case when it is complete."""
    with tempfile.TemporaryDirectory(prefix="effects-") as name:
        folders = [Path(name) / str(n) for n in range(len(cases))]
        with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("fork")) as pool:
            jobs = [pool.submit(_built, *one, machine, language) for one in zip(cases, folders)]
            found = [job.result() for job in jobs]
        for case, folder, built in zip(cases, folders, found):
            row: Table = asdict(case) | {"us": None, "time_kind": None, "reason": ""}
            if isinstance(built, str):
                row["reason"] = built
            else:
                row["figures"] = {n: built.figures[n] for n in FIGURES if n in built.figures}
                row |= _timed(case, built, machine, language, folder)
            print(json.dumps(row), flush=True)
            yield row


def _nest(case: VerbCase, machine: Machine) -> LoopNest:
    spec = case.work().spec
    text = "\n".join((f"schedule({spec.name})", *case.lines)) + "\n"
    return lower(spec, parse_schedule(text), machine, case.sizes)


def _built(case: VerbCase, folder: Path, machine: Machine, language: str) -> Built | str:
    """Returns the build of a case, or why there is none."""
    folder.mkdir()
    serving = backend(language)
    try:
        nest = _nest(case, machine)
        return serving.build(serving.emit(nest, machine), nest, machine, folder)
    except (BackendError, KernelError) as error:
        return str(error).splitlines()[0]


def _timed(case: VerbCase, built: Built, machine: Machine, language: str, folder: Path) -> Table:
    """Returns the time of a correct build, or what is wrong."""
    serving, work = backend(language), case.work()
    inputs = _inputs(case.kernel, tuple(case.sizes.items()))  # The child inherits them.

    def run() -> Table:
        nest = _nest(case, machine)
        for sizes in work.checks:
            check(serving, built, nest, machine, work.spec, sizes, SEED)
        timing = serving.time(built, nest, machine, case.sizes, inputs)
        return {"us": round(timing.us, 2), "time_kind": timing.kind}

    try:
        return in_child(run, RUN_SECONDS, "time", folder)
    except (BackendError, KernelError) as error:
        return {"reason": str(error).splitlines()[0]}


@lru_cache(maxsize=1)
def _inputs(kernel: str, sizes: tuple[tuple[str, int], ...]) -> Mapping[str, np.ndarray]:
    """Returns the inputs of a kernel. Neighbouring cases share them."""
    spec = VerbCase("", "", kernel, dict(sizes), ()).work().spec
    return random_inputs(spec, dict(sizes), np.random.default_rng(SEED))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="verb_effects",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--target", required=True, help="a target that is a GPU")
    parser.add_argument("--backend", required=True, help="the backend of the kernels")
    parser.add_argument("--topics", default="", help="topics, separated by commas (default: all)")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    return parser


if __name__ == "__main__":
    sys.exit(main())
