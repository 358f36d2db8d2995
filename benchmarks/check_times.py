"""Compares what checking costs through the backends of one target, where no device of it is here.

A kernel is checked as in a search: its seed schedule at all check sizes, then at the other draws of
inputs. Each check runs in a process of its own, forked from one that has loaded the backend and computed
the references; its builds are made before. The processor time of that process counts, as other work on
this machine does not change it; the least of a few rounds is taken.
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
# As workers of a search have it; threads that wait would count as processor time.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
EXAMPLES = """
examples:
  python3 -m benchmarks.check_times --target=h200 --out=benchmarks/results/h200/check_times.json
"""
Row = dict[str, Any]


def checked(
    backend: Backend, built: Built, nest: LoopNest, machine: Machine, work: Workload
) -> None:
    """What an evaluation checks of a kernel; BackendError where it is wrong."""
    for number, sizes in enumerate(work.checks):
        check(backend, built, nest, machine, work.spec, sizes, SEED, repeat=number == 0)
    at = draw_sizes(work.spec, work.checks)
    check_draws(backend, built, nest, machine, work.spec, at, SEED)


def seconds(work: Callable[[], None]) -> float | None:
    """The processor time of work in a forked child, its own children included; None where it
    fails."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except Exception as error:  # a child must not return into the program that started it
            print(f"check_times: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    return used.ru_utime + used.ru_stime if status == 0 else None


def timed(kernel: str, machine: Machine, backends: Sequence[Backend], rounds: int) -> Row:
    """The row of a kernel: what its checks cost through each backend."""
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
        for _ in range(rounds):  # in turns, so that what changes on the machine meets all alike
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
    """How many times the first backend's time the second takes, of one kernel and of all together."""
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
    made.add_argument("--out", required=True, type=Path, help="the result file; rows in it stay")
    made.add_argument("--kernels", default="", help="some kernels, with commas between; else all")
    made.add_argument("--rounds", type=int, default=ROUNDS, help="of which the least time counts")
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
    """KernelError unless each backend checks by its interpreter here. can: what each says."""
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
    """The processor's own name."""
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
