"""Races KernelBench's problems, at their own sizes, against PyTorch on a device.

Each problem is imported, partitioned, scheduled and emitted. Its kernels are built in parallel,
without the device. Then it is checked, profiled and timed in its own process. Prepared problems and
built kernels stay in the folder `--work`, rows in the result file, so an interrupted run can be
continued. This runs foreign code: the checkout's.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

from backends.program.sealed import unseal
from backends.registry import backend_for, target
from benchmarks import device as machine_room
from benchmarks.contest_process import contested
from benchmarks.crew import Crew
from benchmarks.kernelbench.contest import machine_facts
from benchmarks.kernelbench.kernels import KernelBuild, build, jobs
from benchmarks.kernelbench.prepared import (
    F32,
    RECORD,
    TF32,
    TF32_OF_MANY,
    Wanted,
    known_facts,
    prepare,
)
from benchmarks.kernelbench.problems import COLLAPSES, ProblemFile, entries
from benchmarks.kernelbench.race_rows import write
from benchmarks.kernelbench.rows import Row, put
from benchmarks.kernelbench.searches import SEARCHED, ProblemSearch, searched_words
from benchmarks.results import read
from frontends.aten.convolution import SUM
from frontends.kernelbench.apart import apart
from ir.errors import KernelError
from ir.variant.precision import NARROW
from search.cli.invocation import Interrupt

LEVELS = (1, 2, 3)
PREPARE_SECONDS = 1800.0  # A model of 200 kernels on a busy machine.
ROUNDED = {f"{SUM}: {NARROW}"}  # Entry of a row with convolutions.
PER_BYTE = 12  # Limit of device memory for a contest, relative to its tensors.
LEAST_BYTES = 2 << 30  # Minimum of device memory for any contest.
EXAMPLES = """
examples:
  python3 -m benchmarks.kernelbench.race --problems=KernelBench/KernelBench --target=h200 \\
      --out=benchmarks/results/h200/kernelbench.json --seconds=560
  python3 -m benchmarks.kernelbench.race --problems=KernelBench/KernelBench --target=h200 \\
      --out=r.json --level=1 --only=1,19 --reduced --rehearse
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Returns exit code 2 for wrong usage, 1 if a problem failed or is left, 130 if it was
    interrupted.
    """
    asked = _parser().parse_args(arguments)
    try:
        levels = asked.level or LEVELS
        chosen = [e for n in levels for e in entries(asked.problems, n, asked.only)]
        machine = target(asked.target)
        if asked.rehearse or asked.until != "race":
            available = backend_for(machine).available(machine)
        else:
            available = machine_room.require(
                machine, "--rehearse tries the command, --until=prepare does what needs no device"
            )
    except KernelError as error:
        print(f"kernelbench: {error}", file=sys.stderr)
        return 2
    asked.work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # Contests run in parallel.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(asked.work / "inductor"))
    return _Race(asked, available).all(chosen)


class _Race:
    """One run of the command."""

    def __init__(self, asked: argparse.Namespace, available: Mapping[str, Any]):
        self.asked, self.available = asked, available
        self.rows: list[Row] = read(asked.out)["rows"] if asked.until == "race" else []
        self.start, self.lock = time.monotonic(), threading.Lock()
        self.first = F32 if asked.f32 or asked.rehearse else TF32  # Rounding that is tried first.
        self.builders = _builders(asked.workers)
        self.builds: dict[Path, Future[str]] = {}
        self.preparing = threading.Semaphore(asked.workers)
        self.crew = Crew()
        self.memory = _Memory(int(asked.gigabytes * 2**30), asked.contests)
        self.facts: dict[str, Any] = {}
        if asked.until == "race":
            self.facts = apart(machine_facts, asked.rehearse, gigabytes=None)

    def all(self, chosen: Sequence[ProblemFile]) -> int:
        done = {(r["level"], r["problem"]) for r in self.rows}
        todo = [e for e in chosen if self.asked.again or (e.level, e.name) not in done]
        threads = 2 * (self.asked.workers + self.asked.contests)
        with Interrupt(), ThreadPoolExecutor(threads) as pool:
            try:
                finished = list(pool.map(self.one, todo))
                if self.asked.seconds_each and self.asked.until == "race":
                    finished += self.all_searched(pool, chosen)
            except KeyboardInterrupt:
                self.stop()
        self.builders.shutdown(wait=False, cancel_futures=True)
        print(f"{sum(finished)} of {len(finished)} done", file=sys.stderr)
        right = all(map(_good, self.rows))
        return int(not all(finished) or not right)

    def late(self) -> bool:
        return time.monotonic() - self.start > self.asked.seconds

    def one(self, entry: ProblemFile) -> bool:
        """Makes the row of a problem. Returns False if no time is left for it.

        If PyTorch is more accurate than TF32, it tries again without TF32.
        """
        known: Row = {
            "kernel": None,
            "problem": entry.name,
            "level": entry.level,
            "number": entry.number,
            "dtype": "f32",
            "backend": backend_for(target(self.asked.target)).manifest.name,
            "degenerate": entry.degenerate,
            "evaluations": 0,
            "us": None,
            "correct": False,
            "collapses": (entry.level, entry.number) in COLLAPSES,
            "correct_by": self.available["correct_by"],
        }
        raced = self.asked.until == "race"
        row = self.tried(entry, known, self.first)
        for products in (TF32_OF_MANY, F32):
            if not raced or row is None or not _too_coarse(row):
                break
            rounds = set(row.get("rounded", ()))
            if products != F32 and self.precisions(entry, products) in (rounds, set()):
                continue  # It would repeat the first attempt.
            again = self.tried(entry, known, products)
            if again is None:
                return False  # The first attempt says nothing yet.
            if again["correct"] or again.get("stage") != "check":
                row = {**again, "in_tf32": row["reason"], "products": products}
        if row and (raced or not row["correct"]):
            self.put(row)
        return row is not None

    def all_searched(self, pool: ThreadPoolExecutor, chosen: Sequence[ProblemFile]) -> list[bool]:
        """Searches for the problems with correct rows, several at a time, which share the device.

        Then it races these while no search runs. Returns False for those without time left.
        """
        known, most = {(r["level"], r["problem"]): r for r in self.rows}, self.asked.searches
        rows = [(e, row) for e in chosen if (row := known.get((e.level, e.name)))]
        todo = [(e, row) for e, row in rows if row["correct"] and self.unsearched(row)]
        finished: list[bool] = []
        with ThreadPoolExecutor(most) as searching:
            for first in range(0, len(todo), 2 * most):
                batch = todo[first : first + 2 * most]
                if self.late():
                    return finished + [False] * (len(todo) - first)
                searches = [self.search(*each) for each in batch]
                found = list(searching.map(ProblemSearch.run, searches))
                finished += pool.map(self.searched, searches, (row for _, row in batch), found)
        return finished

    def unsearched(self, row: Row) -> bool:
        return "searched" not in row or self.asked.again

    def search(self, entry: ProblemFile, row: Row) -> ProblemSearch:
        products = F32 if "in_tf32" in row else self.first
        return ProblemSearch(self.asked, entry, row.get("products", products))

    def searched(self, search: ProblemSearch, row: Row, found: Row) -> bool:
        """Races a problem with the kernels of a search. Returns False if no time is left for it."""
        after = dict(found)
        if "reason" not in after:
            known: Row = {"correct": False}
            raced = self.tried(search.entry, known, search.products, search.records)
            if raced is None:
                return False
            after |= {name: raced[name] for name in SEARCHED if name in raced}
        if after["correct"]:
            after["speedup"] = row["baselines_us"][row["fastest"]] / after["us"]
            after.pop("stage", None)
        self.put({**row, "searched": after})
        return True

    def tried(
        self, entry: ProblemFile, known: Row, products: str, records: Path | None = None
    ) -> Row | None:
        """Returns the row of a problem. None if no time is left for it.

        products: of convolutions, see `Wanted`.
        records: of a search. PyTorch's modes are then not raced again.
        """
        folder = self.folder(entry, products, "_searched" if records else "")
        if records:
            shutil.rmtree(folder, ignore_errors=True)  # It belongs to an earlier search.
        row = dict(known)
        try:
            row |= self.prepared(entry, folder, products, records) | {"stage": "build"}
            if self.late():
                return None
            if self.asked.until == "prepare":
                return row | {"correct": True}
            if why := self.built(folder):
                raise KernelError(why)
        except KernelError as error:
            return row | {"stage": row.get("stage", "prepare"), "reason": str(error)[:400]}
        if self.asked.until == "build":
            return row | {"correct": True}
        with self.memory.taken(max(LEAST_BYTES, PER_BYTE * row["bytes"])):
            # A wrong result is tried again without rounding.
            strict = products != F32 and bool(ROUNDED & set(row.get("rounded", ())))
            modes = "" if records else self.asked.baselines
            return None if self.late() else row | self.contested(folder, strict, modes)

    def folder(self, entry: ProblemFile, products: str, more: str = "") -> Path:
        """Returns the folder of a prepared problem."""
        level = f"level{entry.level}{'' if products == TF32 else f'_{products}'}{more}"
        return self.asked.work / level / entry.name

    def precisions(self, entry: ProblemFile, products: str) -> set[str]:
        """Returns the precisions of a problem's products. Empty if it cannot be prepared, or if no
        time is left for it."""
        try:
            facts = self.prepared(entry, self.folder(entry, products), products, None)
        except KernelError:
            return set()
        return set(facts.get("rounded", ()))

    def prepared(
        self, entry: ProblemFile, folder: Path, products: str, records: Path | None
    ) -> Row:
        """Returns the facts of a prepared problem. Prepares it if necessary."""
        with self.preparing:
            if found := known_facts(folder):
                return found
            if self.late():
                return {}
            folder.mkdir(parents=True, exist_ok=True)
            target, reduced = self.asked.target, self.asked.reduced
            wanted = Wanted(entry.path, target, reduced, folder, products, records)
            return apart(prepare, wanted, seconds=PREPARE_SECONDS, gigabytes=64.0)

    def built(self, folder: Path) -> str:
        """Returns why a problem lacks a kernel. Empty if all are built."""
        began = time.monotonic()
        found = list(jobs(unseal(folder / RECORD), self.asked.work / "kernels"))
        with self.lock:
            for job in found:
                if job.folder not in self.builds:
                    self.builds[job.folder] = self.builders.submit(_build, job)
        reasons = [self.builds[job.folder].result() for job in found]
        failed = [f"{job.folder.name}: {r}" for job, r in zip(found, reasons, strict=True) if r]
        if time.monotonic() - began > 1:
            with self.lock:
                self.say(f"{folder.name}: {len(found)} kernels")
        return f"{len(failed)} kernels do not build; {failed[0]}" if failed else ""

    def contested(self, folder: Path, strict: bool, baselines: str) -> Row:
        """Returns the row of a contest. If its process failed, the row has what is known.

        strict, baselines: options of the program.
        """
        asked, work = self.asked, self.asked.work.resolve()
        options = [f"--folder={folder.resolve()}", f"--kernels={work / 'kernels'}"]
        options += [f"--work={work}", f"--baselines={baselines}"]
        options += [f"--compile-seconds={asked.compile_seconds}"]
        options += ["--strict"] if strict else []
        options += ["--rehearse"] if asked.rehearse else []
        program, limit = "benchmarks.kernelbench.contest", asked.problem_seconds
        with tempfile.TemporaryDirectory(prefix="contest-") as place:
            return contested(self.crew, program, options, {}, limit, Path(place), "row")

    def put(self, row: Row) -> None:
        with self.lock:
            put(self.rows, row)
            if self.asked.until == "race":
                write(self.asked.out, self.head(), self.rows)
            self.say(line(row))

    def say(self, words: str) -> None:
        """Prints progress. The caller holds the lock, so the last line stays last."""
        seconds = time.monotonic() - self.start
        print(f"{seconds:6.1f} s  {words}", file=sys.stderr, flush=True)

    def stop(self) -> NoReturn:
        """Ends the run at once with all that it started.

        Nothing is half-written and nothing is awaited. A killed process leaves no row, because the
        lock is never released.
        """
        self.lock.acquire()
        self.crew.end()
        print("stopped; run the same command to continue", file=sys.stderr, flush=True)
        for child in multiprocessing.active_children():
            child.kill()
        os._exit(130)

    def head(self) -> dict[str, Any]:
        options = "".join(
            f" --{name}" for name in ("reduced", "f32", "rehearse") if getattr(self.asked, name)
        )
        if self.asked.seconds_each:
            options += f" --seconds-each={self.asked.seconds_each:g}"
        return {
            "command": "python3 -m benchmarks.kernelbench.race --problems=DIR "
            f"--target={self.asked.target} --out=FILE{options}",
            "date": date.today().isoformat(),
            "suite": "kernelbench",
            "sizes": "reduced" if self.asked.reduced else "the problems' own",
            **self.facts,
        }


class _Memory:
    """Limits the parallel contests by number and by memory. One that needs more memory than
    available runs alone."""

    def __init__(self, bytes_: int, places: int):
        self.bytes, self.places = bytes_, places
        self.used, self.running = 0, 0
        self.changed = threading.Condition()

    @contextmanager
    def taken(self, size: int) -> Iterator[None]:
        size = min(size, self.bytes)
        with self.changed:
            self.changed.wait_for(
                lambda: self.running < self.places and self.used + size <= self.bytes
            )
            self.used, self.running = self.used + size, self.running + 1
        try:
            yield
        finally:
            with self.changed:
                self.used, self.running = self.used - size, self.running - 1
                self.changed.notify_all()


def _builders(workers: int) -> ProcessPoolExecutor:
    """Returns processes that build. All are forked now, before there are threads."""
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("fork"))
    for done in [pool.submit(os.getpid) for _ in range(workers)]:
        done.result()
    return pool


def _too_coarse(row: Row) -> bool:
    """Whether a row was checked with rounded products, and is wrong."""
    wrong = not row["correct"] and row.get("stage") == "check"
    return wrong and bool(ROUNDED & set(row.get("rounded", ())))


def _build(job: KernelBuild) -> str:
    try:
        return build(job)
    except Exception as error:
        # An error of ours, or of a disk: it belongs to the problem, not to the run.
        return f"{type(error).__name__}: {error}"[:400]


def _good(row: Row) -> bool:
    return row["correct"] and row.get("searched", {}).get("correct", True)


def line(row: Row) -> str:
    """Formats a row as a progress line."""
    name = f"level {row['level']} {row['problem']}"
    suite = row.get("suite", {})
    by = f"suite {suite.get('passed')}/{suite.get('trials')}" if suite else ""
    if row["us"] is None:
        return f"{name}: FAILED at {row.get('stage')}: {str(row.get('reason'))[:300]}"
    times = ", ".join(f"{n} {s:.2f}" for n, s in row["speedups"].items())
    wrong = "" if row["correct"] else f"; WRONG: {row.get('reason')}"
    return f"{name}: {row['us']:.1f} us; over {times}; {by}{wrong}{searched_words(row)}"


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="kernelbench",
        description=__doc__.splitlines()[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cores = os.cpu_count() or 1
    made.add_argument("--problems", required=True, type=Path, help="the folder with level1, ...")
    made.add_argument("--level", type=int, action="append", help="repeatable (default: 1 to 3)")
    made.add_argument("--target", required=True, help="the target")
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir()) / "kernelbench",
        help="the folder of prepared problems and built kernels",
    )
    made.add_argument("--only", default="", help="numbers of problems, such as 1,5-9")
    made.add_argument("--reduced", action="store_true", help="use sizes that can be simulated")
    made.add_argument("--f32", action="store_true", help="do not round convolutions to tf32")
    made.add_argument("--rehearse", action="store_true", help="interpret kernels, with fixed times")
    made.add_argument(
        "--until",
        choices=("prepare", "build", "race"),
        default="race",
        help="last stage: prepare problems, also build their kernels, or also race them",
    )
    made.add_argument("--baselines", default="compile,reduce_overhead", help="modes besides eager")
    made.add_argument("--compile-seconds", type=float, default=60, help="limit for one baseline")
    made.add_argument(
        "--seconds-each", type=float, default=0.0, help="seconds of search, afterwards"
    )
    made.add_argument(
        "--searches", type=int, default=max(1, cores // 4), help="searches in parallel"
    )
    made.add_argument("--seconds", type=float, default=1e9, help="start nothing after this time")
    made.add_argument("--problem-seconds", type=float, default=150, help="limit for one contest")
    made.add_argument("--workers", type=int, default=max(1, cores - 4), help="processes that build")
    made.add_argument(
        "--contests", type=int, default=max(1, min(6, cores // 2)), help="contests in parallel"
    )
    made.add_argument(
        "--gigabytes", type=float, default=120, help="memory of the device for contests"
    )
    made.add_argument("--again", action="store_true", help="also race problems that have a row")
    return made


if __name__ == "__main__":
    sys.exit(main())
