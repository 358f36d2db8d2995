"""Races the library's kernels against PyTorch on the cores of this machine, and writes a result
file.

Each kernel is raced at its tuning sizes, with the schedule of its record if there is one, else with
the autoschedule. Both sides use the same cores and the same clock (`backends/shared/clock.py`):
warm-up calls, then the median. Data stay in caches if they fit. The sides alternate for some
rounds, each with new arrays of ours, and a row has the median round. Run nothing else meanwhile:
`load` of a row is the load of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from datetime import date
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np
import torch

from backends.measure import check
from backends.program.tensors import TORCH
from backends.registry import backend_for, target
from backends.shared.clock import measured
from benchmarks.baselines import BASELINES
from benchmarks.shapes import asked_kernels
from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload
from ir.reference.inputs import random_inputs
from ir.workload import LIBRARY

ROOT = Path(__file__).parent.parent
OURS = "ours"
ROUNDS = 5
EXAMPLES = """
examples:
  python3 -m search.evolve --target=cpu --evaluations=60      # first, for each kernel: --kernel=NAME
  python3 -m benchmarks.local --target=cpu --out=benchmarks/results/cpu/starter.json
"""


def raced(name: str, machine_name: str, baselines: list[str]) -> dict[str, Any]:
    """Returns one kernel's row: microseconds of ours and of each baseline."""
    machine = target(machine_name)
    backend = backend_for(machine)
    work = parse_workload((LIBRARY / f"{name}.kir").read_text(encoding="utf-8"), name)
    record = ROOT / "kernels_generated" / name / machine_name / "schedule.sched"
    if record.exists():
        schedule = parse_schedule(record.read_text(encoding="utf-8"))
    else:
        schedule = autoschedule(work.spec, machine, work.timed_sizes)
    nest = lower(work.spec, schedule, machine, work.timed_sizes)
    inputs = random_inputs(work.spec, work.timed_sizes, np.random.default_rng(0))
    with tempfile.TemporaryDirectory() as folder:
        built = backend.build(backend.emit(nest, machine), nest, machine, Path(folder))
        for sizes in work.checks:
            check(backend, built, nest, machine, work.spec, sizes, seed=5)
        tensors = [torch.from_numpy(inputs[t.name]).to(TORCH[t.dtype]) for t in work.spec.inputs]
        calls = {b: _called(BASELINES[name].call, b, tensors) for b in baselines}
        rounds: dict[str, list[float]] = {who: [] for who in (OURS, *calls)}
        for _ in range(ROUNDS):
            ours = backend.time(built, nest, machine, work.timed_sizes, inputs)
            rounds[OURS].append(ours.us)
            for baseline, call in calls.items():
                rounds[baseline].append(measured(call).us)
    times = {who: round(median(found), 2) for who, found in rounds.items()}
    fastest = min(calls, key=times.__getitem__)
    return {
        "kernel": name,
        "sizes": dict(work.timed_sizes),
        "schedule": "record" if record.exists() else "autoschedule",
        "us": times[OURS],
        "baselines_us": {baseline: times[baseline] for baseline in calls},
        "rounds_us": {who: [round(us, 2) for us in found] for who, found in rounds.items()},
        "fastest": fastest,
        "speedup": times[fastest] / times[OURS],
        "correct_by": "device",
        "time_kind": ours.kind,
        "load": round(os.getloadavg()[0], 2),
    }


def _called(call: Callable[..., Any], mode: str, tensors: list[torch.Tensor]) -> Callable[[], None]:
    """Returns a call of PyTorch's form. It is compiled first."""
    made = call if mode == "eager" else torch.compile(call, dynamic=False)

    def called() -> None:
        with torch.no_grad():
            made(*tensors)

    called()
    return called


def summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Summarizes the speed-ups over the fastest baseline."""
    found = [row["speedup"] for row in rows]
    return {
        "rows": len(rows),
        "faster": sum(ratio > 1 for ratio in found),
        "geometric_mean": geometric_mean(found),
        "median": median(found),
        "min": min(found),
        "max": max(found),
    }


def main() -> int:
    """Races, and writes the file after each row."""
    made = argparse.ArgumentParser(
        prog="benchmarks.local",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True, help="a target for this machine's CPU")
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument("--kernels", default="", help="kernels, separated by commas (default: all)")
    made.add_argument(
        "--baselines", default="eager,compile", help="eager and compile, separated by commas"
    )
    given = made.parse_args()
    names = asked_kernels(given.kernels)
    machine = target(given.target)
    can = backend_for(machine).available(machine)
    if can["time_kind"] != "measured":
        raise KernelError(f"nothing is measured here: {can['why'] or can['time_kind']}")
    head = {
        "command": f"python3 -m benchmarks.local --target={given.target} --out={given.out.name}",
        "date": date.today().isoformat(),
        "machine": can["device"],
        "versions": {
            "compiler": can["toolchain"],
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "threads": torch.get_num_threads(),
        "rounds": ROUNDS,
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for name in names:
        rows.append(row := raced(name, given.target, given.baselines.split(",")))
        found = summary(rows)
        table = head | {"summary": found, "rows": rows}
        given.out.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {row['us']} us, {row['speedup']:.2f}x the fastest", flush=True)
    print(f"geometric mean over the fastest: {found['geometric_mean']:.3f}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KernelError as error:
        sys.exit(str(error))
