"""The shapes of a bench: timed shapes with inputs and bounds, and shapes of checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from backends.backend import Arrays
from ir.estimate.cost import Roofline, roofline
from ir.machine import Machine
from ir.reference.formulas import Formulas, inputs_of
from ir.reference.rows import AFFORDABLE_WORK, sampled_work
from ir.spec import Range, Read, Spec
from ir.workload import Sizes
from search.core.workload import WeightedShape
from search.evaluator.tuned import SLOW_RUNS

AFFORDABLE_FLOPS = 1 << 31  # a float64 reference of so many operations takes about a second
AFFORDABLE_BYTES = 1 << 25  # of inputs and outputs; a reference holds ten times as much
SLOW = ("interpreter",)  # takes minutes at tuning sizes, so these are not checked
TIMED = ("simulator",)  # runs a kernel to time it, so that one more run is affordable
SAMPLED_BYTES = 1 << 29  # of inputs and outputs, if results are compared at some rows
SLOW_WORK = 1 << 29  # iterations of a reference that only some candidates need
# share of a device's memory for all workers of a kernel; workers of another may be present
SHARE = 0.6
# Memory of a candidate as a multiple of its inputs and outputs, with copies and earlier outputs.
TIMES = 3
FAST = ("device",)  # can run any tuning size; the reference is then evaluated at some rows


class Drawn(Mapping):
    """Random inputs that are drawn on first use, because a modelled time needs none."""

    def __init__(self, spec: Spec, sizes: Sizes, seed: int):
        self._draw = lambda: inputs_of(spec, sizes, seed)[0]
        self._arrays: Arrays | None = None

    def drawn(self, arrays: bool = False) -> Arrays:
        """All inputs, the same each time. arrays: whether they are needed as arrays and not as
        `Formulas`."""
        if self._arrays is None:
            self._arrays = self._draw()
        if arrays and isinstance(self._arrays, Formulas):
            self._arrays.hold()
        return self._arrays

    def __getitem__(self, name: str) -> np.ndarray:
        return self.drawn()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.drawn())

    def __len__(self) -> int:
        return len(self.drawn())


@dataclass(frozen=True, slots=True)
class TimedShape:
    """A shape at which candidates are timed."""

    shape: WeightedShape
    inputs: Drawn  # never modified, because each child has its own copy
    bound: Roofline  # the roofline
    # The least possible time; 0 if it depends on the data.
    least_us: float

    @staticmethod
    def of(spec: Spec, machine: Machine, shape: WeightedShape, seed: int) -> TimedShape:
        """A shape of a spec with the inputs that a seed draws."""
        bound = roofline(spec, machine, shape.sizes)
        least = bound.us if bounded(spec) else 0.0
        return TimedShape(shape, Drawn(spec, shape.sizes, seed), bound, least)

    @property
    def affordable(self) -> bool:
        """Whether results can be compared with float64 at this shape."""
        return self.bound.flops <= AFFORDABLE_FLOPS and self.bound.bytes <= AFFORDABLE_BYTES


def most_at_once(spec: Spec, machine: Machine, shapes: Sequence[WeightedShape]) -> int:
    """The number of candidates that fit in the device's memory at the same time, at least one."""
    most = max(TIMES * roofline(spec, machine, one.sizes).bytes for one in shapes)
    return max(1, int(SHARE * machine.spaces["global"].bytes / max(1, most)))


def compared(
    checks: tuple[Sizes, ...], timed: tuple[TimedShape, ...], correct_by: str
) -> tuple[Sizes, ...]:
    """The sizes at which results are compared; they include tuning sizes if these are affordable.

    If there are no other sizes (a module's kernels), a device runs any tuning size, and results are
    compared at some rows.
    """
    tuned = [t.shape.sizes for t in timed]
    others = tuple(s for s in checks if s not in tuned)
    if correct_by in SLOW and others:
        return others
    if correct_by in FAST and not others:
        return tuple(tuned)
    return (*others, *(t.shape.sizes for t in timed if t.affordable))


def sampled(
    spec: Spec,
    compared: tuple[Sizes, ...],
    timed: tuple[TimedShape, ...],
    correct_by: str,
    seed: int,
) -> tuple[Sizes, ...]:
    """The tuning sizes that are compared once, at some rows.

    These are sizes that `compared` lacks, if kernels run fast enough and a reference at these rows
    is affordable.
    """
    if correct_by not in (*FAST, *TIMED):
        return ()
    left = [t for t in timed if t.bound.bytes <= SAMPLED_BYTES]
    return _sampled(spec, compared, left, seed, AFFORDABLE_WORK)


def slowly(
    spec: Spec,
    compared: tuple[Sizes, ...],
    timed: tuple[TimedShape, ...],
    correct_by: str,
    seed: int,
) -> tuple[Sizes, ...]:
    """The tuning sizes with slow runs but a fast reference.

    The reference is computed once. Candidates whose tiles make a run affordable are compared there.
    """
    if correct_by not in SLOW_RUNS:
        return ()
    left = [t for t in timed if t.bound.bytes <= AFFORDABLE_BYTES]
    return _sampled(spec, compared, left, seed, SLOW_WORK)


def _sampled(
    spec: Spec, compared: tuple[Sizes, ...], timed: Sequence[TimedShape], seed: int, most: int
) -> tuple[Sizes, ...]:
    """The sizes that are not compared yet. most: iterations of a reference at some rows."""
    sizes = (t.shape.sizes for t in timed)
    return tuple(s for s in sizes if s not in compared and sampled_work(spec, s, seed) <= most)


def bounded(spec: Spec) -> bool:
    """Whether the roofline holds for all data. If positions or ranges are read from tensors, the
    required bytes depend on the data."""
    nodes = [n for e in spec.equations for part in (*e.at, e.value) for n in part.walk()]
    places = [n for read in nodes if isinstance(read, Read) for at in read.at for n in at.walk()]
    ranges = [n for n in nodes if isinstance(n, Range) and n.jagged]
    return not ranges and not any(isinstance(n, Read) for n in places)
