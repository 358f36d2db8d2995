"""Granules: what the matrix unit steps by along each index of a product, and tiles of whole steps.

Other tiles are legal, and leave a part of the unit idle. Most units step by powers of two, as do the
sizes that are proposed anyway; one that is 24 wide gets 24, 48, 72.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count, takewhile
from math import lcm

from ir.contraction import contraction
from ir.machine import Machine
from ir.spec import Spec


def granules(spec: Spec, machine: Machine) -> dict[str, int]:
    """By index, the step of the matrix unit along it, where that is no power of two."""
    step = machine.units["matrix"].step if "matrix" in machine.units else ()
    found: dict[str, int] = {}
    for product in filter(None, map(contraction, spec.equations if step else ())):
        sides = (product.rows, product.columns, product.over)
        for side, width in zip(sides, step, strict=True):
            found |= {i: lcm(found.get(i, 1), width) for i in side}
    return {i: n for i, n in found.items() if n & (n - 1)}


def whole_steps(size: int, step: int) -> int:
    """The tile of whole steps that is nearest to a size; less than half a step stays as it is."""
    return size if 2 * size < step else max(1, (2 * size + step) // (2 * step)) * step


def tile_sizes(limit: int, step: int = 1) -> Iterator[int]:
    """Sizes of tiles up to the first that is not below a limit: powers of two; from one step on, of
    steps that are no power of two, multiples of it."""
    counts = (n for n in count(1) if n.bit_count() == 1 or n % 3 == 0 and (n // 3).bit_count() == 1)
    whole = (1 << n for n in count()) if step == 1 else (step * n for n in counts)
    below = takewhile(lambda size: size < step, (1 << n for n in count()))
    for size in chain(below, whole):
        yield size
        if size >= limit:
            return
