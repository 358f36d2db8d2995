"""Guarded: at which shapes each kernel of a record must be right, by the guards that choose it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from ir.errors import KernelError
from ir.estimate.cost import roofline
from ir.machine import Machine
from ir.spec import Spec
from ir.workload import Sizes
from search.evaluator.shapes import AFFORDABLE_BYTES, AFFORDABLE_FLOPS, SLOW

SLOWER = 1 << 10  # times, of what is slow
BORDERS = 8  # of a kernel, the smallest
Choice = Callable[[Sizes], int]


def shapes_of(
    kernel: int,
    choice: Choice,
    within: float,
    checks: Sequence[Sizes],
    tuned: Sequence[Sizes],
    affordable: Callable[[Sizes], bool],
) -> tuple[Sizes, ...]:
    """The shapes at which a kernel is run, and compared with the reference: check shapes, tuned
    ones, those at the borders of its guards, and smaller ones where all of these are too large.

    choice: the kernel that is run at given sizes, KernelError where there is none.  within: the
    factor up to which a guard holds.
    """

    def its(pool: Iterable[Sizes]) -> list[Sizes]:
        return [s for s in pool if affordable(s) and _runs(kernel, choice, s)]

    small = [s for sizes in tuned if (s := _shrunk(sizes, kernel, choice, affordable))]
    borders = its(sorted(_borders(within, tuned), key=lambda sizes: math.prod(sizes.values())))
    found: list[Sizes] = []
    for sizes in (*its(checks), *its(tuned), *its(small), *borders[:BORDERS]):
        if sizes not in found:
            found.append(sizes)
    return tuple(found)


def affordable(spec: Spec, machine: Machine, sizes: Sizes, correct_by: str) -> bool:
    """Whether results can be compared with float64's at these sizes; not where they are none.

    correct_by: how results are had; some ways are slow.
    """
    try:
        bound = roofline(spec, machine, sizes)
    except KernelError:
        return False
    share = SLOWER if correct_by in SLOW else 1
    return bound.flops * share <= AFFORDABLE_FLOPS and bound.bytes * share <= AFFORDABLE_BYTES


def _runs(kernel: int, choice: Choice, sizes: Sizes) -> bool:
    try:
        return choice(sizes) == kernel
    except KernelError:
        return False


def _borders(within: float, tuned: Sequence[Sizes]) -> Iterator[Sizes]:
    """Each tuned shape with one size as far away as its kernel is run, and a step further; and
    what lies half way between two of them."""
    for sizes in tuned:
        for name, number in sizes.items():
            least, most = math.ceil(number / within), math.floor(number * within)
            for at in (least - 1, least, most, most + 1):
                if at > 0:
                    yield {**sizes, name: at}
        for other in tuned:
            if other != sizes:
                yield {name: math.isqrt(n * other[name]) for name, n in sizes.items()}


def _shrunk(
    sizes: Sizes, kernel: int, choice: Choice, affordable: Callable[[Sizes], bool]
) -> Sizes | None:
    """A shape for the same kernel with sizes halved until it is affordable, the largest first."""
    while not affordable(sizes):
        smaller = (
            {**sizes, name: sizes[name] // 2}
            for name in sorted(sizes, key=lambda name: -sizes[name])
            if sizes[name] > 1
        )
        found = next((s for s in smaller if _runs(kernel, choice, s)), None)
        if found is None:
            return None
        sizes = found
    return sizes
