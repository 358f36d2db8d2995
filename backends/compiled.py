"""A compiled network: every kernel scheduled, emitted and built for a target, run step by step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from backends.backend import Arrays, Backend, BackendError, Built, Sizes, Warms
from backends.parallel import on_all_cores
from backends.served import Served, require_parts
from backends.shares import Share, shared
from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.estimate.estimate import estimate
from ir.literal import literal
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.network import Network, Outside, Pause
from ir.partition.alike import first_parts
from ir.partition.canonical import stem
from ir.partition.channels_last import summed_channels, wide_convolutions
from ir.partition.choices import CHANNELS_LAST, FLAT_CHAINS, Choices
from ir.partition.constants import divided
from ir.partition.early_sums import with_early_sums
from ir.partition.flat_chains import with_flat_chains
from ir.partition.joined_taps import with_joined_taps
from ir.partition.partition import partition
from ir.partition.whole_vectors import with_whole_vectors
from ir.reference.stepwise import Calls, empty_outputs, hold, outside, require_calls, seen
from ir.schedule import Schedule
from ir.sizes import shape
from ir.spec import Spec
from ir.variant.precision import NARROW


@dataclass(frozen=True, slots=True)
class Known:
    """How a kernel was made before."""

    schedule: Schedule
    variant: Spec | None = None  # the equations that the schedule is for; None: the kernel's own
    source: str | None = None  # its text, if it differs from what the schedule gives
    backend: str = ""  # name of the backend that made it; empty: the first
    rounded: tuple[str, ...] = ()  # sums whose operands could be rounded: see `Spec`


Knows = Callable[[Spec], Known | None]
# Called with a kernel that cannot be made as it was before, and why
Told = Callable[[Spec, Exception], None]
Progress = Callable[[int, int, Spec], None]  # kernels built so far, their total, the next one


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel for a target."""

    spec: Spec
    nest: LoopNest
    source: str  # the source text
    built: Built
    # The sizes at which this kernel equals the spec, if one kernel serves several specs.
    sizes: Sizes = field(default_factory=dict)
    # The backend that built it, if one network's kernels have several backends; None: the network's.
    served: Served | None = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """A network whose kernels are built."""

    network: Network
    machine: Machine
    backend: Backend
    kernels: Mapping[Spec, Kernel]  # by spec
    # Computes inputs of the network from its fixed inputs, before any call; None if there is
    # nothing to compute.
    constants: Network | None = None

    def __call__(self, inputs: Arrays, calls: Calls = ()) -> list[np.ndarray]:
        """The outputs in order. Raises BackendError if a step fails. Each call recomputes the
        constants.

        calls: the functions that the network pauses for.
        """
        held = empty_outputs(self.network) | dict(inputs)
        if self.constants is not None:
            before = Compiled(self.constants, self.machine, self.backend, self.kernels)
            names = constant_inputs(self.network, self.constants)
            held |= dict(zip(names, before(inputs), strict=True))
        require_calls(self.network, len(calls))
        for n, step in self.network.sequence():
            if isinstance(step, Pause):
                outside(step, calls[n], held)
                continue
            kernel = self.kernels[step.spec]
            by = self.served(kernel)
            given = {
                t.name: seen(held[name], shape(t, {}))
                for t, name in zip(step.spec.inputs, step.inputs, strict=True)
            }
            made = by.backend.run(kernel.built, kernel.nest, by.machine, kernel.sizes, given)
            hold(step, made, held)
        return [seen(held[name], sizes) for name, sizes in self.network.outputs]

    def served(self, kernel: Kernel) -> Served:
        """The backend that built a kernel, and the machine as that backend serves it."""
        return kernel.served or Served(self.backend, self.machine)


def constant_inputs(network: Network, constants: Network) -> list[str]:
    """The inputs of a network that its constants fill, in the order of their outputs. They are the last inputs."""
    count = len(constants.outputs)
    return [b.name for b in network.inputs][-count:]


class Kernels:
    """Kernels of a target. Each is scheduled and emitted once, on first use.

    rounded: names (without number) of sums of f32 products whose operands may be rounded to tf32,
    as some libraries do in convolutions.
    least: the fewest channels, summed at one tap of a window, for which operands are rounded; with
    fewer, they stay f32, as in these libraries.
    guessed: whether the backend's own time guess ranks schedules, if it has one. This is better,
    and slower.
    knows: tells how a kernel was made before, so that it is made the same way; KernelError if that
    is impossible.
    told: called with kernels for which it is impossible, which then get their seed schedules; None:
    it is an error.
    others: backends that make kernels of some kinds (`backends/shares.py`).
    """

    def __init__(
        self,
        machine: Machine,
        backend: Backend,
        rounded: Collection[str] = (),
        guessed: bool = False,
        knows: Knows | None = None,
        others: Sequence[Served] = (),
        least: int = 0,
        told: Told | None = None,
    ):
        self.machine, self.backend, self.rounded = machine, backend, frozenset(rounded)
        self.least, self.told = least, told
        self.guessed, self.knows, self.others = guessed, knows, others
        self.emitted: dict[Spec, tuple[LoopNest, str]] = {}
        self.served: dict[Spec, Served] = {}  # the backend that emitted a kernel
        self._schedules: dict[Spec, Schedule] = {}  # by what similar kernels share
        self._found: dict[Spec, Known | None] = {}  # results of `knows`

    @property
    def _cost(self) -> Callable[[LoopNest], float] | None:
        """The backend's own time guess for a nest, if it was requested and exists."""
        guess = getattr(self.backend, "guess", None) if self.guessed else None
        return guess and (lambda nest: guess(nest, self.machine, {}))

    def emit(self, spec: Spec) -> tuple[LoopNest, str]:
        """The nest and the source of a kernel. KernelError if there is none."""
        if spec not in self.emitted:
            require_parts(spec, self.machine)
            known = self._known(spec)
            if known is not None:
                try:
                    self._emit_known(spec, known)
                except (KernelError, BackendError) as error:
                    self.reseed(spec, error)
            if spec not in self.emitted:
                made = shared(
                    Share(Served(self.backend, self.machine), self._lowered(spec)), self.others
                )
                self._emit(spec, made.nest, made.served)
        return self.emitted[spec]

    def _emit_known(self, spec: Spec, known: Known) -> None:
        first = Served(self.backend, self.machine)
        by = next((one for one in self.others if one.name == known.backend), first)
        nest = lower(known.variant or spec, known.schedule, by.machine, {})
        self._emit(spec, nest, by, known.source)

    def _emit(self, spec: Spec, nest: LoopNest, by: Served, source: str | None = None) -> None:
        self.emitted[spec] = nest, source or by.backend.emit(nest, by.machine)
        self.served[spec] = by

    def reseed(self, spec: Spec, error: Exception) -> None:
        """Gives a known kernel that cannot be made as it was its seed schedule, and reports it to
        `told`. Raises the error if `told` is None, or if the kernel already has its seed schedule.
        """
        if self.told is None or self._found.get(spec) is None:
            raise error
        self.told(spec, error)
        self._found[spec] = None
        self.emitted.pop(spec, None)
        self.served.pop(spec, None)

    def takes(self, spec: Spec) -> float:
        """The time of a kernel in microseconds by the quick cost. KernelError if there is none."""
        nest, _ = self.emit(spec)
        return self.machine.model.quick_us(nest, self.machine, {})

    def expected_us(self, spec: Spec) -> float:
        """The time of a kernel in microseconds by the backend's own guess, if it was requested and
        exists, else by the estimate. KernelError if there is none."""
        nest, _ = self.emit(spec)
        by = self.served[spec]
        guess = getattr(by.backend, "guess", None) if self.guessed else None
        return guess(nest, by.machine, {}) if guess else estimate(nest, by.machine, {})

    def rounds(self, spec: Spec) -> tuple[str, ...]:
        """The sums of a spec whose operands may be rounded."""
        named = [e.target for e in spec.equations if stem(e.target) in self.rounded]
        return tuple(n for n in named if not self.least or summed_channels(spec, n) >= self.least)

    def ahead(self, specs: Sequence[Spec]) -> None:
        """Schedules several kernels in parallel, as far as possible, before their first use. Of
        similar kernels, only the first is scheduled."""
        wanted: dict[Spec, Spec] = {}  # by what similar kernels share
        for spec in specs:
            if spec not in self.emitted and self._known(spec) is None:
                form = first_parts(spec)
                if form not in self._schedules:
                    wanted.setdefault(form, spec)
        tried = on_all_cores(self._tried, list(wanted.values()))
        for form, schedule in zip(wanted, tried, strict=True):
            if schedule is not None:
                self._schedules[form] = schedule

    def _known(self, spec: Spec) -> Known | None:
        if spec not in self._found:
            try:
                found = self.knows(spec) if self.knows else None
            except KernelError as error:
                if self.told is None:
                    raise
                self.told(spec, error)
                found = None
            coarse = found is not None and not set(found.rounded) <= set(self.rounds(spec))
            self._found[spec] = None if coarse else found
        return self._found[spec]

    def _lowered(self, spec: Spec) -> LoopNest:
        """The nest with the schedule of a similar kernel that was emitted before, if it fits; else
        with the autoschedule."""
        form = first_parts(spec)
        if form in self._schedules:
            schedule = replace(self._schedules[form], kernel=spec.name)
            try:
                return lower(spec, schedule, self.machine, {})
            except KernelError:
                pass  # the schedule does not fit
        schedule = self._schedule(spec)
        self._schedules.setdefault(form, schedule)
        return lower(spec, schedule, self.machine, {})

    def _schedule(self, spec: Spec) -> Schedule:
        return autoschedule(spec, self.machine, {}, self.rounds(spec), self._cost)

    def _tried(self, spec: Spec) -> Schedule | None:
        """The schedule of a kernel; None if it has none, which `emit` reports later."""
        try:
            return self._schedule(spec)
        except KernelError:
            return None


def compiled(
    spec: Spec,
    sizes: Sizes,
    aliases: Mapping[str, str],
    machine: Machine,
    backend: Backend,
    folder: Path,
    progress: Progress = lambda *_: None,
    guessed: bool = False,
    calls: Sequence[Outside] = (),
    knows: Knows | None = None,
    fixed: Collection[str] = (),
    others: Sequence[Served] = (),
) -> Compiled:
    """Compiles a spec of many equations to kernels for a target, built below a folder.

    aliases, calls (`outside`): see `partition` of `ir.partition`.
    guessed, knows, others: see `Kernels`.
    fixed: inputs that stay the same between calls; `constants` computes what depends on them only.
    Raises KernelError for what no kernel can compute, and BackendError for what does not build.
    """
    kernels = Kernels(machine, backend, guessed=guessed, knows=knows, others=others)
    network, constants = networks(spec, sizes, aliases, kernels, calls, fixed)
    return built(network, kernels, folder, progress, constants)


def networks(
    spec: Spec,
    sizes: Sizes,
    aliases: Mapping[str, str],
    kernels: Kernels,
    calls: Sequence[Outside] = (),
    fixed: Collection[str] = (),
    choices: Choices | None = None,
) -> tuple[Network, Network | None]:
    """The network of a call, and the network of what is computed before calls; see `compiled`.
    choices: which alternative the partition takes where it has two."""
    choices = choices or Choices(asked=False)
    spec, sizes = with_early_sums(literal(spec, sizes)), {}
    wide = kernels.machine.model.channels_last
    if wide and kernels.machine.has_matrix(NARROW):
        spec = with_whole_vectors(with_joined_taps(spec, fixed))
    plain = spec
    last = bool(fixed) and wide
    # With 16-bit elements, windows in channels-last order are copied in bulk. With f32 they are
    # slower (docs/benchmarks.md).
    last = last and choices(CHANNELS_LAST, lambda: not wide_convolutions(plain))
    narrow = bool(fixed) and wide and kernels.machine.has_matrix(NARROW)
    rounded = kernels.rounds(plain) if narrow else ()
    parts = divided(plain, aliases, fixed, last, wide, rounded) if fixed else None
    if parts is None:
        choices.made.pop(CHANNELS_LAST, None)
        emit, takes = kernels.emit, kernels.takes
        return partition(spec, sizes, aliases, emit, calls, kernels.ahead, takes, choices), None
    emit, ahead = kernels.emit, kernels.ahead
    before = partition(parts.before, {}, parts.aliases, emit, ahead=ahead)
    made, shown = parts.call, dict(parts.aliases)
    flat = with_flat_chains(made, shown) if rounded else (made, shown)
    # The default is on only with a DMA engine, which then copies contiguous memory: it was
    # measured only there.
    engine = "bulk" in kernels.machine.rendered_engines
    if flat[0] != made and choices(FLAT_CHAINS, lambda: engine):
        made, shown = flat
    call = partition(made, {}, shown, emit, calls, ahead, kernels.takes, choices)
    return call, before


def built(
    network: Network,
    kernels: Kernels,
    folder: Path,
    progress: Progress = lambda *_: None,
    constants: Network | None = None,
) -> Compiled:
    """Networks whose kernels are all built below a folder. Raises as `compiled` does."""
    machine, backend = kernels.machine, kernels.backend
    wanted = list(dict.fromkeys((*network.kernels(), *(constants.kernels() if constants else ()))))
    places = {one: folder / one.name for one in wanted}
    for one, place in places.items():
        kernels.emit(one)
        place.mkdir(parents=True, exist_ok=True)
    for by in {kernels.served[one].name: kernels.served[one] for one in wanted}.values():
        if isinstance(by.backend, Warms):
            by.backend.warm(by.machine)

    def build(one: Spec) -> Built:
        nest, source = kernels.emit(one)
        by = kernels.served[one]
        return by.backend.build(source, nest, by.machine, places[one])

    def tried(one: Spec) -> Built | tuple[str, str, str]:
        """The build; if failures are reported to `told`, the failure as plain data."""
        try:
            return build(one)
        except BackendError as error:
            if kernels.told is None:
                raise
            return error.stage, error.reason, error.kind

    building = on_all_cores(tried, wanted)
    made = {}
    for n, one in enumerate(wanted):
        progress(n, len(wanted), one)
        done = next(building)
        if isinstance(done, tuple):
            kernels.reseed(one, BackendError(*done))
            done = build(one)
        made[one] = Kernel(one, *kernels.emit(one), done, served=kernels.served[one])
    return Compiled(network, machine, backend, made, constants)
