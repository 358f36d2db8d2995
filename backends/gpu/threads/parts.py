"""Parts of a tile along one axis: the registers that hold a range of consecutive positions."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from backends.backend import BackendError
from backends.gpu.layout.layout import Layout
from backends.gpu.threads.thread import Axis
from ir.spec import Number


def part_of(axis: Axis, count: int) -> tuple[Axis, int]:
    """The axis of a part of so many positions, and its registers per thread. Raises BackendError
    where the part is not in consecutive registers of all threads."""
    width = int(axis.width.value) if isinstance(axis.width, Number) else 0
    if not width or count >= width or width % count:
        what = f"{width} columns" if width else "as many columns as its launch says"
        raise BackendError("emit", f"a tile with {what} is not stored {count} at a time")
    beyond = max(axis.thread(n) for n in range(axis.thread.size))
    if count % axis.span == 0:
        return replace(axis, width=Number(count)), axis.register.size * count // axis.span
    modes, first = [], 1  # of registers below those that count the parts
    for extent, stride in axis.register.flat:
        own = min(extent, max(1, count // stride)) if stride else extent
        modes.append((own, stride))
        if own < extent:
            break
    register = Layout(tuple(e for e, _ in modes), tuple(s for _, s in modes))
    first = prod(e for e, _ in modes)
    places = [axis.register(r) for r in range(axis.register.size)]
    whole = width == axis.span and len(places) * count == first * width
    inside = beyond + max(places[:first]) < count
    alike = all(places[r] == places[r % first] + r // first * count for r in range(len(places)))
    if not (whole and inside and alike):
        raise BackendError(
            "emit",
            f"threads do not hold {count} columns of {width} in registers that follow each other: warps "
            "share the columns, or the instruction does",
        )
    return replace(axis, register=register, span=count, width=Number(count)), first
