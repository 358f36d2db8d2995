"""Matrix-unit steps along each index of a contraction, and tile sizes that are multiples of them.

Other tiles are legal and leave part of the unit idle. Most units step by powers of two, as the
proposed sizes do anyway; a unit that is 24 wide gets 24, 48, 72.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count, takewhile
from math import lcm

from ir.contraction import contraction
from ir.machine import Machine
from ir.spec import Spec

MOST_ROUNDS = 4  # tiles of an even grid that one processor computes


def unit_steps(spec: Spec, machine: Machine) -> dict[str, int]:
    """By index of a matmul: the matrix unit's step along it, if the machine declares one."""
    step = machine.units["matrix"].step if "matrix" in machine.units else ()
    found: dict[str, int] = {}
    for product in filter(None, map(contraction, spec.equations if step else ())):
        sides = (product.rows, product.columns, product.over)
        for side, width in zip(sides, step, strict=True):
            found |= {i: lcm(found.get(i, 1), width) for i in side}
    return found


def sectors(spec: Spec, machine: Machine) -> dict[str, int]:
    """By index: the matrix unit's step along it, if that is no power of two."""
    return {i: n for i, n in unit_steps(spec, machine).items() if n & (n - 1)}


def whole_steps(size: int, step: int) -> int:
    """The multiple of `step` nearest to a size; a size below half a step stays."""
    return size if 2 * size < step else max(1, (2 * size + step) // (2 * step)) * step


def even_tiles(extent: int, parallel: int, beside: int) -> Iterator[int]:
    """Tile sizes of a grid index with which all processors have equally many tiles, from one to
    `MOST_ROUNDS`.

    beside: tiles of the grid along its other indices.
    """
    found = dict.fromkeys(
        -(-extent // max(1, parallel * rounds // beside)) for rounds in range(1, MOST_ROUNDS + 1)
    )
    yield from sorted(found)


def tile_sizes(limit: int, step: int = 1) -> Iterator[int]:
    """Tile sizes up to the first that reaches `limit`.

    They are powers of two. For a step that is no power of two they are the powers of two below the
    step, and then its multiples by 2^n and 3 * 2^n.
    """
    counts = (n for n in count(1) if n.bit_count() == 1 or n % 3 == 0 and (n // 3).bit_count() == 1)
    whole = (1 << n for n in count()) if step == 1 else (step * n for n in counts)
    below = takewhile(lambda size: size < step, (1 << n for n in count()))
    for size in chain(below, whole):
        yield size
        if size >= limit:
            return
