"""A call of an imported module: what fills the spec's inputs, and what the call returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from frontends.pytorch.imported import Imported, Result
from ir.errors import KernelError


def given(
    made: Imported,
    module: torch.nn.Module | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> dict[str, torch.Tensor]:
    """The spec's inputs by name, but for the results of foreign calls.

    module: holds the parameters and buffers; None for a function. KernelError where the arguments
    have another structure, or another plain value, than in the call that was traced.
    """
    found = dict(made.constants)
    for argument, leaf in zip(made.arguments, _leaves(made, args, kwargs), strict=True):
        if not argument.tensor and leaf != argument.value:
            raise KernelError(
                f"an argument is {leaf!r}", allowed=f"{argument.value!r}, as it was imported with"
            )
        if argument.name is not None:
            found[argument.name] = leaf
    for held in made.held:
        found[held.name] = tensor_of(module, held.path)
    if made.seed is not None:
        found[made.seed] = torch.tensor([seed])
    return found


def returned(
    made: Imported,
    outputs: Mapping[str, torch.Tensor],
    module: torch.nn.Module | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """What the module's call returns, from the spec's outputs."""
    leaves = _leaves(made, args, kwargs)
    whole = [_result(r, outputs, module, leaves) for r in made.results]
    return tree_unflatten(whole, made.structure)


def left_behind(
    made: Imported,
    outputs: Mapping[str, torch.Tensor],
    module: torch.nn.Module | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
) -> dict[str | int, torch.Tensor]:
    """The new values of buffers, by path, and of arguments, by place."""
    leaves = _leaves(made, args, kwargs)
    return {m.target: _result(m.result, outputs, module, leaves) for m in made.mutations}


def tensor_of(module: torch.nn.Module | None, path: str) -> torch.Tensor:
    """The parameter or buffer of a module by its path."""
    if module is None:
        raise KernelError(f"`{path}` is of a module, and none is given")
    parent, _, name = path.rpartition(".")
    return getattr(module.get_submodule(parent), name)


def _leaves(made: Imported, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> list[Any]:
    leaves, structure = tree_flatten((tuple(args), dict(kwargs or {})))
    if structure != made.argument_structure:
        raise KernelError(
            f"the arguments are {structure}", allowed=str(made.argument_structure),
            hint="call it as it was imported",
        )  # fmt: skip
    return leaves


def _result(
    result: Result,
    outputs: Mapping[str, torch.Tensor],
    module: torch.nn.Module | None,
    leaves: Sequence[Any],
) -> Any:
    if result.kind == "output":
        return outputs[result.key]
    if result.kind == "argument":
        return leaves[result.key]
    return tensor_of(module, result.key) if result.kind == "held" else result.key
