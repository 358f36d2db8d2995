"""All tensors of a launch in one device buffer, separated by fences of NaN bits: an out-of-bounds read shows
in the results, an out-of-bounds write in a fence.

Processes that share a device delay each other at each host synchronisation, so a run has few. The inputs are
copied to the device at once, and the outputs are copied back at once. After the launch, inputs and fences are
verified on the device against another copy of the inputs. Only where they differ is everything else copied
back to name the tensor. Inputs that formulas define are generated on the device each time, also for the
comparison; outputs then stay on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from backends.backend import Arrays
from backends.fences import require_untouched
from backends.gpu.device.formulas import differs, fill
from backends.gpu.device.nodes import DEVICE
from backends.gpu.device.tensors import DTYPES, poison, same_bits, shape, viewed
from backends.parameters import parameters
from ir.nest.nest import LoopNest, Parameter
from ir.reference.formulas import Formulas
from ir.sizes import bind
from ir.workload import Sizes

FENCE = 4096  # bytes before and after each tensor; tensors are padded to multiples of it
BITS = 0xFF  # every byte of a fence: NaN in all float formats
PART = 1 << 28  # bytes of inputs that are compared at a time
PINNED = 1 << 28  # bytes of the largest buffer on the host that is pinned
KEPT_BYTES = 1 << 30  # of inputs that each process keeps
_ORDER = ("input", "output", "workspace")  # in a buffer


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a tensor in a buffer, in bytes."""

    start: int
    bytes: int
    dims: tuple[int, ...]
    parameter: Parameter

    @property
    def end(self) -> int:
        """The end of its padded space, where a fence begins."""
        return self.start + -(-self.bytes // FENCE) * FENCE

    def of(self, buffer: torch.Tensor, since: int = 0) -> torch.Tensor:
        """The tensor in a buffer. since: the offset of `buffer` in the whole buffer."""
        part = buffer[self.start - since :][: self.bytes]
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
        """Whether the tensor has the same bits as another."""
        return same_bits(self.tensor, given)


class Arena:
    """The positions of a launch's tensors, and its inputs."""

    def __init__(self, nest: LoopNest, sizes: Sizes, inputs: Arrays):
        self._names = [p.name for p in parameters(nest)]
        self.places: dict[str, _Place] = {}
        # End of the last tensor of each role, with its fence
        self._ends = dict.fromkeys(_ORDER, FENCE)
        bound, at = bind(nest.spec, sizes), FENCE
        for role in _ORDER:
            for parameter in (p for p in parameters(nest) if p.role == role):
                dims = shape(parameter, bound)
                size = torch.empty(dims, dtype=DTYPES[parameter.dtype], device="meta").nbytes
                place = _Place(at, size, dims, parameter)
                self.places[parameter.name], at = place, place.end + 2 * FENCE
            self._ends[role] = at - FENCE
        self._given: _Given
        if isinstance(inputs, Formulas):
            self._given = _Made(self._of("input"), self._ends["input"], inputs)
        else:
            image = _IMAGES.get(self._of("input"), self._ends["input"], inputs)
            self._given = _Sent(self._of("input"), image)

    def placed(self) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """A new buffer on the device, and its tensors in launch order: the given inputs, and poisoned memory
        for the rest."""
        buffer = torch.empty((self._ends["workspace"],), dtype=torch.uint8, device=DEVICE)
        inputs = self._ends["input"]
        self._given.fill(buffer[:inputs])
        buffer[inputs:].fill_(BITS)
        tensors = [self.places[name].of(buffer) for name in self._names]
        for name, tensor in zip(self._names, tensors, strict=True):
            if self.places[name].parameter.role != "input":
                poison(tensor)
        return buffer, tensors

    def taken(self, buffer: torch.Tensor) -> Taken:
        """What a launch left in a buffer; no kernel may still run."""
        behind = self._ends["output"]
        if self._untouched(buffer):
            start = self._ends["input"]
            known = buffer[start:behind]
            return Taken(self, start, known.clone() if self._given.stays else _home(known))
        ends = [end for place in self._of("workspace") for end in _ends(place, buffer)]
        fences = torch.cat(ends).cpu() if ends else torch.empty(0, dtype=torch.uint8)
        return Taken(self, 0, buffer[:behind].cpu(), fences)

    def _untouched(self, buffer: torch.Tensor) -> bool:
        """Whether the inputs and all fences have their original bits."""
        if not self._given.lies_in(buffer[: self._ends["input"]]):
            return False
        written = (*self._of("output"), *self._of("workspace"))
        ends = [end for place in written for end in _ends(place, buffer)]
        return not ends or bool((torch.cat(ends) == BITS).all())

    def _of(self, role: str) -> list[_Place]:
        return [place for place in self.places.values() if place.parameter.role == role]

    def given(self) -> dict[str, torch.Tensor]:
        """The inputs, on the host."""
        return self._given.tensors()

    def fenced(self, known: torch.Tensor, fences: torch.Tensor) -> dict[str, _Fenced]:
        """Each tensor with its fences. known: the first part of a buffer. fences: of the workspace."""
        found, left = {}, fences
        for name, place in self.places.items():
            if place.parameter.role == "workspace":
                ends, left = (left[:FENCE], left[FENCE : 2 * FENCE]), left[2 * FENCE :]
                found[name] = _Fenced(left, ends)
            else:
                found[name] = _Fenced(place.of(known), _ends(place, known))
        return found


class _Given(Protocol):
    """The inputs of a launch. stays: whether its outputs stay on the device."""

    stays: bool

    def fill(self, part: torch.Tensor) -> None:
        """Writes the inputs and their fences to their part of a buffer."""

    def lies_in(self, part: torch.Tensor) -> bool:
        """Whether such a part still has the same bits."""

    def tensors(self) -> dict[str, torch.Tensor]:
        """The inputs, on the host."""


class _Sent:
    """Inputs that the host holds in the layout of a buffer."""

    stays = False

    def __init__(self, places: Sequence[_Place], image: torch.Tensor):
        self._places, self._image = places, image

    def fill(self, part: torch.Tensor) -> None:
        part.copy_(self._image)

    def lies_in(self, part: torch.Tensor) -> bool:
        for at in range(0, len(self._image), PART):
            sent = self._image[at : at + PART].to(part.device)
            if not torch.equal(*(t.view(torch.int64) for t in (part[at : at + len(sent)], sent))):
                return False
        return True

    def tensors(self) -> dict[str, torch.Tensor]:
        return {place.parameter.name: place.of(self._image) for place in self._places}


class _Made:
    """Inputs that formulas define."""

    stays = True

    def __init__(self, places: Sequence[_Place], end: int, inputs: Formulas):
        self._places, self._end, self._inputs = places, end, inputs

    def fill(self, part: torch.Tensor) -> None:
        part.fill_(BITS)
        for place in self._places:
            formula = self._inputs.formulas.get(place.parameter.name)
            if formula is None:
                place.of(part).copy_(self._drawn(place))
            else:
                fill(place.of(part), formula)

    def lies_in(self, part: torch.Tensor) -> bool:
        found, at = [], 0
        for place in self._places:
            tensor = place.of(part)
            formula = self._inputs.formulas.get(place.parameter.name)
            if formula is None:
                given = self._drawn(place).to(part.device, tensor.dtype)
                found.append(torch.tensor(not same_bits(tensor, given), device=part.device))
            else:
                found.append(differs(tensor, formula))
            found.append((part[at : place.start] != BITS).any())
            at = place.start + place.bytes
        found.append((part[at:] != BITS).any())
        return not torch.stack(found).any()

    def tensors(self) -> dict[str, torch.Tensor]:
        return {
            p.parameter.name: self._drawn(p).to(DTYPES[p.parameter.dtype]) for p in self._places
        }

    def _drawn(self, place: _Place) -> torch.Tensor:
        return viewed(self._inputs[place.parameter.name], place.parameter.dtype)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a launch left, copied to the host unless formulas define the inputs."""

    arena: Arena
    start: int  # offset of `known` in the buffer
    known: torch.Tensor  # up to the end of the outputs
    # The workspace's fences, if any input or fence has changed; `known` then starts at the start of
    # the buffer
    fences: torch.Tensor | None = None

    def outputs(self) -> dict[str, torch.Tensor]:
        """The outputs. Raises BackendError("check") where the kernel wrote outside of a tensor or to an input."""
        if self.fences is not None:
            fenced = self.arena.fenced(self.known, self.fences)
            require_untouched(fenced, self.arena.given().items())
        places = self.arena.places.values()
        written = [place for place in places if place.parameter.role == "output"]
        return {p.parameter.name: p.of(self.known, self.start) for p in written}


class Images:
    """Host images of inputs in the layout of a buffer. Images of read-only arrays are cached, up to `most`
    bytes, as a check has the same inputs for each candidate. They belong to one kernel at one set of sizes.
    """

    def __init__(self, most: int):
        self.most, self.bytes = most, 0
        self._places: list[_Place] = []  # of the cached images
        # With the arrays, so that their memory is not reused while they are cached
        self._kept: dict[tuple, tuple[Arrays, torch.Tensor]] = {}

    def get(self, places: list[_Place], end: int, inputs: Arrays) -> torch.Tensor:
        """The first bytes of a buffer, up to `end`; read-only."""
        arrays = {p.parameter.name: inputs[p.parameter.name] for p in places}
        if any(array.flags.writeable for array in arrays.values()):
            return _image(places, end, arrays)
        if places != self._places:
            self._places, self._kept, self.bytes = places, {}, 0
        key = tuple((a.ctypes.data, a.shape, a.strides, a.dtype.str) for a in arrays.values())
        if key not in self._kept:
            made = _image(places, end, arrays)
            # Checks cycle through the same inputs: eviction would always remove the next one.
            if self.bytes + made.nbytes > self.most:
                return made
            self._kept[key] = arrays, made
            self.bytes += made.nbytes
        return self._kept[key][1]


_IMAGES = Images(KEPT_BYTES)


def _image(places: list[_Place], end: int, arrays: Arrays) -> torch.Tensor:
    image = _empty(end).fill_(BITS)
    for place in places:
        place.of(image).copy_(viewed(arrays[place.parameter.name], place.parameter.dtype))
    return image


def _home(part: torch.Tensor) -> torch.Tensor:
    """A copy on the host."""
    return _empty(len(part)).copy_(part)


def _empty(size: int) -> torch.Tensor:
    """Bytes on the host, pinned where the device copies them itself. Pinned memory is reused, whereas the
    system has to clear new memory first."""
    pinned = torch.cuda.is_initialized() and size <= PINNED
    return torch.empty(size, dtype=torch.uint8, pin_memory=pinned)


def _ends(place: _Place, buffer: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The fences around a tensor."""
    return buffer[place.start - FENCE : place.start], buffer[place.end : place.end + FENCE]
