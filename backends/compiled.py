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
    source: str | None = None  # its text, where it is not the one that the schedule gives
    backend: str = ""  # the one that made it, by name; empty: the first
    rounded: tuple[str, ...] = ()  # sums whose operands it was free to round: see `Spec`


Knows = Callable[[Spec], Known | None]
Told = Callable[[Spec, Exception], None]  # that a kernel cannot be made as it was before
Progress = Callable[[int, int, Spec], None]  # kernels built so far, of how many, the next one


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel for a target."""

    spec: Spec
    nest: LoopNest
    source: str  # its text
    built: Built
    # At which it is the spec, where it is one for several.
    sizes: Sizes = field(default_factory=dict)
    # What built it, where kernels of one network are of several backends; None: the network's.
    served: Served | None = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """A network whose kernels are built."""

    network: Network
    machine: Machine
    backend: Backend
    kernels: Mapping[Spec, Kernel]  # by spec
    # What computes inputs of the network from its fixed ones, before calls; None: there is nothing
    constants: Network | None = None

    def __call__(self, inputs: Arrays, calls: Calls = ()) -> list[np.ndarray]:
        """The outputs in order; raises BackendError where a step fails. calls: what the network
        pauses for. Constants are computed anew."""
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
        """The backend that built a kernel, and the machine as it serves it."""
        return kernel.served or Served(self.backend, self.machine)


def constant_inputs(network: Network, constants: Network) -> list[str]:
    """The inputs of a network that its constants fill, in the order of their outputs: the last."""
    count = len(constants.outputs)
    return [b.name for b in network.inputs][-count:]


class Kernels:
    """Kernels of a target, each scheduled and emitted once, when it is first asked for.

    rounded: what sums are called, but for a number, of whose products of f32 the operands may be
    rounded to tf32, as some libraries do it in convolutions.  least: of channels, those that are summed at one
    tap of a window: of fewer, the operands stay f32, as these libraries leave them, too.  guessed: whether
    schedules are judged by the backend's own guess of their time, where it has one: better, and slower.  knows: tells
    how a kernel was made before, which is then made so; a KernelError where that is not possible.  told: of
    kernels of which it is not, which get their seed schedules; None: it is an error.
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
        self.served: dict[Spec, Served] = {}  # what emitted it
        self._schedules: dict[Spec, Schedule] = {}  # of kernels alike
        self._found: dict[Spec, Known | None] = {}  # what `knows` tells

    @property
    def _cost(self) -> Callable[[LoopNest], float] | None:
        """The backend's own guess of a nest's time, where it is asked for and has one."""
        guess = getattr(self.backend, "guess", None) if self.guessed else None
        return guess and (lambda nest: guess(nest, self.machine, {}))

    def emit(self, spec: Spec) -> tuple[LoopNest, str]:
        """The nest and the source of a kernel; KernelError where there is none."""
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
        """A known kernel cannot be made as it was: it gets its seed schedule, which is told. The error is raised
        where nobody is to be told, or it has that already."""
        if self.told is None or self._found.get(spec) is None:
            raise error
        self.told(spec, error)
        self._found[spec] = None
        self.emitted.pop(spec, None)
        self.served.pop(spec, None)

    def takes(self, spec: Spec) -> float:
        """Microseconds of a kernel by the quick cost; KernelError where there is none."""
        nest, _ = self.emit(spec)
        return self.machine.model.quick_us(nest, self.machine, {})

    def expected_us(self, spec: Spec) -> float:
        """Microseconds of a kernel by the backend's own guess, where it is asked for and has one, else
        by the estimate; KernelError where there is none."""
        nest, _ = self.emit(spec)
        by = self.served[spec]
        guess = getattr(by.backend, "guess", None) if self.guessed else None
        return guess(nest, by.machine, {}) if guess else estimate(nest, by.machine, {})

    def rounds(self, spec: Spec) -> tuple[str, ...]:
        """A spec's sums whose operands may be rounded."""
        named = [e.target for e in spec.equations if stem(e.target) in self.rounded]
        return tuple(n for n in named if not self.least or summed_channels(spec, n) >= self.least)

    def ahead(self, specs: Sequence[Spec]) -> None:
        """Schedules several kernels at a time, as far as that can be done, before they are asked
        for. Of kernels alike it is the first."""
        wanted: dict[Spec, Spec] = {}  # by what kernels alike share
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
        """With the schedule of a kernel alike emitted before, where it suits; else with the
        autoschedule's."""
        form = first_parts(spec)
        if form in self._schedules:
            schedule = replace(self._schedules[form], kernel=spec.name)
            try:
                return lower(spec, schedule, self.machine, {})
            except KernelError:
                pass  # it does not suit
        schedule = self._schedule(spec)
        self._schedules.setdefault(form, schedule)
        return lower(spec, schedule, self.machine, {})

    def _schedule(self, spec: Spec) -> Schedule:
        return autoschedule(spec, self.machine, {}, self.rounds(spec), self._cost)

    def _tried(self, spec: Spec) -> Schedule | None:
        """The schedule of a kernel; None where it has none, which `emit` will say."""
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
    """A spec of many equations as kernels for a target, built below a folder.

    aliases, calls (`outside`): see `partition` of `ir.partition`.  guessed, knows, others: see `Kernels`.  fixed:
    inputs that stay the same between calls; what depends on them alone is `constants`.
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
    """The network of a call, and what is computed before calls; see `compiled`. choices: which way the
    partition of the call goes where there are two."""
    choices = choices or Choices(asked=False)
    spec, sizes = with_early_sums(literal(spec, sizes)), {}
    wide = kernels.machine.model.channels_last
    if wide and kernels.machine.has_matrix(NARROW):
        spec = with_whole_vectors(with_joined_taps(spec, fixed))
    plain = spec
    last = bool(fixed) and wide
    # Of 16 bits, windows with channels last are copied in bulk. Of f32 they are slower (docs/benchmarks.md).
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
    # By itself only where an engine copies what is one piece of memory then: it is measured there alone.
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
    """Networks with each of their kernels built below a folder; raises as `compiled` does."""
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
        """What is built; where others may be told why it is not, that."""
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
