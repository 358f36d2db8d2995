"""Evaluates a network step by step, in float64 by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ir.errors import KernelError
from ir.network import Network, Pause, Step
from ir.reference.reference import evaluate as evaluate_spec
from ir.reference.rounding import HELD_AS
from ir.sizes import shape, value
from ir.spec import Spec

Arrays = Mapping[str, np.ndarray]
Evaluates = Callable[[Spec, Arrays, Mapping[str, int]], dict[str, np.ndarray]]
# Outside calls, in the order of the network's pauses.
Calls = Sequence[Callable[[list[np.ndarray]], Sequence[np.ndarray]]]


def evaluate(
    network: Network, inputs: Arrays, by: Evaluates = evaluate_spec, calls: Calls = ()
) -> list[np.ndarray]:
    """The outputs in order. Raises KernelError if an input is missing.

    by: evaluates one step.
    calls: the outside calls that the network pauses for.
    """
    held = empty_outputs(network) | dict(inputs)
    missing = [b.name for b in network.inputs if b.name not in held]
    if missing:
        raise KernelError(f"`{network.name}` is not given its input `{missing[0]}`")
    require_calls(network, len(calls))
    for n, step in network.sequence():
        if isinstance(step, Pause):
            outside(step, calls[n], held)
            continue
        given = {
            t.name: seen(held[name], shape(t, {}))
            for t, name in zip(step.spec.inputs, step.inputs, strict=True)
        }
        made = by(step.spec, given, {})
        hold(step, made, held)
    return [seen(held[name], sizes) for name, sizes in network.outputs]


def hold(step: Step, made: Arrays, held: dict[str, Any]) -> None:
    """Adds a step's results to `held`, the arrays by buffer.

    A result that is a part goes into the array that other steps store the other parts to.
    """
    for t, name in zip(step.spec.outputs, step.outputs, strict=True):
        if t.part is None:
            held[name] = made[t.name]
            continue
        whole = tuple(value(e, {}) for e in t.memory)
        if name not in held:
            held[name] = np.empty(whole, made[t.name].dtype)
        held[name].reshape(whole)[t.window] = made[t.name]


def empty_outputs(network: Network) -> dict[str, np.ndarray]:
    """The outputs without elements, which no step writes."""
    return {
        b.name: np.zeros(b.shape, HELD_AS[b.dtype])
        for b in network.buffers
        if b.role == "output" and 0 in b.shape
    }


def require_calls(network: Network, given: int) -> None:
    """Raises KernelError unless there is one call for each of the network's pauses."""
    if given != len(network.pauses):
        names = ", ".join(p.name for p in network.pauses) or "none"
        raise KernelError(
            f"`{network.name}` is given {given} calls from outside", allowed=f"its own: {names}"
        )


def outside(pause: Pause, call: Callable[..., Sequence[np.ndarray]], held: dict[str, Any]) -> None:
    """Makes an outside call and adds its results to `held`, the arrays by buffer."""
    made = call([seen(held[name], sizes) for name, sizes in pause.inputs])
    held.update({n: a for n, a in zip(pause.outputs, made, strict=True) if n is not None})


def seen(array: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """A buffer's elements in another shape."""
    return np.ascontiguousarray(array).reshape(sizes)
