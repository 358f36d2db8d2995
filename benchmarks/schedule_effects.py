"""Simulates variants of schedules, to show the effect of single decisions on a simulated machine.

The simulator is deterministic, so a row is the same on every computer. A variant that does not
lower, or does not fit, has a reason instead of a time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import BackendError
from backends.registry import backend_for, target
from benchmarks.effect_cases import Case, cases
from benchmarks.results import Table, save
from ir.errors import KernelError
from ir.estimate.cost import roofline
from ir.estimate.estimate import intensity
from ir.lower.lower import lower, settled
from ir.machine import Machine
from ir.parse.parse import parse_schedule, parse_workload
from ir.reference.inputs import random_inputs
from ir.schedule import Schedule
from ir.workload import LIBRARY, Workload

EXAMPLES = """
examples:
  python3 -m benchmarks.schedule_effects --target=npu --out=benchmarks/results/npu/effects.json
  python3 -m benchmarks.schedule_effects --target=npu_small --topics=depth,tiles --out=x.json
"""
SEED = 20  # Seed of the inputs.


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns 0 if all variants were tried, 2 for wrong usage."""
    asked = _parser().parse_args(arguments)
    topics = [t for t in asked.topics.split(",") if t]
    known = dict.fromkeys(c.topic for c in cases())
    try:
        for topic in topics:
            if topic not in known:
                raise KernelError(f"there is no topic `{topic}`", allowed=", ".join(known))
        machine = target(asked.target)
        rows = [effect(c, machine) for c in cases() if not topics or c.topic in topics]
    except KernelError as error:
        print(f"schedule_effects: {error}", file=sys.stderr)
        return 2
    head = {
        "command": f"python3 -m benchmarks.schedule_effects --target={asked.target} --out=FILE",
        "date": date.today().isoformat(),
        "machine": machine.title,
    }
    save(asked.out, {**head, "rows": rows})
    return 0


def effect(case: Case, machine: Machine) -> Table:
    """Returns the row of a case: its time, the busy and the stalled share of each engine, and
    bytes."""
    work = _workload(case)
    spec, sizes = work.spec, dict(work.timed_sizes)
    schedule = schedule_of(case, machine)
    row: Table = {
        "topic": case.topic,
        "variant": case.variant,
        "kernel": case.kernel,
        "shape": sizes,
        "schedule_text": str(schedule),
        "us": None,
        "time_kind": None,
        "reason": "",
    }
    try:
        nest = lower(spec, schedule, machine, sizes)
        facts = intensity(nest, machine, sizes)
        backend = backend_for(machine)
        inputs = random_inputs(spec, sizes, np.random.default_rng(SEED))
        with tempfile.TemporaryDirectory(prefix="effects-") as folder:
            built = backend.build(backend.emit(nest, machine), nest, machine, Path(folder))
            timing = backend.time(built, nest, machine, sizes, inputs)
    except (KernelError, BackendError) as error:
        return {**row, "reason": str(error).splitlines()[0]}
    row |= {
        "us": timing.us,
        "time_kind": timing.kind,
        "roofline_us": roofline(spec, machine, sizes).us,
    }
    row["engines"] = _rounded(timing.engines)
    row["figures"] = _rounded({**timing.figures, **facts})
    return row


def schedule_of(case: Case, machine: Machine) -> Schedule:
    """Returns the schedule of a case without stages of what is moved once. Cases of a kernel share
    lines."""
    work = _workload(case)
    schedule = parse_schedule("\n".join((f"schedule({work.spec.name})", *case.lines)) + "\n")
    try:
        return settled(work.spec, schedule, machine, work.timed_sizes).schedule
    except KernelError:  # The lowering reports the reason.
        return schedule


def _workload(case: Case) -> Workload:
    file = LIBRARY / f"{case.kernel}.kir"
    return parse_workload(file.read_text(encoding="utf-8"), case.kernel)


def _rounded(table: Mapping[str, Any]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in table.items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="schedule_effects",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--target", required=True, help="a simulated target")
    parser.add_argument("--topics", default="", help="topics, separated by commas (default: all)")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    return parser


if __name__ == "__main__":
    sys.exit(main())
