"""Held-out shapes: the results of a dispatch at shapes for which no kernel was tuned."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ir.workload import Sizes
from search.core import quantity
from search.core.workload import WeightedShape

BEYOND = 2.0  # sizes are drawn from 1/BEYOND of the smallest to BEYOND times the largest tuned size
TRIES = 200  # draws for each shape


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The result at one held-out shape. Times are in microseconds; None if a kernel fails."""

    sizes: Sizes
    kernel: int  # the number of the kernel that runs
    us: float | None  # time of that kernel
    single_us: float | None  # time of the kernel that is best over all tuned shapes
    least_us: float | None  # time of the fastest kernel, as if the choice were perfect
    first_us: float | None  # time of the autoschedule for this shape
    # Whether results were compared with the reference at this shape; else only at smaller sizes.
    compared: bool
    # The fault of the kernel; empty if none.
    fault: str = ""

    @property
    def said(self) -> str:
        """The correctness in words."""
        return self.fault or ("correct" if self.compared else "correct at smaller sizes")


def drawn(
    shapes: Sequence[WeightedShape], count: int, seed: int, possible: Callable[[Sizes], bool]
) -> tuple[Sizes, ...]:
    """Draws `count` shapes that are not among `shapes`.

    Each size is log-uniform between half of the smallest and twice the largest tuned size. Every
    second draw has odd sizes. Returns fewer shapes if too many draws are impossible.

    possible: whether a shape can be tried.
    """
    rng = random.Random(f"held_out/{seed}")
    found: list[Sizes] = []
    for turn in range(count * TRIES):
        if len(found) == count:
            break
        sizes = {name: _size(name, shapes, rng) for name in shapes[0].sizes}
        if turn % 2:
            sizes = {name: number | 1 for name, number in sizes.items()}
        if sizes not in (*found, *(dict(s.sizes) for s in shapes)) and possible(sizes):
            found.append(sizes)
    return tuple(found)


def _size(name: str, shapes: Sequence[WeightedShape], rng: random.Random) -> int:
    tuned = [shape.sizes[name] for shape in shapes]
    low, high = math.log(min(tuned) / BEYOND), math.log(max(tuned) * BEYOND)
    return max(1, round(math.exp(rng.uniform(low, high))))


def gain(rows: Sequence[HeldOut], over: str) -> float | None:
    """The geometric mean of the speed-up of the chosen kernels over `single_us`, `first_us` or
    `least_us`.

    Rows in which either kernel fails are left out. None if no row is left.
    """
    ratios = [
        other / row.us for row in rows if row.us and (other := getattr(row, over)) is not None
    ]
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None


def held_out_words(rows: Sequence[HeldOut]) -> str:
    """A summary for a person: how many shapes are correct, and the speed-ups; empty if there are no
    rows."""
    if not rows:
        return ""
    right = sum(not row.fault for row in rows)
    single, first = (quantity.factor(gain(rows, over)) for over in ("single_us", "first_us"))
    return (
        f"{right} of {len(rows)} correct; in the geometric mean {single} over the best alone, "
        f"{first} over the autoschedule of each shape"
    )
