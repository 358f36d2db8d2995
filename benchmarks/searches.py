"""Searches for the kernels of contests from their equations, one `evolve` after another.

The winners are records in a folder for each contest below OUT. Their `record.toml` has the command.
A row has the result of a search, its time and the kind of that time, and the time of the fastest
handwritten candidate if a result file of `benchmarks.contest` on the same device has it. With
`--before`, it also has the result of an earlier search. Rows are written as searches end. Contests
with a row are skipped, so the same command continues an interrupted run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from backends.registry import target
from benchmarks.candidates import CONTESTS, Contest, asked_contests
from benchmarks.entrant import ROOT
from benchmarks.results import Table, read, row_key, save
from ir.errors import KernelError

GRACE = 120.0  # Limit of a search beyond its search time, for its start and its end.
KEPT = (
    "kernel",
    "target",
    "backend",
    "shape",
    "evaluations",
    "failures",
    "correct_by",
    "time_kind",
    "device",
    "toolchain",
    "first_us",
    "best_us",
    "roofline_us",
    "stopped_because",
    "schedule",
)
EXAMPLES = """
examples:
  python3 -m benchmarks.searches --target=h200 --contests=matmul_f8,conv1d --seconds-each=90 --out=found
  python3 -m benchmarks.searches --target=h200 --backends=cutedsl,cuda,triton --out=found \\
      --contest-results=benchmarks/results/h200/contests.json
"""


def command(
    contest: Contest,
    name: str,
    target_name: str,
    backends: Sequence[str],
    seconds: float,
    out: Path,
) -> list[str]:
    """Returns the command of the search for a contest's kernel at its own sizes."""
    sizes = ",".join(f"{n}={v}" for n, v in contest.sizes.items())
    return [
        *("-m", "search.evolve", f"--target={target_name}"),
        *(f"--backend={b}" for b in backends),
        *(
            f"--kernel={contest.file.relative_to(ROOT)}",
            f"--shape={sizes}",
            f"--seconds={seconds:g}",
        ),
        *("--seed=1", "--no-promote", f"--store={out / 'runs.db'}", f"--out={out / name}"),
        *("--overwrite", f"--report={out / name}.html", "--json"),
    ]


def searched(words: Sequence[str], seconds: float, log: Path) -> Table:
    """Returns the result of a search, or a reason if it found nothing. log: receives its output."""
    try:
        with log.open("w", encoding="utf-8") as shown:
            done = subprocess.run(
                [sys.executable, *words],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=shown,
                timeout=seconds + GRACE,
                text=True,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return {"reason": f"no end after {seconds + GRACE:g} s"}
    try:
        (run,) = json.loads(done.stdout)["runs"]
    except (ValueError, KeyError):
        last = log.read_text(encoding="utf-8").strip().splitlines()[-1:]
        return {"reason": f"exit code {done.returncode}: {' '.join(last)}"}
    found: Table = {n: run[n] for n in KEPT if n in run}
    if found.get("best_us") is None:
        found["reason"] = "no candidate is correct"
    return found


def beside(contest: Contest, rows: Sequence[Mapping[str, object]]) -> Table:
    """Returns the time of a contest's fastest candidate and of PyTorch's fastest form, from a
    result file's rows."""
    key = (contest.kernel, contest.dtype, tuple(sorted(contest.sizes.items())))
    row: Table = next((dict(r) for r in rows if row_key(r) == key), {})
    times = [us for us in row.get("baselines_us", {}).values() if us]
    if not row.get("us") or not times:
        return {}
    return {"by_hand_us": row["us"], "by_hand": row["candidate"], "baseline_us": min(times)}


def found_before(name: str, rows: Sequence[Mapping[str, object]]) -> Table:
    """Returns the result of an earlier search for the same contest, from its rows."""
    known = (r for r in rows if r["contest"] == name and "reason" not in r)
    row = next(known, None)
    return {"before_us": row["best_us"]} if row else {}


def line(row: Mapping[str, object]) -> str:
    """Formats a row as a progress line."""
    if "reason" in row:
        return f"{row['contest']}: FAILED, {row['reason']}"
    hand = f"; by hand {row['by_hand_us']:.1f} us" if "by_hand_us" in row else ""
    before = f"; found before {row['before_us']:.1f} us" if "before_us" in row else ""
    first = f"seed {row['first_us']:.1f} us" if row.get("first_us") else "its seed failed"
    return (
        f"{row['contest']}: {row['best_us']:.1f} us {row['time_kind']} of {row['evaluations']} "
        f"evaluations, {first}{hand}{before}"
    )


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="benchmarks.searches",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True, help="the target of the searches")
    made.add_argument(
        "--out", required=True, type=Path, help="the folder of rows, runs and records"
    )
    made.add_argument(
        "--contests", default="all", help="contests, separated by commas (default: all)"
    )
    made.add_argument("--backends", default="cutedsl", help="backends, separated by commas")
    made.add_argument("--seconds-each", type=float, default=90, help="seconds of each search")
    made.add_argument(
        "--seconds", type=float, default=1e9, help="start no search after this number of seconds"
    )
    made.add_argument("--contest-results", type=Path, help="a result file of benchmarks.contest")
    made.add_argument("--before", type=Path, help="the rows of such searches, to compare with")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns exit code 2 for wrong usage, 1 if a search found nothing."""
    given = _parser().parse_args(arguments)
    backends = [b for b in given.backends.split(",") if b]
    try:
        asked = asked_contests(given.contests)
        served = target(given.target).backends
        if unknown := [b for b in backends if b not in served]:
            raise KernelError(f"there is no backend `{unknown[0]}`", allowed=", ".join(served))
        hand = read(given.contest_results)["rows"] if given.contest_results else []
        earlier = read(given.before)["rows"] if given.before else []
    except KernelError as error:
        print(f"searches: {error}", file=sys.stderr)
        return 2
    out, end = given.out.resolve(), time.monotonic() + given.seconds
    out.mkdir(parents=True, exist_ok=True)
    file = out / "searches.json"
    rows = read(file)["rows"]
    head = {"command": " ".join(["python3 -m benchmarks.searches", *(arguments or sys.argv[1:])])}
    for name, contest in ((n, c) for n, c in CONTESTS.items() if c in asked):
        if time.monotonic() > end:
            break
        if any(r["contest"] == name and "reason" not in r for r in rows):
            continue
        words = command(contest, name, given.target, backends, given.seconds_each, out)
        found = searched(words, given.seconds_each, out / f"{name}.log")
        row = {"contest": name, **found, **beside(contest, hand), **found_before(name, earlier)}
        rows = [*(r for r in rows if r["contest"] != name), row]
        save(file, {**head, "date": date.today().isoformat(), "rows": rows})
        print(line(row), file=sys.stderr, flush=True)
    return int(any("reason" in r for r in rows))


if __name__ == "__main__":
    sys.exit(main())
