"""Against PyTorch: an imported module and the module itself, both in float64 on the CPU. For tests."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_map

from frontends.pytorch.imported import Imported
from frontends.pytorch.module import imported
from frontends.pytorch.reference import answer
from ir.parse.parse import parse_spec
from ir.print import spec_text
from ir.verify import facts


def checked(
    subject: nn.Module | Callable[..., Any],
    *args: Any,
    kwargs: Mapping[str, Any] | None = None,
    calls: Sequence[tuple[Any, ...]] = (),
    **options: Any,
) -> Imported:
    """Imports a call. Raises AssertionError where it, or one of further calls, gives or leaves
    behind anything else than PyTorch does, or where its spec does not print as it parses."""
    made = imported(subject, args, kwargs, **options)
    facts(made.spec)
    assert parse_spec(spec_text(made.spec)) == made.spec
    for given in (args, *calls):
        _same_call(made, subject, given, kwargs or {})
    return made


def wide(item: Any) -> Any:
    """A copy of a module in float64, tensors that are plain attributes included; of a tensor,
    where it holds floats or complex numbers."""
    if isinstance(item, nn.Module):
        item = copy.deepcopy(item).double()._apply(lambda t: wide(t) if t.is_complex() else t)
        for part in item.modules():
            for name, value in list(vars(part).items()):
                setattr(part, name, wide(value))
        return item
    if isinstance(item, torch.Tensor) and item.is_complex():
        return item.detach().to(torch.complex128)
    floats = isinstance(item, torch.Tensor) and item.is_floating_point()
    return item.detach().clone().double() if floats else item


def _same_call(made: Imported, subject: Any, args: Any, kwargs: Any) -> None:
    before = wide(subject) if isinstance(subject, nn.Module) else None
    theirs = wide(subject) if isinstance(subject, nn.Module) else subject
    found = answer(made, before, *tree_map(wide, (args, kwargs)))
    args, kwargs = tree_map(wide, (args, kwargs))
    _same(found.result, theirs(*args, **kwargs))
    leaves = tree_flatten((args, kwargs))[0]
    for target, value in found.left.items():
        _same(value, leaves[target] if isinstance(target, int) else _held(theirs, target))


def _held(module: nn.Module, path: str) -> torch.Tensor:
    parent, _, name = path.rpartition(".")
    return getattr(module.get_submodule(parent), name)


def _same(ours: Any, theirs: Any) -> None:
    (ours, shape), (theirs, expected) = tree_flatten(ours), tree_flatten(theirs)
    assert shape == expected
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)
        else:
            assert a == b
