"""A workload: the shapes that a search is for, each with its weight, and the means over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ir.estimate.cost import roofline
from ir.machine import Machine
from ir.spec import Spec
from ir.workload import Sizes
from search.core import quantity


@dataclass(frozen=True, slots=True)
class WeightedShape:
    """Sizes that matter to a user, and how much: a time there counts to the power of `weight`."""

    sizes: Sizes
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not quantity.positive(self.weight):
            raise ValueError(f"a weight must be positive and finite, not {self.weight}")


def mean(values: Sequence[float], shapes: Sequence[WeightedShape]) -> float:
    """The weighted geometric mean of positive values, one for each shape.

    exp(sum of weight * log value / sum of weights); a single value comes back as it is.
    """
    if len(values) == 1:
        return values[0]
    total = sum(shape.weight for shape in shapes)
    logs = (s.weight * math.log(v) for s, v in zip(shapes, values, strict=True))
    return math.exp(math.fsum(logs) / total)


def heaviest(shapes: Sequence[WeightedShape]) -> Sizes:
    """The sizes of the largest weight; of equals the first."""
    return max(shapes, key=lambda shape: shape.weight).sizes


def bound_us(spec: Spec, machine: Machine, shapes: Sequence[WeightedShape]) -> float:
    """The roofline of a workload in microseconds: the mean of those of its shapes."""
    return mean(bounds_us(spec, machine, shapes), shapes)


def bounds_us(spec: Spec, machine: Machine, shapes: Sequence[WeightedShape]) -> tuple[float, ...]:
    """The roofline at each shape in microseconds."""
    return tuple(roofline(spec, machine, shape.sizes).us for shape in shapes)


def widest(spec: Spec, machine: Machine, shapes: Sequence[WeightedShape]) -> Sizes:
    """The sizes at which most bytes must be moved, of equals the first: a source that is emitted
    for these holds for the others too."""
    return max(shapes, key=lambda s: roofline(spec, machine, s.sizes).bytes).sizes


def words(shapes: Sequence[WeightedShape]) -> str:
    """For a person: `M=64, N=48`, or `M=64, N=48 | M=512, N=48 (3 times the weight)`."""
    least = min(shape.weight for shape in shapes)
    return " | ".join(_words(shape, shape.weight / least) for shape in shapes)


def _words(shape: WeightedShape, weight: float) -> str:
    sizes = quantity.shape(shape.sizes)
    return sizes if weight == 1 else f"{sizes} ({weight:g} times the weight)"
