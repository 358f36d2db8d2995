"""Sends the cheats and honest oddities of this folder through the evaluator on this machine's GPU.

Each case that has a meaning there is built for the target, compared and timed on the device, as a candidate of a
search is: those of equations in each language that the machine can build, edited sources in their own.
A case whose text edits what the target's source does not have is left out by name. Equations of one
kernel are evaluated together; kernels side by side.

Exit codes: 0 every cheat is refused for its reason and every oddity accepted, 1 not so, 2 bad input.
"""

from __future__ import annotations

import argparse
import re
import secrets
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from backends.registry import target
from benchmarks import device as machine_room
from benchmarks.results import Table, save
from ir.errors import KernelError
from search.core.evaluation import Evaluation, Failure
from search.evaluator.local import LocalEvaluator
from tests.cheats import edits, equations, families, for_devices, honest, promises, sources
from tests.cheats.case import Case, Places, bench

ALL_RIGHT, NOT_SO, BAD_INPUT = 0, 1, 2
WORKERS_EACH = 3  # of a group's cases at a time
MOST = 24  # cases of one group: with more its few workers would be the last
CPU_SECONDS = 120  # of each: a process that opens a device and compiles for it takes long
EQUATIONS = "cuda"  # where cases of equations are listed; those for npu are some of them again
LANGUAGES = {"h200": ("cuda", "triton"), "h100": ("cuda", "triton"), "mi300": ("hip", "triton")}
EXAMPLES = """
examples:
  python3 -m tests.cheats.on_device --target=h200 --out=benchmarks/results/h200/cheats.json
  python3 -m tests.cheats.on_device --target=h200 --out=cheats.json --workers=16 --only=softmax
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    asked = _parser().parse_args(arguments)
    secret = asked.secret or secrets.token_hex(16)
    try:
        places = places_of(asked.target)
        machine_room.require(target(asked.target))
        meant, left_out = cases(places, asked.only)
        if not meant:
            raise KernelError(f"no case has `{asked.only}` in its name", where="--only")
    except KernelError as error:
        print(f"on_device: {error}", file=sys.stderr)
        return BAD_INPUT
    head = {
        "cheats": True,
        "command": f"python3 -m tests.cheats.on_device --target={asked.target}",
        "date": date.today().isoformat(),
        **machine_room.facts(),
        "secret": secret,
        "left_out": left_out,
    }
    written = Written(asked.out, head)
    groups = grouped(meant)
    side_by_side = max(1, min(len(groups), asked.workers // WORKERS_EACH))
    with ThreadPoolExecutor(side_by_side) as pool:
        each = max(1, asked.workers // side_by_side)
        jobs = [
            pool.submit(evaluated, group, places, secret, each, asked.seconds, written)
            for group in groups
        ]
        for job in jobs:
            job.result()
    written.finish(meant)
    said = written.summary
    print(line(said))
    return ALL_RIGHT if said["as_expected"] == said["cases"] else NOT_SO


def places_of(name: str) -> Places:
    """Where cases are run on a target's device; KernelError for a target that has none."""
    if name not in LANGUAGES:
        raise KernelError(
            f"no languages are known for `{name}`", where="--target", allowed=", ".join(LANGUAGES)
        )
    return {language: (name, language) for language in LANGUAGES[name]}


def cases(places: Places, only: str = "") -> tuple[list[Case], list[str]]:
    """The cases that have a meaning in these places, and the names of those that have none."""
    meant: list[Case] = []
    left_out: list[str] = []
    for case in _all(places):
        if only not in case.name:
            continue
        try:
            case.candidate(places)
        except ValueError:
            left_out.append(case.name)
        else:
            meant.append(case)
    return meant, left_out


def _all(places: Places) -> Iterable[Case]:
    """Each case in each place; equations stand for every language, and once for all targets."""
    of_equations = (equations.cheats, families.cheats, honest.honest, families.honest)
    of_sources = (
        *(sources.cheats, edits.cheats, for_devices.cheats, for_devices.honest),
        *(promises.cheats, promises.honest),
    )
    for case in (case for cases in (*of_equations, *of_sources) for case in cases()):
        if case.edits:
            if case.place in places:
                yield case
        elif case.place == EQUATIONS:
            for place in places:
                yield replace(case, name=f"{case.name}, by {place}", place=place)


def grouped(meant: Sequence[Case]) -> list[list[Case]]:
    """Cases that are evaluated together: of one kernel, and either with sources of their own or without;
    the longest group first."""
    found: dict[tuple[str, bool], list[Case]] = defaultdict(list)
    for case in meant:
        found[case.kernel, bool(case.edits)].append(case)
    parts = [some[n : n + MOST] for some in found.values() for n in range(0, len(some), MOST)]
    return sorted(parts, key=len, reverse=True)


def evaluated(
    group: Sequence[Case],
    places: Places,
    secret: str,
    workers: int,
    seconds: float | None,
    written: Written,
) -> None:
    """Evaluates cases of one kernel, and has their rows written as they come."""
    left = None if seconds is None else seconds - written.since
    if left is not None and left <= 0:
        return
    kernel = group[0].kernel
    languages = list(dict.fromkeys(case.place for case in group))
    benches = [bench(kernel, place, places, secret, CPU_SECONDS) for place in languages]
    asked = [case.candidate(places) for case in group]
    with LocalEvaluator(benches, workers=min(workers, len(group))) as evaluator:
        left = None if seconds is None else max(0.0, seconds - written.since)
        for position, found in evaluator.evaluate(asked, left):
            written.put(row(group[position], found), evaluator.environment["sandbox"])


def row(case: Case, found: Evaluation | Failure) -> Table:
    """What became of a case, and whether it should have."""
    made: Table = {
        "name": case.name,
        "kernel": case.kernel,
        "language": case.place,
        "group": case.group,
        "why": case.why,
        "is": "cheat" if case.stage else "honest",
        "expected": f"{case.stage}: {case.said or 'any reason'}" if case.stage else "accepted",
    }
    if isinstance(found, Failure):
        reason = " ".join(found.reason.split())[:300]
        made |= {"verdict": "refused", "stage": found.stage, "kind": found.kind, "reason": reason}
        right = found.stage == case.stage and bool(re.search(case.said, found.reason))
        # What a device stops, it stops with an error of its own, wherever that is noticed.
        made["as_expected"] = right and found.kind not in ("machine", "timeout")
    else:
        made |= {"verdict": "accepted", "us": found.us, "correct_by": found.correct_by}
        made["as_expected"] = not case.stage
    made["seconds"] = round(sum(found.seconds.values()), 2)
    return made


class Written:
    """The result file, which is whole after each row."""

    def __init__(self, out: Path, head: Table):
        self.out, self.head = out, head
        self.rows: list[Table] = []
        self.summary: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._began = time.monotonic()

    @property
    def since(self) -> float:
        """Seconds since it was begun."""
        return time.monotonic() - self._began

    def put(self, made: Table, sandbox: Mapping[str, str]) -> None:
        """Adds a row. sandbox: what of it holds, by layer."""
        with self._lock:
            self.rows.append(made)
            self.head["sandbox"] = dict(sandbox)
            if not made["as_expected"]:
                print(f"{self.since:6.1f} s  NOT AS EXPECTED {made}", file=sys.stderr, flush=True)
            self._save(self.rows)

    def finish(self, meant: Sequence[Case]) -> None:
        """Puts the rows into the order of the cases, and notes which have none."""
        place = {case.name: n for n, case in enumerate(meant)}
        self.rows.sort(key=lambda r: place[r["name"]])
        done = {r["name"] for r in self.rows}
        self.head["not_reached"] = [case.name for case in meant if case.name not in done]
        self.head["clocks_mhz"] = machine_room.facts()["clocks_mhz"]
        self.head["wall_s"] = round(self.since, 1)
        self._save(self.rows)
        self.summary["cases"] = len(meant)

    def _save(self, rows: Sequence[Table]) -> None:
        self.summary = summary(rows)
        save(self.out, {**self.head, "summary": self.summary, "rows": list(rows)})


def summary(rows: Sequence[Table]) -> Table:
    """How many of each kind, and how many are as expected."""
    kinds = {kind: [r for r in rows if r["is"] == kind] for kind in ("cheat", "honest")}
    return {
        "cases": len(rows),
        "as_expected": sum(r["as_expected"] for r in rows),
        **{
            kind: {"cases": len(some), "as_expected": sum(r["as_expected"] for r in some)}
            for kind, some in kinds.items()
        },
    }


def line(said: Mapping[str, Any]) -> str:
    """The summary for a person."""
    cheats, oddities = said["cheat"], said["honest"]
    return (
        f"{cheats['as_expected']} of {cheats['cases']} cheats refused for their reason, "
        f"{oddities['as_expected']} of {oddities['cases']} honest oddities accepted, "
        f"{said['cases']} cases meant"
    )


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="on_device",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True, help="the chip that this machine has")
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument("--workers", type=int, default=8, help="candidates at a time, in all")
    made.add_argument("--seconds", type=float, help="give up what is not done after so many")
    made.add_argument("--only", default="", help="cases with this in their names")
    made.add_argument("--secret", default="", help="repeat the draws of an earlier run")
    return made


if __name__ == "__main__":
    sys.exit(main())
