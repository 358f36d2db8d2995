"""A program: a network's steps on torch tensors, with one workspace.

Launchers are bound once to the tensors that stay the same in all calls: intermediate tensors, the
workspace of each kernel, and fixed inputs (parameters). Intermediate tensors share bytes if their
lifetimes do not overlap. Results are newly allocated unless `reuse` or `into` is given. Where the
network pauses, the program makes a call from outside between launches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import torch

from backends.program.launcher import Launcher, LaunchFunction
from backends.program.tensors import TORCH, Shape, byte_count, part, require, require_no_gradients
from backends.program.workspace import Allocation, plan
from ir.errors import KernelError
from ir.nest.nest import Parameter
from ir.network import Buffer, Network, Pause, Step
from ir.reference.stepwise import require_calls
from ir.sizes import value
from ir.spec import Spec

Tensors = Mapping[str, torch.Tensor]
OutsideFunction = Callable[
    [list[torch.Tensor]], Sequence[torch.Tensor]
]  # results that share no memory with each other
NOTHING: Tensors = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Open:
    """An argument of a launch that each call sets: its position, the buffer, and its shape there
    (None: the buffer's own shape)."""

    at: int
    buffer: str
    shape: Shape | None


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch with its arguments."""

    launch: LaunchFunction
    arguments: tuple[torch.Tensor | None, ...]  # None for an open argument
    open: tuple[_Open, ...]


@dataclass(frozen=True, slots=True)
class _Wait:
    """A call from outside, at a pause of the network."""

    pause: Pause
    call: OutsideFunction


class Program:
    """A network as a call on tensors.

    launchers: of the network's kernels, by spec.
    place: torch's name of the device.
    fixed: inputs that are the same tensors in all calls; their elements may change.
    reuse: whether all calls write the same result tensors, so that each call overwrites the last
    one's.
    into: tensors that results are written into, by buffer; each call returns the same views of
    them.
    outside: the functions that the network pauses for. They take and return tensors in row-major
    order.
    unread: numbers of outputs that only such functions read, so that they may share memory with an
    input.

    A program has one workspace, so two calls must not run at the same time. KernelError for a fixed
    input that does not fit.
    """

    def __init__(
        self,
        network: Network,
        launchers: Mapping[Spec, Launcher],
        place: str,
        fixed: Tensors = NOTHING,
        reuse: bool = False,
        into: Tensors = NOTHING,
        outside: Sequence[OutsideFunction] = (),
        unread: Collection[int] = (),
    ):
        require_calls(network, len(outside))
        self.unread = frozenset(unread)
        self.network, self.place, self.reuse = network, place, reuse
        self.folder: object = None  # keeps the kernels' files alive as long as this program
        self.launchers = launchers
        self.buffers = {b.name: b for b in network.buffers}
        self.inputs = tuple(b for b in network.inputs if b.name not in fixed)
        self.made = tuple(b for b in network.buffers if b.role == "output" and b.name not in into)
        self.plan = plan(_blocks(network, launchers))
        self.memory = torch.empty(self.plan.bytes, dtype=torch.uint8, device=place)
        self.kept: dict[str, torch.Tensor] = {}
        if reuse:
            self.kept = {b.name: self._empty(b) for b in self.made}
        for name, tensor in into.items():
            require(tensor, name, self.buffers[name].dtype, tuple(tensor.shape), place)
            self.kept[name] = tensor.detach().view(self.buffers[name].shape)
        for b in network.inputs:
            if b.name in fixed:
                require(fixed[b.name], b.name, b.dtype, b.shape, place)
                self.kept[b.name] = fixed[b.name].detach()
        self.views = tuple(
            self.kept[name].view(sizes) if name in into else None for name, sizes in network.outputs
        )
        self.calls = tuple(
            _Wait(step, outside[n]) if isinstance(step, Pause) else self._call(n, step)
            for n, step in network.sequence()
        )

    def __call__(self, inputs: Tensors) -> list[torch.Tensor]:
        """The outputs in order. inputs: all that are not fixed, by name. KernelError if one is
        missing, requires a gradient, or has another dtype, shape, order or device than the network
        is compiled for."""
        require_no_gradients(inputs)
        held: dict[str, torch.Tensor] = {}
        for b in self.inputs:
            if b.name not in inputs:
                raise KernelError(f"`{self.network.name}` is not given its input `{b.name}`")
            require(inputs[b.name], b.name, b.dtype, b.shape, self.place)
            held[b.name] = inputs[b.name].detach()
        if not self.reuse:
            held |= {b.name: self._empty(b) for b in self.made}
        for call in self.calls:
            if isinstance(call, _Wait):
                self._outside(call, held)
                continue
            arguments: list[torch.Tensor | None] = list(call.arguments)
            for one in call.open:
                tensor = held[one.buffer]
                arguments[one.at] = tensor if one.shape is None else tensor.view(one.shape)
            call.launch(*arguments)
        return [
            self._given_back(name, sizes, held, n in self.unread) if view is None else view
            for n, (view, (name, sizes)) in enumerate(
                zip(self.views, self.network.outputs, strict=True)
            )
        ]

    def reused(self) -> list[torch.Tensor]:
        """The results that every call writes; empty if each call allocates its own."""
        return [self.kept[b.name] for b in self.made if self.reuse]

    def _outside(self, wait: _Wait, held: dict[str, torch.Tensor]) -> None:
        """Makes a call from outside, and keeps its results."""
        pause = wait.pause
        found = wait.call(
            [
                (held[name] if name in held else self.kept[name]).view(sizes)
                for name, sizes in pause.inputs
            ]
        )
        for name, tensor in zip(pause.outputs, found, strict=True):
            if name is not None:
                b = self.buffers[name]
                require(tensor, f"{pause.name}: {name}", b.dtype, b.shape, self.place)
                held[name] = tensor.detach()

    def _given_back(self, name: str, sizes: Shape, held: Tensors, unread: bool) -> torch.Tensor:
        """An output. If its buffer is an input and the caller reads it, the output is a copy."""
        found = held[name] if name in held else self.kept[name]
        seen = found.view(sizes)
        return seen.clone() if self.buffers[name].role == "input" and not unread else seen

    def _empty(self, b: Buffer) -> torch.Tensor:
        return torch.empty(b.shape, dtype=TORCH[b.dtype], device=self.place)

    def _call(self, n: int, step: Step) -> Launch:
        launcher = self.launchers[step.spec]
        arguments: list[torch.Tensor | None] = []
        opened: list[_Open] = []
        for at, (p, buffer) in enumerate(step_buffers(n, step, launcher)):
            sizes = _shape(p)
            if buffer in self.kept:
                arguments.append(self.kept[buffer].view(sizes))
            elif buffer in self.plan.offsets:
                arguments.append(part(self.memory, self.plan.offsets[buffer], p.dtype, sizes))
            else:
                arguments.append(None)
                own = sizes == self.buffers[buffer].shape
                opened.append(_Open(at, buffer, None if own else sizes))
        return Launch(launcher.launch, tuple(arguments), tuple(opened))


def step_buffers(n: int, step: Step, launcher: Launcher) -> list[tuple[Parameter, str]]:
    """A step's parameters with their buffers. The name of a kernel's workspace starts with the step's number."""
    names = {
        **{("input", t.name): b for t, b in zip(step.spec.inputs, step.inputs, strict=True)},
        **{("output", t.name): b for t, b in zip(step.spec.outputs, step.outputs, strict=True)},
    }
    return [
        (p, _own(n, p) if p.role == "workspace" else names[p.role, p.name])
        for p in launcher.tensors
    ]


def _own(n: int, p: Parameter) -> str:
    return f"{n}.{p.name}"  # no buffer's name contains a period


def _shape(p: Parameter) -> Shape:
    return tuple(value(e, {}) for e in p.shape)


def _blocks(network: Network, launchers: Mapping[Spec, Launcher]) -> list[Allocation]:
    """The tensors of the workspace: intermediate tensors, and the workspace of each kernel."""
    lives: dict[str, tuple[int, int]] = {}
    made: list[Allocation] = []
    for n, step in enumerate(network.steps):
        for name in (*step.inputs, *step.outputs):
            lives[name] = (lives.get(name, (n, n))[0], n)
        for p in launchers[step.spec].tensors:
            if p.role == "workspace":
                made.append(Allocation(_own(n, p), byte_count(p.dtype, _shape(p)), n, n))
    for b in network.buffers:
        if b.role == "between" and b.name in lives:
            made.append(Allocation(b.name, byte_count(b.dtype, b.shape), *lives[b.name]))
    return made
