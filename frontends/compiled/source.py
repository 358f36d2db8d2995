"""The module that a call was compiled from: whether it still is what was compiled."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import is_
from typing import Any

import torch
from torch import nn

from ir.errors import KernelError

AGAIN = "compile the module again: compile_module(module, args, target=...)"


@dataclass(frozen=True, slots=True)
class _Part:
    """A submodule as it was compiled."""

    path: str
    module: nn.Module
    training: bool
    children: tuple[nn.Module | None, ...]
    given: tuple[str, ...]  # the names of its parameters and buffers that are not None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a module holds a tensor, or None."""

    path: str
    table: Mapping[str, Any]  # of a submodule: parameters, buffers or plain attributes
    name: str

    @property
    def value(self) -> Any:
        return self.table.get(self.name)


class ModuleSource:
    """A module, its submodules and their modes when it was compiled. paths: of the parameters,
    buffers and attributes that the compiled call reads or writes."""

    def __init__(self, module: nn.Module, paths: Collection[str]):
        self.module = module
        self.parts = [
            _Part(path, part, part.training, tuple(part._modules.values()), _given(part))
            for path, part in module.named_modules()
        ]
        places = [place for part in self.parts for place in _places(part)]
        self.absent = [place for place in places if place.value is None]
        ids = {id(_tensor(module, path)) for path in paths}
        self.tied: dict[int, list[_Place]] = {}  # the places of each tensor
        for place in places:
            if id(place.value) in ids:
                self.tied.setdefault(id(place.value), []).append(place)
        self.places = [place for places in self.tied.values() for place in places]
        self.keep()

    def replaced(self) -> bool:
        """Whether tensors of the module are others than those that were kept, or lie elsewhere.
        KernelError where the module is in another mode, or has other parts."""
        for part in self.parts:
            if part.module.training is not part.training:
                raise KernelError(
                    f"the module was compiled in {_mode(part.training)} mode, and is in "
                    f"{_mode(part.module.training)} mode now",
                    where=_where(part.path, part.module),
                    hint=f"switch it back: .train({part.training}); or {AGAIN}",
                )
            children = part.module._modules.values()
            if len(children) != len(part.children) or not all(map(is_, children, part.children)):
                raise KernelError(
                    "a submodule was replaced, added or removed after compiling",
                    where=_where(part.path, part.module),
                    hint=AGAIN,
                )
        if self._same():
            return False
        self._require_named()
        self._require_tied()
        return True

    def keep(self) -> None:
        """Takes the module's tensors as they are now for those of the compiled call."""
        self.tensors = [place.value for place in self.places]
        self.layouts = [_layout(t) for t in self.tensors]

    def _same(self) -> bool:
        """Whether the module holds the tensors that were kept, and they lie where they lay."""
        return (
            all(place.value is None for place in self.absent)
            and all(map(is_, (p.table.get(p.name) for p in self.places), self.tensors))
            and [_layout(t) for t in self.tensors] == self.layouts
        )

    def _require_named(self) -> None:
        for part in self.parts:
            if (now := _given(part.module)) != part.given:
                other = min(set(now) ^ set(part.given))
                raise KernelError(
                    f"`{other}` was {'added' if other in now else 'removed'} after compiling",
                    where=_where(part.path, part.module),
                    hint=AGAIN,
                )

    def _require_tied(self) -> None:
        for first, *others in self.tied.values():
            if not isinstance(first.value, torch.Tensor):
                raise KernelError(
                    f"the module's `{first.path}` is {type(first.value).__name__} now",
                    allowed="a tensor, as it was compiled with",
                    hint=AGAIN,
                )
            for other in others:
                if other.value is not first.value:
                    raise KernelError(
                        f"the module's `{first.path}` and `{other.path}` were one tensor when it "
                        "was compiled, and are two now",
                        hint=AGAIN,
                    )


def _places(part: _Part) -> list[_Place]:
    module, before = part.module, f"{part.path}." if part.path else ""
    plain = {n: v for n, v in vars(module).items() if isinstance(v, torch.Tensor)}
    tables = (
        (module._parameters, module._parameters),
        (module._buffers, module._buffers),
        (plain, vars(module)),
    )
    return [_Place(before + name, table, name) for names, table in tables for name in names]


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype


def _tensor(module: nn.Module, path: str) -> torch.Tensor:
    parent, _, name = path.rpartition(".")
    return getattr(module.get_submodule(parent), name)


def _given(part: nn.Module) -> tuple[str, ...]:
    tables = (part._parameters, part._buffers)
    return tuple(sorted(n for t in tables for n, value in t.items() if value is not None))


def _mode(training: bool) -> str:
    return "training" if training else "evaluation"


def _where(path: str, part: nn.Module) -> str:
    name = type(part).__name__
    return f"{path} ({name})" if path else name
