"""Large matmuls of the seed: operands copied in bulk, in the tiles that this was fastest with.

The estimate counts operations and bytes. It does not tell loads by threads from bulk copies, and prefers
tiles that suit the former. The tiles here were the fastest or close to it, also with epilogues, where modules
were measured on an H100 (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from ir.edits.stages import copy, pipeline
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import Dot
from ir.schedule import Decision, Schedule
from ir.sizes import bind
from ir.spec import DTYPES, Spec
from ir.verify import facts
from machines.gpu.index_roles import Roles, roles
from machines.gpu.role_seeds import changed, copied_alone
from machines.gpu.shared_memory import shared_bytes

WIDE, SQUARE = (128, 256, 3), (128, 128, 4)  # rows and columns of a tile, and stages
STEP = 64  # of the summed index at a time: a line of 128 bytes
NARROW = 2  # bytes of an element: wider operands were not measured
THREADS = 256
LEAST = 0.75  # of the multiprocessors that have a tile to compute


def in_bulk(spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule) -> Schedule:
    """The schedule with its one large matmul in bulk; as it is where it has none, or the machine no
    engine for that."""
    if "bulk" not in machine.rendered_engines or len(first.of("compute")) != 1:
        return first
    own, moved = roles(spec), {d.subject for d in first.of("pipeline")}
    if len(own.sides) != 1 or own.stepped or not moved or first.of("precision"):
        return first
    tensors = facts(spec).tensors
    if any(DTYPES[tensors[t].dtype] > NARROW for t in moved if t in tensors):
        return first
    if not copied_alone(lower(spec, first, machine, sizes), moved, spec):
        return first
    for shape, least in ((WIDE, 1.0), (SQUARE, LEAST)):
        made = _tiled(spec, first, own, shape, machine)
        if made is not None and _suits(spec, made, machine, sizes, least):
            return made
    return first


def _tiled(
    spec: Spec, first: Schedule, own: Roles, shape: tuple[int, int, int], machine: Machine
) -> Schedule | None:
    """In such tiles; None where a side of the result is not cut in one dimension."""
    placed = {d.subject.removesuffix(".outer"): d.option("level") for d in first.of("place")}
    ((rows, columns),) = own.sides
    cut = [[i for i in side if placed.get(i) == "grid"] for side in (rows, columns)]
    steps = [i for i in own.summed if placed.get(i) == "loop"]
    if [len(side) for side in (*cut, steps)] != [1, 1, 1]:
        return None
    *tile, stages = shape
    result = first.of("threads")[-1].subject
    made = [
        *(Decision("tile", i, (("size", n),)) for (i,), n in zip(cut, tile, strict=True)),
        Decision("tile", steps[0], (("size", STEP),)),
        Decision("threads", result, (("count", THREADS),)),
    ]
    for tensor in sorted(d.subject for d in first.of("pipeline")):
        made += [pipeline(tensor, stages), copy(tensor, "bulk")]
    if machine.renders("roles"):
        made.append(Decision("persistent", result, (("programs", 1),)))
    return changed(first, *made)


def _suits(
    spec: Spec, schedule: Schedule, machine: Machine, sizes: Mapping[str, int], least: float
) -> bool:
    """Whether it is legal, shared memory holds its tiles, and such a share of the multiprocessors has one."""
    try:
        nest = lower(spec, schedule, machine, sizes)
    except KernelError:
        return False
    bound = bind(spec, sizes)
    held = max(shared_bytes(launch, machine, bound) for launch in nest.launches)
    matmuls = (n for n in nest.launches if any(isinstance(s, Dot) for s in n.statements()))
    tiles = min((launch.grid_tiles(bound) for launch in matmuls), default=0)
    return held <= machine.on_chip_bytes and tiles >= least * machine.parallel
