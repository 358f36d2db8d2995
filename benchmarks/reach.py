"""Reports how far the winners of contests are from the seed schedules of a search: the edits
between.

For each contest of a result file it has the seed nearest to the winner, the edits from there to the
winner, each giving a legal schedule, and the quick cost of both. If no edits lead to a winner, the
report says so and lists the remaining differences.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backends.registry import backend, served_by, target
from benchmarks.candidates import CONTESTS, Contest, asked_contests
from benchmarks.results import read
from ir.autoschedule.autoschedule import alternatives
from ir.edits.edits import Edit, neighbours
from ir.errors import KernelError
from ir.lower.lower import fits, lower
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.parse.parse import parse_schedule
from ir.schedule import Decision, Schedule
from ir.spec import Spec
from search.warm_start.autoscheduled import scheduled


@dataclass(frozen=True, slots=True)
class Reach:
    """The path from a seed to a winner."""

    contest: str
    winner: str  # Label of the winner.
    edits: tuple[Edit, ...]
    # Decisions that still differ after these edits, or differ in the order of the grid. Empty: the
    # edits lead to the winner.
    left: frozenset[Decision]
    seed_us: float  # By the quick cost.
    winner_us: float

    @property
    def line(self) -> str:
        """The path as a line of text."""
        cost = f"seed {self.seed_us:.0f} us, winner {self.winner_us:.0f} us by the quick cost"
        made = "; ".join(map(str, self.edits)) or "it is a seed"
        left = f"; NOT REACHED: {', '.join(sorted(map(str, self.left)))}" if self.left else ""
        return f"{self.contest} {self.winner}: {len(self.edits)} edits ({cost}): {made}{left}"


def winners(rows: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """Returns the label of the fastest correct candidate at a contest's own sizes, by the contest's
    name."""
    keys = {c.rows[0].key: name for name, c in CONTESTS.items()}
    found = {}
    for row in rows:
        sizes = "_".join(f"{n}{v}" for n, v in dict(row["shape"]).items())  # type: ignore[call-overload]
        name = keys.get(f"{row['kernel']}__{sizes}__{row['dtype']}")
        if name and row.get("candidate"):
            found[name] = str(row["candidate"])
    return found


def reach(contest: Contest, name: str, label: str, machine_name: str, language: str) -> Reach:
    """Returns the path to a candidate."""
    machine = served_by(target(machine_name), backend(language))
    work = contest.work()
    spec, sizes = work.spec, contest.sizes
    file = next(c for c in contest.candidates(machine_name, language) if c.label == label)
    text = file.schedule(machine_name, language).read_text(encoding="utf-8")
    goal = canonical(parse_schedule(text))
    seeds = (scheduled(spec, machine, sizes), *alternatives(spec, machine, sizes))
    first = min(map(canonical, seeds), key=lambda s: len(apart(s, goal)))
    edits, last = path(spec, first, goal, machine, sizes)
    costs = (
        machine.model.quick_us(lower(spec, s, machine, sizes), machine, sizes)
        for s in (first, goal)
    )
    return Reach(name, label, edits, apart(last, goal), *costs)


def path(
    spec: Spec, first: Schedule, goal: Schedule, machine: Machine, sizes: Mapping[str, int]
) -> tuple[tuple[Edit, ...], Schedule]:
    """Finds edits that each bring a schedule nearer to a goal and are legal, until there are none.
    Returns them and the last schedule."""
    edits, here = [], first
    while left := len(apart(here, goal)):
        made = [(edit, edit.apply(here)) for edit in neighbours(spec, here, machine, sizes)]
        nearer = sorted(
            (
                (len(apart(s, goal)), n)
                for n, (_, s) in enumerate(made)
                if len(apart(s, goal)) < left
            )
        )
        best = next((made[n] for _, n in nearer if fits(spec, made[n][1], machine, sizes)), None)
        if best is None:
            break
        edits.append(best[0])
        here = best[1]
    return tuple(edits), here


def apart(a: Schedule, b: Schedule) -> frozenset[Decision]:
    """Returns the decisions that only one of two schedules has. If there are none, the difference
    in the order of the grid."""
    found = frozenset(a.decisions) ^ frozenset(b.decisions)
    return found or frozenset(d for d, e in zip(_grid(a), _grid(b), strict=True) if d != e)


def _grid(schedule: Schedule) -> list[Decision]:
    return [d for d in schedule.of("place") if d.option("level") == "grid"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 1 if no edits lead to a winner."""
    made = argparse.ArgumentParser(prog="benchmarks.reach", description=__doc__)
    made.add_argument("--target", required=True, help="the target of the candidates")
    made.add_argument(
        "--results", required=True, type=Path, help="a result file of benchmarks.contest"
    )
    made.add_argument(
        "--contests", default="all", help="contests, separated by commas (default: all)"
    )
    made.add_argument("--backend", default="cutedsl", help="the backend of the candidates")
    given = made.parse_args(arguments)
    try:
        won = winners(read(given.results)["rows"])
        asked = asked_contests(given.contests)
        names = [name for name, c in CONTESTS.items() if c in asked and name in won]
        found = [reach(CONTESTS[n], n, won[n], given.target, given.backend) for n in names]
    except KernelError as error:
        print(f"reach: {error}", file=sys.stderr)
        return 2
    for one in found:
        print(one.line)
    return int(any(one.left for one in found))


if __name__ == "__main__":
    sys.exit(main())
