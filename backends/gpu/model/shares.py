"""The distribution of a launch's tiles over multiprocessors: whole tiles, or equal shares of a
loop's iterations (stream-K) with the partial tiles that blocks then exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

from backends.gpu.model.extents import Extents
from ir.nest.nest import Launch, Loop
from ir.spec import DTYPES


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of tiles; counts are whole numbers where blocks have whole tiles."""

    busiest: float  # tiles of the busiest multiprocessor
    rounds: float  # tiles that one residency slot computes one after another
    at_once: int  # thread blocks
    handed: int = 0  # partial tiles that one block stores and another adds
    bytes: int = 0  # of each partial tile
    most: int = 0  # partial tiles of one tile

    def bytes_of_busiest(self) -> float:
        """Bytes of partial tiles that the blocks of one multiprocessor store and add, on average."""
        return 2 * self.bytes * self.handed / max(1, self.at_once)

    def chain(self, table: Mapping[str, Any]) -> float:
        """Seconds from the end of a tile's own iterations to its complete sum. Partial tiles are
        added one after another."""
        moved = self.bytes / table["cache_bytes_per_cycle"] / table["clock_hz"]
        return self.most * (1e-9 * table["cache_latency_ns"] + moved)


def spread(launch: Launch, ext: Extents, units: int, resident: int) -> Spread:
    """How a launch's tiles are distributed. resident: thread blocks of a multiprocessor at once."""
    places = units * resident
    if launch.stream_k is None:
        at_once = min(ext.programs, places)
        return Spread(ceil(ext.programs / units), ceil(ext.programs / places), at_once)
    (loop,) = (s for s in launch.body if isinstance(s, Loop))
    each = ceil(ext.iterations(loop))
    every = ext.programs * each
    share = ceil(every / (units * launch.resident))
    blocks = ceil(every / share)
    held = launch.value(launch.stream_k.value)
    known = tuple(n for n in held.names if n in ext.tiles)
    return Spread(
        busiest=ceil(blocks / units) * share / each,
        rounds=ceil(blocks / places) * share / each,
        at_once=min(blocks, places),
        handed=sum(end * share % each != 0 for end in range(1, blocks)),
        bytes=DTYPES[held.dtype] * prod(ext.width(n) for n in known),
        most=min(blocks, ceil(each / share)) if share % each else 0,
    )
