"""An imported module: one spec, and what its tensors are to the module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import TreeSpec

from frontends.pytorch.open_sizes import OpenSize
from ir.spec import Spec


@dataclass(frozen=True, slots=True)
class ArgumentLeaf:
    """A leaf of the call's arguments."""

    name: str | None  # the spec's input, None where nothing reads it
    # Whether it is one; else the graph holds for this value alone.
    tensor: bool
    value: Any = None


@dataclass(frozen=True, slots=True)
class Held:
    """A parameter or buffer that the spec is given."""

    name: str
    path: str  # its name in the module
    complex: bool = False  # then the spec is given `torch.view_as_real` of it


@dataclass(frozen=True, slots=True)
class ResultLeaf:
    """A leaf of what the call returns."""

    # `output`, the spec's output; `argument`, the place of the argument that is returned as it is;
    # `held`, the path of a parameter or buffer; `constant`, the value itself.
    kind: str
    key: Any


@dataclass(frozen=True, slots=True)
class Mutation:
    """What the call leaves behind in a buffer, or a parameter (path), or in an argument (place)."""

    target: str | int
    result: ResultLeaf


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor in an external call's arguments: an output of the spec."""

    name: str


@dataclass(frozen=True, slots=True)
class External:
    """A call that is left to PyTorch."""

    operator: str  # with its overload, `aten.add.Tensor`
    # With Operands for tensors.
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    # Of each leaf of its result the input of the spec that it is, None where nothing reads it.
    outputs: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Imported:
    """A module's call as equations."""

    # All of them; its outputs are the results, the mutations' values, then the external calls'
    # operands, each once.
    spec: Spec
    aliases: Mapping[str, str]  # tensors that hold another's elements under another shape
    # The leaves of the structures beside them, in order.
    arguments: tuple[ArgumentLeaf, ...]
    argument_structure: TreeSpec
    held: tuple[Held, ...]
    constants: Mapping[str, torch.Tensor]  # inputs of the spec that the module fixes
    seed: str | None  # the input that random numbers are drawn from
    results: tuple[ResultLeaf, ...]
    structure: TreeSpec
    mutations: tuple[Mutation, ...] = ()
    # Outputs of which only what lies below a count (an output too) along a dimension is the result.
    counts: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    sizes: tuple[OpenSize, ...] = ()
    # Calls that are left to PyTorch, in order (`frontends/pytorch/external.py`).
    external: tuple[External, ...] = ()
    training: bool = False  # the mode of the module when it was traced

    @property
    def fixed(self) -> frozenset[str]:
        """The inputs that no call changes: constants, and what the module holds and is not left
        changed."""
        changed = {m.target for m in self.mutations}
        return frozenset({*self.constants, *(h.name for h in self.held if h.path not in changed)})
