"""Parameters: the global tensors of a nest, in the order in which a launcher takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ir.nest.nest import LoopNest, Parameter, parameter
from ir.sizes import value
from ir.spec import Number


def parameters(nest: LoopNest) -> tuple[Parameter, ...]:
    """Every global tensor of a nest, each once: inputs in the spec's order, then workspace, then outputs."""
    used = {p.name: p for launch in nest.launches for p in launch.parameters}
    inputs = (parameter(t, "input") for t in nest.spec.inputs)
    outputs = (parameter(t, "output") for t in nest.spec.outputs)
    between = (p for p in used.values() if p.role == "workspace")
    return (*inputs, *between, *outputs)


def as_rows(tensors: Sequence[Parameter], sizes: Mapping[str, float]) -> list[list[Any]]:
    """Parameters at some sizes as plain data, one row each. A part of a larger tensor also has its own shape."""

    def numbers(shape: tuple[Any, ...]) -> list[int]:
        return [value(e, sizes) for e in shape]

    return [
        [p.name, p.dtype, numbers(p.shape), p.role, *([numbers(p.own)] if p.own else [])]
        for p in tensors
    ]


def of_rows(rows: Sequence[Sequence[Any]]) -> tuple[Parameter, ...]:
    """The parameters of such rows. TypeError or ValueError if they are malformed."""

    def shape(numbers: Sequence[int]) -> tuple[Number, ...]:
        return tuple(map(Number, numbers))

    return tuple(
        Parameter(name, dtype, shape(whole), role, *map(shape, own))
        for name, dtype, whole, role, *own in rows
    )
