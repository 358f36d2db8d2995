"""Races the library's kernels against PyTorch on a device, and writes a result file.

It needs torch, triton, jinja2, numpy and the device. Each row is written when it is complete. Rows
that have all wanted baselines are skipped, so an interrupted run can be continued.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from datetime import date
from functools import partial
from pathlib import Path

from backends.gpu.device.gpu import CudaDevice
from backends.registry import backend_for, target
from benchmarks import device as machine_room
from benchmarks.baselines import BASELINES, MODES
from benchmarks.race import Track, race
from benchmarks.results import Table, missing, put, read, row_key, write
from benchmarks.shapes import Row, rows
from benchmarks.variants import with_dtype
from benchmarks.witnesses import Witnesses
from benchmarks.workshop import Workshop
from ir.errors import KernelError
from ir.estimate.cost import product_peak
from ir.machine import Machine
from ir.parse.parse import parse_workload
from ir.spec import Spec
from ir.workload import LIBRARY

# For a call in each process but the first: only the mean over processes matters, and the device was
# busy just before.
WITNESS_RUNS, WITNESS_SPINS = (40, 60), 10
EXAMPLES = """
examples:
  python3 -m benchmarks.starter --target=h200 --out=benchmarks/results/h200/starter.json
  python3 -m benchmarks.starter --target=h200 --out=r.json --kernels=conv1d --baselines=eager
"""


def spec_of(row: Row) -> Spec:
    """Returns the library's spec of a row, at its dtype."""
    text = (LIBRARY / f"{row.kernel}.kir").read_text(encoding="utf-8")
    return with_dtype(parse_workload(text, row.kernel).spec, row.dtype)


def asked_rows(kernels: str, dtypes: str, keys: str = "") -> list[Row]:
    """Returns the rows of some kernels and dtypes, or all if none is named. Rows of some keys keep
    their order."""
    named, wanted, alone = _words(kernels), _words(dtypes), _words(keys)
    for given, known, what in (
        (named, {row.kernel for row in rows()}, "kernel"),
        (alone, {row.key for row in rows()}, "row"),
    ):
        for name in given:
            if name not in known:
                raise KernelError(f"there is no {what} `{name}`", allowed=", ".join(sorted(known)))
    found = [
        row
        for row in rows()
        if (not named or row.kernel in named)
        and (not wanted or row.dtype in wanted)
        and (not alone or row.key in alone)
    ]
    return sorted(found, key=lambda row: alone.index(row.key)) if alone else found


def asked_baselines(kernel: str, text: str) -> list[str]:
    """Returns the wanted baselines of a kernel: all, or those named with their other forms."""
    every = BASELINES[kernel].names()
    named = _words(text)
    known = ("eager", *MODES, "none")
    for name in named:
        if name not in known:
            raise KernelError(f"there is no baseline `{name}`", allowed=", ".join(known))
    return [n for n in every if not named or any(n == b or n.startswith(f"{b}_") for b in named)]


def parser(name: str, doc: str, epilog: str) -> argparse.ArgumentParser:
    """Returns a parser with the options that every race has."""
    made = argparse.ArgumentParser(
        prog=name,
        description=doc,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True, help="the target of this machine's device")
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument("--kernels", default="", help="kernels, separated by commas (default: all)")
    made.add_argument("--dtypes", default="", help="dtypes, separated by commas")
    made.add_argument("--baselines", default="", help=f"of eager, {', '.join(MODES)}; or none")
    made.add_argument(
        "--schedules", default="", help="build with the schedules of this target instead"
    )
    made.add_argument(
        "--seconds",
        type=float,
        default=540,
        help="start no row but the first after this number of seconds",
    )
    made.add_argument(
        "--row-seconds", type=float, default=45, help="limit of compiling one baseline, in seconds"
    )
    made.add_argument("--again", action="store_true", help="also race rows that are complete")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage, 1 if a row failed."""
    options = parser("starter", __doc__.splitlines()[0], EXAMPLES)
    options.add_argument(
        "--rows", default="", help="rows, separated by commas, as KERNEL__SIZES__DTYPE"
    )
    options.add_argument(
        "--processes", type=int, default=1, help="processes; each time is a mean over them"
    )
    asked = options.parse_args(arguments)
    try:
        chosen = [
            (row, spec_of(row), asked_baselines(row.kernel, asked.baselines))
            for row in asked_rows(asked.kernels, asked.dtypes, asked.rows)
        ]
        return run(asked, chosen, "benchmarks.starter")
    except KernelError as error:
        print(f"starter: {error}", file=sys.stderr)
        return 2


def run(
    asked: argparse.Namespace,
    chosen: Sequence[tuple[Row, Spec, list[str]]],
    name: str,
    finish: Callable[[Row, Table, float], Table] | None = None,
) -> int:
    """Races some rows and writes them into the result file one by one.

    finish: adds derived fields to a row, given the matrix unit's peak at its dtype.
    """
    start = time.monotonic()
    machine, done = target(asked.target), read(asked.out)["rows"]
    schedules = target(asked.schedules).name if asked.schedules else ""
    machine_room.require(machine)
    todo = _todo(chosen, done, asked.again)
    backend = backend_for(machine)
    folder = Path(tempfile.mkdtemp(prefix="race-"))
    builds = [(row, spec) for row, spec, _, _ in todo]
    others = getattr(asked, "processes", 1) - 1
    with ExitStack() as stack:
        witnesses = None
        if others > 0 and todo:  # First, because a process that forks must have no threads yet.
            opened = partial(_witness_track, machine, backend.manifest.name, asked.row_seconds)
            witnesses = stack.enter_context(closing(Witnesses(others, opened)))
        workshop = stack.enter_context(
            closing(Workshop(builds, machine, backend, folder, schedules))
        )
        machine_room.prepare()
        head = {
            "command": command(asked, name),
            "date": date.today().isoformat(),
            **machine_room.facts(),
        }
        track = Track(
            machine,
            backend.manifest.name,
            CudaDevice(),
            seconds=asked.row_seconds,
            witnesses=witnesses,
        )
        for place, (row, spec, names, before) in enumerate(todo):
            if place and time.monotonic() - start > asked.seconds:
                print(f"starter: out of time before {row.key}", file=sys.stderr)
                break
            made = race(row, spec, workshop.entrant(row), names, track, before)
            if finish:
                made = finish(row, made, product_peak(machine, row.dtype))
            put(done, made)
            head["clocks_mhz"] = machine_room.facts()["clocks_mhz"]
            write(asked.out, head, done)
            print(f"{time.monotonic() - start:6.1f} s  {line(made)}", file=sys.stderr, flush=True)
    return int(any(not row["correct"] for row in done))


def _witness_track(machine: Machine, backend: str, seconds: float) -> Track:
    """Returns the track of a process that times what another has judged."""
    machine_room.prepare()
    return Track(
        machine, backend, CudaDevice(), seconds=seconds, runs=WITNESS_RUNS, spins=WITNESS_SPINS
    )


def command(asked: argparse.Namespace, name: str) -> str:
    """Returns the command of a result file, as the file states it."""
    words = [f"python3 -m {name} --target={asked.target}"]
    given = ("schedules", "kernels", "dtypes", "baselines")
    words += [f"--{name}={text}" for name in given if (text := getattr(asked, name))]
    if getattr(asked, "processes", 1) > 1:
        words.append(f"--processes={asked.processes}")
    return " ".join([*words, f"--out={asked.out.name}"])


def _todo(
    chosen: Sequence[tuple[Row, Spec, list[str]]], done: Sequence[Table], again: bool
) -> list[tuple[Row, Spec, list[str], Table | None]]:
    """Returns the incomplete rows, each with the baselines to race and its earlier result."""
    made = []
    for row, spec, names in chosen:
        key = row_key({"kernel": row.kernel, "dtype": row.dtype, "shape": dict(row.sizes)})
        before = next((r for r in done if row_key(r) == key), None)
        left = names if again else missing(before, names)
        if again or before is None or left or not before["correct"]:
            made.append((row, spec, left, before))
    return made


def line(row: dict) -> str:
    """Formats a row as a progress line."""
    shape = " ".join(f"{k}={v}" for k, v in row["shape"].items())
    what = f"{row['kernel']} {row['dtype']} {shape}"
    fastest = row["fastest"]
    theirs = f"{fastest} {row['baselines_us'][fastest]:.1f}" if fastest else "-"
    if not row["correct"]:
        return f"{what}: FAILED, {row['reason'][:200]}; theirs {theirs}"
    ratio = f"{row['speedup']:.2f}x over" if row["speedup"] else ""
    return (
        f"{what}: {row['us']:.1f} us, {ratio} {theirs} us, {row['roofline_share']:.2f} of the "
        f"roofline ({row['schedule_from']})"
    )


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


if __name__ == "__main__":
    sys.exit(main())
