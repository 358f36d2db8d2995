"""The contract: what a backend must do with a kernel from its nest to its timeline, as problems."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import backends
from backends.backend import Backend, BackendError, Built, Timing
from backends.emit import TEMPLATES
from backends.measure import check, check_draws, draw_sizes, reference
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_spec
from ir.schedule import Schedule
from ir.spec import Spec

SEED = 7
BROKEN = "this is no kernel ( {\n"  # put before a source; no language takes it
CASES = (  # name, spec, scheduler, sizes for which it is scheduled, sizes at which it is run
    (
        "map",
        "def scale(x: f32[M, K], g: f32[K]) -> f32[M, K]:\n"
        '    """Scale."""\n    y[m, k] = x[m, k] * g[k] + 1.5\n    return y\n',
        autoschedule,
        {"M": 64, "K": 96},
        ({"M": 64, "K": 96}, {"M": 1, "K": 1}, {"M": 7, "K": 33}),
    ),
    (
        "reduction",
        "def total(x: f32[M, K]) -> f32[M]:\n"
        '    """Add up rows."""\n    y[m] = sum(x[m, k], k)\n    return y\n',
        plain,
        {"M": 32, "K": 64},
        ({"M": 32, "K": 64}, {"M": 13, "K": 127}),
    ),
    (
        "contraction",
        "def product(x: f16[M, K], w: f16[K, N]) -> f16[M, N]:\n"
        '    """Multiply."""\n    acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)\n'
        "    y[m, n] = relu(acc[m, n])\n    return y\n",
        autoschedule,
        {"M": 64, "K": 64, "N": 64},
        ({"M": 64, "K": 64, "N": 64}, {"M": 5, "K": 67, "N": 31}),
    ),
    (
        "names",  # words of the languages that are emitted, and what emission itself may call things
        "def launch(double: f32[BLOCK_N, K], tile: f32[K], float=0.5) -> f32[BLOCK_N]:\n"
        '    """Reduction."""\n    int[register, n] = double[register, n] * tile[n] * float\n'
        "    new[register] = sum(int[register, n], n)\n    return new\n",
        plain,
        {"BLOCK_N": 32, "K": 64},
        ({"BLOCK_N": 32, "K": 64}, {"BLOCK_N": 5, "K": 67}),
    ),
)


@dataclass(frozen=True, slots=True)
class ContractRun:
    """One kernel through one backend for one machine."""

    backend: Backend
    machine: Machine
    spec: Spec
    schedule: Schedule
    sizes: Mapping[str, int]
    runs: tuple[Mapping[str, int], ...]
    folder: Path  # empty, for the trial alone

    def nest(self) -> LoopNest:
        """The nest, lowered anew."""
        return lower(self.spec, self.schedule, self.machine, self.sizes)


def trial(case: str, backend: Backend, machine: Machine, folder: Path) -> ContractRun:
    """The trial of a case by its name."""
    ((_, text, scheduler, sizes, runs),) = (c for c in CASES if c[0] == case)
    spec = parse_spec(text)
    schedule = scheduler(spec, machine, sizes)
    return ContractRun(backend, machine, spec, schedule, sizes, runs, folder)


def static_problems(backend: Backend, machine: Machine) -> list[str]:
    """What is wrong with what a backend says of itself and of what it can do here."""
    manifest, can = backend.manifest, backend.available(machine)
    found = []
    if manifest.name not in machine.backends:
        found.append(f"`{machine.name}` does not list `{manifest.name}`")
    for field in ("correct_by", "time_kind"):
        word, known = can.get(field, "missing"), getattr(manifest, field)
        if word is not None and word not in known:
            found.append(f"available[{field!r}] is {word!r}, the manifest has {known}")
        if word is None and not can.get("why"):
            found.append(f"available[{field!r}] is None and `why` does not say why")
    return found


def problems(trial: ContractRun) -> list[str]:
    """What a backend does wrong with one kernel, from its nest to its timeline.

    What cannot be done on this machine, by the backend's own word, is not tried.
    """
    can = trial.backend.available(trial.machine)
    found = list(_emit(trial))
    source = trial.backend.emit(trial.nest(), trial.machine)
    built, left = _build(trial, source)
    found += left
    found += _broken(trial, source)
    if can["correct_by"]:
        found += _run(trial, built)
    if can["time_kind"]:
        found += _time(trial, built, can["time_kind"])
    return found


def _emit(trial: ContractRun) -> Iterator[str]:
    nest = trial.nest()
    first = trial.backend.emit(nest, trial.machine)
    if not isinstance(first, str) or not first.strip():
        yield f"emit gave {first!r}, not a text"
    if trial.backend.emit(nest, trial.machine) != first:
        yield "emit gave two texts for one nest"
    if trial.backend.emit(trial.nest(), trial.machine) != first:
        yield "emit gave two texts for equal nests"


def _build(trial: ContractRun, source: str) -> tuple[Built, list[str]]:
    """What a source was built to, and what is wrong with what that left behind."""
    own = Path(backends.__file__).parent / trial.backend.manifest.name
    watched = (own, TEMPLATES, trial.folder.parent, Path.cwd())
    before = _listing(watched, trial.folder)
    built = _built(trial, source, "built")
    stray = sorted(_listing(watched, trial.folder) - before)
    found = [f"build wrote outside its folder: {path}" for path, _ in stray]
    if not built.file.is_file() or not built.file.is_relative_to(trial.folder / "built"):
        found.append(f"build left no file under its folder: {built.file}")
    for name, figure in built.figures.items():
        if not math.isfinite(figure):
            found.append(f"the figure `{name}` of a build is {figure}")
    return built, found


def _built(trial: ContractRun, source: str, name: str) -> Built:
    folder = trial.folder / name
    folder.mkdir()
    return trial.backend.build(source, trial.nest(), trial.machine, folder)


def _listing(roots: tuple[Path, ...], without: Path) -> set[tuple[str, int]]:
    """Files directly in some folders, with the time of their last change."""
    files = (p for root in roots if root.is_dir() for p in root.iterdir())
    kept = (p for p in files if p != without and p.name != "__pycache__" and p.is_file())
    return {(str(p), p.stat().st_mtime_ns) for p in kept}


def _broken(trial: ContractRun, source: str) -> Iterator[str]:
    try:
        _built(trial, BROKEN + source, "broken")
    except BackendError as e:
        if e.stage != "build" or not e.reason.strip():
            yield f"a broken source gave stage {e.stage!r}, reason {e.reason!r}"
    else:
        yield "a broken source was built"


def _run(trial: ContractRun, built: Built) -> Iterator[str]:
    """At each of the sizes; a run is repeated at the first of them. At one, on other draws too."""
    for sizes in trial.runs:
        try:
            check(
                trial.backend,
                built,
                trial.nest(),
                trial.machine,
                trial.spec,
                sizes,
                SEED,
                repeat=sizes == trial.runs[0],
            )
        except BackendError as e:
            yield f"run: {e.reason}"
    sizes = draw_sizes(trial.spec, trial.runs)
    try:
        check_draws(trial.backend, built, trial.nest(), trial.machine, trial.spec, sizes, SEED)
    except BackendError as e:
        yield f"run: {e.reason}"


def _time(trial: ContractRun, built: Built, kind: str) -> Iterator[str]:
    """Twice, and a third time with a timeline; equal where nothing is measured."""
    backend, nest, machine = trial.backend, trial.nest(), trial.machine
    inputs = reference(trial.spec, trial.sizes, SEED).inputs
    trace = trial.folder / "trace.json"

    def given() -> dict:
        return {name: array.copy() for name, array in inputs.items()}

    first = backend.time(built, nest, machine, trial.sizes, given())
    second = backend.time(built, nest, machine, trial.sizes, given())
    third = backend.profile(built, nest, machine, trial.sizes, given(), trace)
    for timing in (first, second, third):
        yield from _timing(timing, kind)
    if kind != "measured" and not first.us == second.us == third.us:
        yield f"{kind} times differ: {first.us}, {second.us}, profiled {third.us} us"
    try:
        events = json.loads(trace.read_text())
        if not (events if isinstance(events, list) else events["traceEvents"]):
            yield "the timeline is empty"
    except (OSError, ValueError, KeyError) as e:
        yield f"the timeline cannot be read: {e!r}"


def _timing(timing: Timing, kind: str) -> Iterator[str]:
    if timing.kind != kind:
        yield f"the time is {timing.kind}, `available` said {kind}"
    if not (math.isfinite(timing.us) and timing.us > 0):
        yield f"the time is {timing.us} us"
    for name, share in timing.engines.items():
        if not 0 <= share <= 1 + 1e-9:
            yield f"the engine `{name}` is busy for {share} of the time"
    for name, figure in timing.figures.items():
        if not math.isfinite(figure):
            yield f"the figure `{name}` is {figure}"
