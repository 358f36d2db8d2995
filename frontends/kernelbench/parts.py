"""What a solution is made of: what is known of a problem's call without kernels, kernels, constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ir.nest.nest import Parameter
from ir.network import Network


@dataclass(frozen=True, slots=True)
class KernelText:
    """A kernel as text."""

    source: str  # defines `launch`, a function of all global tensors: inputs, workspace, outputs
    workspace: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Constants:
    """What is computed from a module's parameters alone, once and when these have changed."""

    network: Network  # its outputs are inputs of the calls' network
    names: tuple[str, ...]  # of these inputs, in the order of the outputs
    kernels: Mapping[str, KernelText]  # its kernels, by the spec's name


@dataclass(frozen=True, slots=True)
class HeldTensor:
    """An input of the network that is a parameter or a buffer of the module."""

    name: str
    path: str
    dtype: str  # PyTorch's
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LeftTensor:
    """What a call leaves behind in a tensor."""

    output: str | None  # of the spec; None where it is a result too, or not known to be all of it
    held: str | None  # the input of the network that it replaces, where it is one
    line: str  # copies it there


@dataclass(frozen=True, slots=True)
class ProblemCall:
    """A call of a problem's model, as code but for the kernels."""

    given: tuple[str, ...]  # lines that check and name the arguments
    arguments: tuple[str, ...]  # the network's inputs among these
    held: tuple[HeldTensor, ...]
    numbers: tuple[
        tuple[str, str], ...
    ]  # inputs that are fixed, with code that makes them on `device`
    seed: str | None  # the input that random numbers are drawn from
    outputs: tuple[tuple[str, str], ...]  # of the spec in order, name and PyTorch's dtype
    after: tuple[str, ...]  # lines below those that name `out_NAME` for each output
    left: tuple[LeftTensor, ...]
    result: str  # what is returned

    @property
    def first(self) -> str:
        """The argument whose device counts; empty where there is none."""
        return self.arguments[0] if self.arguments else ""
