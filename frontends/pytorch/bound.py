"""A bound module: an imported one with its tensors and with something that computes its spec.

It is called as the module is. What computes is given from outside: kernels of a target, or the
reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from frontends.dtypes import NAMES, TORCH
from frontends.pytorch.call import given, leaves_of, left_behind, returned
from frontends.pytorch.external import ExternalCall, calls, operands
from frontends.pytorch.imported import Imported
from frontends.pytorch.reference import sizes_of
from ir.errors import KernelError
from ir.reference.rounding import HELD_AS
from ir.sizes import bind, shape
from ir.spec import Tensor

Run = Callable[..., Sequence[np.ndarray]]  # the spec's inputs by name -> its outputs in order


class BoundCall:
    """A call of an imported module by `run`. Where calls are left to PyTorch, `run` is given them
    too, in order, each as a function of a list of arrays (`ir.reference.stepwise.Calls`).

    state: parameters and buffers by path (`frontends.pytorch.call.state_of`); what a call leaves in
    buffers replaces them here, and the module that they are from keeps its own.  seed: of the first
    call that draws random numbers; each call has the next.
    """

    def __init__(self, made: Imported, state: Mapping[str, torch.Tensor], run: Run, seed: int = 0):
        self.made, self.state, self.run, self.seed = made, dict(state), run, seed
        dtypes = {t.name: t.dtype for t in made.spec.outputs}
        self.calls = [
            partial(_through_arrays, call, [dtypes[name] for name in operands(external)])
            for external, call in zip(made.external, calls(made, "cpu"), strict=True)
        ]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module's call returns, in its structure; arguments that the module changes are
        changed. KernelError where arguments are not as the module was imported with, and in grad
        mode where one or a parameter requires gradients, which no array carries."""
        leaves = leaves_of(self.made, args, kwargs)
        tensors = given(self.made, self.state, leaves, self.seed)
        arrays = self._arrays(tensors)
        found = self.run(arrays, self.calls) if self.calls else self.run(arrays)
        outputs = {
            t.name: tensor(a, t.dtype) for t, a in zip(self.made.spec.outputs, found, strict=True)
        }
        for name, (count, dim) in self.made.counts.items():
            outputs[name] = outputs[name].narrow(dim, 0, int(outputs[count]))
        result = returned(self.made, outputs, self.state, leaves)
        self._leave(left_behind(self.made, outputs, self.state, leaves), leaves)
        self.seed += self.made.seed is not None
        return result

    def _arrays(self, tensors: Mapping[str, torch.Tensor]) -> dict[str, np.ndarray]:
        left = {name for external in self.made.external for name in external.outputs}
        inputs = [t for t in self.made.spec.inputs if t.name not in left]
        for t in inputs:
            if tensors[t.name].ndim != len(t.shape):
                raise KernelError(
                    f"`{t.name}` has {tensors[t.name].ndim} dimensions", allowed=str(len(t.shape))
                )
        sizes = bind(self.made.spec, sizes_of(self.made, tensors))
        return {t.name: _checked(tensors[t.name], t, shape(t, sizes)) for t in inputs}

    def _leave(self, left: Mapping[str | int, torch.Tensor], leaves: Sequence[Any]) -> None:
        for target, value in left.items():
            if isinstance(target, str):
                self.state[target] = value
            else:
                with torch.no_grad():
                    leaves[target].copy_(value)


def array(given: torch.Tensor) -> np.ndarray:
    """A tensor as backends take it; what numpy lacks as f32 of its values."""
    held = HELD_AS[NAMES[given.dtype]]
    there = given.detach().cpu()
    wide = torch.float32 if held == np.float32 else there.dtype
    return np.ascontiguousarray(there.to(wide).numpy(), held).reshape(given.shape)


def tensor(made: np.ndarray, dtype: str) -> torch.Tensor:
    """An array of a backend as a tensor of one of the language's dtypes."""
    return torch.from_numpy(np.ascontiguousarray(made)).reshape(made.shape).to(TORCH[dtype])


def _through_arrays(
    call: ExternalCall, dtypes: Sequence[str], arrays: Sequence[np.ndarray]
) -> list[np.ndarray | None]:
    """An external call on arrays. dtypes: of its operands, in order."""
    found = call([tensor(a, dtype) for a, dtype in zip(arrays, dtypes, strict=True)])
    return [None if t is None else array(t) for t in found]


def _checked(found: torch.Tensor, t: Tensor, expected: tuple[int, ...]) -> np.ndarray:
    if NAMES.get(found.dtype) != t.dtype or tuple(found.shape) != expected:
        raise KernelError(
            f"`{t.name}` is {found.dtype}{list(found.shape)}",
            allowed=f"{TORCH[t.dtype]}{list(expected)}, as it was imported with",
        )
    if found.requires_grad and torch.is_grad_enabled():
        raise KernelError(
            f"`{t.name}` requires gradients, and kernels compute none",
            allowed="what requires none; anything under torch.no_grad()",
            hint="call it under torch.no_grad(), or give it tensors that are detached",
        )
    return array(found)
