"""What roles of a thread block share: signals between them, and tensors as the DMA engine is told of
them."""

from __future__ import annotations

from dataclasses import dataclass

from backends.gpu.tile import Name
from ir.spec import Expr

CONSUMER = Name("consumer")  # the number of a thread's group, where groups of consumers take turns


@dataclass(frozen=True, slots=True)
class Signal:
    """Barriers in shared memory (mbarriers), one for each stage, that threads and bytes arrive at."""

    name: Name  # of sort "full", "empty" or "turn"
    stages: int
    arrivals: Expr  # of threads, that complete a phase
    tiles: tuple[Name, ...]  # whose stages it guards, or which it hands on as a whole


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A global tensor as the DMA engine (TMA) is told of it."""

    name: Name  # of sort "map"
    tensor: str
    dtype: str
    sizes: tuple[Expr, ...]  # elements along each dimension, row-major
    box: tuple[Expr, ...]  # elements of what moves at once
    steps: tuple[int, ...]  # how far apart they are along each dimension
    swizzle: int  # bytes of a row of the box whose 16-byte parts are exchanged; 0: none
    described: Name  # the constant that tells whether the engine takes it
