"""Measures real searches on this machine, and models searches on more workers than it has.

`measure` runs the searches and writes what they took. The run on one worker, and its candidates once more on two
workers without a search, give the model all its figures; the other runs are what it is compared with. `model`
writes what the model says of these runs, and of larger ones.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

from backends.shared.host import processor
from benchmarks.results import save

CALIBRATING = 1  # workers of the run that the model's figures are from
DIGITS = 5
EXAMPLES = """
examples:
  chrt -r 50 python3 -m benchmarks.scale measure --workers 1 2 4 8 --out=benchmarks/results/npu/scale.json
  python3 -m benchmarks.scale model --measured=benchmarks/results/npu/scale.json --target=npu \\
      --out=benchmarks/results/npu/scale.json
  python3 -m benchmarks.scale model --measured=benchmarks/results/npu/scale.json --target=h200 \\
      --out=benchmarks/results/h200/scale.json
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    asked = _parser().parse_args(arguments)
    if asked.what == "measure":
        return measure(asked)
    return model(asked)


def measure(asked: argparse.Namespace) -> int:
    """Real searches; each is added to the file, in the place of one with as many workers."""
    from benchmarks.scale.real import RealSearch, alone, traced

    wanted = RealSearch(evaluations=asked.evaluations)
    result: dict[str, Any] = {"runs": []}
    if asked.out.is_file():
        result = json.loads(asked.out.read_text(encoding="utf-8"))
    for workers in asked.workers:
        trace, candidates = traced(wanted, workers)
        if workers == CALIBRATING:
            held = trace.figures()["held"]
            pair = alone(wanted, candidates, 2)
            result["calibration"] = {
                "cores": len(os.sched_getaffinity(0)),
                "speeds": [1.0, round(min(1.0, held / pair.figures()["held"]), DIGITS)],
                "first": trace.first,
                "told": round(fmean(trace.told), DIGITS),
                "asked": [round(seconds, DIGITS) for seconds in trace.asked],
                "stages": [said(stages) for stages in trace.stages()],
            }
        figures = {name: round(value, DIGITS) for name, value in trace.figures().items()}
        row = {"kind": "measured", "workers": workers, **figures}
        others = [run for run in result["runs"] if run["workers"] != workers]
        result["runs"] = sorted([*others, row], key=lambda run: run["workers"])
        print(json.dumps(row), flush=True)
        head = _head("npu", asked, f"{processor()}, {len(os.sched_getaffinity(0))} cores")
        save(asked.out, {**result, **head, "searched": _said(wanted)})
    return 0


def said(stages: Sequence[tuple[str, float]]) -> str:
    """The stages of a candidate in one line, as `cases.stages_of` reads them."""
    return " ".join(f"{name} {seconds:.{DIGITS}f}" for name, seconds in stages)


def model(asked: argparse.Namespace) -> int:
    """What the model says."""
    from benchmarks.scale import cases

    measured = json.loads(asked.measured.read_text(encoding="utf-8"))
    calibration = measured["calibration"]
    prices = {"core_hour": asked.core_hour, "device_hour": asked.device_hour, "kind": "assumed"}
    result: dict[str, Any] = {"prices": prices}
    if asked.target == "npu":
        result |= {**measured, "runs": [compared(calibration, run) for run in measured["runs"]]}
        named = cases.npu_cases(calibration)
    else:
        times, sources = cases.device_times(calibration)
        result["sources"] = sources
        named = cases.device_cases(times, calibration["first"])
    rows = []
    for each in named:
        rows.append(cases.row(each, asked.core_hour, asked.device_hour))
        print(json.dumps(rows[-1]), flush=True)
    result |= {"prices": prices, "rows": rows, "summary": summary(rows)}
    save(asked.out, {**result, **_head(asked.target, asked, measured["machine"])})
    return 0


def compared(calibration: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """A real run with what the model says of it, and how far that is off."""
    from dataclasses import replace

    from benchmarks.scale.cases import local_case, means
    from benchmarks.scale.model import simulated

    case = local_case(calibration, run["workers"], run["evaluations"])
    found = means([simulated(replace(case, seed=seed)) for seed in range(10)])
    error = found["throughput"] / run["throughput"] - 1
    return {**run, "modelled": found, "error": round(error, 4)}


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """For each name, the fewest slots or searches from which on no more than 5% are gained."""
    found = {}
    for name in dict.fromkeys(row["name"] for row in rows):
        own = [row for row in rows if row["name"] == name]
        most = max(row["throughput"] for row in own)
        if len(own) > 1:
            first = next(row for row in own if row["throughput"] >= 0.95 * most)
            found[name] = {"slots": first["slots"], "searches": first["searches"]}
    return found


def _head(target: str, asked: argparse.Namespace, machine: str) -> dict[str, Any]:
    what = {
        "measure": "chrt -r 50 python3 -m benchmarks.scale measure",
        "model": f"python3 -m benchmarks.scale model --target={target}",
    }
    return {
        "scale": target,
        "command": what[asked.what],
        "date": date.today().isoformat(),
        "machine": machine,
        "versions": {"python": platform.python_version(), "simpy": version("simpy")},
    }


def _said(wanted: Any) -> dict[str, Any]:
    return {
        "target": wanted.target,
        "kernel": wanted.kernel,
        "sizes": dict(wanted.sizes),
        "evaluations": wanted.evaluations,
        "seed": wanted.seed,
    }


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python3 -m benchmarks.scale",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = made.add_subparsers(dest="what", required=True)
    one = parts.add_parser("measure", help="real searches on this machine")
    one.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    one.add_argument("--evaluations", type=int, default=64)
    one.add_argument("--out", type=Path, required=True)
    two = parts.add_parser("model", help="what the model says")
    two.add_argument("--measured", type=Path, required=True, help="what `measure` wrote")
    two.add_argument("--target", choices=("npu", "h200"), required=True)
    two.add_argument("--core-hour", type=float, default=0.05, help="price (default: %(default)s)")
    two.add_argument("--device-hour", type=float, default=4.0, help="price (default: %(default)s)")
    two.add_argument("--out", type=Path, required=True)
    return made


if __name__ == "__main__":
    sys.exit(main())
