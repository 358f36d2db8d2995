"""Races the backends of one target against each other on its GPU, and writes a result file.

All backends build the same schedule: that of the kernel's record on the target, without the verbs
that a backend does not support. Each is checked at the kernel's check sizes, then timed at its
tuning sizes, in its own process. The results of the timed calls are checked too. Builds come first,
in parallel. Checks run in parallel too; while one kernel is timed, no other uses the GPU. PyTorch
is timed last. A single backend that `--backends` names is checked and timed in the same way.

With `--built`, the kernels come from a folder that `benchmarks.prebuilt` made on another machine.
The very files run, and the rows have their digests. Other backends are built here.

Besides the library's kernels there are large ones. Their schedules are in
`benchmarks/schedules_of_languages/`, one for each backend, and PyTorch's own function is timed too.
With `--eager` and `--modes`, PyTorch also runs the library's kernels, as a model has them.
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
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from backends.backend import Backend, BackendError, Carries
from backends.measure import check, check_timed, reference
from backends.registry import backend, served_by, target
from benchmarks.built import BuiltFolder, read_built
from benchmarks.candidates import Candidate
from benchmarks.results import read, save
from benchmarks.stopwatch import Reading, Stopwatch
from ir.errors import KernelError
from ir.estimate.cost import roofline
from ir.lower.lower import lower
from ir.machine import NOTED, Machine
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_workload
from ir.parse.schedule import parse_schedule
from ir.schedule import Schedule
from ir.workload import LIBRARY, Sizes, Workload

ROOT = Path(__file__).parent.parent
SPECS = ROOT / "benchmarks" / "specs"
SCHEDULES = ROOT / "benchmarks" / "schedules_of_languages"
TOGETHER, SIDE_BY_SIDE = 12, 6  # Parallel builds, and parallel runs, of which one is timed.
LIBRARY_OF = "library"  # The key of PyTorch's function among the backends.
EAGER = "eager"  # The key of a model without kernels of its own.
MODES = ("compile", "reduce_overhead", "max_autotune")  # The same with `torch.compile`.
SEED = 5  # Seed of the inputs that kernels are checked on.
SECONDS = 0.3  # Time of the measured calls of PyTorch.
LEAST = 2  # Backends of a race, unless `--backends` names one.
BUILD_SECONDS, RUN_SECONDS, LIBRARY_SECONDS = 90.0, 45.0, 60.0
SHARED_FIGURES = ("registers", "spills", "shared_bytes", "occupancy")
EXAMPLES = """
examples:
  python3 -m benchmarks.languages --target=h200 --out=benchmarks/results/h200/cuda.json
  python3 -m benchmarks.languages --target=h200 --built=built --backends=triton,cutedsl --eager \\
      --modes=compile,reduce_overhead --out=cutedsl.json
  python3 -m benchmarks.languages --target=h200 --built=built --kernels=softmax --backends=cutedsl --out=checked.json
"""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel at some sizes."""

    kernel: str
    sizes: Sizes = field(default_factory=dict)  # Empty: the sizes that the kernel is tuned at.
    library: str = ""  # PyTorch's function of the same inputs, in the module `torch`.
    more: tuple[Sizes, ...] = ()  # Sizes besides those at which it is tuned and checked.

    @property
    def name(self) -> str:
        """Its name on the command line and in files."""
        return "_".join((self.kernel, *(f"{n}{v}" for n, v in self.sizes.items())))

    def work(self) -> Workload:
        """Returns the kernel, tuned at the sizes."""
        folder = SPECS if self.sizes else LIBRARY
        text = (folder / f"{self.kernel}.kir").read_text(encoding="utf-8")
        found = parse_workload(text, self.kernel)
        return replace(found, tune=self.sizes) if self.sizes else found

    def schedule(self, machine: str, language: str) -> Path:
        """Returns the file of its schedule for a target."""
        if self.sizes:
            return SCHEDULES / machine / f"{self.name}-{language}.sched"
        return ROOT / "kernels_generated" / self.kernel / machine / "schedule.sched"


@dataclass(frozen=True, slots=True)
class Lowered:
    """A case as a backend builds it."""

    serving: Backend
    machine: Machine
    work: Workload
    nest: LoopNest
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class Race:
    """The settings that all jobs of a race share."""

    machine: str
    schedules: str = ""  # The target whose schedules are built. Empty: the machine's own.
    built: BuiltFolder | None = None  # Kernels that another machine built.
    # Which of EAGER and MODES also run the library's kernels.
    beside: tuple[str, ...] = ()


_LARGE = (
    Case("matmul_bf16", dict(M=8192, K=8192, N=8192), "matmul"),
    Case(
        "attention",
        dict(H=64, M=2048, N=2048, D=128),
        "nn.functional.scaled_dot_product_attention",
    ),
)
CASES = {c.name: c for c in (*(Case(p.stem) for p in sorted(LIBRARY.glob("*.kir"))), *_LARGE)}


def lowered(
    case: str | Case | Candidate, machine_name: str, language: str, schedules: str = ""
) -> Lowered:
    """Lowers a case with its schedule for a target, by default its own."""
    case = CASES[case] if isinstance(case, str) else case
    serving = backend(language)
    machine = served_by(target(machine_name), serving)
    work = case.work()
    record = case.schedule(schedules or machine_name, language)
    if not record.is_file():
        raise KernelError(
            f"`{case.name}` has no schedule for `{schedules or machine_name}`",
            where=record.name,
            hint="--schedules names a target that has one",
        )
    decided = parse_schedule(record.read_text(encoding="utf-8"), str(record))
    lacking = set(NOTED) - set(serving.manifest.verbs)
    decided = replace(
        decided, decisions=tuple(d for d in decided.decisions if d.verb not in lacking)
    )
    nest = lower(work.spec, decided, machine, work.timed_sizes)
    return Lowered(serving, machine, work, nest, decided)


def job(name: str, language: str, race: Race, folder: Path, stage: str) -> Row:
    """Runs one stage of one case on one backend and returns its result. stage: "build" or "run"."""
    one = lowered(name, race.machine, language, race.schedules)
    serving, nest, machine = one.serving, one.nest, one.machine
    kept = folder / f"{name}-{language}.pickle"
    if stage == "build":
        source = serving.emit(nest, machine)
        if race.built and race.built.has(name, language):
            built = race.built.built(name, language, source)
        else:
            place = folder / f"{name}-{language}"
            place.mkdir()
            built = serving.build(source, nest, machine, place)
        kept.write_bytes(pickle.dumps(built))
        return figures_of({"figures": built.figures, "sha256": built.sha256})
    built, work = pickle.loads(kept.read_bytes()), one.work
    for sizes in work.checks:
        check(serving, built, nest, machine, work.spec, sizes, SEED)
    inputs = reference(work.spec, work.timed_sizes, SEED).inputs
    timing = serving.time(built, nest, machine, work.timed_sizes, inputs)
    check_timed(work.spec, work.timed_sizes, SEED, timing.outputs)
    by = serving.available(machine)["correct_by"]
    by = "device" if timing.kind == "measured" else by  # Also if the compiler is missing.
    return {"us": round(timing.us, 2), "time_kind": timing.kind, "correct_by": by}


def figures_of(row: Row) -> Row:
    """Returns the entry of a build in a result row: the figures that backends share, and the code's
    digest."""
    if "failure" in row:
        return {"failure": row["failure"]}
    found = {n: row["figures"][n] for n in SHARED_FIGURES if n in row["figures"]}
    return found | ({"sha256": row["sha256"]} if row["sha256"] else {})


class Library:
    """Times PyTorch, in a process that has the GPU."""

    def __init__(self) -> None:
        from benchmarks.device import prepare

        prepare()

    def __call__(self, job: tuple[str, str]) -> Reading:
        """Returns the row of a case by LIBRARY_OF, EAGER or a mode."""
        name, entrant = job
        try:
            return Reading(row=library(CASES[name], entrant))
        finally:
            from benchmarks.device import forget

            forget()


def library(case: Case, entrant: str) -> Row:
    """Times PyTorch's own function of a case, or the kernel as a model has it, eager or in a mode
    of `torch.compile`."""
    import torch

    from backends.gpu.device.gpu import CudaDevice
    from backends.gpu.device.nodes import DEVICE
    from backends.gpu.device.timing import measure
    from benchmarks.baselines import BASELINES
    from benchmarks.inputs import draw
    from benchmarks.race import compiled

    work = case.work()
    sets = [draw(work.spec, work.timed_sizes, DEVICE, n) for n in range(2)]
    function, said = torch, {}
    if entrant == LIBRARY_OF:
        for part in case.library.split("."):
            function = getattr(function, part)
        # With a batch dimension: without one, PyTorch has no fused attention.
        sets = [[t[None] for t in one] for one in sets]
        said = {"function": f"torch.{case.library}"}
    else:
        function = BASELINES[case.kernel].call
    with torch.no_grad():
        call = compiled(function, entrant) if entrant in MODES else function
        times = measure(lambda tensors: call(*tensors), sets, CudaDevice(), SECONDS)
    return {"us": round(times.us, 2)} | said


def beside(name: str, asked: Sequence[str] = ()) -> tuple[str, ...]:
    """Returns the entrants of PyTorch in a case. asked: those for a library kernel."""
    return (LIBRARY_OF,) if CASES[name].library else tuple(asked)


def forked(work: Callable[[], Row], answer: Path) -> int:
    """Starts work in a child, which writes its result, or the reason of its failure, as JSON."""
    if child := os.fork():
        return child
    try:
        found = work()
    except (BackendError, KernelError) as error:
        found = {"failure": str(error)}
    except Exception as error:  # A child must not return into the program that started it.
        found = {"failure": f"{type(error).__name__}: {error}"}
    answer.write_text(json.dumps(found), encoding="utf-8")
    os._exit(0)


def waited(children: dict[int, tuple[Path, float]], most: int) -> None:
    """Waits until fewer than so many children run, and kills those beyond their time limit.

    It prints a line on standard error when a child ends.
    """
    while len(children) >= most:
        done, _ = os.waitpid(-1, os.WNOHANG)
        if done in children:
            answer, end = children.pop(done)
            print(f"{answer.stem} ended, {end - time.monotonic():.0f} s left", file=sys.stderr)
        for child, (_, end) in list(children.items()):
            if time.monotonic() > end:
                os.kill(child, 9)
        time.sleep(0.02)


def raced(
    kernels: Sequence[str], race: Race, languages: Sequence[str], show: Callable[[Row], None]
) -> list[Row]:
    """Returns the rows of a race. show: called with each row when it is complete."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        children: dict[int, tuple[Path, float]] = {}
        pairs = [(k, one) for k in kernels for one in languages]
        for stage, seconds, together in (
            ("build", BUILD_SECONDS, TOGETHER),
            ("run", RUN_SECONDS, SIDE_BY_SIDE),
        ):
            for kernel, language in pairs:
                answer = folder / f"{kernel}-{language}.{stage}.json"
                waited(children, together)
                work = lambda k=kernel, b=language, s=stage: job(k, b, race, folder, s)  # noqa: E731
                children[forked(work, answer)] = (answer, time.monotonic() + seconds)
            waited(children, 1)
        with closing(Stopwatch(Library, LIBRARY_SECONDS)) as stopwatch:
            for kernel in kernels:
                rows.append(row := _row(kernel, languages, race, folder))
                for entrant in beside(kernel, race.beside):
                    found = stopwatch((kernel, entrant))
                    row[entrant] = {"failure": found.reason} if found.reason else dict(found.row)
                show(row)
    return rows


def _row(kernel: str, languages: Sequence[str], race: Race, folder: Path) -> Row:
    work, machine = CASES[kernel].work(), target(race.machine)
    found: Row = {"kernel": CASES[kernel].kernel, "sizes": dict(work.timed_sizes)}
    found["roofline_us"] = round(roofline(work.spec, machine, work.timed_sizes).us, 2)
    for language in languages:
        own: Row = {}
        for stage in ("build", "run"):
            answer = folder / f"{kernel}-{language}.{stage}.json"
            lost = {"failure": f"{stage}: no answer in time"}
            own |= json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else lost
        found[language] = own
    return found


def ratios(rows: Sequence[Row], one: str, other: str) -> dict[str, Any]:
    """Returns the speed-ups of the second backend over the first, over the library's kernels that
    both ran."""
    rows = [row for row in rows if LIBRARY_OF not in row]
    found = {
        row["kernel"]: row[one]["us"] / row[other]["us"]
        for row in rows
        if "us" in row[one] and "us" in row[other]
    }
    lost = [r["kernel"] for r in rows if r["kernel"] not in found]
    mean = geometric_mean(found.values()) if found else None
    return {"geometric_mean": mean, "min": min(found.values(), default=None), "failed": lost}


def measured(
    machine: Machine, built: BuiltFolder | None = None
) -> tuple[list[str], list[tuple[str, str]]]:
    """Returns the backends whose times are measured here, and the others with reasons."""
    found, others = [], []
    for name in machine.backends:
        serving = backend(name)
        if built and name in built.toolchains and isinstance(serving, Carries):
            why = serving.present(served_by(machine, serving))
        else:
            said = serving.available(machine)
            why = "" if said["time_kind"] == "measured" else said["why"] or said["correct_by"]
        (others.append((name, why)) if why else found.append(name))
    return found, others


def asked(kernels: str) -> list[str]:
    """Parses the names of cases. Empty for all."""
    names = [n for n in kernels.split(",") if n] or list(CASES)
    if unknown := [n for n in names if n not in CASES]:
        raise KernelError(f"there is no kernel `{unknown[0]}`", allowed=", ".join(CASES))
    return names


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="benchmarks.languages",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--target", required=True, help="a target whose GPU this machine has")
    made.add_argument("--out", required=True, type=Path, help="the result file")
    made.add_argument("--kernels", default="", help="kernels, separated by commas (default: all)")
    made.add_argument("--built", type=Path, help="a folder made by benchmarks.prebuilt")
    made.add_argument(
        "--schedules", default="", help="build with the records of this target instead"
    )
    made.add_argument(
        "--backends", default="", help="backends, separated by commas (default: all available ones)"
    )
    made.add_argument(
        "--eager", action="store_true", help="also time PyTorch on the library's kernels, eager"
    )
    made.add_argument(
        "--modes", default="", help=f"so do these modes of torch.compile: {', '.join(MODES)}"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Races, and writes the file."""
    given = _parser().parse_args(arguments)
    names, machine = asked(given.kernels), target(given.target)
    built = read_built(given.built, given.target) if given.built else None
    wanted, modes = ([n for n in t.split(",") if n] for t in (given.backends, given.modes))
    for word, allowed in (*((n, machine.backends) for n in wanted), *((n, MODES) for n in modes)):
        if word not in allowed:
            raise KernelError(f"there is no `{word}` to race", allowed=", ".join(allowed))
    languages, lacking = measured(machine, built)
    languages = [n for n in languages if not wanted or n in wanted]
    said = [
        f"`{n}`, which is not measured here: {why}"
        for n, why in lacking
        if not wanted or n in wanted
    ]
    if len(languages) < min(LEAST, len(wanted) or LEAST):
        raise KernelError("there is no race without " + "; ".join(said))
    for why in said:
        print(f"benchmarks.languages: without {why}", file=sys.stderr)
    schedules = built.schedules if built else given.schedules
    race = Race(given.target, schedules, built, (*((EAGER,) if given.eager else ()), *modes))
    rows = raced(names, race, languages, lambda row: print(json.dumps(row), flush=True))
    from benchmarks.device import facts  # This opens the GPU. Afterwards no child could.

    mine = [(CASES[n].kernel, dict(CASES[n].work().timed_sizes)) for n in names]
    kept = [r for r in read(given.out)["rows"] if (r["kernel"], r["sizes"]) not in mine]
    rows = sorted([*kept, *rows], key=lambda row: (LIBRARY_OF in row, row["kernel"]))
    summary = {b: ratios(rows, languages[0], b) for b in languages[1:]}
    head = {
        "command": _command(given),
        "date": date.today().isoformat(),
        **facts(),
        "languages": list(languages),
        "checked": "check and tuning",
        "summary": summary,
    }
    if built:
        head["built_by"] = dict(built.toolchains)
    if schedules:
        head["schedules"] = schedules
    save(given.out, head | {"rows": rows})
    print(json.dumps(summary))
    return 0


def _command(given: argparse.Namespace) -> str:
    words = ["python3 -m benchmarks.languages", f"--target={given.target}"]
    words += [f"--built={given.built.name}"] if given.built else []
    words += [f"--schedules={given.schedules}"] if given.schedules else []
    words += [f"--kernels={given.kernels}"] if given.kernels else []
    words += [f"--backends={given.backends}"] if given.backends else []
    words += ["--eager"] if given.eager else []
    words += [f"--modes={given.modes}"] if given.modes else []
    return " ".join([*words, f"--out={given.out.name}"])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KernelError as error:
        print(f"benchmarks.languages: {error}", file=sys.stderr)
        sys.exit(2)
