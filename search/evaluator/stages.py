"""The stages of an evaluation: lower, emit, build, check, time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import Arrays, Backend, BackendError, Built, CountsSource, Timing
from backends.measure import OTHER, check, reference
from ir.character import character
from ir.cost import Roofline, roofline
from ir.digest import text_digest
from ir.errors import KernelError
from ir.estimate import intensity
from ir.inputs import random_inputs
from ir.lower import lower
from ir.machine import Machine
from ir.nest import LoopNest
from ir.parse import parse_schedule, parse_spec
from ir.spec import Range, Read, Spec
from ir.workload import Sizes
from search.candidate import Candidate
from search.evaluation import Evaluated, Evaluation, Failure, ShapeError
from search.evaluator.sandbox import Limits
from search.evaluator.turns import Turns

AFFORDABLE_FLOPS = 1 << 31  # a float64 reference of so many operations takes about a second
AFFORDABLE_BYTES = 1 << 25  # of inputs and outputs; a reference holds ten times as much
SLOW = ("interpreter",)  # takes minutes at tuning sizes, which are therefore not compared
CLOCK = 0.95  # of the bound: a time measured below that is no time of the whole work
SAID = ("correct_by", "time_kind", "device", "clocks", "toolchain")
SEED = 20  # of inputs for checks: the same for all runs, so that what was found out is reusable


class Impossible(Exception):
    """A time that cannot be true; the message is for a person."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What candidates are tried on; plain data that travels to a worker.

    open: gives the backend, called once in each worker.  sizes: those that are timed.  checks:
    those at which results are compared, the first failure ends it.  limits: of a candidate,
    suited to what the backend says that it needs.
    """

    spec: str
    machine: Machine
    open: Callable[[], Backend]
    sizes: Sizes
    checks: tuple[Sizes, ...] = ()
    seed: int = SEED
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker says of itself once it is set up, as plain values.

    limits: as suited to the backend.  here: how results and times are had, the device and the
    toolchain, as far as the backend says.  sandbox: by layer, what holds.
    """

    limits: Limits
    here: Mapping[str, str]
    sandbox: Mapping[str, str] = field(default_factory=dict)


class Drawn(Mapping):
    """Random inputs that are drawn when someone first looks: a modelled time needs none."""

    def __init__(self, spec: Spec, sizes: Sizes, seed: int):
        self._draw = lambda: random_inputs(spec, sizes, np.random.default_rng(seed))
        self._arrays: Arrays | None = None

    def drawn(self) -> Arrays:
        """All of them, the same each time."""
        if self._arrays is None:
            self._arrays = self._draw()
        return self._arrays

    def __getitem__(self, name: str) -> np.ndarray:
        return self.drawn()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.drawn())

    def __len__(self) -> int:
        return len(self.drawn())


@dataclass(frozen=True, slots=True)
class Stages:
    """A bench set up in a process: everything that all candidates need was made once.

    shapes: at which results are compared; the tuning sizes are the last, where affordable.
    inputs: at the tuning sizes; never changed, as each child has its own copy.  least_us: no
    kernel can be faster; 0 where that depends on the data.  turns: on the device, if there is
    one.
    """

    bench: Bench
    backend: Backend
    spec: Spec
    shapes: tuple[Sizes, ...]
    inputs: Arrays
    least_bytes: float
    least_us: float
    setup: Setup
    turns: Turns

    @staticmethod
    def of(bench: Bench) -> Stages:
        """Opens the backend and computes the references; KernelError where it cannot run here."""
        backend = bench.open()
        spec = parse_spec(bench.spec)
        can = backend.available(bench.machine)
        if not can.get("correct_by") or not can.get("time_kind"):
            raise KernelError(
                f"candidates for `{bench.machine.name}` cannot be evaluated here: "
                f"{can.get('why') or 'the backend does not say why'}",
                where=backend.manifest.name,
            )
        bound = roofline(spec, bench.machine, bench.sizes)
        shapes = _shapes(bench, bound, can["correct_by"])
        if not shapes:
            raise KernelError(
                f"`{spec.name}` has no sizes at which its results could be checked",
                hint="add a `check(...)` line with small sizes to its .kir file",
            )
        for sizes in shapes:
            reference(spec, sizes, bench.seed)
            reference(spec, sizes, bench.seed + OTHER)
        inputs = Drawn(spec, bench.sizes, bench.seed)
        if can["time_kind"] != "modelled":
            inputs.drawn()  # now, so that the children share them
        here = {name: str(can[name]) for name in SAID if can.get(name)}
        return Stages(
            bench=bench,
            backend=backend,
            spec=spec,
            shapes=shapes,
            inputs=inputs,
            least_bytes=float(bound.bytes),
            least_us=0.0 if _depends_on_data(spec) else bound.us,
            setup=Setup(bench.limits.suited(can), here),
            turns=_turns(can),
        )

    def evaluate(
        self, candidate: Candidate, folder: Path, enter: Callable[[str], None]
    ) -> Evaluated:
        """Takes a candidate through all stages. enter: is told each as it begins.

        The only place beside the sandbox where foreign code runs: whatever it raises becomes a
        Failure at the stage that was entered last.
        """
        stage = "verify"

        def begin(name: str) -> None:
            nonlocal stage
            stage = name
            enter(name)

        try:
            return self._evaluate(candidate, folder, begin)
        except KernelError as error:
            return Failure(stage, "refused", str(error))
        except BackendError as error:
            return Failure(error.stage, _kind(error), error.reason)
        except Impossible as error:
            return Failure(stage, "wrong", str(error))
        except MemoryError:
            return Failure(stage, "memory", "it asked for more memory than it may have")
        except Exception as error:  # foreign code: a fault there is data here
            return Failure(stage, "crash", f"{type(error).__name__}: {error}")

    def _evaluate(
        self, candidate: Candidate, folder: Path, begin: Callable[[str], None]
    ) -> Evaluation:
        machine, sizes = self.bench.machine, self.bench.sizes
        begin("verify")
        nest = self._lower(candidate)
        begin("emit")
        source = candidate.source
        if source is None:
            source = self.backend.emit(nest, machine)
        begin("build")
        built = self.backend.build(source, nest, machine, folder)
        begin("check")
        with self.turns.together():
            errors = tuple(self._check(built, nest, shape) for shape in self.shapes)
        begin("time")
        with self.turns.alone():
            timing = self.backend.time(built, nest, machine, sizes, self.inputs)
        _require_possible(timing, self.least_us)
        return Evaluation(
            us=timing.us,
            time_kind=timing.kind,
            correct_by=self.setup.here["correct_by"],
            errors=errors,
            figures=self._figures(nest, candidate.source, built, timing),
            engines=dict(timing.engines),
            source_digest=text_digest(source),
        )

    def _lower(self, candidate: Candidate) -> LoopNest:
        formulation = self.spec
        if candidate.formulation != self.bench.spec:
            formulation = parse_spec(candidate.formulation)
        schedule = parse_schedule(candidate.schedule)
        return lower(formulation, schedule, self.bench.machine, self.bench.sizes)

    def _check(self, built: Built, nest: LoopNest, sizes: Sizes) -> ShapeError:
        bench = self.bench
        found = check(
            self.backend,
            built,
            nest,
            bench.machine,
            self.spec,
            sizes,
            bench.seed,
            repeat=sizes == self.shapes[0],
        )
        return ShapeError(dict(sizes), found.rel_err, found.reference_rel_err)

    def _figures(
        self, nest: LoopNest, source: str | None, built: Built, timing: Timing
    ) -> Mapping[str, float]:
        """Facts of the nest and of the run. What a source of its own shows by itself replaces
        what the nest says that it was edited from; what was seen replaces what was estimated."""
        machine, sizes = self.bench.machine, self.bench.sizes
        facts = intensity(nest, machine, sizes) | {"least_bytes": self.least_bytes}
        counted: Mapping[str, float] = {}
        if source is not None and isinstance(self.backend, CountsSource):
            counted = self.backend.static_figures(source)
        guessed = character(nest, machine, sizes)
        return {**guessed, **counted, **built.figures, **timing.figures, **facts}


def _shapes(bench: Bench, bound: Roofline, correct_by: str) -> tuple[Sizes, ...]:
    """The sizes at which results are compared: the tuning sizes too, where that is affordable."""
    cheap = bound.flops <= AFFORDABLE_FLOPS and bound.bytes <= AFFORDABLE_BYTES
    others = tuple(s for s in bench.checks if s != bench.sizes)
    tuned = (bench.sizes,) if cheap and (correct_by not in SLOW or not others) else ()
    return (*others, *tuned)


def _depends_on_data(spec: Spec) -> bool:
    """Whether the bytes that must be moved depend on the data: positions or ranges are read."""
    nodes = [n for e in spec.equations for part in (*e.at, e.value) for n in part.walk()]
    places = [n for read in nodes if isinstance(read, Read) for at in read.at for n in at.walk()]
    ranges = [n for n in nodes if isinstance(n, Range) and n.jagged]
    return bool(ranges) or any(isinstance(n, Read) for n in places)


def _turns(can: Mapping[str, Any]) -> Turns:
    """Turns where what others do on the device disturbs a measured time.

    The lock is on a file of ours: on a device's own a backend may have a lock too.
    """
    return Turns(__file__ if can["time_kind"] == "measured" else "")


def _require_possible(timing: Timing, least_us: float) -> None:
    """Impossible where a kernel is measured to be faster than the machine can be."""
    if timing.kind == "measured" and timing.us < CLOCK * least_us:
        raise Impossible(
            f"{timing.us:.4g} us were measured, {least_us:.4g} us is the least that the machine "
            "can take: it does not do all the work, or the machine file is wrong"
        )


def _kind(error: BackendError) -> str:
    """The kind of a failure: what the backend says (a child of its own was out of time or
    memory), else what follows from the stage."""
    said = getattr(error, "kind", "")
    return said or ("wrong" if error.stage == "check" else "refused")
