"""Guarded: at which shapes each kernel of a record must be right, by the rules that choose it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ir.cost import roofline
from ir.errors import KernelError
from ir.guards import Rule
from ir.machine import Machine
from ir.spec import Spec
from ir.workload import Sizes
from search.evaluator.shapes import AFFORDABLE_BYTES, AFFORDABLE_FLOPS, SLOW

SLOWER = 1 << 10  # times, of what is slow
Choice = Callable[[Sizes], int]


def shapes_of(
    kernel: int,
    choice: Choice,
    rules: Sequence[Rule],
    checks: Sequence[Sizes],
    tuned: Sequence[Sizes],
    affordable: Callable[[Sizes], bool],
) -> tuple[Sizes, ...]:
    """The shapes at which a kernel is run, and compared with the reference: check shapes, tuned
    ones, those at the borders of its rules, and smaller ones where all of these are too large.

    choice: the kernel that is run at given sizes, KernelError where there is none.
    """
    pool = [*checks, *tuned, *_borders(rules, tuned)]
    pool += [small for sizes in tuned if (small := _shrunk(sizes, kernel, choice, affordable))]
    found: list[Sizes] = []
    for sizes in pool:
        if sizes not in found and affordable(sizes) and _runs(kernel, choice, sizes):
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


def _borders(rules: Sequence[Rule], tuned: Sequence[Sizes]) -> Iterator[Sizes]:
    """Each tuned shape with one size at either side of a bound."""
    for bound in (bound for rule in rules for bound in rule.bounds):
        for number in (bound.least, bound.most):
            for beside in () if number is None else (number - 1, number, number + 1):
                for sizes in tuned:
                    if beside > 0:
                        yield {**sizes, bound.size: beside}


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
