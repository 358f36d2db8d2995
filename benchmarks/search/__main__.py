"""Runs searches of kernels in several configurations, with the same number of evaluations.

Rows are written as they complete, and existing rows are not made again. So the command can be
stopped at any point and run again, with more kernels, configurations or seeds. The store keeps the
outcome of each candidate. A simulated or modelled outcome is not computed again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from backends.registry import target
from benchmarks.search.attempt import Desk, Row, SearchAttempt, StorePaths, at_desk, known, sit_down
from benchmarks.search.configuration import OPERATORS, POLICIES, configurations
from benchmarks.search.kernels import GROUP, chosen, named
from benchmarks.search.rows import key, read, write
from ir.errors import KernelError
from search.store.store import Store

KERNELS = ("conv1d", "embedding_bag", "conv2d", "map_id", "rmsnorm_matmul", "wukong_fm")
PACKAGES = ("numpy", "optuna", "cmaes", "ribs")
EXAMPLES = """
examples:
  python3 -m benchmarks.search --kernels conv1d conv2d --configurations policies --seeds 5 \\
      --evaluations 100 --store searches.db --out benchmarks/results/npu/search.json
  python3 -m benchmarks.search --configurations islands islands~crossover operators:mcts \\
      --store searches.db --out r.json --processes 2
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage, 130 if it was interrupted."""
    asked = _parser().parse_args(arguments)
    try:
        tasks = tasks_of(asked)
        _Run(asked).all(tasks)
    except KernelError as error:
        print(f"search: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; run the same command to continue", file=sys.stderr)
        return 130
    return 0


def tasks_of(asked: argparse.Namespace) -> list[SearchAttempt]:
    """Returns all attempts, by kernel and seed. Raises KernelError at the first error."""
    kernels = chosen(tuple(asked.kernels))
    for name in kernels:
        named(name)
    target(asked.target)
    varied = configurations(asked.configurations)
    for extra, given in (("memory", asked.memory), ("lessons", asked.lessons)):
        if any(extra in c.extras for c in varied) and not given:
            raise KernelError(
                f"a configuration starts from {extra}, and none is named", where=f"--{extra}"
            )
    return [
        SearchAttempt(kernel, str(c), seed, asked.evaluations, asked.target, asked.modelled)
        for kernel in kernels
        for seed in range(1, asked.seeds + 1)
        for c in varied
    ]


class _Run:
    """One run of the command."""

    def __init__(self, asked: argparse.Namespace):
        self.asked = asked
        self.rows: list[Row] = list(read(asked.out))
        self.start = time.monotonic()

    def all(self, tasks: Sequence[SearchAttempt]) -> None:
        there = {key(row) for row in self.rows}
        todo = [t for t in tasks if key(known(t)) not in there]
        for row in self._made(todo):
            self.rows.append(row)
            write(self.asked.out, _head(self.asked), self.rows)
            seconds = time.monotonic() - self.start
            print(f"{seconds:7.0f} s  {line(row)}", file=sys.stderr, flush=True)

    def _made(self, todo: Sequence[SearchAttempt]) -> Iterator[Row]:
        asked = self.asked
        given = (str(p or "") for p in (asked.memory, asked.lessons, asked.learn))
        places = StorePaths(str(asked.store), *given, apart=asked.processes > 1)
        if asked.processes == 1:
            desk = Desk(places)
            try:
                yield from map(desk.attempt, todo)
            finally:
                desk.close()
            return
        for store in {places.store_of(task) for task in todo}:
            Store(store).close()  # Created once, before several processes try to create it.
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(asked.processes, spawn, sit_down, (places,)) as pool:
            waiting = [pool.submit(at_desk, task) for task in todo]
            try:
                yield from (done.result() for done in as_completed(waiting))
            finally:
                pool.shutdown(cancel_futures=True)


def line(row: Row) -> str:
    """Formats a row as a progress line."""
    what = f"{row['kernel']} {row['configuration']} seed {row['seed']}"
    if row["us"] is None:
        return f"{what}: nothing correct, {row['failures']}: {row.get('why')}"
    return f"{what}: {row['first_us']:.4g} -> {row['us']:.4g} us in {row['made']} evaluations"


def _head(asked: argparse.Namespace) -> dict[str, Any]:
    return {
        "command": f"python3 -m benchmarks.search --target {asked.target} --evaluations "
        f"{asked.evaluations}{' --modelled' * asked.modelled} --store FILE --out FILE "
        "--configurations ...",
        "date": date.today().isoformat(),
        "machine": target(asked.target).title,
        "versions": {"python": platform.python_version(), **{p: _version(p) for p in PACKAGES}},
    }


def _version(package: str) -> str:
    """Returns the version of a package. Policies that need a missing package report that
    themselves."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="search",
        description=__doc__.splitlines()[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--kernels",
        nargs="+",
        default=KERNELS,
        help=f"names of starter kernels, or of the testbed; `{GROUP}` for all of the latter",
    )
    made.add_argument(
        "--modelled",
        action="store_true",
        help="use only the time model of the target's first backend; nothing runs",
    )
    made.add_argument(
        "--configurations",
        nargs="+",
        default=(POLICIES,),
        help=f"POLICY, POLICY~OPERATOR (left out), POLICY+memory, POLICY+lessons; `{POLICIES}` for "
        f"each, `{OPERATORS}:POLICY` for one with each operator left out",
    )
    made.add_argument("--seeds", type=_positive, default=5, help="number of seeds, from 1")
    made.add_argument(
        "--evaluations", type=_positive, default=100, help="evaluations of each search"
    )
    made.add_argument("--target", default="npu")
    made.add_argument("--store", required=True, type=Path, help="the store of runs and outcomes")
    made.add_argument("--memory", type=Path, help="a store of earlier runs, for +memory")
    made.add_argument("--lessons", type=Path, help="a folder of lessons, for +lessons")
    made.add_argument("--learn", type=Path, help="a folder for the lessons of the searches")
    made.add_argument(
        "--processes",
        type=_positive,
        default=1,
        help="searches in parallel; with several, each kernel and seed has its own store next to "
        "--store",
    )
    made.add_argument("--out", required=True, type=Path, help="the result file")
    return made


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
