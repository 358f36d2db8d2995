"""Compares the cost of checks with the backends of one target, on a machine without its device.

A kernel is checked as in a search: its seed schedule at all check sizes, then with the other draws
of inputs. Each check runs in its own process, forked from one that has loaded the backend and
computed the references. Its builds are made before. The processor time of that process counts,
because other work on the machine does not change it. The result is the minimum of a few rounds.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from importlib import metadata
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from backends.backend import Backend, Built, Warms
from backends.measure import check, check_draws, draw_sizes, prepare
from backends.registry import backend_for, served_by, target
from benchmarks.results import read, save
from benchmarks.shapes import asked_kernels
from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_workload
from ir.workload import LIBRARY, Workload

ROUNDS = 3
SEED = 5
# As in the workers of a search. Threads that wait would count as processor time.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
EXAMPLES = """
examples:
  python3 -m benchmarks.check_times --target=h200 --out=benchmarks/results/h200/check_times.json
"""
Row = dict[str, Any]


def checked(
    backend: Backend, built: Built, nest: LoopNest, machine: Machine, work: Workload
) -> None:
    """Runs the checks of an evaluation on a kernel. Raises BackendError if it is wrong."""
    for number, sizes in enumerate(work.checks):
        check(backend, built, nest, machine, work.spec, sizes, SEED, repeat=number == 0)
    at = draw_sizes(work.spec, work.checks)
    check_draws(backend, built, nest, machine, work.spec, at, SEED)


def seconds(work: Callable[[], None]) -> float | None:
    """Returns the processor time of work in a forked child, including its own children. None if it
    fails."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except Exception as error:  # A child must not return into the program that started it.
            print(f"check_times: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    return used.ru_utime + used.ru_stime if status == 0 else None


def timed(kernel: str, machine: Machine, backends: Sequence[Backend], rounds: int) -> Row:
    """Returns the row of a kernel: the cost of its checks with each backend."""
    work = parse_workload((LIBRARY / f"{kernel}.kir").read_text(encoding="utf-8"), kernel)
    prepare(work.spec, work.checks, draw_sizes(work.spec, work.checks), SEED)
    row: Row = {"kernel": kernel, "checks": [dict(sizes) for sizes in work.checks]}
    with tempfile.TemporaryDirectory() as name:
        made = []
        for backend in backends:
            served = served_by(machine, backend)
            schedule = autoschedule(work.spec, served, work.timed_sizes)
            nest = lower(work.spec, schedule, served, work.timed_sizes)
            place = Path(name) / backend.manifest.name
            place.mkdir()
            built = backend.build(backend.emit(nest, served), nest, served, place)
            made.append((backend, built, nest, served, work))
        found: dict[str, list[float | None]] = {}
        # Rounds alternate, so that changes on the machine affect all backends alike.
        for _ in range(rounds):
            for one in made:
                found.setdefault(one[0].manifest.name, []).append(
                    seconds(lambda o=one: checked(*o))
                )
    for backend_name, times in found.items():
        known = [s for s in times if s is not None]
        complete = len(known) == len(times)
        row[backend_name] = {"cpu_s": round(min(known), 3)} if complete else {"failure": "check"}
    return row


def ratios(rows: Sequence[Row], one: str, other: str) -> Row:
    """Returns the ratio of the second backend's time to the first's, of each kernel and of the
    total."""
    both = [r for r in rows if "cpu_s" in r[one] and "cpu_s" in r[other]]
    each = [r[other]["cpu_s"] / r[one]["cpu_s"] for r in both]
    total = [sum(r[name]["cpu_s"] for r in both) for name in (one, other)]
    return {
        "all": total[1] / total[0] if both else None,
        "geometric_mean": geometric_mean(each) if each else None,
        "max": max(each, default=None),
        "failed": [r["kernel"] for r in rows if r not in both],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Times the checks, and writes the file after each kernel."""
    made = argparse.ArgumentParser(
        prog="benchmarks.check_times",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True, help="a target with several backends")
    made.add_argument("--out", required=True, type=Path, help="the result file; its rows are kept")
    made.add_argument("--kernels", default="", help="kernels, separated by commas (default: all)")
    made.add_argument(
        "--rounds", type=int, default=ROUNDS, help="rounds, of which the smallest time counts"
    )
    given = made.parse_args(arguments)
    names = asked_kernels(given.kernels)
    machine = target(given.target)
    backends = [backend_for(machine, name) for name in machine.backends]
    can = {b.manifest.name: b.available(machine) for b in backends}
    require_no_device(can)
    for backend in backends:
        if isinstance(backend, Warms):
            backend.warm(machine)
    rows = {r["kernel"]: r for r in read(given.out)["rows"]}
    for name in names:
        rows[name] = timed(name, machine, backends, given.rounds)
        save(given.out, _table(given, can, [rows[n] for n in sorted(rows)]))
        print(rows[name], flush=True)
    return 0


def require_no_device(can: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises KernelError unless each backend checks with its interpreter here. can: the report of
    each backend."""
    for name, said in can.items():
        if said["correct_by"] != "interpreter":
            raise KernelError(
                f"`{name}` checks by {said['correct_by'] or 'nothing'} here",
                allowed="backends that check by an interpreter, as where no device is",
            )


def _table(given: argparse.Namespace, can: Mapping[str, Any], rows: list[Row]) -> Row:
    first, *others = can
    command = f"python3 -m benchmarks.check_times --target={given.target} --out={given.out.name}"
    return {
        "command": command,
        "date": date.today().isoformat(),
        "machine": processor(),
        "versions": {
            "python": platform.python_version(),
            "numpy": metadata.version("numpy"),
        },
        "toolchains": [said["toolchain"] for said in can.values()],
        "rounds_of_checks": given.rounds,
        "checked_through": [first, *others],
        "summary": {name: ratios(rows, first, name) for name in others},
        "rows": rows,
    }


def processor() -> str:
    """Returns the name of the processor."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    found = next((line for line in lines if line.startswith("model name")), "")
    return found.partition(":")[2].strip() or platform.machine()


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        again = [sys.executable, "-m", "benchmarks.check_times", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, **ONE_THREAD})
    try:
        sys.exit(main())
    except KernelError as error:
        print(f"benchmarks.check_times: {error}", file=sys.stderr)
        sys.exit(2)
