"""Footprint of a launch: all of its values and the temporaries of its maps are in local memory."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ir.nest.footprint import temporaries, value_bytes
from ir.nest.nest import Launch
from ir.sizes import value as number
from ir.spec import DTYPES


def local_bytes(launch: Launch, sizes: Mapping[str, int]) -> int:
    """Bytes of local memory of one tile of a launch."""
    extents = {a.name: a.extent for v in launch.values for a in v.axes}
    between = sum(
        DTYPES[t.dtype] * prod([number(extents[a], sizes) for a in t.axes])
        for t in temporaries(launch)
    )
    return between + sum(local_parts(launch, sizes).values())


def local_parts(launch: Launch, sizes: Mapping[str, int]) -> dict[str, int]:
    """Bytes of local memory of each value, without temporaries."""
    return {v.name: value_bytes(v, sizes) for v in launch.values}
