"""PyTorch's call of a module with our random numbers: what is drawn is what equations would draw.

No two libraries draw alike, so a module that drops elements gives other results than its equations
do, though both are right. Here PyTorch runs the graph that it exported, and wherever that draws,
the rule of the operator is evaluated instead, on the same seed and places as in the imported spec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from frontends.aten.apply import apply
from frontends.builder import Builder, Meta, Value
from frontends.dtypes import TORCH, name_of
from frontends.pytorch.trace import trace
from ir.reference.reference import evaluate
from ir.reference.stepwise import Evaluates
from ir.spec import Number

DROPPED = ("dropout", "dropout_p", "p")  # arguments that say which part of all is dropped


def redrawn(
    subject: torch.nn.Module | Callable[..., Any],
    args: Sequence[Any],
    seed: int = 0,
    by: Evaluates = evaluate,
) -> tuple[Any, torch.nn.Module]:
    """What PyTorch returns with the numbers that `imported(subject, args)` draws of a seed, and the
    module that was run, which holds the buffers as the call leaves them.

    by: evaluates the equations of an operator that draws. KernelError where the module cannot be
    exported, or a random operator has no rule.
    """
    module = trace(subject, args).module()
    with torch.no_grad(), _Draws(seed, by):
        return module(*args), module


class _Draws(TorchDispatchMode):
    """Evaluates the rules of random operators in their place."""

    def __init__(self, seed: int, by: Evaluates):
        super().__init__()
        self.seed, self.by = seed, by
        self.builder = Builder()  # of one operator, after all that were drawn before

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        theirs = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded not in func.tags or _certain(func, args, kwargs or {}):
            return theirs
        self.builder = Builder(self.builder.drawn)
        results, structure = tree_flatten(theirs)
        return structure.unflatten(self._evaluated(func, args, kwargs or {}, results))

    def _evaluated(
        self, func: OpOverload, args: Any, kwargs: Any, results: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        b, arrays = self.builder, {}

        def taken(item: Any) -> Any:
            if not isinstance(item, torch.Tensor):
                return item
            meta = _meta(item)
            made = b.input("given", meta.dtype, meta.shape)
            arrays[made.name] = _array(item)
            return made

        args, kwargs = tree_map(taken, (args, kwargs))
        made = apply(b, func, args, kwargs, tuple(map(_meta, results)))
        drawn = [self._tensor(v, arrays) for v in made if v is not None]
        return [t.to(r.device) for t, r in zip(drawn, results, strict=True)]

    def _tensor(self, value: Value, arrays: Mapping[str, np.ndarray]) -> torch.Tensor:
        spec = self.builder.spec("drawn", [value])
        needed = {t.name for t in spec.inputs}
        given = {n: a for n, a in arrays.items() if n in needed}
        if self.builder.seeded and self.builder.seeded.name in needed:
            given[self.builder.seeded.name] = np.array([self.seed])
        (found,) = self.by(spec, given, {}).values()
        made = torch.from_numpy(np.ascontiguousarray(found)).reshape(found.shape)
        return made.to(TORCH[value.dtype])


def _certain(func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call of an operator that may draw numbers drops nothing, and so draws none."""
    given = {a.name: v for a, v in zip(func._schema.arguments, args, strict=False)} | dict(kwargs)
    return any(given.get(name) == 0 for name in DROPPED)


def _meta(tensor: torch.Tensor) -> Meta:
    return Meta(name_of(tensor.dtype), tuple(map(Number, tensor.shape)))


def _array(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach()
    return (tensor.double() if tensor.is_floating_point() else tensor).cpu().numpy()
