"""Seeds of one large matmul for warpgroups: TMA operands, persistent blocks, TMA stores.

The estimate that chooses the seed counts operations and bytes, so it ranks all of these equal. A
search tries each that is legal beside the seed:

    wide      tiles of 256 columns, one line of 128 bytes of each operand per step
    square    tiles of 128 columns and more stages
    long      8-bit operands: two lines per step, as accumulators are promoted once per step
    parts     3xTF32: launches of their own make the split parts of the operands
    turns     special functions after a short K: warpgroups alternate, with a tile each (ping-pong)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import inf

from ir.contraction import contraction
from ir.edits.stages import copy, pipeline
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.spec import DTYPES, Spec
from ir.variant.derived import TRIPLE, names
from ir.verify import facts
from machines.gpu.bulk_seeds import SHORT_SUM
from machines.gpu.index_roles import cut_once, extents, is_special, roles
from machines.gpu.shared_memory import most_shared

ROWS, LINE = 128, 128  # rows of a tile; bytes of a line of an operand
WARPGROUP = 128  # threads
STAGES = (5, 4, 3, 2)
LEAST = 3  # stages, below which the result is stored in parts instead
COLUMNS = (0, 64, 32)  # columns of the result that are stored at a time; 0: the whole tile
SURE = 0.9  # share of shared memory that leaves a backend enough for barriers and alignment
GROUPS = (
    8,
    16,
)  # rows of tiles in a rasterization group, in small grids and in large ones
KNOWN = (
    "tile",
    "place",
    "compute",
    "precision",
    "pipeline",
    "threads",
    "fuse",
    "rasterize",
    "copy",
)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The shape of a tile of the result."""

    columns: int
    lines: int  # of each operand in a step
    turns: bool = False


@dataclass(frozen=True, slots=True)
class _Matmul:
    """The one matmul of a spec, and the schedule that tiles it."""

    first: Schedule
    result: str  # the stored tensor
    row: str
    column: str
    step: str
    bytes: int  # of an element of the widest operand, as it is loaded
    operands: tuple[str, ...]  # what is loaded for it
    ends: tuple[str, ...]  # of these, the ones that launches of their own make
    extents: Mapping[str, int]
    special: bool  # whether an epilogue uses the special function unit


def for_warpgroups(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule
) -> tuple[Schedule, ...]:
    """Legal schedules with roles for the one matmul of a spec. Empty where it has no such matmul. first: the seed."""
    found = _matmul(spec, first, sizes)
    if found is None:
        return ()
    made = (_fitting(spec, machine, sizes, found, shape) for shape in _shapes(found))
    return tuple(dict.fromkeys(chain.from_iterable(made)))


def _matmul(spec: Spec, first: Schedule, sizes: Mapping[str, int]) -> _Matmul | None:
    """The matmul; None where there are several, or where M, N or K is not tiled along exactly one index."""
    own = roles(spec)
    products = [e for e in spec.equations if contraction(e) is not None]
    if len(products) != 1 or len(own.sides) != 1 or own.taps or own.stepped or own.jagged:
        return None
    if {d.verb for d in first.decisions} - {*KNOWN} or len(first.of("compute")) != 1:
        return None
    if (cut := cut_once(first, own)) is None:
        return None
    row, column, step = cut
    target = products[0].target
    triple = [d for d in first.of("precision") if d.option("dtype") == TRIPLE]
    inputs = _loaded(spec, target)
    tensors = facts(spec).tensors
    widest = max(DTYPES[tensors[name].dtype] for name in inputs)
    operands = tuple(sorted(names(triple[0]))) if triple else inputs
    return _Matmul(
        first=first,
        result=first.of("threads")[-1].subject,
        row=row,
        column=column,
        step=step,
        bytes=widest,
        operands=operands,
        ends=tuple(f"{d.subject}_{part}" for d in triple for part in ("al", "bl")),
        extents=extents(spec, sizes),
        special=is_special(spec),
    )


def _loaded(spec: Spec, target: str) -> tuple[str, ...]:
    """The multi-dimensional inputs from which a tensor is computed."""
    made = {e.target: e for e in spec.equations}
    inputs = {t.name for t in spec.inputs if len(t.shape) > 1}
    found: dict[str, None] = {}
    todo = [target]
    while todo:
        for read in made[todo.pop()].reads():
            if read.tensor in made:
                todo.append(read.tensor)
            elif read.tensor in inputs:
                found[read.tensor] = None
    return tuple(found)


def _shapes(found: _Matmul) -> Iterator[_Shape]:
    parts = len(found.operands) > 2
    if not parts:
        yield _Shape(256, 1)
    yield _Shape(128, 1)
    if found.bytes == 1:
        yield _Shape(128, 2)
    if found.special and found.extents[found.step] <= SHORT_SUM:
        yield _Shape(128, 1, turns=True)


def _fitting(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], found: _Matmul, shape: _Shape
) -> Iterator[Schedule]:
    """Schedules of this tile shape with the most stages that fit shared memory, and with one less
    where a backend may lack room for its own buffers. The result is stored in parts where that
    makes room for enough stages."""
    for columns in COLUMNS:
        for stages in STAGES:
            made = _tiled(found, shape, stages, columns)
            held = _shared_bytes(spec, machine, sizes, made)
            if held > machine.on_chip_bytes:
                continue
            if stages < LEAST and columns != COLUMNS[-1]:
                break
            yield made
            if stages > STAGES[-1] and held > SURE * machine.on_chip_bytes:
                yield _tiled(found, shape, stages - 1, columns)
            return


def _tiled(found: _Matmul, shape: _Shape, stages: int, columns: int) -> Schedule:
    rows = -(-found.extents[found.row] // ROWS)
    group = GROUPS[rows >= 4 * GROUPS[1]]
    threads = WARPGROUP if shape.turns else 2 * WARPGROUP
    made = [
        Decision("tile", found.row, (("size", ROWS),)),
        Decision("tile", found.column, (("size", shape.columns),)),
        Decision("tile", found.step, (("size", shape.lines * LINE // found.bytes),)),
        Decision("threads", found.result, (("count", threads),)),
        Decision("persistent", found.result, (("programs", 1),)),
        Decision("rasterize", found.row, (("size", group), ("over", found.column))),
        *(pipeline(name, stages) for name in found.operands),
        *(copy(name, "bulk") for name in (*found.operands, found.result)),
    ]
    made += [Decision("kernel", name) for name in found.ends]
    if columns:
        made.append(Decision("epilogue", found.result, (("by", "shared"), ("columns", columns))))
    if shape.turns:
        made.append(Decision("pingpong", found.result))
    kept = [d for d in found.first.decisions if d.verb not in ("pipeline", "copy", "rasterize")]
    table = {(d.verb, d.subject): d for d in (*kept, *made)}
    return canonical(Schedule(found.first.kernel, tuple(table.values())))


def _shared_bytes(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], schedule: Schedule
) -> float:
    """Bytes of shared memory of a schedule's tiles; inf where it is not legal."""
    try:
        nest = lower(spec, schedule, machine, sizes)
    except KernelError:
        return inf
    return most_shared(nest, machine)
