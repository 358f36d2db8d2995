"""Operators: kernels and programs as custom operators of `torch.library`.

    product = operator("project::product", KernelCall(spec, launcher, place))
    y = product(x, w)

Code that uses such an operator compiles under `torch.compile` without a graph break, because the
spec gives the dtypes and shapes of results. An operator with the kernel of a backward spec is
differentiable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from backends.program.program import Program
from backends.program.tensors import TORCH
from ir.errors import KernelError

GRADIENT = "d_"  # prefix of a tensor's name that names its gradient


class RegisteredCall(Protocol):
    """A call that can be registered. Inputs and outputs are tensors, in order."""

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """The outputs in order."""

    def shapes(self, inputs: Sequence[torch.Tensor]) -> list[tuple[str, tuple[int, ...]]]:
        """Dtype and shape of each output."""


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """A program as a call that takes its inputs in order instead of by name."""

    program: Program

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        names = (b.name for b in self.program.inputs)
        return self.program(dict(zip(names, inputs, strict=True)))

    def shapes(self, inputs: Sequence[torch.Tensor]) -> list[tuple[str, tuple[int, ...]]]:
        network = self.program.network
        return [(network.buffer(name).dtype, sizes) for name, sizes in network.outputs]


@dataclass(frozen=True, slots=True)
class Backward:
    """The backward of a call."""

    call: RegisteredCall  # computes the gradients
    # What `call` takes, in order: names of the forward's inputs and outputs, and `d_NAME` for the
    # gradient of an output.
    given: tuple[str, ...]
    made: tuple[str, ...]  # what `call` returns: `d_NAME` for the gradient of an input


def operator(
    name: str,
    call: RegisteredCall,
    inputs: Sequence[str],
    outputs: Sequence[str],
    backward: Backward | None = None,
) -> Callable[..., Any]:
    """Registers a call as the operator `namespace::name`, and returns the operator. It returns one
    tensor, or a tuple of several.

    inputs, outputs: names of the call's tensors, in order, as a spec or a network has them. Inputs
    for which the backward makes no gradient get none. KernelError if the backward's names do not
    fit.
    """
    if backward:
        _require_pair(name, inputs, outputs, backward)
    several = len(outputs) != 1

    def run(*given: torch.Tensor) -> Any:
        made = call(*given)
        return tuple(made) if several else made[0]

    def fake(*given: torch.Tensor) -> Any:
        made = [
            given[0].new_empty(sizes, dtype=TORCH[dtype])
            if given
            else torch.empty(sizes, dtype=TORCH[dtype])
            for dtype, sizes in call.shapes(given)
        ]
        return tuple(made) if several else made[0]

    result = f"({', '.join('Tensor' for _ in outputs)})" if several else "Tensor"
    arguments = ", ".join(f"Tensor {_argument(n)}" for n in inputs)
    made = torch.library.custom_op(name, run, mutates_args=(), schema=f"({arguments}) -> {result}")
    made.register_fake(fake)
    if backward:
        _differentiable(made, inputs, outputs, backward)
    return made


def _argument(name: str) -> str:
    """A parameter name for the schema; words of the schema language get an underscore."""
    return f"{name}_" if name in ("self", "Tensor", "int", "float", "bool", "str") else name


def _require_pair(
    name: str, inputs: Sequence[str], outputs: Sequence[str], backward: Backward
) -> None:
    known = (*inputs, *outputs, *(GRADIENT + n for n in outputs))
    for one in backward.given:
        if one not in known:
            raise KernelError(
                f"the backward of `{name}` asks for `{one}`",
                allowed=", ".join(known),
                hint="name its inputs after tensors of the forward; d_NAME is a gradient",
            )
    gradients = tuple(GRADIENT + n for n in inputs)
    for one in backward.made:
        if one not in gradients:
            raise KernelError(
                f"the backward of `{name}` gives `{one}`", allowed=", ".join(gradients)
            )


def _differentiable(
    made: Any, inputs: Sequence[str], outputs: Sequence[str], backward: Backward
) -> None:
    names = (*inputs, *outputs)
    forward = [n for n in names if n in backward.given]

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        results = output if isinstance(output, tuple) else (output,)
        held = dict(zip(names, (*inputs, *results), strict=True))
        ctx.save_for_backward(*(held[n] for n in forward))
        ctx.like = [(r.shape, r.dtype, r.device) for r in results]

    def gradients(ctx: Any, *given: torch.Tensor | None) -> tuple[Any, ...]:
        held = dict(zip(forward, ctx.saved_tensors, strict=True))
        for name, tensor, (sizes, dtype, device) in zip(outputs, given, ctx.like, strict=True):
            if tensor is None:
                tensor = torch.zeros(sizes, dtype=dtype, device=device)
            held[GRADIENT + name] = tensor.contiguous()
        found = backward_op(*(held[n] for n in backward.given))
        several = found if isinstance(found, tuple | list) else (found,)
        by_name = dict(zip(backward.made, several, strict=True))
        return tuple(by_name.get(GRADIENT + n) for n in inputs)

    backward_op = operator(
        f"{made._qualname}_backward", backward.call, backward.given, backward.made
    )
    made.register_autograd(gradients, setup_context=setup)


def program_operator(name: str, program: Program) -> Callable[..., Any]:
    """A program as an operator. Its parameters are the inputs that are not fixed, in the network's order."""
    outputs = [f"out{n}" for n, _ in enumerate(program.network.outputs)]
    return operator(name, ProgramCall(program), [b.name for b in program.inputs], outputs)
