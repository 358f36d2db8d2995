"""Registers: the positions that each thread holds along the axes of a fragment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from backends.gpu.layout.layout import Layout
from backends.gpu.threads.constants import constant
from backends.gpu.threads.interpreter.faults import FRAGMENT, LAYOUT, ThreadFault
from backends.gpu.threads.thread import Axis
from backends.gpu.tile import Name


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """One axis of a fragment, at the sizes of a launch."""

    index: str
    thread: Layout
    register: Layout
    span: int
    width: int
    positions: np.ndarray  # [threads, registers]

    @property
    def count(self) -> int:
        """Registers of a thread."""
        return self.positions.shape[1]

    def same(self, other: Held) -> bool:
        """Whether the registers of two axes hold the same positions."""
        return self is other or np.array_equal(self.positions, other.positions)

    def fault(self, threads: int) -> str:
        """What is wrong with the layouts; empty: nothing."""
        if self.thread.size != threads:
            return f"its thread layout `{self.thread}` is not for {threads} threads"
        owned = np.unique(_offsets(_without_copies(self.thread)), return_counts=True)
        places = owned[0][:, None] + self.positions[0, None, :] - self.positions[0, 0]
        values, times = np.unique(places, return_counts=True)
        if owned[1].max() > 1 or times.max() > 1:
            several = owned[0][owned[1] > 1] if owned[1].max() > 1 else values[times > 1]
            return f"position {several[0]} has several owners: `{self.thread}`, `{self.register}`"
        return ""


@lru_cache(maxsize=4096)
def _held(axis: Axis, width: int, threads: int) -> Held:
    registers = _offsets(axis.register)
    repeats = -(-width // axis.span)
    along = (np.arange(repeats)[:, None] * axis.span + registers[None, :]).reshape(-1)
    owners = _offsets(axis.thread)
    owners = owners if owners.size >= threads else np.resize(owners, threads)
    positions = (owners[:threads, None] + along[None, :]).astype(np.int32)
    return Held(axis.index, axis.thread, axis.register, axis.span, width, positions)


def held(axis: Axis, sizes: Mapping[str, float], known: Mapping[Name, int], threads: int) -> Held:
    """An axis at given sizes. known: constants of the launch."""
    return _held(axis, constant(axis.width, sizes, known), threads)


def require_owners(name: str, axes: Sequence[Held], threads: int, launch: str) -> None:
    """Raises ThreadFault where an element of a fragment has no owner, or several that are not copies."""

    def fault(what: str, at: tuple[int, ...] = ()) -> ThreadFault:
        hint = "give each element one thread and one register; copies have a stride of 0"
        return ThreadFault(LAYOUT, f"`{name}`: {what}", hint, launch, None, at)

    for axis in axes:
        if wrong := axis.fault(threads):
            raise fault(f"axis `{axis.index}`: {wrong}")
    if not axes:
        return
    widths = [a.width for a in axes]
    owned = np.zeros(prod(widths), np.bool_)
    place = np.zeros((threads, *[1] * len(axes)), np.int64)
    inside = np.ones((threads, *[1] * len(axes)), np.bool_)
    for n, axis in enumerate(axes):
        shape = [threads, *[1] * len(axes)]
        shape[n + 1] = axis.count
        positions = axis.positions.reshape(shape)
        inside = inside & (positions < axis.width)
        place = place * axis.width + positions
    owned[place[inside]] = True
    if not owned.all():
        at = np.unravel_index(int(np.argmin(owned)), widths)
        where = ", ".join(f"{a.index}={int(p)}" for a, p in zip(axes, at))
        raise fault(f"the element at {where} has no owner")


def require_same(what: str, one: Held, other: Held) -> None:
    """Raises ThreadFault where two axes that meet have different distributions."""
    if one.same(other):
        return
    first, second = one.positions, other.positions
    if first.shape != second.shape:
        found = f"{first.shape[1]} registers a thread meet {second.shape[1]}"
        raise ThreadFault(FRAGMENT, f"{what}: {found}", _CONVERT)
    thread, register = np.argwhere(first != second)[0]
    raise ThreadFault(
        FRAGMENT,
        f"{what}: register {register} holds position {first[thread, register]} of "
        f"`{one.index}` and position {second[thread, register]} of `{other.index}`",
        _CONVERT,
        threads=(int(thread),),
    )


_CONVERT = "distribute both in one way, or convert one through shared memory"


def _offsets(layout: Layout) -> np.ndarray:
    return np.array(layout.indices(), np.int64)


def _without_copies(layout: Layout) -> Layout:
    modes = [(e, s) for e, s in layout.flat if s or e == 1] or [(1, 0)]
    return Layout(tuple(e for e, _ in modes), tuple(s for _, s in modes))
