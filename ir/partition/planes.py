"""Zero-padded images stored as planes, so that one flat index covers all pixels.

A plane has W + beside positions a row and H + below rows for an image of H x W pixels. A window
that reaches beyond a border reads zeros of its own image or of the previous one. So what a
convolution reads at one filter tap, for consecutive pixels, is contiguous in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ir.contraction import contraction, indices
from ir.partition.channels_last import convolution_parts, window
from ir.partition.flat_pixels import LINE
from ir.partition.rounded_operands import FEW, NARROW, without_taps
from ir.sizes import shape
from ir.spec import Apply, Equation, Expr, Facts, Index, Number, Read


class Image(NamedTuple):
    """The extents of a batch of images."""

    batch: int
    height: int
    width: int


@dataclass(frozen=True, slots=True)
class Padded:
    """Images with `below` rows of zeros after each image, and `beside` zeros after each row."""

    image: Image
    below: int
    beside: int

    @property
    def pitch(self) -> int:
        """Positions from one row to the next."""
        return self.image.width + self.beside

    @property
    def rows(self) -> int:
        """Rows from one image to the next."""
        return self.image.height + self.below

    @property
    def places(self) -> int:
        """Positions of all images."""
        return self.image.batch * self.rows * self.pitch

    @property
    def waste(self) -> float:
        """The ratio of positions to pixels."""
        return self.rows * self.pitch / (self.image.height * self.image.width)

    def is_pixel(self, row: Expr, column: Expr) -> Expr:
        """Whether a position is a pixel, and not a stored zero."""
        inside = [
            part < size
            for part, size, more in (
                (row, self.image.height, self.below),
                (column, self.image.width, self.beside),
            )
            if more
        ]
        return inside[0] if len(inside) == 1 else inside[0] & inside[1]

    def split(self, place: Expr) -> tuple[Expr, Expr, Expr]:
        """The image, the row and the column of a position."""
        row = place // self.pitch
        return place // (self.rows * self.pitch), row % self.rows, place % self.pitch


@dataclass(frozen=True, slots=True)
class SameSize:
    """A convolution whose result has the size of its image, with a rounded channels-last
    operand."""

    e: Equation
    x: Read
    image: Image
    names: tuple[str, str, str, str]  # indices of the batch, the filters, the rows and the columns
    # of rows, columns: (index, dilation), zeros before
    taps: tuple[tuple[tuple[str, int], int], ...]

    @staticmethod
    def of(e: Equation, known: Facts) -> SameSize | None:
        """None for other equations."""
        parts = convolution_parts(e) or without_taps(e)
        if parts is None or e.accumulate or contraction(e) is None:
            return None
        x, w, taps = parts
        if len(x.at) != 4 or len(e.at) != 4 or not all(isinstance(p, Index) for p in e.at):
            return None
        if any(known.tensors[r.tensor].dtype != NARROW for r in (x, w)):
            return None
        batch, *places, channel = x.at
        rest = [i for i in e.indices if i in indices(w) and i not in indices(x)]
        if not isinstance(batch, Index) or not isinstance(channel, Index) or len(rest) != 1:
            return None
        size = shape(known.tensors[x.tensor], {})
        extents = {i: int(known.ranges[i].high.value) for i in (*e.indices, *e.reduced)}  # type: ignore[attr-defined]
        ways = [_way(p, n, taps, extents) for p, n in zip(places, size[1:3], strict=True)]
        if size[3] % LINE or extents[rest[0]] < FEW or None in ways or batch.name not in e.indices:
            return None
        (i, *row), (j, *column) = (way for way in ways if way is not None)
        names = (batch.name, rest[0], i, j)
        if (
            {*names} != {*e.indices}
            or extents[batch.name] != size[0]
            or channel.name not in e.reduced
        ):
            return None
        moved = ((row[0], row[1]), (column[0], column[1]))
        return SameSize(e, x, Image(*size[:3]), names, moved)  # type: ignore[arg-type]

    def reading(self, name: str, place: Index, plane: Padded) -> Read:
        """Its read of an operand with flat pixels."""
        at: Expr = place
        before = 0
        for ((tap, step), zeros), by in zip(self.taps, (plane.pitch, 1), strict=True):
            if tap:
                at = at + (Index(tap) * (step * by) if step * by > 1 else Index(tap))
            before += zeros * by
        if before:
            at = Apply("sub", (at, Number(before)))
        return Read(name, (at, self.x.at[-1]), pad=0.0 if before else None)


def _way(
    position: Expr, extent: int, taps: set[str], extents: Mapping[str, int]
) -> tuple[str, tuple[str, int], int] | None:
    """The output index along a dimension, the tap with its dilation, and the number of zeros before
    the image.

    The tap is ('', 0) if there is none. None if the result is not as long as the image.
    """
    found = window(position, taps)
    if found is None or extents.get(found.out) != extent:
        return None
    reach = found.step * (extents[found.tap] - 1) if found.tap else 0
    if -2 * found.offset != reach:
        return None
    return found.out, (found.tap, found.step), -found.offset
