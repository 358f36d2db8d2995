"""The view of a nest that the template formats: texts and commands, nothing to decide."""

from __future__ import annotations

from typing import Any

from backends.shared import texts
from backends.sim import spelling
from backends.sim.commands import Commands
from ir.digest import spec_digest, text_digest
from ir.nest.nest import GridAxis, Launch, Load, LoopNest
from ir.print import equation_text
from ir.spec import Apply


def kernel_view(nest: LoopNest) -> dict[str, Any]:
    """The values of the template `kernel.cc.j2`."""
    spec, nest = nest.spec, spelling.spelled(nest)
    return {
        "nest": nest,
        "digests": {
            "spec": spec_digest(spec),
            "schedule": text_digest(str(nest.schedule)),
        },
        "launches": [_launch(nest, launch) for launch in nest.launches],
    }


def _launch(nest: LoopNest, launch: Launch) -> dict[str, Any]:
    commands = Commands(launch)
    once = commands.block(launch.once, once=True)
    body = commands.block(launch.body)
    step = {launch.repeat.index} if launch.repeat else set()
    whole = frozenset(i for i, _ in launch.whole) | step
    grid = frozenset(g.index for g in launch.grid)
    tensors = {v.tensor for v in launch.values}
    equations = [e for e in nest.variant.equations if e.target in tensors]
    return {
        "name": spelling.launch(launch.name),
        "title": [equation_text(e) for e in equations],
        "axes": commands.axes(),
        "sizes": launch.sizes,
        "step": launch.repeat.index if launch.repeat else "",
        "attributes": [(n, texts.number(v)) for n, v in nest.spec.attributes],
        "tensors": [p.name for p in launch.parameters],
        "grid": [_grid(g) for g in launch.grid],
        "shared": sorted(
            {s.shared for s in launch.statements() if isinstance(s, Load) and s.shared}
        ),
        "whole": [(i, texts.size(e)) for i, e in launch.whole],
        "storage": commands.storage(),
        "once_boxes": commands.boxes((*once, *body), whole, needing=frozenset()),
        "once": once,
        "boxes": commands.boxes(body, whole | grid, needing=grid) if grid else (),
        "body": body,
    }


def _grid(g: GridAxis) -> dict[str, Any]:
    size = texts.size(g.size)
    return {
        "index": g.index,
        "tile": g.tile,
        "size": size,
        "size_factor": f"({size})" if isinstance(g.size, Apply) else size,
    }
