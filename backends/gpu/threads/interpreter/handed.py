"""Communication between the blocks of a launch through global memory: who wrote each element, and
which other block may read it.

A block may read another block's data if the writer passed a barrier and a fence before it raised a
flag, and the reader awaited the flag and then passed a fence and a barrier. The order in which the
interpreter runs blocks does not matter: missing synchronisation is found even where the data
happens to be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.expressions import Code, Run
from backends.gpu.threads.interpreter.places import Accessor, Tensor
from backends.gpu.threads.interpreter.roles import Turns
from backends.gpu.threads.interpreter.state import Block

_NOBODY = -1


@dataclass(frozen=True, slots=True)
class _Fence:
    """A device-scope fence."""

    barriers: int  # that the block had passed
    threads: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Flag:
    """A flag that has been raised."""

    block: int
    barriers: int  # that the block had passed
    fence: _Fence | None  # the fence before it by the raising thread


@dataclass(slots=True)
class _Known:
    """What one block knows of others by their flags."""

    fence: _Fence | None = None  # the last one
    # With the threads that awaited it
    awaited: dict[int, tuple[_Flag, frozenset[int]]] = field(default_factory=dict)
    fenced: dict[int, _Flag] = field(default_factory=dict)
    seen: dict[int, _Flag] = field(default_factory=dict)


@dataclass(slots=True)
class _Written:
    """Who wrote each element of a tensor, after how many barriers."""

    block: np.ndarray
    barriers: np.ndarray


class Handed:
    """The communication between the blocks of one run of a launch."""

    def __init__(self) -> None:
        self.written: dict[str, _Written] = {}
        self.flags: dict[tuple[str, int], _Flag] = {}
        self.known: dict[int, _Known] = {}

    def begin(self, stored: Iterable[Tensor]) -> None:
        """Resets the state for a new launch. stored: tensors that it writes."""
        for held in (self.written, self.flags, self.known):
            held.clear()
        for tensor in stored:
            size = tensor.data.size
            blocks, barriers = np.full(size, _NOBODY, np.int32), np.zeros(size, np.int32)
            self.written[tensor.name] = _Written(blocks, barriers)
            tensor.handed = self

    def of(self, block: Block) -> _Known:
        """What a block knows."""
        return self.known.setdefault(block.number, _Known())

    def write(self, block: Block, tensor: Tensor, at: np.ndarray) -> None:
        """Records elements that a block writes. Raises ThreadFault where another block wrote them."""
        held = self.written[tensor.name]
        others = (held.block[at] != _NOBODY) & (held.block[at] != block.number)
        if others.any():
            where, other = int(at[others][0]), int(held.block[at][others][0])
            raise block.fault(
                faults.OVERLAP,
                f"element {where} of `{tensor.name}` is written by block {other} too",
                "give each block elements of its own",
            )
        held.block[at], held.barriers[at] = block.number, block.barriers

    def read(self, block: Block, tensor: Tensor, at: np.ndarray) -> None:
        """Raises ThreadFault where a block may not read elements that the launch writes."""
        held = self.written[tensor.name]
        own = held.block[at]
        for other in np.unique(own[own != block.number]):
            if other == _NOBODY:
                what = f"no block has written element {int(at[own == other][0])} of `{tensor.name}`"
                raise block.fault(
                    faults.FLAG, what, "raise a flag after what it tells of is written"
                )
            last = int(held.barriers[at][own == other].max())
            if wrong := self._lacks(block, int(other), last):
                what = f"`{tensor.name}` is read, which block {other} writes: {wrong[1]}"
                raise block.fault(wrong[0], what, wrong[2])

    def _lacks(self, block: Block, other: int, last: int) -> tuple[str, str, str] | None:
        """The synchronisation that is missing for a block to read what another wrote after `last` barriers."""
        known = self.of(block)
        if other not in known.seen:
            if other in known.fenced:
                what = "this thread may not know yet of the flag that another one awaited"
                return faults.FENCE, what, "have a barrier after the fence"
            if other in known.awaited:
                what = "no fence is between the flag that was awaited and what is read"
                return (
                    faults.FENCE,
                    what,
                    "have a fence after the flag, by the thread that awaits it",
                )
            return faults.FLAG, "its flag was not awaited", "await the flag first"
        flag = known.seen[other]
        if last >= flag.barriers:
            what = "the flag is raised before all threads have written what it tells of"
            return faults.FLAG, what, "have a barrier, then raise the flag"
        if flag.fence is None or last >= flag.fence.barriers:
            what = "no fence is between what is written and the flag"
            return faults.FENCE, what, "have a fence before the flag, by the thread that raises it"
        return None

    # -- what orders it -----------------------------------------------------------------------

    def fence(self, block: Block) -> None:
        """A fence by the active threads."""
        self.of(block).fence = _Fence(block.barriers, _active(block))
        self.acquire(block)

    def acquire(self, block: Block) -> None:
        """The active threads see what was written before the flags that they awaited."""
        known, threads = self.of(block), _active(block)
        for other, (flag, by) in list(known.awaited.items()):
            if by <= threads:
                known.fenced[other] = flag
                del known.awaited[other]

    def barrier(self, block: Block) -> None:
        """A barrier of a block: all threads know what one of them knows."""
        block.barriers += 1
        known = self.of(block)
        known.seen |= known.fenced
        known.fenced.clear()

    def hoist(self, block: Block, key: tuple[str, int]) -> None:
        """Raises a flag. Raises ThreadFault where it is already up."""
        if key in self.flags:
            what = f"flag {key[1]} of `{key[0]}` is raised, which is up"
            raise block.fault(faults.FLAG, what, "raise each flag once")
        fence, threads = self.of(block).fence, _active(block)
        told = fence if fence is not None and threads <= fence.threads else None
        self.flags[key] = _Flag(block.number, block.barriers, told)

    def met(self, block: Block, key: tuple[str, int]) -> bool:
        """Whether a flag is up; if so, the active threads have awaited it."""
        if (flag := self.flags.get(key)) is None:
            return False
        self.of(block).awaited[flag.block] = flag, _active(block)
        return True


def _active(block: Block) -> frozenset[int]:
    active = range(block.threads) if block.active is None else np.flatnonzero(block.active)
    return frozenset(map(int, active))


def raised(block: Block, handed: Handed, turns: Turns, flag: Accessor) -> Run:
    """The closure of raising a flag."""

    def run() -> None:
        handed.hoist(block, _key(block, flag))
        flag.tensor.data[_key(block, flag)[1]], flag.tensor.stored = 1, True
        turns.progress += 1
        turns.offer()

    return run


def awaited(
    block: Block, handed: Handed, turns: Turns, flag: Accessor, count: Code | None = None
) -> Run:
    """The closure of waiting for a flag, during which other blocks run. count: number of flags from this one on."""

    def run() -> None:
        name, at = _key(block, flag)
        number = 1 if count is None else int(block.alike(count.run()))
        for key in ((name, at + n) for n in range(number)):
            _require(block, flag.tensor, key[1], int(key in handed.flags))
            while not handed.met(block, key):
                turns.wait(block)
        if count is not None:
            handed.acquire(block)

    return run


def _key(block: Block, flag: Accessor) -> tuple[str, int]:
    """The single flag at a place."""
    indices, _ = flag.find()
    return flag.tensor.name, int(block.alike(indices))


def _require(block: Block, tensor: Tensor, at: int, wanted: int) -> None:
    """Raises ThreadFault where a number in memory is not what blocks made of an initial 0."""
    if tensor.data[at] != wanted:
        what = f"element {at} of `{tensor.name}` is {tensor.data[at]}, and was not cleared"
        raise block.fault(faults.UNINITIALISED, what, "fill it with 0 before the launch")


def numbered(counter: Accessor, count: int) -> Iterator[int]:
    """The numbers that an atomic counter in memory gives to blocks."""
    _, at = _key(counter.block, counter)
    _require(counter.block, counter.tensor, at, 0)
    for number in range(count):
        counter.tensor.data[at] += 1
        yield number
