"""The stages of an evaluation: lower, emit, build, check, time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from backends.backend import (
    Admits,
    Backend,
    BackendError,
    Built,
    CompilesAhead,
    CountsSource,
    Glances,
    Hosted,
    Timing,
    Warms,
)
from backends.measure import (
    check,
    check_draws,
    check_once,
    check_timed,
    draw_sizes,
    leaves_inputs,
    prepare,
)
from backends.patience import patience
from backends.turns import Turns
from ir.autoschedule.autoschedule import plain
from ir.digest import text_digest
from ir.errors import KernelError
from ir.estimate.estimate import intensity
from ir.estimate.kernel_features import kernel_features
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_schedule, parse_spec
from ir.reference.drawn_shapes import drawn_shapes
from ir.spec import Spec
from ir.variant.narrow import require_range
from ir.workload import Sizes
from search.core.candidate import Candidate
from search.core.evaluation import SLOW, Evaluated, Evaluation, Failure, ShapeError, Timed
from search.core.workload import WeightedShape, mean
from search.evaluator.glance import Fastest, Glanced, TooSlow, require_fast, timed_inputs
from search.evaluator.sandbox import Limits
from search.evaluator.shapes import TimedShape, compared, sampled, slowly
from search.evaluator.tuned import SLOW_RUNS, TUNED_SECONDS, tuning_shape
from search.evaluator.turns import ByTurns, turns_of

CLOCK = 0.95  # of the roofline: a shorter measured time cannot be for the whole work
SAID = ("correct_by", "time_kind", "device", "driver", "clocks", "toolchain")
SEED = 20  # seed of inputs if there is no secret


class Impossible(Exception):
    """A time that cannot be true. The message is for a person."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The conditions of an evaluation, as plain data that is sent to workers."""

    spec: str
    machine: Machine
    open: Callable[[], Backend]  # makes the backend; called once in each worker
    sizes: Sizes  # timed sizes
    checks: tuple[Sizes, ...] = ()  # sizes of checks; the first failure ends the evaluation
    # Seed text for inputs and shapes, which no candidate knows. Empty: SEED, and only the given check sizes.
    secret: str = ""
    # Limits of a candidate, adjusted to the backend's needs.
    limits: Limits = field(default_factory=Limits)
    # Shapes that are timed in place of `sizes`; figures are then those at `sizes`.
    workload: tuple[WeightedShape, ...] = ()
    # Whether a candidate that fits only some of the shapes is evaluated there.
    partly: bool = False
    rounded: tuple[str, ...] = ()  # see `Spec`

    @property
    def shapes(self) -> tuple[WeightedShape, ...]:
        """The timed shapes, at least one."""
        return self.workload or (WeightedShape(self.sizes),)

    @property
    def seed(self) -> int:
        """The seed of inputs and of drawn shapes."""
        if not self.secret:
            return SEED
        return int.from_bytes(hashlib.sha256(self.secret.encode()).digest()[:8], "big")

    def drawn(self, spec: Spec) -> tuple[Sizes, ...]:
        """The shapes that the secret draws."""
        if not self.secret:
            return ()
        tuned = [dict(s.sizes) for s in self.shapes]
        return drawn_shapes(spec, tuned, (*self.checks, *tuned), self.seed)


@dataclass(frozen=True, slots=True)
class Setup:
    """The properties of a worker that is set up, as plain values."""

    limits: Limits  # adjusted to the backend
    # The kinds of results and times, the device and the toolchain, as reported by the backend.
    here: Mapping[str, str]
    sandbox: Mapping[str, str] = field(default_factory=dict)  # state by layer


@dataclass(frozen=True, slots=True)
class _Fit:
    """A shape that a candidate fits."""

    where: TimedShape
    nest: LoopNest
    built: Built | None = None  # the build that is timed there


@dataclass(frozen=True, slots=True)
class Stages:
    """A bench that is set up in a process, with everything that all candidates share."""

    bench: Bench
    backend: Backend
    spec: Spec
    # Sizes at which results are compared. Affordable tuning sizes come last.
    shapes: tuple[Sizes, ...]
    # Sizes that are compared once: drawn sizes, and tuning sizes at some of their rows.
    once: tuple[Sizes, ...]
    # Tuning sizes with slow runs, and with references, for candidates whose tiles make a run affordable.
    slow: tuple[Sizes, ...]
    timed: tuple[TimedShape, ...]  # in the order of the workload
    setup: Setup
    turns: Turns  # turns on the device, if there is one
    # Whether times are measured on the cores that also build and check, so that these take turns too.
    own_cores: bool = False
    # Whether a process may evaluate several candidates by our own emitters, because opening the device takes long.
    lasting: bool = False
    # Whether sources by others are compiled and interpreted in a clean process.
    apart: bool = False

    @staticmethod
    def of(bench: Bench, timed: tuple[TimedShape, ...] = (), all_cores: bool = False) -> Stages:
        """Opens the backend and computes the references. Raises KernelError if the backend cannot run here.

        timed: the timed shapes, if another backend's bench has drawn their inputs. all_cores: whether no other
        process sets up the same at this time.
        """
        backend = bench.open()
        spec = replace(parse_spec(bench.spec), rounded=bench.rounded)
        can = backend.available(bench.machine)
        if not can.get("correct_by") or not can.get("time_kind"):
            raise KernelError(
                f"candidates for `{bench.machine.name}` cannot be evaluated here: "
                f"{can.get('why') or 'the backend does not say why'}",
                where=backend.manifest.name,
            )
        timed = timed or tuple(
            TimedShape.of(spec, bench.machine, s, bench.seed) for s in bench.shapes
        )
        shapes = compared(bench.checks, timed, can["correct_by"])
        if not shapes:
            raise KernelError(
                f"`{spec.name}` has no sizes at which its results could be checked",
                hint="add a `check(...)` line with small sizes to its .kir file, or read a "
                "--problem with --reduced",
            )
        once = (
            *bench.drawn(spec),
            *sampled(spec, shapes, timed, can["correct_by"], bench.seed),
        )
        slow = slowly(spec, (*shapes, *once), timed, can["correct_by"], bench.seed)
        drawn_at = draw_sizes(spec, bench.checks or shapes)
        # Computed before forks, so that children share it: outputs of timed calls are compared too.
        given = [t.shape.sizes for t in timed if can["time_kind"] == "measured"]
        arrays = not leaves_inputs(backend, bench.machine)  # otherwise a device makes large inputs
        prepare(spec, shapes, drawn_at, bench.seed, (*once, *slow, *given), all_cores, arrays)
        if can["time_kind"] != "modelled":
            for one in timed:
                one.inputs.drawn(arrays)
        _warm(backend, spec, bench)
        here = {name: str(can[name]) for name in SAID if can.get(name)}
        return Stages(
            bench=bench,
            backend=backend,
            spec=spec,
            shapes=shapes,
            once=once,
            slow=slow,
            timed=timed,
            setup=Setup(bench.limits.suited(can).times(len(timed)), here),
            turns=turns_of(can),
            own_cores=bool(can.get("own_cores")),
            lasting=bool(can.get("lasting")),
            apart=bool(can.get("apart")),
        )

    def evaluate(
        self,
        candidate: Candidate,
        folder: Path,
        enter: Callable[[str], None],
        fastest: Fastest | None = None,
    ) -> Evaluated:
        """Takes a candidate through all stages.

        enter: called with each stage as it begins. fastest: of the backend; None: the candidate is built and checked
        however slow it is.

        Untrusted code runs only here and in the sandbox: whatever it raises becomes a Failure at the current stage.
        """
        stage = "verify"

        def begin(name: str) -> None:
            nonlocal stage
            stage = name
            enter(name)

        try:
            return self._evaluate(candidate, folder, begin, fastest)
        except TooSlow as slow:
            return Failure("time", SLOW, str(slow), us=slow.us)
        except KernelError as error:
            return Failure(stage, "refused", str(error))
        except BackendError as error:
            return Failure(error.stage, _kind(error), error.reason)
        except Impossible as error:
            return Failure(stage, "wrong", str(error))
        except MemoryError:
            return Failure(stage, "memory", "it asked for more memory than it may have")
        except Exception as error:  # untrusted code: its faults are results
            return Failure(stage, "crash", f"{type(error).__name__}: {error}")

    def _evaluate(
        self,
        candidate: Candidate,
        folder: Path,
        begin: Callable[[str], None],
        fastest: Fastest | None,
    ) -> Evaluated:
        with self._working():
            fitting, fault, source, errors = self._checked(candidate, folder, begin, fastest)
        begin("time")
        found = self._evaluation(fitting, errors, source, candidate.source)
        if fault is None:
            return found
        return Failure("verify", "refused", str(fault), partly=found)

    def _checked(
        self,
        candidate: Candidate,
        folder: Path,
        begin: Callable[[str], None],
        fastest: Fastest | None,
    ) -> tuple[list[_Fit], KernelError | None, str, tuple[ShapeError, ...]]:
        """The shapes that a candidate fits, each built; the first fault at another shape; the source; and the errors,
        which are within tolerance."""
        machine = self.bench.machine
        begin("verify")
        fitting, fault = self._lowered(candidate)
        begin("emit")
        nest = max(fitting, key=lambda fit: fit.where.bound.bytes).nest
        source = candidate.source
        if source is None:
            source = self.backend.emit(nest, machine)
        begin("build")
        if candidate.source is not None:
            self._require_admitted(source, nest)
        # A source by others never runs before its check. Seed candidates are exempt, because other times are compared
        # with theirs.
        beaten = fastest if candidate.source is None and candidate.origin.parents else None
        with patience(beaten.patience if beaten and self._measures else None):
            built = self.backend.build(source, nest, machine, folder)
        fitting = self._each_built(source, built, fitting, folder)
        if beaten is not None:
            self._glance(fitting, beaten.us, begin)
        errors = self._compared(fitting, built, nest, begin)
        errors += self._check_tuned(fitting)
        return fitting, fault, source, tuple(errors)

    def _compared(
        self, fitting: list[_Fit], built: Built, nest: LoopNest, begin: Callable[[str], None]
    ) -> list[ShapeError]:
        """The errors at the sizes that fit, in order. The sizes of the build come first, because a wrong candidate
        then needs no code for other sizes."""
        fits, own = [fit.where.shape.sizes for fit in fitting], dict(nest.sizes)
        lacking = [t.shape.sizes for t in self.timed if t.shape.sizes not in fits]
        shapes, once = ([s for s in e if s not in lacking] for e in (self.shapes, self.once))
        known: list[ShapeError] = []
        if isinstance(self.backend, CompilesAhead):
            begin("check")
            known += [self._check(built, nest, s) for s in shapes if s == own]
            known += [self._check(built, nest, s, once=True) for s in once if s == own]
            begin("build")
            self.backend.compile_at(built, nest, self.bench.machine, [*shapes, *once, *fits])
        begin("check")

        def error(sizes: Sizes, once: bool) -> ShapeError:
            return known[0] if known and sizes == own else self._check(built, nest, sizes, once)

        errors = [error(sizes, once=False) for sizes in shapes]
        self._check_draws(built, nest, lacking)
        return errors + [error(sizes, once=True) for sizes in once]

    def _require_admitted(self, source: str, nest: LoopNest) -> None:
        """Raises BackendError if a source by others uses more than kernels may."""
        backend = self.backend
        if not isinstance(backend, Admits):
            word = backend.manifest.name
            raise BackendError(
                "build", f"`{word}` takes no sources but its own: it has no admission"
            )
        backend.admit(source)
        if isinstance(backend, Hosted):
            backend.require_host(source, backend.emit(nest, self.bench.machine))

    def _glance(self, fitting: list[_Fit], fastest_us: float, begin: Callable[[str], None]) -> None:
        """Raises TooSlow if glances at all shapes show that a candidate takes much longer than the fastest."""
        backend = self.backend
        whole = len(fitting) == len(self.timed) and self._measures
        if not whole or not isinstance(backend, Glances):
            return
        begin("time")
        shapes = [Glanced(fit.where, fit.nest, fit.built) for fit in fitting if fit.built]
        require_fast(backend, self.bench.machine, shapes, fastest_us, self.turns)

    @property
    def _measures(self) -> bool:
        return self.setup.here["time_kind"] == "measured"

    def _working(self) -> AbstractContextManager[None]:
        """A turn for the stages before timing, if they run on the cores that are timed."""
        return self.turns.together() if self.own_cores else nullcontext()

    def _runs(self) -> ByTurns:
        """The backend for checks. Inside a turn of `_working`, runs take no turns of their own: a second turn would
        deadlock with a process that waits for the first to end."""
        return ByTurns(self.backend, Turns() if self.own_cores else self.turns)

    def _lowered(self, candidate: Candidate) -> tuple[list[_Fit], KernelError | None]:
        """The nests at the shapes that fit, and the first fault at another shape.

        Raises that fault if partial fits are not allowed, or if no shape fits.
        """
        variant = self.spec
        if candidate.variant != self.bench.spec:
            variant = parse_spec(candidate.variant)
        schedule, machine = parse_schedule(candidate.schedule), self.bench.machine
        require_range(variant, schedule, machine, self.spec)
        found, fault = [], None
        for one in self.timed:
            try:
                nest = lower(variant, schedule, machine, one.shape.sizes)
                found.append(_Fit(one, nest))
            except KernelError as error:
                fault = fault or self._within(one, error)
        if fault is not None and not (found and self.bench.partly):
            raise fault
        return found, fault

    def _within(self, one: TimedShape, error: KernelError) -> KernelError:
        """An error at a shape, with the shape's name if there are several."""
        if len(self.timed) == 1:
            return error
        shape = ", ".join(f"{name}={size}" for name, size in one.shape.sizes.items())
        return error.within(f"at {shape}")

    def _each_built(
        self, source: str, built: Built, fitting: list[_Fit], folder: Path
    ) -> list[_Fit]:
        """The builds that are timed at the shapes: `built`, or a build for each shape if a model reads the build's
        figures."""
        if len(fitting) == 1 or self.setup.here["time_kind"] != "modelled":
            return [replace(fit, built=built) for fit in fitting]
        made = []
        for number, fit in enumerate(fitting):
            place = folder / f"shape_{number}"
            place.mkdir()
            there = self.backend.build(source, fit.nest, self.bench.machine, place)
            made.append(replace(fit, built=there))
        return made

    def _evaluation(
        self,
        fitting: list[_Fit],
        errors: tuple[ShapeError, ...],
        source: str,
        edited: str | None,
    ) -> Evaluation:
        """The evaluation of `fitting`. edited: the source, if it is the candidate's own."""
        shapes = [fit.where.shape for fit in fitting]
        timings = [self._timing(fit) for fit in fitting]
        times = tuple(self._timed(f, edited, t) for f, t in zip(fitting, timings, strict=True))
        own = next((n for n, t in enumerate(times) if t.sizes == self.bench.sizes), 0)
        first, built = times[own], fitting[own].built
        return Evaluation(
            us=mean([t.us for t in times], shapes),
            time_kind=timings[0].kind,
            correct_by=self.setup.here["correct_by"],
            errors=errors,
            figures=first.figures,
            engines=first.engines,
            source_digest=text_digest(source),
            code_sha256=built.sha256 if built else "",
            times=times if len(self.timed) > 1 else (),
        )

    def _timing(self, fit: _Fit) -> Timing:
        where, built = fit.where, fit.built
        assert built is not None, "a nest is timed after it was built"
        inputs = timed_inputs(self.backend, self.bench.machine, where)
        with self.turns.alone():
            timing = self.backend.time(
                built, fit.nest, self.bench.machine, where.shape.sizes, inputs
            )
        _require_possible(timing, where.least_us)
        if timing.outputs or timing.kind == "measured":
            check_timed(self.spec, where.shape.sizes, self.bench.seed, timing.outputs)
        return replace(timing, outputs={})

    def _timed(self, fit: _Fit, edited: str | None, timing: Timing) -> Timed:
        shape = fit.where.shape
        figures = self._figures(fit, edited, timing)
        return Timed(dict(shape.sizes), shape.weight, timing.us, figures, dict(timing.engines))

    def _figures(self, fit: _Fit, edited: str | None, timing: Timing) -> Mapping[str, float]:
        """Figures of the nest and of the run.

        Facts that an edited source shows replace those of its nest; measured values replace estimates.
        """
        nest, machine, sizes = fit.nest, self.bench.machine, fit.where.shape.sizes
        facts = intensity(nest, machine, sizes)
        facts["least_bytes"] = float(fit.where.bound.bytes)
        counted: Mapping[str, float] = {}
        if edited is not None and isinstance(self.backend, CountsSource):
            counted = self.backend.static_figures(edited)
        guessed = kernel_features(nest, machine, sizes)
        built = fit.built.figures if fit.built else {}
        return {**guessed, **built, **timing.figures, **facts, **counted}

    def _check(self, built: Built, nest: LoopNest, sizes: Sizes, once: bool = False) -> ShapeError:
        bench = self.bench
        given = (self._runs(), built, nest, bench.machine, self.spec, sizes, bench.seed)
        found = check_once(*given) if once else check(*given, repeat=sizes == self.shapes[0])
        return ShapeError(dict(sizes), found.rel_err, found.reference_rel_err)

    def _check_tuned(self, fitting: list[_Fit]) -> list[ShapeError]:
        """The errors at tuning sizes if runs are slow, or at smaller sizes with the same tiling."""
        each = SLOW_RUNS.get(self.setup.here["correct_by"])
        if each is None:
            return []
        found: list[ShapeError] = []
        for fit in fitting:
            sizes = fit.where.shape.sizes
            if sizes in self.shapes or sizes in self.once:
                continue
            seconds = TUNED_SECONDS / len(self.timed)
            whole = sizes in self.slow
            place = tuning_shape(fit.nest, sizes, self.bench.seed, each, seconds, whole)
            assert fit.built is not None, "a nest is compared after it was built"
            if place is not None:
                error = self._check(fit.built, fit.nest, place[0], once=True)
                found.append(replace(error, reduced=place[1]))
        return found

    def _check_draws(self, built: Built, nest: LoopNest, lacking: Collection[Sizes]) -> None:
        """Checks inputs from the other distributions, at one of the sizes. lacking: sizes that do not fit."""
        bench = self.bench
        if fitting := [s for s in bench.checks or self.shapes if s not in lacking]:
            sizes = draw_sizes(self.spec, fitting)
            check_draws(self._runs(), built, nest, bench.machine, self.spec, sizes, bench.seed)


def _warm(backend: Backend, spec: Spec, bench: Bench) -> None:
    """Emits once, so that children share the loaded modules. A fault will show with a candidate."""
    if isinstance(backend, Warms):
        backend.warm(bench.machine)
    try:
        nest = lower(spec, plain(spec, bench.machine, bench.sizes), bench.machine, bench.sizes)
        backend.emit(nest, bench.machine)
    except (KernelError, BackendError):
        return


def _require_possible(timing: Timing, least_us: float) -> None:
    """Raises Impossible if a time is shorter than the roofline."""
    if timing.us < CLOCK * least_us:
        raise Impossible(
            f"{timing.us:.4g} us were {timing.kind}, {least_us:.4g} us is the least that the machine "
            "can take: it does not do all the work, or the machine file is wrong"
        )


def _kind(error: BackendError) -> str:
    """The kind of a failure: the backend's (its own child was out of time or memory), else that of the stage."""
    return error.kind or ("wrong" if error.stage == "check" else "refused")
