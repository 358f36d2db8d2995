"""Races the backends of one target against each other on its GPU, and writes a result file.

All backends build the same schedule: that of the kernel's record on the target, without the verbs that
a backend does not render. Each is checked at the kernel's check sizes, then timed at its tuning sizes,
one after the other, in a process of its own. Builds are made first, side by side.

Beside the library's kernels there are large ones, whose schedules lie in
`benchmarks/schedules_of_languages/`, one for each backend; PyTorch's own function is timed beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from backends.backend import BackendError
from backends.measure import check
from backends.registry import backend, served_by, target
from benchmarks.results import read, save
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import NOTED, Machine
from ir.parse.parse import parse_workload
from ir.parse.schedule import parse_schedule
from ir.reference.inputs import random_inputs
from ir.workload import LIBRARY, Sizes, Workload

ROOT = Path(__file__).parent.parent
SPECS = ROOT / "benchmarks" / "specs"
SCHEDULES = ROOT / "benchmarks" / "schedules_of_languages"
TOGETHER = 12  # builds
LIBRARY_OF = "library"  # stands for PyTorch's function among the backends
SECONDS = 0.3  # of measured calls of it
LEAST = 2  # backends of a race
BUILD_SECONDS, RUN_SECONDS = 90.0, 45.0
SHARED_FIGURES = ("registers", "spills", "shared_bytes", "occupancy")
EXAMPLES = """
examples:
  python3 -m benchmarks.languages --target=h200 --out=benchmarks/results/h200/languages.json
"""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel at some sizes."""

    kernel: str
    sizes: Sizes = field(default_factory=dict)  # none: those that the kernel is tuned at
    library: str = ""  # PyTorch's function of the same inputs, in the module `torch`

    @property
    def name(self) -> str:
        """What it is called on the command line and in files."""
        return "_".join((self.kernel, *(f"{n}{v}" for n, v in self.sizes.items())))

    def work(self) -> Workload:
        """The kernel, tuned at the sizes."""
        folder = SPECS if self.sizes else LIBRARY
        text = (folder / f"{self.kernel}.kir").read_text(encoding="utf-8")
        found = parse_workload(text, self.kernel)
        return replace(found, tune=self.sizes) if self.sizes else found

    def schedule(self, machine: str, language: str) -> Path:
        """The file of its schedule."""
        if self.sizes:
            return SCHEDULES / machine / f"{self.name}-{language}.sched"
        return ROOT / "kernels_generated" / self.kernel / machine / "schedule.sched"


_LARGE = (
    Case("matmul_bf16", dict(M=8192, K=8192, N=8192), "matmul"),
    Case(
        "attention",
        dict(H=64, M=2048, N=2048, D=128),
        "nn.functional.scaled_dot_product_attention",
    ),
)
CASES = {c.name: c for c in (*(Case(p.stem) for p in sorted(LIBRARY.glob("*.kir"))), *_LARGE)}


def job(name: str, machine_name: str, language: str, folder: Path, stage: str) -> Row:
    """What one stage of one case on one backend finds. stage: "build" or "run"."""
    import numpy as np

    if language == LIBRARY_OF:
        return library(CASES[name]) if stage == "run" else {}
    serving = backend(language)
    machine = served_by(target(machine_name), serving)
    work = CASES[name].work()
    record = CASES[name].schedule(machine_name, language)
    decided = parse_schedule(record.read_text(encoding="utf-8"), str(record))
    lacking = set(NOTED) - set(serving.manifest.verbs)
    decided = replace(
        decided, decisions=tuple(d for d in decided.decisions if d.verb not in lacking)
    )
    nest = lower(work.spec, decided, machine, work.tune)
    kept = folder / f"{name}-{language}.pickle"
    if stage == "build":
        place = folder / f"{name}-{language}"
        place.mkdir()
        built = serving.build(serving.emit(nest, machine), nest, machine, place)
        kept.write_bytes(pickle.dumps(built))
        return {n: built.figures[n] for n in SHARED_FIGURES if n in built.figures}
    built = pickle.loads(kept.read_bytes())
    for sizes in work.checks:
        check(serving, built, nest, machine, work.spec, sizes, seed=5)
    inputs = random_inputs(work.spec, work.tune, np.random.default_rng(0))
    timing = serving.time(built, nest, machine, work.tune, inputs)
    correct_by = serving.available(machine)["correct_by"]
    return {"us": round(timing.us, 2), "time_kind": timing.kind, "correct_by": correct_by}


def library(case: Case) -> Row:
    """The time of PyTorch's function of a case."""
    import torch

    from backends.gpu.device.gpu import CudaDevice
    from backends.gpu.device.nodes import DEVICE, alone
    from backends.gpu.device.timing import measure
    from benchmarks.inputs import draw

    function = torch
    for part in case.library.split("."):
        function = getattr(function, part)
    # With a batch in front: without one, PyTorch has no fused attention.
    sets = [[t[None] for t in draw(case.work().spec, case.sizes, DEVICE, n)] for n in range(2)]
    with alone():
        times = measure(lambda tensors: function(*tensors), sets, CudaDevice(), SECONDS)
    return {"us": round(times.us, 2), "function": f"torch.{case.library}"}


def entrants(name: str, languages: Sequence[str]) -> tuple[str, ...]:
    """Who takes part in the race of a case."""
    return (*languages, LIBRARY_OF) if CASES[name].library else tuple(languages)


def forked(work: Callable[[], Row], answer: Path) -> int:
    """Starts work in a child, which writes what it finds, or why it found nothing, as JSON."""
    if child := os.fork():
        return child
    try:
        found = work()
    except (BackendError, KernelError) as error:
        found = {"failure": str(error)}
    except Exception as error:  # a child must not return into the program that started it
        found = {"failure": f"{type(error).__name__}: {error}"}
    answer.write_text(json.dumps(found), encoding="utf-8")
    os._exit(0)


def waited(children: dict[int, tuple[Path, float]], most: int) -> None:
    """Waits until fewer than so many children run; those beyond their time are killed."""
    while len(children) >= most:
        done, _ = os.waitpid(-1, os.WNOHANG)
        children.pop(done, None)
        for child, (_, end) in list(children.items()):
            if time.monotonic() > end:
                os.kill(child, 9)
        time.sleep(0.02)


def raced(
    kernels: Sequence[str], machine: str, languages: Sequence[str], show: Callable[[Row], None]
) -> list[Row]:
    """The rows of a race. show: called with each row as soon as it is known."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder, children = Path(name), {}
        pairs = [(kernel, one) for kernel in kernels for one in entrants(kernel, languages)]
        for stage, seconds, together in (
            ("build", BUILD_SECONDS, TOGETHER),
            ("run", RUN_SECONDS, 1),
        ):
            for kernel, language in pairs:
                answer = folder / f"{kernel}-{language}.{stage}.json"
                waited(children, together)
                work = lambda k=kernel, b=language, s=stage: job(k, machine, b, folder, s)  # noqa: E731
                children[forked(work, answer)] = (answer, time.monotonic() + seconds)
            waited(children, 1)
        for kernel in kernels:
            rows.append(row := _row(kernel, languages, folder))
            show(row)
    return rows


def _row(kernel: str, languages: Sequence[str], folder: Path) -> Row:
    found: Row = {"kernel": CASES[kernel].kernel, "sizes": dict(CASES[kernel].work().tune)}
    for language in entrants(kernel, languages):
        own: Row = {}
        for stage in ("build", "run"):
            answer = folder / f"{kernel}-{language}.{stage}.json"
            lost = {"failure": f"{stage}: no answer in time"}
            own |= json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else lost
        found[language] = own
    return found


def ratios(rows: Sequence[Row], one: str, other: str) -> dict[str, Any]:
    """How many times as fast the second backend is as the first, over the library's kernels that both
    ran."""
    rows = [row for row in rows if LIBRARY_OF not in row]
    found = {
        row["kernel"]: row[one]["us"] / row[other]["us"]
        for row in rows
        if "us" in row[one] and "us" in row[other]
    }
    lost = [r["kernel"] for r in rows if r["kernel"] not in found]
    mean = geometric_mean(found.values()) if found else None
    return {"geometric_mean": mean, "min": min(found.values(), default=None), "failed": lost}


def _measured(machine: Machine) -> tuple[list[str], list[str]]:
    """The backends whose times are measured here, and of the others why not."""
    can = {name: backend(name).available(machine) for name in machine.backends}
    found = [name for name, said in can.items() if said["time_kind"] == "measured"]
    others = [(name, said["why"]) for name, said in can.items() if name not in found]
    return found, [f"`{n}`, which is not measured here{': ' * bool(why)}{why}" for n, why in others]


def main(arguments: Sequence[str] | None = None) -> int:
    """Races, and writes the file."""
    made = argparse.ArgumentParser(
        prog="benchmarks.languages",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True, help="a target whose GPU is here")
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument("--kernels", default="", help="some kernels, with commas between; else all")
    given = made.parse_args(arguments)
    every = list(CASES)
    names = [n for n in given.kernels.split(",") if n] or every
    if unknown := [n for n in names if n not in every]:
        raise KernelError(f"there is no kernel `{unknown[0]}`", allowed=", ".join(every))
    machine = target(given.target)
    languages, lacking = _measured(machine)
    if len(languages) < LEAST:
        raise KernelError("there is no race without " + "; ".join(lacking))
    for why in lacking:
        print(f"benchmarks.languages: without {why}", file=sys.stderr)
    rows = raced(names, given.target, languages, lambda row: print(json.dumps(row), flush=True))
    from benchmarks.device import facts  # opens the GPU, after which no child could

    command = f"python3 -m benchmarks.languages --target={given.target} --out={given.out.name}"
    mine = [(CASES[n].kernel, dict(CASES[n].work().tune)) for n in names]
    kept = [r for r in read(given.out)["rows"] if (r["kernel"], r["sizes"]) not in mine]
    rows = sorted([*kept, *rows], key=lambda row: (LIBRARY_OF in row, row["kernel"]))
    summary = {b: ratios(rows, languages[0], b) for b in languages[1:]}
    head = {
        "command": command,
        "date": date.today().isoformat(),
        **facts(),
        "languages": list(languages),
        "summary": summary,
    }
    save(given.out, head | {"rows": rows})
    print(json.dumps(summary))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KernelError as error:
        print(f"benchmarks.languages: {error}", file=sys.stderr)
        sys.exit(2)
