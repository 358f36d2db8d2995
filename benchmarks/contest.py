"""Races candidate schedules of large kernels against each other and PyTorch's libraries on a GPU.

`benchmarks.prebuilt --contests` has built the kernels, so no compiler is needed. Each candidate is
checked at the kernel's check sizes, judged at the raced sizes on the device, and timed. This runs
in a process that is replaced if a kernel breaks it. A row has the fastest correct candidate, and
the results of the others. The file is written after each job. Baselines of `torch.compile` run
last.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from backends.gpu.device.gpu import CudaDevice
from backends.registry import backend, served_by, target
from benchmarks import device as machine_room
from benchmarks.baselines import BASELINES
from benchmarks.built import BuiltFolder, place, read_built
from benchmarks.candidates import Candidate, Contest, asked_contests
from benchmarks.carried import Carried, carried
from benchmarks.products import rates
from benchmarks.race import Track, race
from benchmarks.results import Table, read, row_key, settle, write
from benchmarks.shapes import Row
from benchmarks.stopwatch import Reading, Stopwatch
from ir.errors import KernelError
from ir.estimate.cost import product_peak
from ir.machine import Machine

BUILDERS = 16  # Processes that lower in parallel.
COMPILE_SECONDS = 90.0  # Limit of a job that compiles a baseline, in seconds.
EXAMPLES = """
examples:
  python3 -m benchmarks.prebuilt --target=h100 --schedules=h200 --contests=all --backends=cutedsl --out=built
  python3 -m benchmarks.contest --target=h100 --built=built --out=benchmarks/results/h100/contests.json
"""


@dataclass(frozen=True, slots=True)
class Job:
    """One candidate at some sizes, or some baselines of a row."""

    contest: Contest
    row: Row
    candidate: Candidate | None = None
    entrant: Carried | str = "no candidate"
    names: tuple[str, ...] = ()  # Names of baselines.
    checked: bool = False  # Whether the candidate has passed the check sizes already.


class Bench:
    """The work of the process that has the GPU."""

    def __init__(self, track: Track):
        self.track = track

    def __call__(self, job: Job) -> Reading:
        """Returns the row of a job. Its reason says if the kernel is wrong at a check size, or
        breaks the GPU."""
        if job.candidate and isinstance(job.entrant, Carried) and not job.checked:
            job.entrant.require_right(job.candidate)
        spec = job.contest.work().spec
        made = race(job.row, spec, job.entrant, job.names, self.track)
        self.track.device.wait()  # After a kernel failed, this fails, and so does every later call.
        return Reading(row=made)


def opened(machine: Machine, language: str) -> Bench:
    """Returns the bench of a process. Opens the GPU."""
    # This looks for the GPU in a child process, so it precedes the opening.
    backend(language).present(machine)
    machine_room.prepare()
    return Bench(Track(machine, language, CudaDevice()))


def jobs(
    contests: Sequence[Contest], folder: BuiltFolder, language: str, most: int | None = None
) -> Iterator[Job]:
    """Yields for each row the functions of its library, then the candidates. most: limit of a
    contest's rows."""
    found = [
        (c, [x for x in c.candidates(folder.schedules, language) if folder.has(x.name, language)])
        for c in contests
    ]
    every = [x for _, own in found for x in own]
    with ProcessPoolExecutor(BUILDERS, mp_context=get_context("fork")) as pool:
        made = pool.map(carried, every, [language] * len(every), [folder] * len(every))
        entrants = dict(zip((x.name for x in every), made, strict=True))
    for contest, own in found:
        for n, row in enumerate(contest.rows[:most]):
            yield Job(contest, row, names=_baselines(contest, compiled=False))
            yield from (Job(contest, row, x, entrants[x.name], checked=n > 0) for x in own)


def late_jobs(contests: Sequence[Contest], most: int | None = None) -> Iterator[Job]:
    """Yields the baselines of `torch.compile`, which take long. most: limit of a contest's rows."""
    for contest in (c for c in contests if c.modes):
        for name in _baselines(contest, compiled=True):
            yield from (Job(contest, row, names=(name,)) for row in contest.rows[:most])


def _baselines(contest: Contest, compiled: bool) -> tuple[str, ...]:
    names = BASELINES[contest.kernel].names()
    return tuple(n for n in names if n.startswith("eager") != compiled)


def raced(
    given: Iterator[Job], stopwatch: Callable[[Job], Reading], left: Callable[[], float]
) -> Iterator[tuple[Job, Table]]:
    """Yields each job with its result. A job does not begin if no time is left."""
    wrong: set[str] = set()
    for job in given:
        name = job.candidate.name if job.candidate else ""
        if left() <= 0:
            return
        if name in wrong:  # At the contest's first sizes.
            continue
        found = stopwatch(job)
        made = dict(found.row) if not found.reason else {"correct": False, "reason": found.reason}
        if name and not made["correct"]:
            wrong.add(name)
        yield job, made


def put(
    rows: list[Table], job: Job, made: Table, folder: BuiltFolder, machine: Machine, language: str
) -> Table:
    """Puts the result of a job into its row, which it adds if missing. Returns the row."""
    key = (job.row.kernel, job.row.dtype, tuple(sorted(job.row.sizes.items())))
    at = next((n for n, r in enumerate(rows) if row_key(r) == key), len(rows))
    empty: Table = {
        "kernel": job.row.kernel,
        "dtype": job.row.dtype,
        "shape": dict(job.row.sizes),
        "us": None,
        "correct": False,
        "roofline_us": None,
        **{name: {} for name in ("baselines_us", "failures", "baseline_times")},
        "candidates": [],
    }
    row = rows[at] if at < len(rows) else empty
    beside = {n: row[n] for n in ("baselines_us", "failures", "baseline_times", "candidates")}
    if job.candidate is None:
        for name in ("baselines_us", "failures", "baseline_times"):
            beside[name] = {**beside[name], **made.get(name, {})}
        if "reason" in made and "baselines_us" not in made:  # The process failed.
            beside["failures"] |= dict.fromkeys(job.names, made["reason"])
    else:
        beside["candidates"] = [*beside["candidates"], _told(job, made, folder, language)]
        if made["correct"] and (not row["correct"] or made["us"] < row["us"]):
            row = {**made, "candidate": job.candidate.label}
    row = {**row, **beside, "aim": job.contest.aim}
    settle(row)
    if row["correct"]:
        row = rates(job.row, row, product_peak(machine, job.contest.operands or job.row.dtype))
    rows[at:] = [row, *rows[at + 1 :]]
    return row


def _told(job: Job, made: Table, folder: BuiltFolder, language: str) -> Table:
    """Returns the entry of one candidate in a row."""
    assert job.candidate is not None, "else it is no candidate's"
    built = folder.kernels[place(job.candidate.name, language)]
    named = ("us", "p20_us", "p80_us", "correct", "reason", "rel_err", "schedule", "figures")
    return {
        "label": job.candidate.label,
        **{n: made[n] for n in named if n in made},
        "sha256": built.get("sha256", ""),
    }


def line(job: Job, made: Table, row: Table) -> str:
    """Formats a job as a progress line."""
    what = f"{job.row.key} {job.candidate.label if job.candidate else ' '.join(job.names)}"
    if job.candidate is None:
        return f"{what}: " + json.dumps({n: row["baselines_us"].get(n) for n in job.names})
    if not made["correct"]:
        return f"{what}: FAILED, {made['reason'][:200]}"
    ratio = f", {row['speedup']:.2f} of {row['aim']}" if row["speedup"] else ""
    return f"{what}: {made['us']:.1f} us; best {row['candidate']} {row['us']:.1f} us{ratio}"


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="benchmarks.contest",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True, help="a target whose GPU this machine has")
    made.add_argument(
        "--built", required=True, type=Path, help="a folder made by benchmarks.prebuilt"
    )
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument(
        "--contests", default="all", help="contests, separated by commas (default: all)"
    )
    made.add_argument(
        "--rows", type=int, help="number of sizes of a contest, from the first (default: all)"
    )
    made.add_argument("--backend", default="cutedsl", help="the backend of the kernels")
    made.add_argument(
        "--seconds", type=float, default=540, help="start no job after this number of seconds"
    )
    made.add_argument("--job-seconds", type=float, default=25, help="limit of one job, in seconds")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage, 1 if a row has no correct
    candidate."""
    given = _parser().parse_args(arguments)
    try:
        contests = asked_contests(given.contests)
        folder = read_built(given.built, given.target)
        machine = served_by(target(given.target), backend(given.backend))
        if given.backend not in folder.toolchains:
            have = ", ".join(folder.toolchains)
            raise KernelError(
                f"`{given.backend}` built nothing there", where=str(given.built), allowed=have
            )
        if lacking := backend(given.backend).present(machine):  # type: ignore[attr-defined]
            raise KernelError(f"there is no `{given.target}` here: {lacking}", where="--target")
    except KernelError as error:
        print(f"contest: {error}", file=sys.stderr)
        return 2
    end = time.monotonic() + given.seconds
    head: dict[str, Any] = {
        "command": _command(given),
        "date": date.today().isoformat(),
        "backend": given.backend,
        "built_by": {given.backend: folder.toolchains[given.backend]},
        "schedules": folder.schedules,
    }
    left = lambda: end - time.monotonic()  # noqa: E731
    make = partial(opened, machine, given.backend)
    mine = {row.key for c in contests for row in c.rows[: given.rows]}
    rows = [
        r
        for r in read(given.out)["rows"]
        if Row(r["kernel"], r["dtype"], r["shape"]).key not in mine
    ]
    for every, limit in (
        (jobs(contests, folder, given.backend, given.rows), given.job_seconds),
        (late_jobs(contests, given.rows), COMPILE_SECONDS),
    ):
        with closing(Stopwatch(make, limit)) as stopwatch:
            run(rows, every, folder, machine, given, stopwatch, left, head)
    write(given.out, head | machine_room.facts(), rows)
    return int(any(not row["correct"] for row in rows))


def run(
    rows: list[Table],
    every: Iterator[Job],
    folder: BuiltFolder,
    machine: Machine,
    given: argparse.Namespace,
    stopwatch: Callable[[Job], Reading],
    left: Callable[[], float],
    head: Mapping[str, Any],
) -> None:
    """Runs jobs, and writes the file after each."""
    for job, made in raced(every, stopwatch, left):
        row = put(rows, job, made, folder, machine, given.backend)
        write(given.out, head, rows)
        print(
            f"{given.seconds - left():6.1f} s  {line(job, made, row)}", file=sys.stderr, flush=True
        )


def _command(given: argparse.Namespace) -> str:
    words = [f"python3 -m benchmarks.contest --target={given.target} --built={given.built.name}"]
    words += [f"--contests={given.contests}"] if given.contests != "all" else []
    words += [f"--rows={given.rows}"] if given.rows else []
    return " ".join([*words, f"--out={given.out.name}"])


if __name__ == "__main__":
    sys.exit(main())
