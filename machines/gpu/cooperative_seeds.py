"""Seeds of recurrences whose steps run in one cooperative launch, which keeps weights in shared
memory.

With a launch for each step, every step reads all weights and waits for the previous launch. In one
launch, a step reads only the previous state. The grid has as many blocks as run at once. Tiles have
few rows, since a block reads all of its rows of the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import ceil

from ir.contraction import Contraction, contraction
from ir.lower.launches import Segment, segments
from ir.lower.lower import fits
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.spec import Read, Spec
from ir.verify import facts
from machines.gpu.index_roles import extents

SHORT = ("f16", "bf16")  # dtypes that matrix units take without conversion
ROWS, COLUMNS = (16, 32, 64), (8, 16, 32, 64)  # of a tile
WARP_ROWS, WARP_COLUMNS = 16, 8  # of the part of a tile that one warp multiplies
MOST_THREADS = 128
AXES = 3  # indices of a step's matmuls: steps, rows, columns


def in_one_launch(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule
) -> tuple[Schedule, ...]:
    """The legal schedule with the most blocks whose steps are one launch. Empty where a step has
    several launches, or a matmul that does not load 16-bit operands."""
    steps = [part for part in segments(spec, first) if part.recurrence]
    if not machine.renders("cooperative") or len(steps) != 1:
        return ()
    products = {e.target: c for e in steps[0].equations if (c := contraction(e)) is not None}
    sides = {(*c.rows, *c.columns) for c in products.values()}
    if len(sides) != 1 or not all(_is_short(spec, steps[0], c) for c in products.values()):
        return ()
    (indices,) = sides
    if len(indices) != AXES or indices[0] != steps[0].recurrence.index:  # type: ignore[union-attr]
        return ()
    step, rows, columns = indices
    width = extents(spec, sizes)
    made = (
        _cut(first, steps[0].stored[-1], products, {step: 1, rows: r, columns: c})
        for r, c in _tiles(width[rows], width[columns], machine)
    )
    found = next((s for s in made if fits(spec, s, machine, sizes)), None)
    return (found,) if found else ()


def _is_short(spec: Spec, step: Segment, found: Contraction) -> bool:
    """Whether both operands of a matmul are loaded and have the same 16-bit dtype."""
    tensors = facts(spec).tensors
    reads = [n for side in (found.a, found.b) for n in side.walk() if isinstance(n, Read)]
    dtypes = {tensors[r.tensor].dtype for r in reads}
    return len(dtypes) == 1 and dtypes <= set(SHORT) and all(map(step.loads, reads))


def _tiles(height: int, width: int, machine: Machine) -> Iterator[tuple[int, int]]:
    """Yields tiles (rows, columns) whose blocks all run at once: most blocks first, then fewest rows."""
    blocks = {(r, c): ceil(height / r) * ceil(width / c) for r, c in product(ROWS, COLUMNS)}
    fitting = [tile for tile, count in blocks.items() if count <= machine.parallel]
    yield from sorted(fitting, key=lambda tile: (-blocks[tile], tile))


def _cut(first: Schedule, stored: str, products: Iterable[str], cut: Mapping[str, int]) -> Schedule:
    """The schedule with these tiles and all of K in one step. It has no more threads than the tile
    has warps: others would repeat their work."""
    _, rows, columns = cut.values()
    threads = min(MOST_THREADS, 32 * max(2, rows // WARP_ROWS * (columns // WARP_COLUMNS)))
    made = [
        *(Decision("tile", i, (("size", n),)) for i, n in cut.items()),
        *(Decision("place", f"{i}.outer", (("level", "grid"),)) for i in cut),
        *(Decision("compute", target, (("unit", "matrix"),)) for target in products),
        Decision("threads", stored, (("count", threads),)),
        Decision("cooperative", stored, ()),
    ]
    return canonical(Schedule(first.kernel, tuple(made)))
