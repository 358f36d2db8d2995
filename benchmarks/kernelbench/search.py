"""A search for the kernels of one problem. `benchmarks.kernelbench.race` starts this program.

The network is the race's own, with constants computed before calls. If operands of products may be
rounded, results are judged by arithmetic that rounds them.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from backends.registry import target as machine_of
from backends.served import Served
from backends.shares import others
from benchmarks.kernelbench.prepared import (
    PRODUCTS,
    TF32,
    digest_of,
    imported_problem,
    networks_of,
    read_problem,
    rounding,
)
from ir.errors import KernelError
from search.cli.arguments import arguments
from search.cli.network import FoundCall, program_record
from search.cli.searched import call_of, searched, words_of
from search.cli.serving import serving
from search.core.phases import phase, recorded
from search.display.display import display
from search.evaluator.nursery import Nursery
from search.record.program import write_program
from search.whole.plan import CallPlan, begin
from search.whole.timed import kept

_SET_PDEATHSIG = 1


def main(given: Sequence[str] | None = None) -> int:
    """Runs the program: writes records, and a file with the results.

    Returns exit code 2 with the reason for what cannot be searched for.
    """
    asked = _parser().parse_args(given)
    ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if asked.parent is not None and os.getppid() != asked.parent:
        return 1
    try:
        found = _found(asked)
    except KernelError as error:
        print(f"search: {error}", file=sys.stderr)
        return 2
    asked.notes.write_text(json.dumps(found), encoding="utf-8")
    return 0


def _found(asked: argparse.Namespace) -> dict[str, object]:
    with recorded() as phases, phase("other"), kept():
        found = _searched(asked)
    return found | {"phases_s": phases.rounded()}


def _searched(asked: argparse.Namespace) -> dict[str, object]:
    served = serving(machine_of(asked.target), ()).served[0]
    with Nursery() as nursery:
        nursery.warm([served])  # Overlaps with the import of the problem and with timing.
        begin(served)
        return _searched_by(asked, served, nursery)


def _searched_by(asked: argparse.Namespace, served: Served, nursery: Nursery) -> dict[str, object]:
    with phase("import"):
        problem = read_problem(asked.problem, asked.reduced)
        _, made = imported_problem(problem)
        networks, shown = networks_of(made), display(sys.stderr, True)
    rounded, least = rounding(asked.products)
    said = [f"--target={asked.target}", f"--store={asked.store}", "--memory"]
    if asked.seconds is not None:
        said.append(f"--seconds={asked.seconds:g}")
    if asked.evaluations is not None:
        said.append(f"--evaluations={asked.evaluations}")
    if asked.workers is not None:
        said.append(f"--workers={asked.workers}")
    command = words_of(said, "benchmarks.kernelbench.search")
    evaluations = 0
    plan = CallPlan.of(networks, [served], rounded, others(served.machine), least)
    plan = plan.timed(networks, shown.say)
    call = FoundCall(plan, plan.ways[0], plan.measured.get(0), ())
    if plan.seeds():
        wanted = arguments(said, asked.target, "")
        session = searched(wanted, problem.name, plan, asked.records, command, shown, nursery)
        with phase("choose"):
            call = call_of(plan, session, shown.say)
        evaluations = sum(each.outcome.evaluations for each in session.ended)
    if call.kernels:
        digest, inputs = digest_of(made), made.spec.inputs
        record = program_record(call, problem.name, digest, inputs, command)
        write_program(asked.records, record)
    return {
        "evaluations": evaluations,
        "searched_kernels": len(plan.seeds()),
        "whole_us": call.after and call.after.us,
        "whole_before_us": call.before and call.before.us,
        "choices": {n: v for n, v in call.way.choices.items() if plan.ways[0].choices.get(n) != v},
    }


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="benchmarks.kernelbench.search")
    made.add_argument("--problem", required=True, type=Path, help="the problem's file")
    made.add_argument("--target", required=True)
    made.add_argument("--records", required=True, type=Path, help="the folder for winners")
    made.add_argument("--store", required=True, type=Path, help="the store of runs")
    made.add_argument("--notes", required=True, type=Path, help="the file for the results")
    made.add_argument("--seconds", type=float, help="seconds of search")
    made.add_argument(
        "--evaluations", type=int, help="evaluations per kernel; all kernels share the total"
    )
    made.add_argument("--workers", type=int, help="candidates evaluated in parallel")
    made.add_argument("--parent", type=int, help="the parent process; this process ends with it")
    made.add_argument("--reduced", action="store_true")
    made.add_argument(
        "--products",
        choices=PRODUCTS,
        default=TF32,
        help="rounding of the products of convolutions",
    )
    return made


if __name__ == "__main__":
    sys.exit(main())
