"""Layouts: functions from coordinates to indices, given by a shape and strides of nested integers.

The notation and the operations are those of CuTe (CUTLASS 3). Coordinates are colexicographic: the
first mode is fastest. docs/layouts.md explains both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from ir.errors import KernelError

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"


def flatten(value: IntTuple) -> tuple[int, ...]:
    """The integers of a nested tuple, in order."""
    if isinstance(value, tuple):
        return tuple(i for one in value for i in flatten(one))
    return (value,)


def spelled(value: IntTuple) -> str:
    """A nested tuple as text without blanks; a tuple of one has a comma, as in Python."""
    if not isinstance(value, tuple):
        return str(value)
    return f"({','.join(map(spelled, value))}{',' * (len(value) == 1)})"


@dataclass(frozen=True, slots=True)
class Layout:
    """The index is the sum of each coordinate times its stride. Raises KernelError where shape and
    stride are not congruent, an extent is below 1, or a stride is below 0."""

    shape: IntTuple  # extents
    stride: IntTuple  # as nested as the shape

    def __post_init__(self) -> None:
        if not _congruent(self.shape, self.stride):
            raise KernelError(
                f"the shape {self.shape!r} and the stride {self.stride!r} differ in form",
                allowed="integers, or tuples of them that are nested alike",
            )
        if min(flatten(self.shape)) < 1 or min(flatten(self.stride)) < 0:
            raise KernelError(
                f"`{self}` is no layout", allowed="extents of 1 or more, strides of 0 or more"
            )

    def __str__(self) -> str:
        return f"{spelled(self.shape)}:{spelled(self.stride)}"

    def __call__(self, *coordinate: IntTuple) -> int:
        """The index at a coordinate: one linear index, or one coordinate for each mode, which may
        be linear again. Raises KernelError outside of the shape."""
        whole = coordinate[0] if len(coordinate) == 1 else coordinate
        return _index(whole, self.shape, self.stride)

    def __len__(self) -> int:
        """The rank: the number of modes."""
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    def __getitem__(self, mode: int) -> Layout:
        if isinstance(self.shape, tuple) and isinstance(self.stride, tuple):
            return Layout(self.shape[mode], self.stride[mode])
        return (self,)[mode]

    def __iter__(self) -> Iterator[Layout]:
        return (self[i] for i in range(len(self)))

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return prod(flatten(self.shape))

    @property
    def cosize(self) -> int:
        """One more than the greatest index."""
        return 1 + sum((s - 1) * d for s, d in self.flat)

    @property
    def flat(self) -> tuple[tuple[int, int], ...]:
        """Extent and stride of each innermost mode."""
        return tuple(zip(flatten(self.shape), flatten(self.stride)))

    def indices(self) -> list[int]:
        """The indices of all coordinates, in the order of linear indices."""
        found = [0]
        for extent, stride in self.flat:
            found = [i * stride + rest for i in range(extent) for rest in found]
        return found

    def coordinate(self, linear: int) -> IntTuple:
        """The coordinate of a linear index, nested as the shape."""
        _require(linear, self.shape)
        return _coordinate(linear, self.shape)


def column_major(shape: IntTuple) -> Layout:
    """The compact layout whose first mode has stride 1 (CuTe's LayoutLeft)."""
    return Layout(shape, _strides(shape, 1))


def row_major(shape: IntTuple) -> Layout:
    """The compact layout whose last mode has stride 1 (CuTe's LayoutRight)."""
    return Layout(shape, _reversed(_strides(_reversed(shape), 1)))


def concatenate(*layouts: Layout) -> Layout:
    """The layout with these modes (CuTe's make_layout)."""
    return Layout(tuple(a.shape for a in layouts), tuple(a.stride for a in layouts))


def _congruent(shape: object, stride: object) -> bool:
    if isinstance(shape, tuple) and isinstance(stride, tuple):
        return len(shape) == len(stride) > 0 and all(map(_congruent, shape, stride))
    return type(shape) is int and type(stride) is int


def _require(linear: int, shape: IntTuple) -> None:
    size = prod(flatten(shape))
    if not 0 <= linear < size:
        raise KernelError(
            f"the coordinate {linear} is outside of the shape {spelled(shape)}",
            allowed=f"0 to {size - 1}",
        )


def _index(coordinate: IntTuple, shape: IntTuple, stride: IntTuple) -> int:
    if isinstance(coordinate, tuple):
        if not isinstance(shape, tuple) or len(shape) != len(coordinate):
            raise KernelError(
                f"the coordinate {coordinate!r} does not fit the shape {spelled(shape)}",
                allowed="one coordinate for each mode, or a linear index",
            )
        assert isinstance(stride, tuple), "the stride is as nested as the shape"
        return sum(map(_index, coordinate, shape, stride))
    _require(coordinate, shape)
    total = 0
    for extent, distance in zip(flatten(shape), flatten(stride)):
        coordinate, here = divmod(coordinate, extent)
        total += here * distance
    return total


def _coordinate(linear: int, shape: IntTuple) -> IntTuple:
    if not isinstance(shape, tuple):
        return linear
    found = []
    for one in shape:
        linear, here = divmod(linear, prod(flatten(one)))
        found.append(_coordinate(here, one))
    return tuple(found)


def _strides(shape: IntTuple, first: int) -> IntTuple:
    if not isinstance(shape, tuple):
        return first
    found = []
    for one in shape:
        found.append(_strides(one, first))
        first *= prod(flatten(one))
    return tuple(found)


def _reversed(value: IntTuple) -> IntTuple:
    return tuple(map(_reversed, reversed(value))) if isinstance(value, tuple) else value
