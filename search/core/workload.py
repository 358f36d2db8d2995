"""A workload: the shapes that a search optimises, each with a weight, and means over them."""

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
    """Sizes with a weight: the exponent of their time in the geometric mean."""

    sizes: Sizes
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not quantity.positive(self.weight):
            raise ValueError(f"a weight must be positive and finite, not {self.weight}")


def mean(values: Sequence[float], shapes: Sequence[WeightedShape]) -> float:
    """The weighted geometric mean of positive values, one for each shape.

    exp(sum of weight * log value / sum of weights). A single value is returned unchanged.
    """
    if len(values) == 1:
        return values[0]
    total = sum(shape.weight for shape in shapes)
    logs = (s.weight * math.log(v) for s, v in zip(shapes, values, strict=True))
    return math.exp(math.fsum(logs) / total)


def heaviest(shapes: Sequence[WeightedShape]) -> Sizes:
    """The sizes with the largest weight; of equals the first."""
    return max(shapes, key=lambda shape: shape.weight).sizes


def bound_us(spec: Spec, machine: Machine, shapes: Sequence[WeightedShape]) -> float:
    """The roofline of a workload in microseconds: the mean over its shapes."""
    return mean(bounds_us(spec, machine, shapes), shapes)


def bounds_us(spec: Spec, machine: Machine, shapes: Sequence[WeightedShape]) -> tuple[float, ...]:
    """The roofline at each shape, in microseconds."""
    return tuple(roofline(spec, machine, shape.sizes).us for shape in shapes)


def widest(spec: Spec, machine: Machine, shapes: Sequence[WeightedShape]) -> Sizes:
    """The sizes that move the most bytes; of equals the first.

    A source that is emitted for these is also valid at the other sizes.
    """
    return max(shapes, key=lambda s: roofline(spec, machine, s.sizes).bytes).sizes


def words(shapes: Sequence[WeightedShape]) -> str:
    """For a person: `M=64, N=48`, or `M=64, N=48 | M=512, N=48 (3 times the weight)`."""
    least = min(shape.weight for shape in shapes)
    return " | ".join(_words(shape, shape.weight / least) for shape in shapes)


def _words(shape: WeightedShape, weight: float) -> str:
    sizes = quantity.shape(shape.sizes)
    return sizes if weight == 1 else f"{sizes} ({weight:g} times the weight)"
