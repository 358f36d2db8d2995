"""A network evaluated step by step: by the reference, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ir.errors import KernelError
from ir.network import Network
from ir.reference import evaluate as evaluate_spec
from ir.sizes import shape
from ir.spec import Spec

Arrays = Mapping[str, np.ndarray]
Evaluates = Callable[[Spec, Arrays, Mapping[str, int]], dict[str, np.ndarray]]


def evaluate(network: Network, inputs: Arrays, by: Evaluates = evaluate_spec) -> list[np.ndarray]:
    """The outputs in order; KernelError where an input is missing. by: evaluates a step."""
    held = dict(inputs)
    missing = [b.name for b in network.inputs if b.name not in held]
    if missing:
        raise KernelError(f"`{network.name}` is not given its input `{missing[0]}`")
    for step in network.steps:
        given = {
            t.name: seen(held[name], shape(t, {}))
            for t, name in zip(step.spec.inputs, step.inputs, strict=True)
        }
        made = by(step.spec, given, {})
        for t, name in zip(step.spec.outputs, step.outputs, strict=True):
            held[name] = made[t.name]
    return [seen(held[name], sizes) for name, sizes in network.outputs]


def seen(array: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """A buffer's elements under a shape."""
    return np.ascontiguousarray(array).reshape(sizes)
