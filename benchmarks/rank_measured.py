"""Ranks candidates that were measured on a device by the time model, without a device.

The candidates are those of searches, from their stores, and those of contests, from result files of
`benchmarks.contest`. Only correct candidates with a measured time count; of a search, one that took
the outcome of an equal source is left out. Candidates of one kernel at one shape are ranked
together. The model has the figures of a search's builds. A contest's file has no figures of single
launches, so its candidates are modelled without them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, cast

from backends.backend import ModelsTime
from backends.registry import backend, served_by, target
from benchmarks.candidates import CONTESTS
from benchmarks.rank_table import Row, summary, write
from benchmarks.results import read
from benchmarks.throughput import runs_of
from ir.digest import text_digest
from ir.errors import KernelError
from ir.estimate.cost import roofline
from ir.estimate.estimate import estimate
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.schedule import parse_schedule
from search.core.evaluation import Evaluation
from search.core.lowered import nest_of
from search.core.stored import StoredRun
from search.loop.retold import told

EXAMPLES = """
examples:
  python3 -m benchmarks.rank_measured --target=h200 --backend=cutedsl --store=found/runs.db --out=rank.json
  python3 -m benchmarks.rank_measured --target=h200 --backend=cutedsl --contests=contests.json --out=rank.json
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns 2 for bad input, with nothing written."""
    asked = _parser().parse_args(arguments)
    try:
        machine = target(asked.target)
        for file in (*asked.store, *asked.contests):
            if not file.is_file():
                raise KernelError("there is no such file", where=str(file))
        rows = [row for file in asked.store for row in of_searches(file, machine, asked.backend)]
        for file in asked.contests:
            rows += of_contests(file, machine, asked.backend)
        if not rows:
            raise KernelError(
                f"no candidate of `{asked.backend}` was measured for `{asked.target}` there",
                where=", ".join(map(str, (*asked.store, *asked.contests))) or "--store, --contests",
                allowed="stores of searches on the device, and result files of benchmarks.contest",
            )
    except KernelError as error:
        print(f"rank_measured: {error}", file=sys.stderr)
        return 2
    write(asked.out, _head(asked), rows)
    for name, found in summary(rows)["kernels"].items():
        print(f"{name}: {found['timed']} timed, modelled {found['modelled']}")
    print(summary(rows)["overall"])
    return 0


def of_searches(store: Path, machine: Machine, name: str) -> Iterator[Row]:
    """Yields the rows of the searches in a store."""
    for run in runs_of(store):
        if run.settings.target == machine.name:
            yield from _rows(run, machine, name)


def of_contests(file: Path, machine: Machine, name: str) -> Iterator[Row]:
    """Yields the rows of a result file of contests."""
    table = read(file)
    if table.get("backend") != name:
        return
    for row in table["rows"]:
        kernel, sizes = row["kernel"], row["shape"]
        work = next(
            c.work() for c in CONTESTS.values() if (c.kernel, c.dtype) == (kernel, row["dtype"])
        )
        for one in row["candidates"]:
            if one.get("us") and one.get("correct"):
                text = "\n".join([f"schedule({work.spec.name})", *one["schedule"]]) + "\n"
                served = served_by(machine, backend(name))
                try:
                    nest = lower(work.spec, parse_schedule(text), served, sizes)
                except KernelError as error:  # The language has changed since.
                    print(f"rank_measured: {one['label']} is left out: {error}", file=sys.stderr)
                    continue
                yield _row(nest, name, text, sizes, one["us"], {}, machine)


def _rows(run: StoredRun, machine: Machine, name: str) -> Iterator[Row]:
    asked = {c.key: c for generation in run.generations for c in generation}
    twins = run.keys("same")
    sizes = run.settings.sizes
    for key, outcome in told(run).items():
        one = asked.get(key)
        if one is None or one.backend != name or one.source is not None or key in twins:
            continue
        if isinstance(outcome, Evaluation) and outcome.time_kind == "measured":
            nest = nest_of(one, served_by(machine, backend(name)), sizes)
            yield _row(nest, name, one.schedule, sizes, outcome.us, outcome.figures, machine)


def _row(
    nest: LoopNest,
    name: str,
    schedule: str,
    sizes: Mapping[str, int],
    measured_us: float,
    figures: Mapping[str, float],
    machine: Machine,
) -> Row:
    """Returns the row of a measured candidate, with what the model says of it.

    figures: of its build; empty where they are unknown.
    """
    language = backend(name)
    served, models = served_by(machine, language), cast(ModelsTime, language)
    guessed = models.model(nest, served, sizes, {}).us
    shape = " ".join(f"{size}={number}" for size, number in sizes.items())
    return {
        "kernel": f"{nest.spec.name} {shape}",
        "backend": name,
        "dtype": nest.spec.outputs[0].dtype,
        "shape": dict(sizes),
        "schedule": text_digest(schedule),
        "schedule_text": schedule,
        "us": measured_us,
        "time_kind": "measured",
        "correct": True,
        "correct_by": "device",
        "reason": "",
        "guessed_us": guessed,
        "estimated_us": estimate(nest, served, sizes),
        "roofline_us": roofline(nest.spec, served, sizes).us,
        "modelled_us": models.model(nest, served, sizes, figures).us if figures else guessed,
        "measured_us": measured_us,
    }


def _head(asked: argparse.Namespace) -> dict[str, Any]:
    files = "".join(f" --store={file.parent.name}/{file.name}" for file in asked.store)
    files += "".join(f" --contests={file.name}" for file in asked.contests)
    command = (
        f"python3 -m benchmarks.rank_measured --target={asked.target} --backend={asked.backend}"
    )
    return {
        "command": f"{command}{files} --out={asked.out.name}",
        "date": date.today().isoformat(),
        "measured_on": sorted({*_of_stores(asked), *_of_contests(asked)}),
    }


def _of_stores(asked: argparse.Namespace) -> Iterator[str]:
    """Yields the devices and toolchains of the searches."""
    for run in (run for store in asked.store for run in runs_of(store)):
        if found := run.environment.get("backends", {}).get(asked.backend):
            yield f"{found['device']}, {found['driver']}, {found['toolchain']}"


def _of_contests(asked: argparse.Namespace) -> Iterator[str]:
    """Yields the devices and toolchains of the contests."""
    for table in map(read, asked.contests):
        built = ", ".join(table["built_by"].values())
        yield f"{table['machine']}, driver {table['driver']}, {built}"


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "rank_measured",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True, help="the target of the candidates")
    made.add_argument("--backend", required=True, help="the backend whose candidates are ranked")
    made.add_argument(
        "--store", type=Path, action="append", default=[], help="a store of searches; repeatable"
    )
    made.add_argument(
        "--contests", type=Path, action="append", default=[], help="a result file; repeatable"
    )
    made.add_argument("--out", required=True, type=Path, help="the result file")
    return made


if __name__ == "__main__":
    sys.exit(main())
