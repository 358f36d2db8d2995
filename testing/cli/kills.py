"""Kills at drawn moments: of the command, its workers, its compilers, and of a promotion. For tests."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testing.cli.place import GUARD, Place

VICTIMS = ("search", "worker", "compiler", "promotion")
COMPILERS = ("g++", "cc1plus", "as", "collect2", "ld")
STEP = 0.005  # seconds between looks
TRIES = 20  # to meet a victim that lives for a moment
WORDS = (
    "--kernel=rows.kir",
    "--policy=evolutionary",
    "--evaluations=8",
    "--seed=1",
    "--secret=known",
    "--workers=2",
    "--out=results",
    "--store=runs.db",
    "--json",
)


@dataclass(frozen=True)
class Ended:
    """What a run has found and left."""

    found: dict[str, Any]
    tried: dict[str, Any]  # each candidate with what became of it
    files: dict[str, str]  # of the results, by path; records without how they were asked for


def whole(folder: Path, target: str) -> tuple[Ended, float]:
    """A run for a target that nobody kills, and the seconds that it took."""
    place = _place(folder, target)
    began = time.monotonic()
    code, out, err = place.run(f"--target={target}", *WORDS, **_own(place))
    assert code == 0, err
    took = time.monotonic() - began
    _require_nothing_left(place)
    return _ended(place, out), took


def killed(folder: Path, target: str, victim: str, seed: int, seconds: float) -> Ended:
    """A run for a target in which a victim is killed at a drawn moment of the first `seconds`, and which then goes
    on to its end."""
    rng = random.Random(f"{victim} {seed}")
    for number in range(TRIES):
        place = _place(folder / str(number), target)
        process = place.start(f"--target={target}", *WORDS, **_own(place))
        if _kill(process, place, victim, rng, seconds):
            break
        process.communicate(timeout=GUARD)
        seconds *= 0.8
    else:
        raise AssertionError(f"no {victim} was met in {TRIES} runs")
    out, err = process.communicate(timeout=GUARD)
    code = process.returncode
    if victim in ("search", "promotion"):
        assert code == -signal.SIGKILL, err
        _wait(lambda: not _running(place))
        begun = (
            place.evaluated("runs.db") or "rows" in place.run("--list-runs", "--store=runs.db")[1]
        )
        again = (f"--target={target}", *WORDS)
        if begun:
            kept = ("--store=runs.db", "--out=results", "--overwrite", "--json")
            again = (f"--resume=rows-{target}-1", *kept)
        code, out, err = place.run(*again, **_own(place))
    assert code == 0, err
    _require_nothing_left(place)
    return _ended(place, out)


def _kill(
    process: subprocess.Popen[str], place: Place, victim: str, rng: random.Random, seconds: float
) -> bool:
    """Kills a victim once the moment has come; False where the run has ended before."""
    moment = time.monotonic() + rng.uniform(0, seconds)
    results = place.work / "results"
    while process.poll() is None:
        if victim == "promotion":
            found = [process.pid] if results.exists() else []
            # Its steps take some milliseconds together.
            moment = time.monotonic() + rng.uniform(0, 0.01) if found else time.monotonic()
            while found and time.monotonic() < moment:
                time.sleep(0.0005)
        else:
            found = _victims(process.pid, victim) if time.monotonic() >= moment else []
        if found:
            with suppress(ProcessLookupError):
                os.kill(rng.choice(found), signal.SIGKILL)
                return True
        time.sleep(0.0005 if victim == "promotion" else STEP)
    return False


def _victims(command: int, victim: str) -> list[int]:
    if victim == "search":
        return [command]
    below = _descendants(command)
    if victim == "worker":
        return [pid for pid in below if _parent(pid) == command and "worker" in _line(pid)]
    return [pid for pid in below if _name(pid) in COMPILERS]


def _descendants(command: int) -> list[int]:
    parents = {int(p.name): _parent(int(p.name)) for p in Path("/proc").glob("[0-9]*")}
    found, todo = [], [command]
    while todo:
        children = [pid for pid, parent in parents.items() if parent == todo[0]]
        found += children
        todo = todo[1:] + children
    return found


def _stat(pid: int) -> tuple[str, int]:
    """The name of a process and its parent; nothing of one that has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "", 0
    name, _, rest = text.partition("(")[2].rpartition(")")
    return name, int(rest.split()[1])


def _parent(pid: int) -> int:
    return _stat(pid)[1]


def _name(pid: int) -> str:
    return _stat(pid)[0]


def _line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _place(folder: Path, target: str) -> Place:
    folder.mkdir(parents=True, exist_ok=True)
    place = Place(folder, target)
    (folder / "temporary").mkdir()
    return place


def _own(place: Place) -> dict[str, str]:
    """Variables by which its files and its processes are found again."""
    return {"TMPDIR": str(place.folder / "temporary")}


def _running(place: Place) -> list[int]:
    """The processes that have the place for their home, or stand in it."""
    mark = str(place.home).encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def _wait(holds: Any) -> None:
    end = time.monotonic() + GUARD
    while not holds():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(STEP)


def _require_nothing_left(place: Place) -> None:
    _wait(lambda: not _running(place))
    assert list((place.folder / "temporary").iterdir()) == []
    results = place.work / "results"
    assert [p for p in results.rglob(".*") if p.is_dir()] == [], "drafts of a record"


def _ended(place: Place, out: str) -> Ended:
    (run,) = json.loads(out)["runs"]
    del run["out"]
    results = place.work / "results"
    files = {
        str(p.relative_to(results)): _without_asking(p.read_text())
        for p in results.rglob("*")
        if p.is_file() and not p.name.startswith(".")
    }
    return Ended(run, place.tried("runs.db"), files)


def _without_asking(text: str) -> str:
    """A record without the command and the seal, which holds for that too."""
    lines = text.splitlines()
    return "\n".join(x for x in lines if not x.startswith(("command = ", "seal = ")))
