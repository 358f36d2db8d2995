"""Parameters: the global tensors of a nest, in the order in which a launcher takes them."""

from __future__ import annotations

from ir.nest.nest import LoopNest, Parameter


def parameters(nest: LoopNest) -> tuple[Parameter, ...]:
    """Every global tensor of a nest, each once: inputs as the spec has them, then workspace,
    then outputs."""
    used = {p.name: p for launch in nest.launches for p in launch.parameters}
    inputs = (Parameter(t.name, t.dtype, t.shape, "input") for t in nest.spec.inputs)
    outputs = (Parameter(t.name, t.dtype, t.shape, "output") for t in nest.spec.outputs)
    between = (p for p in used.values() if p.role == "workspace")
    return (*inputs, *between, *outputs)
