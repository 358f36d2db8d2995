"""The view of a nest that the template formats: texts and lines, nothing to decide."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from backends.triton.emit import spelling
from backends.triton.emit.grid import grid_lines, tiles_text
from backends.triton.emit.lines import Block, terms
from backends.triton.emit.statements import Statements
from backends.triton.emit.wide import wide_tensors
from backends.triton.emit.wrapper import size_lines, wrapper_lines
from backends.triton.signature import parameters, size_sources
from ir.digest import spec_digest, text_digest
from ir.machine import Machine
from ir.nest.nest import Launch, Load, Loop, LoopNest, Parameter, Repeat, Store
from ir.print import equation_text

TITLE = 92  # columns of a line that tells an equation
DEFAULT_LANES = 4  # waves, where the schedule says nothing
_WORD = re.compile(r"[A-Za-z_]\w*")


def kernel_view(nest: LoopNest, machine: Machine) -> dict[str, Any]:
    """The values of the template `kernel.py.j2`."""
    spec, nest = nest.spec, spelling.spelled(nest)
    wide = wide_tensors(nest)
    groups = [
        {
            "steps": _steps(repeat),
            "launches": [_launch(nest, one, machine, wide) for one in launches],
        }
        for repeat, launches in nest.groups()
    ]
    launches = [la for group in groups for la in group["launches"]]
    tensors = parameters(nest)
    made = [p for p in tensors if p.role != "input"]
    inputs = [p.name for p in tensors if p.role == "input"]
    asked = [name for name, tensor, *_ in size_sources(nest) if tensor not in inputs]
    text = " ".join(word for la in launches for word in la["words"])
    return {
        "nest": nest,
        "doc": _doc(nest.spec.doc),
        "digests": {
            "spec": spec_digest(spec),
            "schedule": text_digest(str(nest.schedule)),
        },
        "launches": launches,
        "groups": groups,
        "helpers": [h for h in spelling.HELPERS if re.search(rf"\b{h}\(|\b{h}\)", text)],
        "libdevice": "libdevice." in text or any(f"{h}(" in text for h in _BY_LIBRARY),
        "bulk": any(la["descriptors"] for la in launches),
        "inputs": inputs,
        "asked": asked,
        "device": next((f"{t.name}.device" for t in nest.spec.inputs), '"cuda"'),
        "made": [_made(p) for p in made],
        "outputs": [p.name for p in tensors if p.role == "output"],
        "tensors": [p.name for p in tensors],
        "narrow": [p.name for p in tensors if p.name not in wide],
        "wide": [p.name for p in tensors if p.name in wide],
        "launch_sizes": size_lines(nest, _launcher_text(groups)),
        "wrapper": wrapper_lines(nest, " ".join(m["shape"] for m in map(_made, made))),
    }


_BY_LIBRARY = ("float_floor_divide", "float_floor_modulo")  # what libdevice is needed for


def _doc(text: str) -> str:
    """A doc as one line between three quotes, whatever is in it."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def _launch(
    nest: LoopNest, launch: Launch, machine: Machine, wide: frozenset[str]
) -> dict[str, Any]:
    statements = Statements(launch, wide)
    once_header = [
        *statements.factor_lines,
        *(line for index, size in launch.whole for line in statements.positions(index, size)),
        *(statements.positions(launch.repeat.index, launch.repeat.size) if launch.repeat else ()),
    ]
    once = statements.once(launch.once, tuple(once_header))
    header = [line for g in launch.grid for line in statements.positions(g.index, g.size)]
    body = statements.block(launch.body, tuple(header))
    grid = grid_lines(launch)
    words = [w for part in (once, body, grid) for w in _texts(part)]
    counted = tiles_text(launch) if launch.resident else ""
    used = set(_WORD.findall(" ".join([*words, counted])))
    constants = [*statements.blocks.constants(), *statements.steps.items()]
    constants += [(d.flag, d.condition) for d in statements.descriptors]
    constants = [(n, text) for n, text in constants if n in used]
    values = {v.tensor for v in launch.values if not v.loaded}
    added = {s.tensor for s in launch.statements() if isinstance(s, Store) and s.fold}
    return {
        "name": launch.name,
        "title": [
            line
            for e in nest.formulation.equations
            if e.target in (added if e.accumulate else values)
            for line in _title(equation_text(e))
        ],
        "pointers": [(p.name, spelling.pointer(p.name)) for p in launch.parameters],
        "descriptors": statements.descriptors,
        "sizes": [s for s in launch.sizes if s in used],
        "specialized": launch.specialized,
        "step": spelling.origin(launch.repeat.index) if launch.repeat else "",
        "attributes": [
            (n, spelling.number(v))
            for n, v in (*nest.spec.attributes, ("LOG2_E", math.log2(math.e)))
            if n in used
        ],
        "constants": constants,
        "grid": grid,
        "tiles": tiles_text(launch),
        "resident": machine.parallel * launch.resident,
        "once": once,
        "body": body,
        "stages": max([statements.values[s.value].depth for s in _looped(launch.body)], default=1),
        "warps": launch.lanes // machine.wave if launch.lanes else DEFAULT_LANES,
        "words": words,
    }


def _title(equation: str) -> Iterator[str]:
    """The lines of an equation; of a long one, a line for each term."""
    parts = terms(equation, within=1, groups=False) if len(equation) > TITLE else (equation,)
    for n, part in enumerate(parts):
        indent = "    " if n else ""
        yield from textwrap.wrap(part, TITLE, initial_indent=indent, subsequent_indent="    ")


def _looped(block: tuple) -> Iterator[Load]:
    """The loads inside loops."""
    for loop in (s for s in block if isinstance(s, Loop)):
        yield from (s for s in loop.body if isinstance(s, Load))
        yield from _looped(loop.body)


def _texts(lines: tuple) -> Iterator[str]:
    for line in lines:
        if isinstance(line, Block):
            yield line.header
            yield from _texts(line.body)
        else:
            yield line.text


def _made(p: Parameter) -> dict[str, str]:
    shape = ", ".join(spelling.size(e) for e in p.shape)
    return {
        "name": p.name,
        "shape": f"({shape},)" if len(p.shape) == 1 else f"({shape})",
        "dtype": spelling.TORCH[p.dtype],
    }


def _steps(repeat: Repeat | None) -> str:
    """The head of the launcher's loop over the steps of a recurrence, empty where there is none."""
    if repeat is None:
        return ""
    count = spelling.size(repeat.size)
    steps = f"reversed(range({count}))" if repeat.backwards else f"range({count})"
    return f"for {spelling.origin(repeat.index)} in {steps}:"


def _launcher_text(groups: list[dict[str, Any]]) -> str:
    """What the launcher computes from sizes."""
    parts: list[str] = [group["steps"] for group in groups]
    for la in (la for group in groups for la in group["launches"]):
        parts += [la["tiles"], *la["sizes"], *(text for _, text in la["constants"])]
        parts += [d.made for d in la["descriptors"]]
    return " ".join(parts)
