"""Evaluates expressions over spans of their indices, to arrays with named axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from ir.errors import KernelError
from ir.print import expression_text
from ir.reference.labelled import Labelled, apply, counted, union
from ir.reference.rounding import whole
from ir.spec import (
    FLOATS,
    Apply,
    Bucketize,
    Cast,
    Expr,
    Index,
    Number,
    Read,
    Size,
)


@dataclass(frozen=True, slots=True)
class Span:
    """The values that an index takes along an axis."""

    axis: str
    values: np.ndarray
    piece: slice | None = None  # the values as a slice, if they are contiguous

    @staticmethod
    def between(index: str, low: int, high: int) -> Span:
        """The index from `low` to `high - 1`, along an axis of its own."""
        return Span(index, np.arange(low, high), slice(low, high))

    def halves(self) -> tuple[Span, Span]:
        """The two halves of a contiguous span."""
        piece = cast(slice, self.piece)
        middle = (piece.start + piece.stop) // 2
        return (
            Span.between(self.axis, piece.start, middle),
            Span.between(self.axis, middle, piece.stop),
        )


Spans = Mapping[str, Span]


@dataclass(frozen=True, slots=True)
class Values:
    """Evaluates expressions."""

    tensors: dict[str, np.ndarray]  # arrays computed so far
    scalars: Mapping[str, float | int]  # sizes and attributes
    real: type[np.floating]  # the float type of the computation

    def of(self, expr: Expr, spans: Spans) -> Labelled:
        """The values of an expression for all values of its indices."""
        match expr:
            case Number(value):
                return self._scalar(value)
            case Size(name):
                return self._scalar(self.scalars[name])
            case Index(name):
                return Labelled((spans[name].axis,), spans[name].values)
            case Read():
                return self._read(expr, spans)
            case Cast(dtype, value):
                return self._cast(dtype, self.of(value, spans))
            case Bucketize(value, borders):
                found = self.of(value, spans)
                places = np.searchsorted(self.tensors[borders], found.data, side="left")
                return Labelled(found.axes, np.asarray(places, dtype=np.int64))
            case Apply(function, args):
                return apply(function, [self.of(a, spans) for a in args], self.real)
        raise AssertionError(f"{type(expr).__name__} has no pointwise value")

    def _scalar(self, value: float | int | bool) -> Labelled:
        kind = {bool: np.bool_, int: np.int64}.get(type(value), self.real)
        return Labelled((), np.asarray(value, dtype=kind))

    def _cast(self, dtype: str, value: Labelled) -> Labelled:
        if dtype in FLOATS:
            return Labelled(value.axes, value.data.astype(self.real, copy=False))
        data = value.data.astype(np.bool_) if dtype == "b8" else whole(value.data, dtype)
        return Labelled(value.axes, data)

    def _read(self, expr: Read, spans: Spans) -> Labelled:
        array = self.tensors[expr.tensor]
        pieces = [spans[e.name] for e in expr.at if isinstance(e, Index)]
        axes = tuple(p.axis for p in pieces)
        entire = all(p.piece is not None for p in pieces) and expr.pad is None
        if entire and len(pieces) == array.ndim and len(set(axes)) == len(axes):
            return Labelled(axes, array[tuple(p.piece for p in pieces)])
        at = [self.of(e, spans) for e in expr.at]
        axes = union(at)
        places = [counted(p.along(axes)) for p in at]
        outside = [(p < 0) | (p >= n) for p, n in zip(places, array.shape, strict=True)]
        if expr.pad is None:
            _refuse(expr, places, outside, array)
            return Labelled(axes, array[tuple(places)])
        places = [p.clip(0, n - 1) for p, n in zip(places, array.shape, strict=True)]
        data = array[tuple(places)]
        for mask in outside:
            if mask.any():
                data = np.where(mask, data.dtype.type(expr.pad), data)
        return Labelled(axes, data)


def _refuse(
    expr: Read, places: list[np.ndarray], outside: list[np.ndarray], array: np.ndarray
) -> None:
    """Raises KernelError if a position is out of bounds."""
    for k, (place, mask) in enumerate(zip(places, outside, strict=True)):
        if mask.any():
            raise KernelError(
                f"`{expression_text(expr)}` reads position {place[mask][0]} of a dimension of "
                f"{array.shape[k]}",
                place=expr.place,
                allowed=f"0 to {array.shape[k] - 1}",
                hint=f"say what a position outside reads as: `pad({expr.tensor}[...], 0.0)`",
            )
