"""Decisions on matmuls: the matrix instruction, how warps partition the result, overlap with other matmuls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from ir.errors import KernelError
from ir.lower.launches import segments
from ir.lower.matmuls import shape_of, shape_word
from ir.machine import Machine
from ir.nest.nest import Dot, Launch, Load, Loop
from ir.nest.steps import tile_axes
from ir.schedule import Decision, Schedule
from ir.sizes import value as number
from ir.spec import FLOATS, Spec
from ir.variant.derived import owner
from ir.variant.precision import NARROW
from ir.workload import Sizes
from machines.gpu.matrix_instructions import MatrixInstruction, of_machine

MOST_WARPS = 16  # of a block, for which edits propose partitions
FEWEST_COLUMNS = 64  # of the instructions that edits propose, where N is variable
AHEAD = (("ahead", 1),)  # of `overlap`
AHEAD_STAGES = 3  # one for each matmul in flight, and one that the next iteration fills
Shape = tuple[int, int, int]
Change = tuple[Decision | None, Decision | None]


def instructions(machine: Machine) -> tuple[MatrixInstruction, ...]:
    """The matrix instructions of a chip; empty where its file names no family."""
    return of_machine(machine) if "gpu" in machine.details else ()


def shapes(machine: Machine, dtype: str = "") -> tuple[Shape, ...]:
    """The shapes of the instructions that accumulate products of a dtype in f32; no dtype: of any."""
    found = [
        (i.m, n, i.k)
        for i in instructions(machine)
        if i.c.dtype == "f32" and dtype in ("", i.a.dtype) and i.a.dtype == i.b.dtype
        for n in i.sizes_n
    ]
    return tuple(dict.fromkeys(found))


def check_decision(decision: Decision, machine: Machine) -> None:
    """Raises KernelError where the chip has no such instruction, a number of partitions is no power
    of two, or a matmul would run more than one iteration ahead."""
    if decision.verb == "instruction":
        known = shapes(machine)
        if shape_of(decision.option("shape")) not in known:
            raise KernelError(
                f"`{machine.name}` has no matrix instruction of shape `{decision.option('shape')}`",
                place=decision.place,
                allowed=_words(known) or f"none: the file of `{machine.name}` names no family",
                hint=f"drop {decision}",
            )
    if decision.verb == "overlap" and decision.number("ahead", 1) != 1:
        raise KernelError(
            "a matmul is at most one iteration ahead",
            place=decision.place,
            allowed="ahead=1",
        )
    if decision.verb == "warps":
        for name in ("m", "n"):
            parts = decision.number(name)
            if parts & (parts - 1):
                raise KernelError(
                    f"`{name}={parts}` is no power of two",
                    place=decision.place,
                    allowed="1, 2, 4, 8, 16, 32",
                )


def require_decided(
    launches: Sequence[Launch], schedule: Schedule, machine: Machine, sizes: Sizes
) -> None:
    """Raises KernelError where an instruction does not take the operands of a matmul, where the
    partitions are not as many as the block has warps, or where a partition is smaller than the
    instruction."""
    for launch in launches:
        for s in launch.statements():
            if isinstance(s, Dot) and (s.warps or s.instruction):
                _require(launch, s, schedule, machine, sizes)
            if isinstance(s, Dot) and s.overlaps:
                _require_before(launch, s, schedule)


def _require_before(launch: Launch, s: Dot, schedule: Schedule) -> None:
    """Raises KernelError where the loop of an overlapped matmul has no other matmul before it that
    could be in flight, or too few stages to run one ahead."""
    loops = [x for x in launch.statements() if isinstance(x, Loop)]
    ahead = {
        late.value for loop in loops for late in [x for x in loop.body if isinstance(x, Dot)][1:]
    }
    if s.value not in ahead:
        subject = owner(schedule, launch.value(s.value).tensor)
        decision = schedule.find("overlap", subject)
        raise KernelError(
            f"no loop multiplies something before `{subject}`, so nothing is computed while it is in flight",
            place=decision.place if decision else None,
            allowed=", ".join(sorted(ahead)) or "none",
            hint=f"drop {decision}",
        )
    around = (x for x in loops if s in x.body)
    loads = [x for loop in around for x in loop.body if isinstance(x, Load)]
    stages = max((launch.value(x.value).stages for x in loads), default=AHEAD_STAGES)
    if s.ahead and stages < AHEAD_STAGES:
        subject = owner(schedule, launch.value(s.value).tensor)
        decision = schedule.find("overlap", subject)
        raise KernelError(
            f"`{subject}` needs {AHEAD_STAGES} stages of its loop, so that the one before it is ahead; there are {stages}",
            place=decision.place if decision else None,
            hint=f"pipeline(..., stages={AHEAD_STAGES}), or overlap({subject})",
        )


def _require(launch: Launch, s: Dot, schedule: Schedule, machine: Machine, sizes: Sizes) -> None:
    subject = owner(schedule, launch.value(s.value).tensor)
    dtype = launch.value(s.a.value).dtype
    known = shapes(machine, dtype)
    if s.instruction and s.instruction not in known:
        decision = schedule.find("instruction", subject)
        raise KernelError(
            f"`{shape_word(s.instruction)}` does not multiply {dtype}, in which `{subject}` is "
            "computed",
            place=decision.place if decision else None,
            allowed=_words(known) or "none",
        )
    rows, columns = extents(launch, s, sizes)
    shape = s.instruction or min(known, default=(1, 1, 1))
    if s.warps is None:
        if shape[0] > rows or shape[1] > columns:
            decision = schedule.find("instruction", subject)
            raise KernelError(
                f"the tile of `{subject}` has {rows} x {columns} elements, and "
                f"{shape_word(shape)} computes more",
                place=decision.place if decision else None,
                hint="tile M and N larger, or take a smaller instruction",
            )
        return
    decision = schedule.find("warps", subject)
    place = decision.place if decision else None
    m, n = s.warps
    if m * n * machine.warp != launch.threads:
        have = f"{launch.threads // machine.warp}" if launch.threads else "as many as it chooses"
        raise KernelError(
            f"{m} x {n} parts for the warps of a block, which has {have}",
            place=place,
            allowed="as many parts as `threads` gives the launch warps",
            hint=f"threads(..., count={m * n * machine.warp})",
        )
    own = threads_of(machine, s.instruction, dtype)
    # Warps along M that execute one instruction
    together = min(own, default=machine.warp) // machine.warp
    if s.instruction and m % together:
        raise KernelError(
            f"{shape_word(shape)} is executed by {together} warps, which lie along M",
            place=place,
            allowed=f"a multiple of {together} for `m`",
        )
    least_m = shape[0] * max(1, m // together)
    if least_m > rows or shape[1] * n > columns:
        raise KernelError(
            f"the tile of `{subject}` has {rows} x {columns} elements, too few for {m} x {n} parts "
            f"of {shape_word(shape)}",
            place=place,
            hint="tile M and N larger, or make fewer parts",
        )


def threads_of(machine: Machine, shape: Shape | None, dtype: str) -> tuple[int, ...]:
    """The numbers of threads that execute an instruction of a shape together."""
    return tuple(
        i.threads
        for i in instructions(machine)
        if i.a.dtype == dtype and (shape is None or (i.m, i.k) == (shape[0], shape[2]))
    )


def extents(launch: Launch, s: Dot, sizes: Sizes) -> tuple[int, int]:
    """Elements of a matmul's tile along M and N."""
    values = {v.name: v for v in launch.values}
    tiles = dict(launch.tiles) | {i: number(size, sizes) for i, size in launch.whole}
    a, b = (set(tile_axes(t, values)) for t in (s.a, s.b))
    out = values[s.value].names
    m, n = ([i for i in out if i in one and i not in other] for one, other in ((a, b), (b, a)))
    return _width(m, tiles), _width(n, tiles)


def _width(indices: Sequence[str], tiles: Mapping[str, int]) -> int:
    return prod(tiles.get(i, 1) for i in indices)


def changes(spec: Spec, schedule: Schedule, machine: Machine) -> Iterator[Change]:
    """Yields every single change of `instruction`, `warps` and `overlap` that the machine has, in a fixed order."""
    verbs = {v for v in ("instruction", "warps", "overlap") if machine.renders(v)}
    computed = [d.subject for d in schedule.of("compute") if d.option("unit") == "matrix"]
    for subject in computed if "instruction" in verbs else ():
        yield from _options(
            schedule,
            "instruction",
            subject,
            [(("shape", shape_word(s)),) for s in _proposed(spec, schedule, machine, subject)],
        )
    for subject in computed if "warps" in verbs else ():
        count = _threads(spec, schedule, subject) // machine.warp
        parts = [(m, count // m) for m in (1, 2, 4, 8, 16) if m <= count <= MOST_WARPS]
        yield from _options(schedule, "warps", subject, [(("m", m), ("n", n)) for m, n in parts])
    for subject in computed[1:] if "overlap" in verbs else ():
        old = schedule.find("overlap", subject)
        kinds = (None, Decision("overlap", subject), Decision("overlap", subject, AHEAD))
        yield from ((old, new) for new in kinds if new != old)


def _options(
    schedule: Schedule,
    verb: str,
    subject: str,
    options: Sequence[tuple[tuple[str, str | int], ...]],
) -> Iterator[Change]:
    old = schedule.find(verb, subject)
    for option in options:
        new = Decision(verb, subject, option)
        if new != old:
            yield old, new
    if old:
        yield old, None


def _proposed(spec: Spec, schedule: Schedule, machine: Machine, subject: str) -> tuple[Shape, ...]:
    """Instruction shapes for the operands of a matmul: those of the dtype to which it rounds them,
    else of the inputs' dtypes."""
    rounded = schedule.find("precision", subject)
    dtypes = {str(rounded.option("dtype")).removesuffix("x3")} if rounded else set()
    dtypes = dtypes or {t.dtype for t in spec.inputs if t.dtype in FLOATS}
    dtypes = {NARROW if d == "f32" else d for d in dtypes}
    found = dict.fromkeys(s for d in sorted(dtypes) for s in shapes(machine, d))
    several = {(m, k) for m, n, k in found if n > FEWEST_COLUMNS}
    return tuple(
        (m, n, k)
        for m, n, k in found
        if (m, k) not in several or n >= FEWEST_COLUMNS and n & (n - 1) == 0
    )


def _threads(spec: Spec, schedule: Schedule, subject: str) -> int:
    """The decided number of threads of the launch that computes a tensor; 0: undecided."""
    for part in segments(spec, schedule):
        if subject in {e.target for e in part.equations}:
            found = (schedule.find("threads", t) for t in part.stored)
            return next((d.number("count") for d in found if d is not None), 0)
    return 0


def _words(known: Sequence[Shape]) -> str:
    return ", ".join(shape_word(s) for s in known)
