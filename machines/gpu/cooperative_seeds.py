"""Seeds of recurrences whose steps run in one launch: the weights of a block stay in its shared memory.

A launch for each step reads all weights in each step, and waits for the launch before. Here a step reads the
state before alone. There are as many blocks as run at once, each of few rows, since a block reads all of its
rows of the state.
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

SHORT = ("f16", "bf16")  # dtypes of operands that matrix units take as they are
ROWS, COLUMNS = (16, 32, 64), (8, 16, 32, 64)  # of a tile
WARP_ROWS, WARP_COLUMNS = 16, 8  # of a tile that a warp multiplies
MOST_THREADS = 128
AXES = 3  # of a step's matmuls: steps, rows, columns


def in_one_launch(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule
) -> tuple[Schedule, ...]:
    """The legal schedule of most blocks whose steps are one launch; none where a step has several launches, or
    no matmul of 16-bit operands that it loads."""
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
    """Whether both operands of a matmul are loaded, of one dtype of 16 bits."""
    tensors = facts(spec).tensors
    reads = [n for side in (found.a, found.b) for n in side.walk() if isinstance(n, Read)]
    dtypes = {tensors[r.tensor].dtype for r in reads}
    return len(dtypes) == 1 and dtypes <= set(SHORT) and all(map(step.loads, reads))


def _tiles(height: int, width: int, machine: Machine) -> Iterator[tuple[int, int]]:
    """Tiles of rows and columns whose blocks run at once: most blocks first, of these those of fewest rows."""
    blocks = {(r, c): ceil(height / r) * ceil(width / c) for r, c in product(ROWS, COLUMNS)}
    fitting = [tile for tile, count in blocks.items() if count <= machine.parallel]
    yield from sorted(fitting, key=lambda tile: (-blocks[tile], tile))


def _cut(first: Schedule, stored: str, products: Iterable[str], cut: Mapping[str, int]) -> Schedule:
    """The steps in tiles, with all of K at once. More threads than the tile has warps would multiply the same."""
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
