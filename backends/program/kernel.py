"""A kernel as a call on torch tensors: one spec, whose sizes come from the shapes of each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from backends.program.launcher import Launcher
from backends.program.tensors import TORCH, require, require_no_gradients
from ir.errors import KernelError
from ir.sizes import free_sizes, value
from ir.spec import Size, Spec


class KernelCall:
    """A spec's kernel as a call: it takes the inputs in order, and returns newly allocated outputs.

    place: torch's name of the device. KernelError if the inputs do not determine all sizes, or for
    tensors that do not fit.
    """

    def __init__(self, spec: Spec, launcher: Launcher, place: str):
        self.spec, self.launcher, self.place = spec, launcher, place
        told = {n.name for t in spec.inputs for s in t.shape for n in (s,) if isinstance(n, Size)}
        if missing := [name for name in free_sizes(spec) if name not in told]:
            raise KernelError(f"no input of `{spec.name}` has the size {missing[0]} as a dimension")

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """The outputs in order."""
        sizes = self.sizes(inputs)
        for t, x in zip(self.spec.inputs, inputs, strict=True):
            require(x, t.name, t.dtype, tuple(value(s, sizes) for s in t.shape), self.place)
        require_no_gradients({t.name: x for t, x in zip(self.spec.inputs, inputs, strict=True)})
        given = {t.name: x.detach() for t, x in zip(self.spec.inputs, inputs, strict=True)}
        made = {}
        for p in self.launcher.tensors:
            if p.role != "input":
                dims = tuple(value(s, sizes) for s in p.shape)
                made[p.name] = torch.empty(dims, dtype=TORCH[p.dtype], device=self.place)
        tensors = (
            given[p.name] if p.role == "input" else made[p.name] for p in self.launcher.tensors
        )
        self.launcher.launch(*tensors)
        return [made[t.name][t.window].contiguous() for t in self.spec.outputs]

    def shapes(self, inputs: Sequence[torch.Tensor]) -> list[tuple[str, tuple[int, ...]]]:
        """Dtype and shape of each output of a call. The tensors may have no values (fake tensors),
        and their sizes may be symbols."""
        sizes = self.sizes(inputs)
        return [(t.dtype, tuple(value(s, sizes) for s in t.shape)) for t in self.spec.outputs]

    def sizes(self, inputs: Sequence[torch.Tensor]) -> Mapping[str, int]:
        """The sizes of a call, including derived ones."""
        return sizes_of(self.spec, inputs)


def sizes_of(spec: Spec, inputs: Sequence[torch.Tensor]) -> Mapping[str, int]:
    """The sizes of a spec for some inputs, in order, including derived ones. KernelError if these
    are not its inputs."""
    if len(inputs) != len(spec.inputs):
        raise KernelError(
            f"`{spec.name}` is given {len(inputs)} tensors",
            allowed=", ".join(t.name for t in spec.inputs),
        )
    found: dict[str, int] = {}
    for t, x in zip(spec.inputs, inputs, strict=True):
        if not isinstance(x, torch.Tensor) or x.ndim != len(t.shape):
            raise KernelError(f"`{t.name}` is no tensor of {len(t.shape)} dimensions")
        for size, length in zip(t.shape, x.shape, strict=True):
            if isinstance(size, Size):
                found.setdefault(size.name, length)
    for name, expr in spec.derived:
        found[name] = value(expr, found)
    return found
