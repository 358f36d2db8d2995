"""Held-out shapes: what a dispatch does where none of its kernels was tuned."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ir.workload import Sizes
from search.core import quantity
from search.core.workload import WeightedShape

BEYOND = 2.0  # how far below the least and above the largest tuned size shapes are drawn
TRIES = 200  # for each shape


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The result at one held-out shape; times in microseconds, None where a kernel fails."""

    sizes: Sizes
    kernel: int  # the number of the kernel that runs
    us: float | None  # its time
    single_us: float | None  # of the kernel that is best over all tuned shapes
    least_us: float | None  # of the fastest of the kernels: a perfect choice
    first_us: float | None  # of the autoschedule for this shape
    # Whether results were compared with the reference here; else at smaller sizes only.
    compared: bool
    # The fault of the kernel; empty: none.
    fault: str = ""

    @property
    def said(self) -> str:
        """Whether it is correct, in words."""
        return self.fault or ("correct" if self.compared else "correct at smaller sizes")


def drawn(
    shapes: Sequence[WeightedShape], count: int, seed: int, possible: Callable[[Sizes], bool]
) -> tuple[Sizes, ...]:
    """So many shapes other than those, each size log-uniform between half of the least and twice
    the largest; of every second draw they are odd.

    possible: whether a shape can be tried. Fewer come where too many cannot.
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
    """The geometric mean of how many times faster the kernels that are run are than `single_us`,
    `first_us` or `least_us`, where both work; None where they never do."""
    ratios = [
        other / row.us for row in rows if row.us and (other := getattr(row, over)) is not None
    ]
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None


def held_out_words(rows: Sequence[HeldOut]) -> str:
    """For a person: how many are correct, and how fast they are; nothing for none."""
    if not rows:
        return ""
    right = sum(not row.fault for row in rows)
    single, first = (quantity.factor(gain(rows, over)) for over in ("single_us", "first_us"))
    return (
        f"{right} of {len(rows)} correct; in the geometric mean {single} over the best alone, "
        f"{first} over the autoschedule of each shape"
    )
