"""Signals (mbarriers) between the roles of a thread block, and tensor maps for the TMA."""

from __future__ import annotations

from dataclasses import dataclass

from backends.gpu.tile import Name
from ir.spec import Expr

CONSUMER = Name("consumer")  # the number of a thread's group, with ping-pong


@dataclass(frozen=True, slots=True)
class Signal:
    """An array of mbarriers in shared memory, one for each stage, at which threads and bytes arrive."""

    name: Name  # of sort "full", "empty" or "turn"
    stages: int
    arrivals: Expr  # of threads, that complete a phase
    tiles: tuple[Name, ...]  # tiles whose stages it guards, or which it passes on as a whole


@dataclass(frozen=True, slots=True)
class TensorMap:
    """The tensor map of a global tensor, for the TMA."""

    name: Name  # of sort "map"
    tensor: str
    dtype: str
    sizes: tuple[Expr, ...]  # elements along each dimension, row-major
    box: tuple[Expr, ...]  # elements of one box
    steps: tuple[int, ...]  # element strides of the box along each dimension
    swizzle: int  # bytes of a row of the box whose 16-byte parts are permuted; 0: none
    described: Name  # the constant that tells whether the TMA takes it
