"""Measures real searches on this machine, and models searches with more workers than it has.

`measure` runs the searches and writes their times. The run with one worker, and its candidates
again on two workers without a search, provide all figures of the model. The other runs are compared
with it. `model` writes the model's predictions for these runs, and for larger ones.
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

CALIBRATING = 1  # Workers of the run that provides the model's figures.
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
    """Runs the command and returns its exit code."""
    asked = _parser().parse_args(arguments)
    if asked.what == "measure":
        return measure(asked)
    return model(asked)


def measure(asked: argparse.Namespace) -> int:
    """Runs real searches. Each is added to the file, or replaces one with as many workers."""
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
    """Formats the stages of a candidate on one line, as `cases.stages_of` reads them."""
    return " ".join(f"{name} {seconds:.{DIGITS}f}" for name, seconds in stages)


def model(asked: argparse.Namespace) -> int:
    """Writes the model's predictions."""
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
    """Returns a real run with the model's prediction, and the error."""
    from dataclasses import replace

    from benchmarks.scale.cases import local_case, means
    from benchmarks.scale.model import simulated

    case = local_case(calibration, run["workers"], run["evaluations"])
    found = means([simulated(replace(case, seed=seed)) for seed in range(10)])
    error = found["throughput"] / run["throughput"] - 1
    return {**run, "modelled": found, "error": round(error, 4)}


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns for each name the smallest number of slots or searches beyond which at most 5% are
    gained."""
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
    two.add_argument("--measured", type=Path, required=True, help="the result file of `measure`")
    two.add_argument("--target", choices=("npu", "h200"), required=True)
    two.add_argument("--core-hour", type=float, default=0.05, help="price (default: %(default)s)")
    two.add_argument("--device-hour", type=float, default=4.0, help="price (default: %(default)s)")
    two.add_argument("--out", type=Path, required=True)
    return made


if __name__ == "__main__":
    sys.exit(main())
