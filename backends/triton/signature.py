"""The signature of an emitted file: its tensors, and how sizes are read from their shapes."""

from __future__ import annotations

from backends.parameters import parameters
from ir.nest.nest import LoopNest
from ir.sizes import free_sizes
from ir.spec import Apply, Expr, Number, Size

__all__ = ["parameters", "size_sources"]


def size_sources(nest: LoopNest) -> tuple[tuple[str, str, int, int], ...]:
    """For each free size: its name, a tensor and a dimension that determine it, and the number to
    add to that dimension."""
    found = []
    for name in free_sizes(nest.spec):
        options = [
            (name, t.name, dim, shift)
            for t in (*nest.spec.inputs, *nest.spec.outputs)
            for dim, expr in enumerate(t.shape)
            if (shift := _shift(expr, name)) is not None
        ]
        if not options:
            raise ValueError(f"no tensor of `{nest.spec.name}` tells the size {name}")
        found.append(options[0])
    return tuple(found)


def _shift(expr: Expr, name: str) -> int | None:
    """The number to add to a dimension to get a size; None where the dimension does not determine it."""
    match expr:
        case Size(n) if n == name:
            return 0
        case Apply("add", (Size(n), Number(by))) if n == name:
            return -by
        case Apply("sub", (Size(n), Number(by))) if n == name:
            return by
    return None
