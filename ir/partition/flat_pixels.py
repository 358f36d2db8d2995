"""Flat pixels: a convolution in TF32 reads the pixels of its image as one index, with the zeros beside it stored.

before: z[b, o, i, j] = sum(pad(x[b, c, i + r - 1, j + s - 1], 0.0) * w[r, s, o, c], c, r, s)     where i, j < 65, x has 64 x 64
after:  operand[b, u, v, c] = tf32(pad(x[b, c, u - 1, v - 1], 0.0))                                  where v < 65
        operand_pixels[b, t, c] = operand[b, t // 65, t % 65, c]
        z[b, o, i, j] = sum(operand_pixels[b, i * 65 + j + r * 65 + s, c] * w[r, s, o, c], c, r, s)

`operand_pixels` shows the memory of `operand`. One zero between two rows is beside both of them, so that rows of the copy are as
long as those of the result. What a tile of pixels reads at one tap is then one piece of memory, which an engine copies as a box;
else each thread finds out where each of its pixels lies, and whether it is outside. On an H200 the convolution of 128 such images of
64 channels with 512 filters took 1141 us as before, and 688 us so.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

from ir.contraction import indices
from ir.partition.channels_last import window
from ir.partition.reshaped import view
from ir.sizes import value as number
from ir.spec import Cast, Equation, Expr, Facts, Index, Number, Read

LINE = 32  # channels of a line of 128 bytes: boxes have whole ones


@dataclass(frozen=True, slots=True)
class _Way:
    """A dimension of an image, and how windows move along it."""

    out: str  # index of the result
    tap: str
    step: int  # from one tap to the next
    before: int  # zeros before the first pixel
    start: int  # of the first window, from there on
    most: int  # the last place that is read, from there on
    pitch: int  # places from the first of a row to the first of the next


@dataclass(frozen=True, slots=True)
class FlatPixels:
    """A convolution whose image can be read so. others: the positions beside pixels and channels."""

    x: Read
    ways: tuple[tuple[int, _Way], ...]  # by dimension of what windows slide over
    others: tuple[Expr, ...]
    channel: Index

    @staticmethod
    def of(
        e: Equation, x: Read, taps: Collection[str], channel: str, known: Facts
    ) -> FlatPixels | None:
        """None where rows of the result are not as long as those with zeros between them, or channels fill no lines."""
        shape = known.tensors[x.tensor].shape
        if number(known.ranges[channel].high, {}) % LINE:
            return None
        ways: list[tuple[int, _Way]] = []
        for d, (position, size) in enumerate(zip(x.at, shape, strict=True)):
            if set(taps) & set(indices(position)):
                way = _way(e, position, number(size, {}), taps, known)
                if way is None:
                    return None
                ways.append((d, way))
        moved = {d for d, _ in ways}
        others = tuple(p for d, p in enumerate(x.at) if d not in moved and p != Index(channel))
        plain = all(isinstance(p, Index) for p in others)
        images = tuple(Index(way.out) for _, way in ways)
        beside = any(e.at[n : n + len(images)] == images for n in range(len(e.at)))
        spaced = all(
            way.pitch >= number(shape[d], {}) + max(way.before, _after(way, number(shape[d], {})))
            for d, way in ways[1:]
        )
        if len(ways) < 2 or not (plain and beside and spaced):
            return None
        return FlatPixels(x, tuple(ways), others, Index(channel))

    @property
    def strides(self) -> tuple[int, ...]:
        """How far apart neighbours along each dimension of the image are."""
        pitches = [way.pitch for _, way in self.ways[1:]]
        return tuple(prod(pitches[n:]) for n in range(len(self.ways)))

    def copies(self, name: str, flat: str, dtype: str, known: Facts) -> tuple[Equation, Equation]:
        """The copy with zeros beside each row and channels last, and what shows its pixels as one index."""
        lengths = {p: number(n, {}) for p, n in zip(self.x.at, self._shape(known), strict=True)}
        ends = sum(way.most * by for (_, way), by in zip(self.ways, self.strides, strict=True))
        rows = ends // self.strides[0] + 1
        pixels = (rows, *(way.pitch for _, way in self.ways[1:]))
        beside = tuple(lengths[p] for p in self.others)
        shape = (*beside, *pixels, lengths[self.channel])
        at = tuple(Index(f"{name}_d{n}") for n in range(len(shape)))
        rest, moved = iter(at), dict(self.ways)
        first = [next(rest) for _ in self.others]
        places = {d: self._place(way, next(rest)) for d, way in self.ways}
        others = iter(first)
        read = tuple(
            places[d] if d in moved else at[-1] if p == self.channel else next(others)
            for d, p in enumerate(self.x.at)
        )
        value = Cast(dtype, Read(self.x.tensor, read, pad=0.0))
        copy = Equation(name, at, value, sizes=tuple(map(Number, shape)))
        own = (*beside, prod(pixels), lengths[self.channel])
        seen = tuple(Index(f"{flat}_d{n}") for n in range(len(own)))
        return copy, view(flat, seen, own, name, shape)

    def read(self, name: str) -> Read:
        """What the convolution reads of the copy."""
        ways = [(way, by) for (_, way), by in zip(self.ways, self.strides, strict=True)]
        moved = [(way.out, by) for way, by in ways] + [(way.tap, way.step * by) for way, by in ways]
        first, *more = [Index(i) * by if by > 1 else Index(i) for i, by in moved]
        start = sum(way.start * by for way, by in ways)
        place: Expr = first
        for part in (*more, *([Number(start)] if start else [])):
            place = place + part
        return Read(name, (*self.others, place, self.channel))

    def _shape(self, known: Facts) -> tuple[Expr, ...]:
        return known.tensors[self.x.tensor].shape

    @staticmethod
    def _place(way: _Way, index: Index) -> Expr:
        """Where along a dimension of the image a pixel of the copy is."""
        return index - way.before if way.before else index


def _way(
    e: Equation, position: Expr, extent: int, taps: Collection[str], known: Facts
) -> _Way | None:
    """How windows move along a dimension of `extent` places; None where they do not move from pixel to pixel."""
    found = window(position, taps)
    if found is None or not found.tap or found.out not in e.indices:
        return None
    out, tap, step, offset = found
    lengths = [number(known.ranges[i].high, {}) for i in (out, tap)]
    before = max(0, -offset)
    start = max(0, offset)
    most = start + lengths[0] - 1 + step * (lengths[1] - 1)
    return _Way(out, tap, step, before, start, most, lengths[0])


def _after(way: _Way, extent: int) -> int:
    """How many places behind the last pixel are read."""
    return way.most - way.before - (extent - 1)
