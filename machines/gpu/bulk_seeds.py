"""Seeds of large matmuls whose operands are copied in bulk (TMA), with tiles chosen by measurement.

The estimate counts operations and bytes. It does not distinguish loads by threads from bulk copies,
so it prefers tiles that suit loads by threads. The tiles here were the fastest or close to the
fastest, also with epilogues, in measurements of modules on an H100 (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from ir.edits.stages import copy, pipeline
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.nest.nest import Dot, LoopNest
from ir.schedule import Decision, Schedule
from ir.sizes import bind, power_of_two
from ir.spec import DTYPES, Spec
from ir.variant.derived import flattened
from ir.verify import facts
from machines.gpu.index_roles import Roles, cut_once, extents, is_special, roles
from machines.gpu.role_seeds import changed, copied_alone
from machines.gpu.shared_memory import most_shared

Shape = tuple[int, int, int]  # rows and columns of a tile, and number of stages
WIDE, SQUARE = (128, 256, 3), (128, 128, 4)
# The same for a convolution, whose rows are output pixels
OF_WINDOWS = ((256, 128, 3), (256, 64, 4), (128, 128, 4))
STEP = 64  # elements of K in a step: one line of 128 bytes
NARROW = 2  # bytes of an element; wider operands were not measured
THREADS = 256
SHORT_SUM = 1024  # longest K for which special functions of the result take as long as the matmul
STORED_SUM = 1536  # longest K for which storing the result takes a good part of the time
WHOLE = 0.85  # share of the chip that wide tiles keep busy, above which smaller tiles gain nothing
LEAST = 0.75  # least share of the multiprocessors that must have a tile
_KNOWN = ("tile", "place", "compute", "pipeline", "threads", "fuse", "rasterize")


def in_bulk(spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule) -> Schedule:
    """The schedule with its one large matmul copied in bulk. Returns the schedule unchanged where
    it has no such matmul, or where the machine has no bulk copies."""
    return next(_matmuls(spec, machine, sizes, first, ((WIDE, 1.0), (SQUARE, LEAST))), first)


def with_epilogue(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule
) -> tuple[Schedule, ...]:
    """The schedule with square tiles copied in bulk, where special functions follow a matmul with a
    short K loop.

    Threads compute the epilogue of one tile while copies of the next tile are in flight. Empty for
    other kernels.
    """
    lengths = extents(spec, sizes)
    short = all(lengths[i] <= SHORT_SUM for i in roles(spec).summed)
    if not is_special(spec) or not short or not machine.renders("roles"):
        return ()
    made = tuple(_matmuls(spec, machine, sizes, first, ((SQUARE, 1.0),)))
    stored = (changed(s, copy(_result(first), "bulk")) for s in made)
    return tuple(s for s in stored if _suits(spec, s, machine, sizes, 1.0)) or made


def in_turns(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule
) -> tuple[Schedule, ...]:
    """The schedule with square tiles copied in bulk and two consumer groups that alternate
    (ping-pong).

    Applies where K is short, so that storing a tile takes a good part of the time, or where wide
    tiles would leave much of the chip idle in the last wave. Empty for other kernels, and where
    special functions follow the matmul.
    """
    lengths = extents(spec, sizes)
    if is_special(spec) or not machine.renders("pingpong") or not first.of("threads"):
        return ()
    result = _result(first)
    turns = (
        Decision("threads", result, (("count", THREADS // 2),)),
        Decision("pingpong", result, ()),
        copy(result, "bulk"),
    )
    short = all(lengths[i] <= STORED_SUM for i in roles(spec).summed)
    wide = next(_matmuls(spec, machine, sizes, first, ((WIDE, 0.0),)), None)
    waves = _waves(spec, wide, machine, sizes) if wide else 0.0
    if not short and waves > WHOLE * ceil(waves):
        return ()
    made = (changed(s, *turns) for s in _matmuls(spec, machine, sizes, first, ((SQUARE, 1.0),)))
    return tuple(s for s in made if _suits(spec, s, machine, sizes, 1.0))


def of_windows(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule
) -> tuple[Schedule, ...]:
    """Schedules that copy the windows of a convolution in bulk, one filter tap after another. Empty
    for other kernels."""
    own, first = roles(spec), _unmerged(first)
    if not own.taps or not machine.renders("roles") or not _moved(spec, machine, sizes, first, own):
        return ()
    tiled = (_windowed(spec, sizes, first, own, shape) for shape in OF_WINDOWS)
    return tuple(s for s in tiled if s is not None and _suits(spec, s, machine, sizes, LEAST))


def _matmuls(
    spec: Spec,
    machine: Machine,
    sizes: Mapping[str, int],
    first: Schedule,
    shapes: Sequence[tuple[Shape, float]],
) -> Iterator[Schedule]:
    """Schedules with a large matmul in bulk, one for each of these tile shapes that is legal and
    occupies the given share of the multiprocessors."""
    own = roles(spec)
    if own.taps or not _moved(spec, machine, sizes, first, own):
        return
    for shape, least in shapes:
        made = _tiled(first, own, shape, machine)
        if made is not None and _suits(spec, made, machine, sizes, least):
            yield made


def _moved(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule, own: Roles
) -> bool:
    """Whether the schedule has a single matmul of operands of at most 16 bits that are prefetched
    in their own memory layout."""
    if "bulk" not in machine.rendered_engines or len(first.of("compute")) != 1:
        return False
    moved = {d.subject for d in first.of("pipeline")}
    if len(own.sides) != 1 or own.stepped or not moved or first.of("precision"):
        return False
    tensors = facts(spec).tensors
    if any(DTYPES[tensors[t].dtype] > NARROW for t in moved if t in tensors):
        return False
    return copied_alone(lower(spec, first, machine, sizes), moved, spec)


def _tiled(first: Schedule, own: Roles, shape: Shape, machine: Machine) -> Schedule | None:
    """The schedule with tiles of this shape; None where M, N or K is tiled along several indices or none."""
    if (cut := cut_once(first, own)) is None:
        return None
    *tile, stages = shape
    made = [
        *(Decision("tile", i, (("size", n),)) for i, n in zip(cut, (*tile, STEP), strict=True)),
        *_copied(first, stages),
    ]
    if machine.renders("roles"):
        made.append(_persistent(first))
    return changed(first, *made)


def _windowed(
    spec: Spec, sizes: Mapping[str, int], first: Schedule, own: Roles, shape: Shape
) -> Schedule | None:
    """The schedule with tiles of so many output pixels, whole image rows first. None where the
    schedule decides more than tiles, or where a dimension of the result is too short."""
    ((rows, columns),) = own.sides
    steps = own.summed - own.taps
    if len(columns) != 1 or len(steps) != 1 or {d.verb for d in first.decisions} - {*_KNOWN}:
        return None
    lengths = extents(spec, sizes)
    pixels, width, stages = shape
    (column,), (step,) = columns, steps
    cut = {column: width}
    for index in reversed(rows):
        cut[index] = min(pixels, power_of_two(lengths[index]))
        pixels //= cut[index]
    if pixels != 1 or lengths[column] < width or lengths[step] < STEP:
        return None
    kept = [
        d
        for d in first.decisions
        if d.verb not in ("tile", "place", "rasterize")
        or d.subject.removesuffix(".outer") in own.taps
    ]
    loop = [Decision("tile", step, (("size", STEP),)), _placed(step, "loop")]
    grid = [
        d
        for index in (*rows, column)
        if cut[index] < lengths[index]
        for d in (Decision("tile", index, (("size", cut[index]),)), _placed(index, "grid"))
    ]
    made = [*grid, *kept, *loop, *_copied(first, stages), _persistent(first)]
    return canonical(Schedule(first.kernel, tuple({(d.verb, d.subject): d for d in made}.values())))


def _unmerged(first: Schedule) -> Schedule:
    """The schedule without flattened pixels, since windows of flattened pixels are no boxes. Pixels
    get tiles of one, which the caller chooses anew."""
    merges = first.of("flatten")
    merged = {flattened(d) for d in merges}
    pixels = [i for d in merges for i in (d.subject, str(d.option("inner"))) if i not in merged]
    kept = (
        d
        for d in first.decisions
        if d.verb != "flatten" and d.subject.removesuffix(".outer") not in merged
    )
    small = (Decision("tile", i, (("size", 1),)) for i in pixels)
    placed = (_placed(i, "grid") for i in pixels)
    return canonical(Schedule(first.kernel, (*kept, *small, *placed)))


def _placed(index: str, level: str) -> Decision:
    return Decision("place", f"{index}.outer", (("level", level),))


def _copied(first: Schedule, stages: int) -> Sequence[Decision]:
    """Decisions that copy every prefetched tensor in bulk, and set the number of threads."""
    made = [Decision("threads", _result(first), (("count", THREADS),))]
    for tensor in sorted(d.subject for d in first.of("pipeline")):
        made += [pipeline(tensor, stages), copy(tensor, "bulk")]
    return made


def _persistent(first: Schedule) -> Decision:
    return Decision("persistent", _result(first), (("programs", 1),))


def _result(first: Schedule) -> str:
    return first.of("threads")[-1].subject


def _suits(
    spec: Spec, schedule: Schedule, machine: Machine, sizes: Mapping[str, int], least: float
) -> bool:
    """Whether the schedule is legal, its tiles fit shared memory, and the given share of the
    multiprocessors has a tile."""
    try:
        nest = lower(spec, schedule, machine, sizes)
    except KernelError:
        return False
    held, tiles = most_shared(nest, machine), _tiles(nest, bind(spec, sizes))
    return held <= machine.on_chip_bytes and tiles >= least * machine.parallel


def _waves(spec: Spec, schedule: Schedule, machine: Machine, sizes: Mapping[str, int]) -> float:
    """Tiles of a matmul for each multiprocessor: the number of waves, with a fraction."""
    return _tiles(lower(spec, schedule, machine, sizes), bind(spec, sizes)) / machine.parallel


def _tiles(nest: LoopNest, bound: Mapping[str, int]) -> int:
    """The number of tiles of the launch with a matmul that has the fewest."""
    matmuls = (n for n in nest.launches if any(isinstance(s, Dot) for s in n.statements()))
    return min((launch.grid_tiles(bound) for launch in matmuls), default=0)
