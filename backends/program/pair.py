"""A spec pair: a forward spec and its backward spec as one operator for a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from backends.backend import Backend
from backends.program.kernel import KernelCall
from backends.program.launcher import launcher, place
from backends.program.operator import Backward, operator
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.machine import Machine
from ir.schedule import Schedule
from ir.spec import Spec


def kernel_call(
    spec: Spec,
    sizes: Mapping[str, int],
    machine: Machine,
    backend: Backend,
    folder: Path,
    schedule: Schedule | None = None,
) -> KernelCall:
    """Builds a spec's kernel for a target, below a folder, and returns it as a call.

    sizes: those that it is built and tuned for.
    schedule: None: the autoschedule. KernelError if the spec does not lower, BackendError if the
    kernel does not build.
    """
    nest = lower(spec, schedule or autoschedule(spec, machine, sizes), machine, sizes)
    here = folder / spec.name
    here.mkdir(parents=True, exist_ok=True)
    built = backend.build(backend.emit(nest, machine), nest, machine, here)
    return KernelCall(spec, launcher(backend, built, nest, machine), place(backend, machine))


def pair_operator(
    name: str, forward: KernelCall, backward: KernelCall | None = None
) -> Callable[..., Any]:
    """The operator `namespace::name` of a kernel. It is differentiable if a backward is given.

    The backward spec's inputs are named after tensors of the forward, or `d_NAME` for the gradient
    of an output. Its outputs are named `d_NAME` for the gradient of an input.
    """
    second = None
    if backward is not None:
        inputs = tuple(t.name for t in backward.spec.inputs)
        second = Backward(backward, inputs, tuple(t.name for t in backward.spec.outputs))
    spec = forward.spec
    return operator(
        name, forward, [t.name for t in spec.inputs], [t.name for t in spec.outputs], second
    )
