"""Ranks drawn schedules of the library's kernels by the time model and by a device's clock.

Kernels are emitted and built in parallel, then timed one after the other, cold. Every row has the
terms of the model, so its weights can be fitted to the file without a device. A row is `correct` if
its results agree with those of the kernel's first schedule, the autoschedule. The value is null if
it has not run.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, cast

from backends.backend import BackendError, ModelsTime, Warms
from backends.registry import backend_for, served_by, target
from backends.served import Served
from benchmarks.draws import SIZES, Draw, draws
from benchmarks.rank_table import Row, read, summary, write
from benchmarks.remodel import remodel
from benchmarks.results import placeless
from benchmarks.stopwatch import Stopwatch, TimingJob
from ir.errors import KernelError
from ir.estimate.cost import roofline
from ir.estimate.estimate import estimate
from ir.machine import Machine

EXAMPLES = """
examples:
  python3 -m benchmarks.model_rank --target=h200 --schedules=24 --out=rank.json
  python3 -m benchmarks.model_rank --target=h200 --schedules=4 --kernels=softmax --dry --out=x.json
  python3 -m benchmarks.model_rank --target=h200 --backend=cuda --dry --out=cuda.json
  python3 -m benchmarks.model_rank --target=h200 --out=rank.json --remodel
"""
ALIKE = 0.02  # Limit of the distance between two schedules' results, relative to the norm.
NOT_TIMED = "not timed: "
RowKey = tuple[str, str, str]  # Backend, kernel and schedule of a row.


@dataclass(frozen=True, slots=True)
class ScheduleBuild:
    """A schedule to build under a folder."""

    draw: Draw
    backend: str  # Name of the backend.
    machine: Machine  # The target for that backend.
    folder: Path

    @property
    def key(self) -> RowKey:
        """The key of its row."""
        return self.backend, self.draw.kernel, self.draw.digest

    @property
    def file(self) -> Path:
        """The file of its source after the build."""
        return self.folder / f"kernel.{backend_for(self.machine, self.backend).manifest.extension}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns 0 if all draws have been timed (or built, with --dry)."""
    asked = _parser().parse_args(arguments)
    kernels = [k for k in asked.kernels.split(",") if k] or list(SIZES)
    try:
        for kernel in kernels:
            if kernel not in SIZES:
                raise KernelError(f"no kernel `{kernel}` is ranked", allowed=", ".join(SIZES))
        machine = target(asked.target)
        if asked.remodel:
            command = f"python3 -m benchmarks.model_rank --target={asked.target} --remodel"
            _show(remodel(asked.out, machine, f"{command} --out={asked.out.name}"))
            return 0
        return run(asked, kernels, _served(machine, asked.backend))
    except KernelError as error:
        print(f"model_rank: {error}", file=sys.stderr)
        return 2


def _served(machine: Machine, wanted: Sequence[str]) -> list[Served]:
    """Returns the target with some of its backends. By default these are all that model times and
    whose toolchain is here."""
    found = [backend_for(machine, name) for name in wanted or machine.backends]
    found = [b for b in found if wanted or b.available(machine)["correct_by"]]
    able = [b for b in found if isinstance(b, ModelsTime)]
    if wanted and len(able) < len(found) or not able:
        raise KernelError("a backend without a model of times ranks nothing", where="--backend")
    return [Served(b, served_by(machine, b)) for b in able]


def run(asked: argparse.Namespace, kernels: list[str], served: list[Served]) -> int:
    """Draws, builds, models and times. Writes the file after each kernel that is timed."""
    begin = time.monotonic()
    done = read(asked.out)
    head = _head(asked)
    for one in served:
        if isinstance(one.backend, Warms):
            one.backend.warm(one.machine)
    pairs = [(kernel, one) for kernel in kernels for one in served]
    folder = Path(tempfile.mkdtemp(prefix="model-rank-"))
    with ProcessPoolExecutor(asked.workers) as pool:
        jobs = [pool.submit(_draws, *_named(pair), asked.schedules, asked.seed) for pair in pairs]
        drawn = [job.result() for job in jobs]
        tasks = _tasks(pairs, drawn, folder, done)
        _say(begin, f"{sum(map(len, drawn))} schedules drawn, {len(tasks)} to be built")
        rows = _built(pool, tasks, begin)
    _say(begin, f"{sum(r['correct'] is not False for r in rows.values())} of {len(rows)} built")
    merged = {_key(r): r for r in done} | rows
    write(asked.out, head, list(merged.values()))
    if not asked.dry:
        for _ in _timed(tasks, rows, asked.seconds - (time.monotonic() - begin)):
            write(asked.out, head, list(merged.values()))
    write(asked.out, head, list(merged.values()))
    _show(list(merged.values()))
    return int(any(r["reason"].startswith(NOT_TIMED) for r in rows.values()))


def _show(rows: list[Row]) -> None:
    table = summary(rows)
    for name, line in table["kernels"].items():
        print(f"{name}: {line}")
    print(table["overall"])


def _timed(tasks: list[ScheduleBuild], rows: dict[RowKey, Row], seconds: float) -> Iterator[None]:
    """Times the builds, kernel by kernel, until the time limit. It yields after each kernel."""
    from benchmarks.bench import TimingBench  # Needs a device.

    stopwatch = Stopwatch(TimingBench)
    begin, kernel = time.monotonic(), ""
    for task in tasks:
        row = rows[task.key]
        if kernel != task.draw.kernel:
            yield
            kernel = task.draw.kernel
        if row["correct"] is False:
            continue
        if time.monotonic() - begin > seconds:
            row |= {"correct": None, "reason": NOT_TIMED + "out of time"}
            continue
        nest = task.draw.nest
        found = stopwatch(TimingJob(task.file, task.backend, task.machine, nest, dict(nest.sizes)))
        row |= {
            "us": found.us or None,
            "time_kind": "measured",
            "correct": True,
            "correct_by": "device",
        }
        row |= {
            "measured_us": found.us or None,
            "us_p20": found.p20,
            "us_p80": found.p80,
            "apart": found.apart,
        }
        if found.reason:
            row |= {"correct": False, "reason": found.reason}
        elif found.apart > ALIKE:
            what = f"results lie {found.apart:.3g} from the first schedule's"
            row |= {"correct": False, "reason": what}
        _say(
            begin,
            f"{row['kernel']} {row['backend']} {row['schedule'][:8]}: modelled {row['modelled_us']:.1f}, "
            f"measured {found.us:.1f} us {row['reason']}",
        )
    stopwatch.close()
    yield


def _draws(kernel: str, backend: str, machine: Machine, count: int, seed: int) -> list[Draw]:
    try:
        return draws(kernel, Served(backend_for(machine, backend), machine), count, seed)
    except KernelError as error:
        print(f"model_rank: {kernel}: {error}", file=sys.stderr)
        return []


def _named(pair: tuple[str, Served]) -> tuple[str, str, Machine]:
    """Returns a kernel and a backend for another process, which opens the backend itself."""
    kernel, served = pair
    return kernel, served.name, served.machine


def _key(row: Row) -> RowKey:
    return row["backend"], row["kernel"], row["schedule"]


def _tasks(
    pairs: list[tuple[str, Served]], drawn: list[list[Draw]], folder: Path, done: list[Row]
) -> list[ScheduleBuild]:
    """Returns the tasks that no row of the file has settled."""
    settled = {
        _key(r)
        for r in done
        if r["measured_us"] or (r["correct"] is False and not r["reason"].startswith(NOT_TIMED))
    }
    every = [
        ScheduleBuild(draw, one.name, one.machine, folder / f"{draw.kernel}_{one.name}_{n}")
        for (_, one), group in zip(pairs, drawn, strict=True)
        for n, draw in enumerate(group)
    ]
    # The first schedule is always included: the results of the others are compared with it.
    first = {task.draw.kernel: task for task in reversed(every)}
    return [t for t in every if t is first[t.draw.kernel] or t.key not in settled]


def _built(
    pool: ProcessPoolExecutor, tasks: list[ScheduleBuild], begin: float
) -> dict[RowKey, Row]:
    """Returns a row for each task, in the order of the tasks."""
    jobs = {pool.submit(built_row, task): task for task in tasks}
    rows = {}
    for job in as_completed(jobs):
        task = jobs[job]
        rows[task.key] = job.result()
        if len(rows) % 20 == 0:
            _say(begin, f"{len(rows)} of {len(tasks)} went through the compiler")
    return {task.key: rows[task.key] for task in tasks}


def built_row(task: ScheduleBuild) -> Row:
    """Builds a schedule and models it. Returns its row, with the reason if that fails."""
    draw, machine, backend = task.draw, task.machine, backend_for(task.machine, task.backend)
    models, sizes = cast(ModelsTime, backend), dict(draw.nest.sizes)
    task.folder.mkdir(parents=True, exist_ok=True)
    row: Row = {
        "kernel": draw.kernel,
        "problem": None,
        "backend": task.backend,
        "dtype": draw.nest.spec.outputs[0].dtype,
        "shape": sizes,
        "schedule": draw.digest,
        "schedule_text": str(draw.schedule),
        "us": None,
        "time_kind": "modelled",
        "correct": None,
        "correct_by": None,
        "reason": "",
        "guessed_us": models.model(draw.nest, machine, sizes, {}).us,
        "estimated_us": estimate(draw.nest, machine, sizes),
        "roofline_us": roofline(draw.nest.spec, machine, sizes).us,
        "modelled_us": None,
        "measured_us": None,
    }
    try:
        built = backend.build(draw.source, draw.nest, machine, task.folder)
    except BackendError as error:
        return row | {"correct": False, "reason": f"{error.stage}: {_short(error.reason)}"}
    except Exception as error:  # An error in one schedule becomes a row and does not end the run.
        return row | {"correct": False, "reason": f"{type(error).__name__}: {_short(str(error))}"}
    timing = models.model(draw.nest, machine, sizes, built.figures)
    return row | {
        "us": timing.us,
        "modelled_us": timing.us,
        "terms": dict(timing.figures),
        "figures": dict(built.figures),
    }


def _short(reason: str) -> str:
    """Shortens a long reason to its two ends: the subject, and the compiler's last words. Folders
    of this machine are left out."""
    reason = placeless(reason)
    return reason if len(reason) <= 500 else f"{reason[:150]} ... {reason[-340:]}"


def _head(asked: argparse.Namespace) -> dict[str, Any]:
    command = f"python3 -m benchmarks.model_rank --target={asked.target}"
    command += "".join(f" --backend={name}" for name in asked.backend)
    command += f" --schedules={asked.schedules} --seed={asked.seed} --out={asked.out.name}"
    head = {"command": command, "date": date.today().isoformat()}
    if asked.dry:
        return head | {"machine": None}
    from benchmarks.device import facts, require

    require(target(asked.target), "run it where that chip is, or give --dry to build and model")
    return head | facts_in_child(facts)


def facts_in_child(facts: Any) -> dict[str, Any]:
    """Calls `facts` in another process: a process that forks must not touch the device."""
    import multiprocessing

    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(facts).result()


def _say(begin: float, text: str) -> None:
    print(f"{time.monotonic() - begin:6.1f} s  {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "model_rank",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True, help="a target that is a GPU")
    made.add_argument(
        "--backend",
        action="append",
        default=[],
        help="a backend of the target; repeatable (default: all that model times)",
    )
    made.add_argument("--out", required=True, type=Path, help="the result file; its rows are kept")
    made.add_argument("--schedules", type=int, default=24, help="schedules of each kernel")
    made.add_argument("--kernels", default="", help="kernels, separated by commas (default: all)")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="processes that build"
    )
    made.add_argument(
        "--seconds", type=float, default=540.0, help="seconds after which timing stops"
    )
    made.add_argument("--dry", action="store_true", help="build and model only; needs no device")
    made.add_argument(
        "--remodel", action="store_true", help="model the file's rows again; needs no device"
    )
    return made


if __name__ == "__main__":
    sys.exit(main())
