"""Distributions: layouts of axes over the bits of the thread index.

A block has a power of two of threads. Each bit of the thread index belongs to at most one axis of a
tile, so an axis is described by the stride of each bit along it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from backends.gpu.layout.algebra import coalesce
from backends.gpu.layout.layout import Layout
from backends.gpu.threads.thread import Axis
from ir.spec import Expr


@dataclass(frozen=True, slots=True)
class Spread:
    """The strides of an axis, without its index and width."""

    bits: tuple[tuple[int, int], ...]  # of thread bits, (bit, stride); other bits have stride 0
    modes: tuple[tuple[int, int], ...]  # of registers, (extent, stride), fastest first

    @property
    def span(self) -> int:
        """The positions that one repetition covers."""
        last = sum(stride for _, stride in self.bits)
        return 1 + last + sum((extent - 1) * stride for extent, stride in self.modes)

    def registers(self, width: int) -> int:
        """The registers of each thread along an axis."""
        return prod(extent for extent, _ in self.modes) * -(-width // self.span)

    def axis(self, index: str, width: Expr, threads: int) -> Axis:
        """The axis of an index."""
        return Axis(index, thread_layout(self.bits, threads), layout(self.modes), self.span, width)

    def thread_bits(self) -> frozenset[int]:
        """The bits of the thread index that distinguish positions."""
        return frozenset(bit for bit, _ in self.bits)


def spread(bits: Sequence[int], vector: int) -> Spread:
    """An axis over some bits of the thread index, with a run of registers in each thread."""
    strides = tuple((bit, vector << place) for place, bit in enumerate(bits))
    return Spread(strides, ((vector, 1),) if vector > 1 else ())


def replicated() -> Spread:
    """An axis of which every thread holds all positions."""
    return Spread((), ())


def layout(modes: Sequence[tuple[int, int]]) -> Layout:
    """A layout of modes, coalesced."""
    if not modes:
        return Layout(1, 0)
    return coalesce(Layout(tuple(e for e, _ in modes), tuple(s for _, s in modes)))


def thread_layout(bits: Sequence[tuple[int, int]], threads: int) -> Layout:
    """The layout of the thread index; bits that are not named have stride 0."""
    strides = dict(bits)
    return layout([(2, strides.get(b, 0)) for b in range(threads.bit_length() - 1)])


def bits_of(axis: Axis) -> frozenset[int]:
    """The bits of the thread index that distinguish positions of an axis."""
    found, bit = set(), 0
    for extent, stride in axis.thread.flat:
        count = extent.bit_length() - 1
        found |= set(range(bit, bit + count)) if stride else set()
        bit += count
    return frozenset(found)


def parts_of(warps: Sequence[int], width: Expr, threads: int) -> tuple[Axis, Axis]:
    """The axis over warps that these bits distinguish, twice: with each warp's own position, and
    with all positions in every thread."""
    own = Spread(tuple((bit, 1 << place) for place, bit in enumerate(warps)), ())
    every = Spread((), ((1 << len(warps), 1),))
    return own.axis("part", width, threads), every.axis("part", width, threads)


def split(whole: Spread, widths: Mapping[str, int]) -> dict[str, Spread]:
    """Splits an axis into several, the last one fastest.

    widths: powers of two, except that the first is arbitrary, as it takes the remaining positions.
    """
    names = list(widths)
    ends, below = {}, 1
    for name in reversed(names[1:]):
        ends[name] = (below, below * widths[name])
        below *= widths[name]
    ends[names[0]] = (below, 1 << 62)
    found = {}
    for name in names:
        low, high = ends[name]
        bits = tuple((b, s // low) for b, s in whole.bits if low <= s < high)
        modes = tuple((e, s // low) for e, s in binary(whole.modes) if low <= s < high)
        found[name] = Spread(bits, modes)
    return found


def binary(modes: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Modes with extents of 2; extents that are no power of two remain."""
    found = []
    for extent, stride in modes:
        while extent > 1 and extent % 2 == 0:
            found.append((2, stride))
            extent, stride = extent // 2, stride * 2
        if extent > 1:
            found.append((extent, stride))
    return tuple(found)


def ordered(axis: Axis) -> bool:
    """Whether positions increase with the register within a repetition, then with the thread."""
    strides = [s for _, s in (*axis.register.flat, *axis.thread.flat) if s]
    return all(a < b for a, b in pairwise(strides))
