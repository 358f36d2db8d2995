"""Measures the cost of checking a candidate: the seconds of each stage of its evaluation.

Each kernel's seed schedule passes through the evaluator several times with each backend of a
target: as the project emits it, and as a source from someone else, which gets a clean process. If a
GPU runs the kernels, some kernels with large fixed sizes follow, which have no other sizes to
check.

The cost of a check, which is subject to the limit, excludes the time in which it waits for others
that use the device. Compiling for the check sizes is a separate build.
"""

from __future__ import annotations

import argparse
import platform
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

from backends.measure import leaves_inputs
from backends.registry import backend_for, served_by, target
from backends.served import Served
from benchmarks import device as machine_room
from benchmarks.check_times import processor
from benchmarks.results import save
from benchmarks.shapes import asked_kernels
from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Machine
from ir.parse.parse import parse_spec, parse_workload
from ir.print import spec_text
from ir.sizes import bind, shape
from ir.spec import Spec
from ir.workload import LIBRARY, Sizes
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Evaluation, Failure
from search.evaluator.local import LocalEvaluator
from search.evaluator.sandbox import Limits
from search.evaluator.stages import Bench
from search.evaluator.worker import START, TO_CHECK, WAITED

ROUNDS = 4  # Rounds of each source. The first opens the device.
CPU_SECONDS = 240
EMITTED, EDITED = "emitted", "edited"
LARGE = (
    "def relu(x: f32[16384, 16384]) -> f32[16384, 16384]:\n"
    "    y[m, n] = maximum(x[m, n], 0.0)\n    return y\n",
    "def middle_relu(x: f32[1024, 1024]) -> f32[1024, 1024]:\n"
    "    y[m, n] = maximum(x[m, n], 0.0)\n    return y\n",
    "def wide_softmax(x: f32[4096, 32768]) -> f32[4096, 32768]:\n"
    "    mx[m] = max(x[m, k], k)\n    e[m, k] = exp(x[m, k] - mx[m])\n"
    "    s[m] = sum(e[m, k], k)\n    y[m, k] = e[m, k] / s[m]\n    return y\n",
    "def best(x: f32[8192, 8192]) -> i32[8192]:\n    y[m] = argmax(x[m, k], k)\n    return y\n",
    "def product(x: bf16[4096, 4096], w: bf16[4096, 4096]) -> bf16[4096, 4096]:\n"
    "    y[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)\n    return y\n",
)
EXAMPLES = """
examples:
  python3 -m benchmarks.gate --target=h200 --out=benchmarks/results/h200/gate.json
  python3 -m benchmarks.gate --target=npu --out=gate.json --kernels=softmax,map_id
"""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel to evaluate."""

    spec: Spec
    sizes: Sizes
    checks: tuple[Sizes, ...]

    @property
    def numbers(self) -> int:
        """The number of elements of inputs and outputs at the timed sizes."""
        bound = bind(self.spec, self.sizes)
        return sum(prod(shape(t, bound)) for t in (*self.spec.inputs, *self.spec.outputs))


def subjects(names: Sequence[str], gpu: bool) -> Iterator[Subject]:
    """Yields library kernels. If a GPU runs them, it also yields those with large fixed sizes."""
    for name in names:
        work = parse_workload((LIBRARY / f"{name}.kir").read_text(encoding="utf-8"), name)
        yield Subject(work.spec, work.timed_sizes, work.checks)
    for text in LARGE if gpu else ():
        head, _, body = text.partition("\n")
        yield Subject(parse_spec(f'{head}\n    """Of fixed sizes."""\n{body}'), {}, ())


def evaluated(
    one: Subject, served: Served, secret: str, rounds: int, kinds: Sequence[str]
) -> Iterator[Row]:
    """Evaluates a kernel with a backend. Yields a row for each kind of source."""
    machine, backend, spec = served.machine, served.backend, one.spec
    schedule = autoschedule(spec, machine, one.sizes)
    emitted = backend.emit(lower(spec, schedule, machine, one.sizes), machine)
    bench = Bench(
        spec_text(spec),
        machine,
        partial(backend_for, machine, served.name),
        one.sizes,
        one.checks,
        secret=secret,
        limits=Limits(cpu=CPU_SECONDS, seconds=1800.0),
    )
    began = time.monotonic()
    with LocalEvaluator([bench], workers=1) as evaluator:
        setup = time.monotonic() - began
        for kind in kinds:
            found = []
            for number in range(rounds):
                source = None if kind == EMITTED else emitted + "\n" * (number + 1)
                asked = Candidate(spec_text(spec), str(schedule), machine.name, served.name, source)
                found += [outcome for _, outcome in evaluator.evaluate([asked])]
            yield _row(one, served.name, kind, found, setup)


def _row(one: Subject, backend: str, kind: str, found: Sequence[Evaluated], setup: float) -> Row:
    last = found[-1]
    stages: dict[str, list[float]] = {}
    for outcome in found[1:]:
        for stage, seconds in outcome.seconds.items():
            stages.setdefault(stage, []).append(seconds)
    right = all(isinstance(outcome, Evaluation) for outcome in found)
    return {
        "kernel": one.spec.name,
        "backend": backend,
        "source": kind,
        "numbers": one.numbers,
        "setup_s": round(setup, 2),  # Setup of a worker, with its references.
        "seconds": {stage: round(median(some), 3) for stage, some in stages.items()},
        "accepted": right,
        **({"reason": " ".join(last.reason.split())[:300]} if isinstance(last, Failure) else {}),
    }


def check_seconds(row: Mapping[str, Any]) -> tuple[float, float]:
    """Returns the seconds of a row's check, and the seconds in which it waited for the device."""
    waited = row["seconds"].get(WAITED, 0.0)
    return row["seconds"]["check"] - waited, waited


def summary(rows: Sequence[Mapping[str, Any]]) -> Row:
    """Summarizes the accepted rows by kind of source.

    It has the median and the maximum of the check's own seconds, and the maxima of the waits, of
    the builds for a check, and of the start of a process.
    """
    made: Row = {"accepted": sum(r["accepted"] for r in rows), "rows": len(rows)}
    for kind in (EMITTED, EDITED):
        some = [r for r in rows if r["accepted"] and r["source"] == kind]
        made[kind] = _summed(some) if some else None
    return made


def _summed(rows: Sequence[Mapping[str, Any]]) -> Row:
    own, waited = zip(*map(check_seconds, rows), strict=True)
    return {
        "median_s": round(median(own), 3),
        "most_s": round(max(own), 3),
        "most_waited_s": max(waited),
        "most_built_s": max(r["seconds"].get(TO_CHECK, 0.0) for r in rows),
        "most_start_s": max(r["seconds"].get(START, 0.0) for r in rows),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluates, and writes the file as rows complete."""
    given = _parser().parse_args(arguments)
    machine, names, rows = target(given.target), asked_kernels(given.kernels), []
    served = _served(machine)
    gpu = any(leaves_inputs(s.backend, s.machine) for s in served)
    kinds = (EMITTED,) if given.emitted else (EMITTED, EDITED)
    secret, end = given.secret or secrets.token_hex(16), time.monotonic() + given.seconds
    head = _head(given, machine, secret, gpu)

    def tried(each: tuple[Subject, Served]) -> list[Row] | None:
        one, by = each
        if time.monotonic() > end:
            return None
        try:
            return list(evaluated(one, by, secret, given.rounds, kinds))
        except KernelError as error:  # A kernel that a backend does not support.
            print(f"{one.spec.name} by {by.name}: {error}", file=sys.stderr)
            return []

    complete = True
    with ThreadPoolExecutor(given.at_once) as pool:
        for made in pool.map(tried, product(subjects(names, gpu), served)):
            complete &= made is not None
            if made:
                rows += made
                save(given.out, {**head, "summary": summary(rows), "rows": rows})
                print(*made, sep="\n", flush=True)
    if not complete:
        print("no time was left for all", file=sys.stderr)
    return int(not complete or not all(row["accepted"] for row in rows))


def _served(machine: Machine) -> list[Served]:
    """Returns the backends that can check and time here. Raises KernelError if there is none."""
    every = [Served(b, served_by(machine, b)) for b in _backends(machine)]
    able = [s for s in every if s.backend.available(s.machine).get("correct_by")]
    if not able:
        raise KernelError(f"nothing can evaluate kernels for `{machine.name}` here")
    return able


def _backends(machine: Machine) -> list[Any]:
    return [backend_for(machine, name) for name in machine.backends]


def _head(given: argparse.Namespace, machine: Machine, secret: str, gpu: bool) -> Row:
    here = machine_room.facts() if gpu else {}
    return {
        "gate": True,
        "command": f"python3 -m benchmarks.gate --target={machine.name} --out={given.out.name}",
        "date": date.today().isoformat(),
        "machine": processor(),
        "python": platform.python_version(),
        **here,
        "secret": secret,
        "rounds": given.rounds,
        "at_once": given.at_once,
    }


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="benchmarks.gate",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True)
    made.add_argument("--out", required=True, type=Path, help="the result file; it is overwritten")
    made.add_argument("--kernels", default="", help="kernels, separated by commas (default: all)")
    made.add_argument(
        "--rounds", type=int, default=ROUNDS, help="rounds; the first does not count in the median"
    )
    made.add_argument("--emitted", action="store_true", help="only evaluate emitted sources")
    made.add_argument("--secret", default="", help="the secret that determines inputs and shapes")
    made.add_argument("--at-once", type=int, default=1, help="evaluations in parallel")
    made.add_argument(
        "--seconds", type=float, default=3600.0, help="start no kernel after this number of seconds"
    )
    return made


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KernelError as error:
        print(f"benchmarks.gate: {error}", file=sys.stderr)
        sys.exit(2)
