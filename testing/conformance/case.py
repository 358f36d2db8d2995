"""A case of the language suite: one kernel through one backend, its results against the reference."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backends.backend import Backend, BackendError, Built, Drafts
from backends.measure import Reference, compare, reference
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_workload
from ir.parse.schedule import parse_schedule
from ir.reference.reference import evaluate
from ir.schedule import Schedule
from ir.spec import DTYPES, FLOATS, Spec
from ir.workload import Sizes, Workload

SEED = 7
TINY = 1e-10  # results below it have a limit of their own, as a tenth of the relative one is large
SCHEDULERS = {"plain": plain, "autoschedule": autoschedule}
Near = Callable[[str], tuple[float, float]]  # relative error, and absolute error below TINY
Inputs = Callable[[Sizes], Mapping[str, np.ndarray]]
_NESTS: dict[tuple, LoopNest] = {}  # by what they follow from: many backends run one case
_GIVEN: dict[tuple, Reference] = {}
_DTYPE = re.compile(rf"\b({'|'.join(DTYPES)})\b")


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel of the suite."""

    name: str
    text: str  # a `.kir` text; it is tuned for its first check sizes, and run at all
    features: tuple[str, ...]  # what of the language it is about, words of `manifest.FEATURES`
    schedule: str = "autoschedule"  # a scheduler, or decisions, one a line
    inputs: Inputs | None = None  # random ones where there is none
    near: Near | None = None  # how near each element of an output must be; else the usual check
    free: Callable[[Mapping[str, np.ndarray], str], np.ndarray | bool] | None = None  # or 0 or NaN
    registers: bool = False  # whether its decisions are legal only on machines that have them
    of_tensors: bool = False  # whether it needs stages of each tensor, not of each loop
    warp: int = 0  # threads of a warp that its decisions are about, 0: any
    compiled: bool = False  # whether it is built on every target that the backend is tried on
    everywhere: bool = False  # whether it is run on all of these targets
    orders: int = 1  # how often it is run: blocks may take turns in another order each time

    @property
    def workload(self) -> Workload:
        """The kernel with its sizes."""
        return parse_workload(self.text, self.name)

    def nest(self, machine: Machine) -> LoopNest:
        """The kernel lowered for a machine, once in a process."""
        key = (self.text, self.schedule, machine.name)
        if key not in _NESTS:
            _NESTS[key] = self._lowered(machine)
        return _NESTS[key]

    def _lowered(self, machine: Machine) -> LoopNest:
        work = self.workload
        sizes = work.tune or work.checks[0]
        return lower(work.spec, self._decided(work.spec, machine, sizes), machine, sizes)

    def _decided(self, spec: Spec, machine: Machine, sizes: Sizes) -> Schedule:
        if self.schedule in SCHEDULERS:
            return SCHEDULERS[self.schedule](spec, machine, sizes)
        return parse_schedule(f"schedule({spec.name})\n{self.schedule.strip()}\n", self.name)

    @property
    def verbs(self) -> frozenset[str]:
        """The verbs of its own decisions."""
        if self.schedule in SCHEDULERS:
            return frozenset()
        made = parse_schedule(f"schedule(any)\n{self.schedule.strip()}\n", self.name)
        return frozenset(d.verb for d in made.decisions)

    def given(self, sizes: Sizes) -> Reference:
        """Inputs and what must come out."""
        spec = self.workload.spec
        if self.inputs is None:
            return reference(spec, sizes, SEED)
        key = (self.text, self.name, *sizes.items())
        if key not in _GIVEN:
            inputs = self.inputs(sizes)
            exact = evaluate(spec, inputs, sizes)
            _GIVEN[key] = Reference(inputs, exact, exact)
        return _GIVEN[key]

    def refused(self, backend: Backend) -> str:
        """Why the backend's manifest says that it does not take this case; empty: it does."""
        manifest = backend.manifest
        dtypes = [d for d in _DTYPE.findall(self.text) if d not in manifest.dtypes]
        lacking = [f for f in self.features if f in manifest.refuses]
        return ", ".join(dict.fromkeys((*dtypes, *lacking)))


def language_problems(
    backend: Backend, machine: Machine, case: Case, folder: Path, run: bool = True
) -> Iterator[str]:
    """What a backend does wrong with a case. folder: empty.  run: else it is built only."""
    nest = case.nest(machine)
    if why := case.refused(backend):
        yield from _not_refused(backend, machine, nest, why)
        return
    try:
        source = backend.emit(nest, machine)
        built = _built(backend, source, nest, machine, folder, case.compiled)
        for sizes in case.workload.checks if run else ():
            for _ in range(case.orders):
                yield from _wrong(backend, built, nest, machine, case, sizes)
    except BackendError as e:
        yield f"{e.stage}: {e.reason}"


def _not_refused(backend: Backend, machine: Machine, nest: LoopNest, why: str) -> Iterator[str]:
    """What is wrong with how a backend refuses what its manifest says it does not take."""
    try:
        backend.emit(nest, machine)
    except BackendError as e:
        if e.stage != "emit" or not e.reason.strip():
            yield f"{why} was refused at stage {e.stage!r}, reason {e.reason!r}"
    except KernelError as e:
        yield f"{why} was refused as a fault of the user: {e}"
    else:
        yield f"the manifest says that {why} is refused, and a source was emitted"


def _built(
    backend: Backend, source: str, nest: LoopNest, machine: Machine, folder: Path, compiled: bool
) -> Built:
    """What can be run: where a backend can do without its compiler, that is run before many
    builds, since most cases are about results."""
    if isinstance(backend, Drafts) and not compiled:
        return backend.draft(source, nest, machine, folder)
    return backend.build(source, nest, machine, folder)


def _wrong(
    backend: Backend, built: Built, nest: LoopNest, machine: Machine, case: Case, sizes: Sizes
) -> Iterator[str]:
    known, spec = case.given(sizes), nest.spec
    inputs = {name: array.copy() for name, array in known.inputs.items()}
    found = backend.run(built, nest, machine, sizes, inputs)
    where = ", ".join(f"{n}={s}" for n, s in sizes.items())
    for tensor in spec.outputs:
        if tensor.name not in found:
            yield f"at {where}: there is no output `{tensor.name}`"
        elif case.near is not None and tensor.dtype in FLOATS:
            yield from _far(case, where, tensor.name, found, known)
        else:
            try:
                compare(spec, sizes, tensor.name, found[tensor.name], known)
            except BackendError as e:
                yield e.reason


def _far(
    case: Case,
    where: str,
    name: str,
    found: Mapping[str, np.ndarray],
    known: Reference,
) -> Iterator[str]:
    """Where one output is off, each element by itself: NaN and infinities where they must be."""
    with np.errstate(over="ignore"):
        right = np.asarray(known.exact[name]).astype(found[name].dtype).astype(np.float64)
    got = found[name].astype(np.float64)
    rtol, least = case.near(name)
    with np.errstate(invalid="ignore"):
        floor = np.where(np.abs(right) > TINY, rtol / 10, least)
        good = np.abs(got - right) <= rtol * np.abs(right) + floor
    good = np.where(np.isfinite(right), good, (got == right) | np.isnan(got) & np.isnan(right))
    if case.free is not None:
        good |= case.free(known.inputs, name) & (np.isnan(got) | (got == 0))
    if not good.all():
        at = np.unravel_index(int(np.argmin(good)), good.shape)
        given = ", ".join(f"{n}={a[at]!s}" for n, a in known.inputs.items() if a.shape == got.shape)
        yield (
            f"at {where}: output `{name}` at {[int(i) for i in at]} is {got[at]!s}, expected "
            f"{right[at]!s} ({given}); {int((~good).sum())} of {good.size} elements are off"
        )
