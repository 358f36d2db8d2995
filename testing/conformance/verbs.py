"""The verbs of a manifest: each one listed changes the source, any other is rejected with a
reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from backends.backend import Backend
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import NOTED, Machine, Rendering
from ir.parse.parse import parse_spec
from ir.parse.schedule import parse_schedule
from ir.schedule import Schedule

SPEC = parse_spec(
    "def product(x: f32[M, K], w: f32[K, N]) -> f32[M, N]:\n"
    '    """Multiply."""\n    y[m, n] = sum(x[m, k] * w[k, n], k)\n    return y\n'
)
SIZES = {"M": 64, "N": 64, "K": 64}
TILES = """schedule(product)
tile(m, size=16)
tile(n, size=16)
tile(k, size=16)
place(m.outer, level=grid)
place(n.outer, level=grid)
place(k.outer, level=loop)
compute(y, unit=matrix)
"""
LINES = {  # a decision of each verb that a loop nest only notes
    "multicast": "multicast(x, over=n.outer)",
    "pipeline": "pipeline(x, stages=3)",
    "copy": "copy(x, by=bulk)",
    "rasterize": "rasterize(m, size=2, over=n)",
    "threads": "threads(y, count=64)",
    "persistent": "persistent(y, programs=1)",
    "specialize": "specialize(y)",
    "registers": "registers(y, limit=96)",
}
ALIKE, UNLIKE = (
    "pipeline(x, stages=3)\npipeline(w, stages=3)",
    "pipeline(x, stages=3)\npipeline(w, stages=2)",
)
assert tuple(LINES) == NOTED


def verb_problems(backend: Backend, machine: Machine) -> Iterator[str]:
    """What is wrong with the verbs that a backend's manifest lists, on a machine that lists it."""
    noted = replace(machine, rendering=Rendering())
    for verb, line in LINES.items():
        text = _source(backend, noted, line)
        if text is None:
            continue  # no machine of this class has it
        changes, listed = text != _source(backend, noted, ""), verb in backend.manifest.verbs
        if listed and not changes:
            yield f"the manifest lists `{verb}`, and `{line}` changes nothing"
        if changes and not listed:
            yield f"`{line}` changes the source, and the manifest does not list `{verb}`"
        yield from _admission(machine, line, listed)
    if "pipeline" in backend.manifest.verbs:
        yield from _stages(backend, machine, noted)


def _stages(backend: Backend, machine: Machine, noted: Machine) -> Iterator[str]:
    """Whether unlike stages of two operands are rendered, or rejected."""
    of_tensors = backend.manifest.stages_of == "tensor"
    if of_tensors and _source(backend, noted, ALIKE) == _source(backend, noted, UNLIKE):
        yield "tensors have stages of their own, and another number for one changes nothing"
    yield from _admission(machine, ALIKE, True)
    yield from _admission(machine, UNLIKE, of_tensors)


def _admission(machine: Machine, lines: str, legal: bool) -> Iterator[str]:
    try:
        lower(SPEC, _schedule(lines), machine, SIZES)
    except KernelError as error:
        if legal:
            yield f"`{lines}` was rejected: {error}"
        elif not (error.what and error.place and error.allowed and error.hint):
            yield f"`{lines}` was rejected without a place, what is allowed and a hint: {error}"
    else:
        if not legal:
            yield f"`{lines}` has no effect, and was not rejected"


def _schedule(lines: str) -> Schedule:
    return parse_schedule(f"{TILES}{lines}\n")


def _source(backend: Backend, machine: Machine, lines: str) -> str | None:
    """The source with some more decisions, its header that of the schedule without them; None where
    they are not legal on any machine of the class."""
    try:
        nest = lower(SPEC, _schedule(lines), machine, SIZES)
    except KernelError:
        return None
    return backend.emit(replace(nest, schedule=_schedule("")), machine)
