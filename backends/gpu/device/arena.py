"""All tensors of a launch in one buffer on the device, with fences of NaN bits between them: an
out-of-bounds read shows in the results, an out-of-bounds write in a fence.

Processes that share a device wait for each other at each step that the host waits for. So a run has
two: the inputs go there in one copy, and what is compared comes back in another. The host does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from backends.fences import require_untouched
from backends.gpu.device.nodes import DEVICE
from backends.gpu.device.tensors import DTYPES, poison, same_bits, shape
from backends.parameters import parameters
from ir.nest.nest import LoopNest, Parameter
from ir.sizes import bind
from ir.workload import Sizes

FENCE = 4096  # bytes before and after each tensor, of which each has a multiple
BITS = 0xFF  # every byte of a fence: NaN in all float formats
_ORDER = ("input", "output", "workspace")  # in a buffer


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a tensor lies in a buffer, in bytes."""

    start: int
    bytes: int
    dims: tuple[int, ...]
    parameter: Parameter

    @property
    def end(self) -> int:
        """Of its room, where a fence begins."""
        return self.start + -(-self.bytes // FENCE) * FENCE

    def of(self, buffer: torch.Tensor) -> torch.Tensor:
        """The tensor in a buffer."""
        part = buffer[self.start : self.start + self.bytes]
        return part.view(DTYPES[self.parameter.dtype]).view(self.dims)


@dataclass(frozen=True, slots=True)
class _Fenced:
    """A tensor on the host with the fences around it."""

    tensor: torch.Tensor
    ends: tuple[torch.Tensor, torch.Tensor]

    def whole(self) -> bool:
        """Whether the fences are intact."""
        return all(bool((end == BITS).all()) for end in self.ends)

    def holds(self, given: torch.Tensor) -> bool:
        """Whether the tensor has the bits of another."""
        return same_bits(self.tensor, given)


class Arena:
    """Where the tensors of a launch lie, and what its inputs are.

    given: the inputs, on the host, in the dtypes of the nest.
    """

    def __init__(self, nest: LoopNest, sizes: Sizes, given: Mapping[str, torch.Tensor]):
        self.given = given
        self._names = [p.name for p in parameters(nest)]
        self.places: dict[str, _Place] = {}
        self._ends = dict.fromkeys(_ORDER, FENCE)  # behind the last of each role, with its fence
        bound, at = bind(nest.spec, sizes), FENCE
        for role in _ORDER:
            for parameter in (p for p in parameters(nest) if p.role == role):
                dims = shape(parameter, bound)
                size = torch.empty(dims, dtype=DTYPES[parameter.dtype], device="meta").nbytes
                place = _Place(at, size, dims, parameter)
                self.places[parameter.name], at = place, place.end + 2 * FENCE
            self._ends[role] = at - FENCE
        self._image = torch.full((self._ends["input"],), BITS, dtype=torch.uint8)
        for name, tensor in given.items():
            self.places[name].of(self._image).copy_(tensor)

    def placed(self) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """A new buffer on the device, and its tensors in the order of a launch: inputs as they were
        given, the rest poisoned."""
        buffer = torch.empty((self._ends["workspace"],), dtype=torch.uint8, device=DEVICE)
        inputs = self._ends["input"]
        buffer[:inputs].copy_(self._image)
        buffer[inputs:].fill_(BITS)
        tensors = [self.places[name].of(buffer) for name in self._names]
        for name, tensor in zip(self._names, tensors, strict=True):
            if self.places[name].parameter.role != "input":
                poison(tensor)
        return buffer, tensors

    def taken(self, buffer: torch.Tensor) -> Taken:
        """What a launch left in a buffer: inputs and outputs whole, of the workspace the fences."""
        behind = self._ends["output"]
        ends = [
            end
            for place in self.places.values()
            if place.parameter.role == "workspace"
            for end in (
                buffer[place.start - FENCE : place.start],
                buffer[place.end : place.end + FENCE],
            )
        ]
        fences = torch.cat(ends).cpu() if ends else torch.empty(0, dtype=torch.uint8)
        return Taken(self, buffer[:behind].cpu(), fences)

    def fenced(self, known: torch.Tensor, fences: torch.Tensor) -> dict[str, _Fenced]:
        """Each tensor with its fences. known: the first part of a buffer.  fences: of the workspace."""
        found, left = {}, fences
        for name, place in self.places.items():
            if place.parameter.role == "workspace":
                ends, left = (left[:FENCE], left[FENCE : 2 * FENCE]), left[2 * FENCE :]
                found[name] = _Fenced(left, ends)
            else:
                ends = known[place.start - FENCE : place.start], known[place.end :][:FENCE]
                found[name] = _Fenced(place.of(known), ends)
        return found


@dataclass(frozen=True, slots=True)
class Taken:
    """What a launch left behind, on the host."""

    arena: Arena
    known: torch.Tensor
    fences: torch.Tensor

    def outputs(self) -> dict[str, torch.Tensor]:
        """The outputs; BackendError("check") where the kernel wrote beside a tensor or to an input."""
        fenced = self.arena.fenced(self.known, self.fences)
        require_untouched(fenced, self.arena.given.items())
        roles = {n: place.parameter.role for n, place in self.arena.places.items()}
        return {n: each.tensor for n, each in fenced.items() if roles[n] == "output"}
