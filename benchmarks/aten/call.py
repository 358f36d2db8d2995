"""Calls of an operator: a function of tensors, and the tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

HALVES = (torch.bfloat16, torch.float16)


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """A call of an operator."""

    # `operator`, `args`, `kwargs`: the call.
    operator: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The tensors among the arguments."""
        leaves, _ = tree_flatten((self.args, self.kwargs))
        return tuple(leaf.detach() for leaf in leaves if isinstance(leaf, torch.Tensor))

    def function(self) -> Callable[..., Any]:
        """Returns the call as a function of its tensors."""
        leaves, tree = tree_flatten((self.args, self.kwargs))
        places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        rest = [None if n in places else leaf for n, leaf in enumerate(leaves)]

        def of_tensors(*tensors: torch.Tensor) -> Any:
            filled = list(rest)
            for n, tensor in zip(places, tensors, strict=True):
                filled[n] = tensor
            args, kwargs = tree_unflatten(filled, tree)
            return self.operator(*args, **kwargs)

        return of_tensors

    def text(self) -> str:
        """Formats the shapes of the tensors, and the other arguments."""
        named = (f"{name}={_shown(item)}" for name, item in self.kwargs.items())
        return f"({', '.join([*map(_shown, self.args), *named])})"

    def __call__(self, dtype: torch.dtype | None = None) -> Any:
        """Returns PyTorch's result. The arguments are not changed. dtype: replaces every
        floating-point dtype."""
        turn = _copied if dtype is None else partial(_turned, dtype)
        args, kwargs = tree_map(turn, (self.args, dict(self.kwargs)))
        with torch.no_grad():
            return self.operator(*args, **kwargs)

    def plain(self) -> Any:
        """Returns PyTorch's result at the call's own dtypes.

        If the CPU does not support a 16-bit float, it computes in f32 and rounds.
        """
        try:
            return self()
        except NotImplementedError:
            narrow = next(t.dtype for t in self.tensors if t.dtype in HALVES)
            back = {torch.float32: narrow}
            return tree_map(lambda t: t.to(back.get(t.dtype, t.dtype)), self(torch.float32))


def _shown(item: Any) -> str:
    if isinstance(item, torch.Tensor):
        return f"{list(item.shape)}{' with nan' if item.isnan().any() else ''}"
    if isinstance(item, list | tuple):
        return f"({', '.join(map(_shown, item))})"
    return repr(item)


def _copied(item: Any) -> Any:
    return item.detach().clone() if isinstance(item, torch.Tensor) else item


def _turned(dtype: torch.dtype, item: Any) -> Any:
    if isinstance(item, torch.dtype):
        return dtype if item.is_floating_point else item
    item = _copied(item)
    floats = isinstance(item, torch.Tensor) and item.is_floating_point()
    return item.to(dtype) if floats else item
