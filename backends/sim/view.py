"""The view of a nest that the template formats: commands and buffers, nothing to decide."""

from __future__ import annotations

from typing import Any

from backends.shared.view import kernel_view
from backends.sim import spelling
from backends.sim.commands import Commands
from ir.nest.nest import Launch, Load, LoopNest


def view(nest: LoopNest) -> dict[str, Any]:
    """The values of the template `kernel.cc.j2`."""
    return kernel_view(nest, spelling.NAMES, _launch)


def _launch(launch: Launch) -> dict[str, Any]:
    commands = Commands(launch)
    once = commands.block(launch.once, once=True)
    body = commands.block(launch.body)
    step = {launch.repeat.index} if launch.repeat else set()
    whole = frozenset(i for i, _ in launch.whole) | step
    grid = frozenset(g.index for g in launch.grid)
    return {
        "axes": commands.axes(),
        "shared": sorted(
            {s.shared for s in launch.statements() if isinstance(s, Load) and s.shared}
        ),
        "storage": commands.storage(),
        "once_boxes": commands.boxes((*once, *body), whole, needing=frozenset()),
        "once": once,
        "boxes": commands.boxes(body, whole | grid, needing=grid) if grid else (),
        "body": body,
    }
