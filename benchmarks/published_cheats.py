"""Judges cheats that others published: each must be refused for its own reason.

    python3 -m benchmarks.published_cheats --kernelbench DIR --cuda-l1 DIR --out FILE.json

DIR are checkouts of KernelBench and CUDA-L1. Each cheat is judged by `benchmarks.judge` in its own
process. Several run in parallel, because compilers and comparisons are slow. To time something, a
process waits until the others leave the device alone. Results are written as they complete, so the
same command continues an interrupted run.

Without a GPU, sizes are smaller, two extensions that only call ATen are compiled as C++, and cheats
that need a GPU are left out by name. Exit codes: 0 all refused as expected, 1 not so, 2 bad input.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import date
from pathlib import Path
from typing import Any

import torch

from benchmarks import device as machine_room
from benchmarks.foreign.published import CHEATS, CUDA_L1, KERNELBENCH, Cheat, as_expected, texts
from benchmarks.results import save
from ir.errors import KernelError

SECONDS = 600  # Limit of each answer: the first has to compile.
JUDGED, NOT_SO, BAD_INPUT = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    asked = _parser().parse_args(argv)
    place = asked.device or ("cuda" if torch.cuda.is_available() else "cpu")
    folders = {KERNELBENCH: asked.kernelbench, CUDA_L1: asked.cuda_l1}
    chosen = [
        c for c in CHEATS if folders[c.collection] and (place != "cpu" or c.on_cpu is not None)
    ]
    try:
        if not chosen:
            raise KernelError(
                "no cheat to judge", allowed="--kernelbench DIR, --cuda-l1 DIR: one of them or both"
            )
        rows = _kept(asked.out, place)
        todo = [c for c in chosen if c.name not in rows]
        for row in _judged_together(todo, folders, place, asked.jobs):
            rows[row["name"]] = row
            _keep(asked.out, [rows[c.name] for c in CHEATS if c.name in rows], place)
        for cheat in chosen:
            print(line(rows[cheat.name]), flush=True)
    except KernelError as error:
        print(f"published_cheats: {error}", file=sys.stderr)
        return BAD_INPUT
    for cheat in CHEATS:
        if cheat not in chosen:
            print(f"left out: {cheat.name} ({cheat.collection})")
    return JUDGED if all(rows[c.name]["as_expected"] for c in chosen) else NOT_SO


def _judged_together(
    cheats: Sequence[Cheat], folders: Mapping[str, Path], place: str, jobs: int
) -> Iterator[dict[str, Any]]:
    """Yields the rows of cheats as they complete."""
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        for job in as_completed([pool.submit(judged, c, folders, place) for c in cheats]):
            yield job.result()


def judged(cheat: Cheat, folders: Mapping[str, Path], place: str) -> dict[str, Any]:
    """Returns the judge's verdict on a cheat as a row."""
    found, began = texts(cheat, folders, place == "cpu"), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="speciate-") as name:
        files = {"problem": found.problem, "solution": found.solution}
        for role, text in files.items():
            Path(name, f"{role}.py").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "benchmarks.judge", "--json", "--device", place]
        command += [f"--seconds={SECONDS}", "--listed-shape"]
        command += [word for role in files for word in (f"--{role}", str(Path(name, f"{role}.py")))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = _said(done)
        reason = str(said["reason"]).replace(f"{name}/", "")
    return {
        "name": cheat.name,
        "collection": cheat.collection,
        "place": cheat.place,
        "why": cheat.why,
        "kind": said["kind"],
        "reason": reason,
        "expected": list(cheat.expected),
        "as_expected": as_expected(cheat, said["kind"], reason),
        "secret": said.get("secret", ""),
        "seconds": round(time.monotonic() - began, 1),
    }


def line(row: Mapping[str, Any]) -> str:
    """Formats a row as a line."""
    verdict = "refused" if row["as_expected"] else "NOT AS EXPECTED"
    return f"{verdict}: {row['name']} ({row['collection']}): {row['kind']}: {row['reason']}"


def _said(done: subprocess.CompletedProcess[str]) -> Mapping[str, Any]:
    try:
        said = json.loads(done.stdout)
    except ValueError:
        return {"kind": "no answer", "reason": f"exit code {done.returncode}: {done.stderr[-400:]}"}
    return said if said["reason"] else {"kind": "accepted", "reason": json.dumps(said["time"])}


def _kept(out: Path | None, place: str) -> dict[str, Any]:
    """Returns the rows of an earlier call, by name."""
    if out is None or not out.is_file():
        return {}
    try:
        found = json.loads(out.read_text(encoding="utf-8"))
        if found["device"] != _device(place):
            raise KernelError(
                f"its rows are of `{found['device']}`, this is `{_device(place)}`", where=str(out)
            )
        return {row["name"]: row for row in found["rows"]}
    except (ValueError, KeyError, TypeError) as error:
        raise KernelError(
            f"it is no result file of this command: {error}", where=str(out)
        ) from None


def _keep(out: Path | None, rows: Sequence[Mapping[str, Any]], place: str) -> None:
    if out is not None:
        save(out, {**_head(place), "rows": list(rows)})


def _head(place: str) -> dict[str, Any]:
    """Returns the origin of the rows."""
    head = {"judged": "published cheats", "command": "python3 -m benchmarks.published_cheats"}
    head |= {"date": date.today().isoformat(), "device": _device(place)}
    if place == "cpu":
        return head | {"versions": {"torch": torch.__version__}}
    return head | machine_room.facts()


def _device(place: str) -> str:
    return "cpu" if place == "cpu" else torch.cuda.get_device_name(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="published_cheats",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kernelbench", type=Path, help="a checkout of KernelBench")
    parser.add_argument("--cuda-l1", type=Path, help="a checkout of CUDA-L1")
    parser.add_argument("--out", type=Path, help="a JSON file for the rows")
    parser.add_argument("--jobs", type=int, default=1, help="cheats that are judged in parallel")
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), help="the device (default: the GPU if there is one)"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
