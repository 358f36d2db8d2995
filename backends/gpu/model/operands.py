"""Matmul operands that several warps hold in registers, where a tile is too small for a warpgroup instruction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backends.gpu.blocks import sides
from backends.gpu.model.extents import Extents
from ir.nest.nest import Dot, Launch
from ir.nest.steps import tile_axes
from ir.spec import DTYPES

ROWS = 16  # M of an instruction of one warp


def repeated(launch: Launch, ext: Extents, table: Mapping[str, Any], warps: int) -> float:
    """Words of operands in the registers of several warps, beyond one copy. Each warp holds the
    rows and columns that it multiplies, which adjacent warps hold, too. Operands prefetched to
    shared memory are not held."""
    values = {v.name: v for v in launch.values}
    found: dict[str, float] = {}
    for s in (s for s in launch.statements() if isinstance(s, Dot)):
        rows, columns, _ = (ext.elements(side) for side in sides(s, values))
        largest = max(rows, columns)
        full = largest >= table["matrix_rows"] and warps >= table["matrix_warps"]
        if full or values[s.a.value].dtype not in table["matrix_dtypes"]:
            continue
        down = min(warps, max(1, rows // ROWS))
        for tile, times in ((s.a, warps // down), (s.b, down)):
            value = values[tile.value]
            if value.stages <= 1:
                words = ext.elements(tile_axes(tile, values)) * DTYPES[value.dtype] / 4
                found[tile.value] = max(found.get(tile.value, 0.0), (times - 1) * words)
    return sum(found.values())
