"""A call of an imported module: what fills the spec's inputs, and what the call returns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import TreeSpec, tree_flatten, tree_structure, tree_unflatten

from frontends.pytorch.imported import Imported, ResultLeaf
from ir.errors import KernelError

ModuleState = Mapping[str, torch.Tensor]  # parameters and buffers by path


def leaves_of(
    made: Imported, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
) -> list[Any]:
    """The leaves of a call's arguments, in order.

    KernelError where the arguments have another structure, or another plain value, than in the call
    that was traced.
    """
    leaves, structure = tree_flatten((tuple(args), dict(kwargs or {})))
    require_same_call(made, leaves, structure)
    return leaves


def tensors_by_position(made: Imported) -> int | None:
    """How many arguments a call has that takes tensors alone, each by position, so that they are its
    leaves; None for another call."""
    count = len(made.arguments)
    flat = tree_structure(((0,) * count, {}))
    alone = all(a.tensor for a in made.arguments) and made.argument_structure == flat
    return count if alone else None


def given(
    made: Imported, state: ModuleState, leaves: Sequence[Any], seed: int = 0
) -> dict[str, torch.Tensor]:
    """The spec's inputs by name, but for the results of external calls."""
    found = dict(made.constants)
    for argument, leaf in zip(made.arguments, leaves, strict=True):
        if argument.name is not None:
            found[argument.name] = leaf
    for held in made.held:
        found[held.name] = _held(state, held.path)
    if made.seed is not None:
        found[made.seed] = torch.tensor([seed])
    return found


def returned(
    made: Imported,
    outputs: Mapping[str, torch.Tensor],
    state: ModuleState,
    leaves: Sequence[Any],
) -> Any:
    """What the module's call returns, from the spec's outputs."""
    whole = [_result(r, outputs, state, leaves) for r in made.results]
    return tree_unflatten(whole, made.structure)


def left_behind(
    made: Imported,
    outputs: Mapping[str, torch.Tensor],
    state: ModuleState,
    leaves: Sequence[Any],
    besides: Collection[str | int] = (),
) -> dict[str | int, torch.Tensor]:
    """The new values of buffers, by path, and of arguments, by place. besides: those that have theirs."""
    return {
        m.target: _result(m.result, outputs, state, leaves)
        for m in made.mutations
        if m.target not in besides
    }


def state_of(made: Imported, module: torch.nn.Module | None) -> dict[str, torch.Tensor]:
    """What a call reads or writes of a module's parameters and buffers; None for a function. Complex ones are as
    `torch.view_as_real` shows them."""
    paths = paths_of(made)
    if paths and module is None:
        raise KernelError(f"`{paths[0]}` is of a module, and none is given")
    return {path: _tensor(module, path) for path in paths}


def paths_of(made: Imported) -> list[str]:
    """The paths of the parameters and buffers that a call reads or writes."""
    results = (*made.results, *(m.result for m in made.mutations))
    paths = [h.path for h in made.held] + [r.key for r in results if r.kind == "held"]
    paths += [m.target for m in made.mutations if isinstance(m.target, str)]
    return list(dict.fromkeys(paths))


def _tensor(module: torch.nn.Module, path: str) -> torch.Tensor:
    parent, _, name = path.rpartition(".")
    tensor = getattr(module.get_submodule(parent), name)
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _held(state: ModuleState, path: str) -> torch.Tensor:
    if path not in state:
        raise KernelError(f"the module's `{path}` is not given")
    return state[path]


def _same_value(leaf: Any, value: Any) -> bool:
    return type(leaf) is type(value) and leaf == value


def require_same_call(made: Imported, leaves: Sequence[Any], structure: TreeSpec) -> None:
    """KernelError where a call's arguments, flattened, are not those that were imported: of another
    structure, or with another plain value."""
    if structure != made.argument_structure:
        raise KernelError(
            f"the arguments are {structure}",
            allowed=str(made.argument_structure),
            hint="call it as it was imported",
        )
    for argument, leaf in zip(made.arguments, leaves, strict=True):
        if not argument.tensor and not _same_value(leaf, argument.value):
            raise KernelError(
                f"an argument is {leaf!r}", allowed=f"{argument.value!r}, as it was imported with"
            )


def _result(
    result: ResultLeaf,
    outputs: Mapping[str, torch.Tensor],
    state: ModuleState,
    leaves: Sequence[Any],
) -> Any:
    if result.kind == "output":
        return outputs[result.key]
    if result.kind == "argument":
        return leaves[result.key]
    return _held(state, result.key) if result.kind == "held" else result.key
