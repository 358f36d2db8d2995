"""The view of a nest: the values of a kernel and its launches for the templates of C-like
languages."""

from __future__ import annotations

from typing import Any

from backends.shared.blocks import Blocks
from backends.shared.names import Names
from backends.shared.texts import number, size
from ir.digest import spec_digest, text_digest
from ir.nest.nest import Launch, LoopNest
from ir.print import equation_text
from ir.spec import Apply


def kernel_view(nest: LoopNest, names: Names, blocks: type[Blocks]) -> dict[str, Any]:
    """The values for a kernel's template. blocks: converts a launch for the language."""
    spec, nest = nest.spec, names.spelled(nest)
    digests = {"spec": spec_digest(spec), "schedule": text_digest(str(nest.schedule))}
    launches = [_launch(nest, launch, names) | blocks(launch).view() for launch in nest.launches]
    return {"nest": nest, "digests": digests, "launches": launches}


def _launch(nest: LoopNest, launch: Launch, names: Names) -> dict[str, Any]:
    tensors = {v.tensor for v in launch.values}
    grid = [
        # `compound`: whether the size needs brackets next to an operator
        {
            "index": g.index,
            "tile": g.tile,
            "size": size(g.size),
            "compound": isinstance(g.size, Apply),
        }
        for g in launch.grid
    ]
    return {
        "name": names.launch(launch.name),
        "title": [equation_text(e) for e in nest.variant.equations if e.target in tensors],
        "sizes": launch.sizes,
        "step": launch.repeat.index if launch.repeat else "",
        "attributes": [(n, number(v)) for n, v in nest.spec.attributes],
        "tensors": [(p.name, p.dtype) for p in launch.parameters],
        "grid": grid,
        "whole": [(i, size(e)) for i, e in launch.whole],
    }
