"""Seeds of kernels that interleave the phases of a transposed convolution: thread blocks of one
warp.

A block loads parts of rows of several phases and stores whole rows. The threads of one warp
exchange what they loaded without waiting for other warps. Blocks of 256 to 2048 elements and 32 or
64 threads were measured on an H200. Blocks of 512 elements and 32 threads were the fastest for five
such kernels or took 5% more: 518 us where the time model's choice took 863, 640 (715), 1265 (1460),
863 (1003) and 1014 (1030). The time model estimated them up to 7% slower.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from ir.affine import affine
from ir.autoschedule.seeds import tiled
from ir.contraction import indices
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.sizes import power_of_two
from ir.spec import Apply, Equation, Expr, Index, Read, Reduce, Scan, Spec
from machines.gpu.index_roles import extents

THREADS, ELEMENTS = 32, 512  # of a block
PIECE = 64  # elements of an interleaved row
OUTSIDE = 1.25  # extent that the tiles of a row may cover, over the row's length
MOST_PHASES = 8  # along a dimension
LEAST = 1 << 20  # elements above which a pass takes longer than a launch
SHARE = 0.9  # factor on the time model's estimate of such a block

Tiles = dict[str, int]


def phase_seeds(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule
) -> Iterator[tuple[float, Schedule]]:
    """Yields other tiles for such a kernel, each with a factor on its estimate. Empty for other
    kernels, and where a warp does not have 32 threads.

    sizes: the free and the derived ones.
    """
    result = spec.equations[-1]
    if machine.warp != THREADS or {d.verb for d in first.decisions} - {"tile", "place", "threads"}:
        return
    if any(_reduces(e) or set(e.indices) != set(result.indices) for e in spec.equations):
        return
    lengths = extents(spec, sizes)
    if prod(lengths[i] for i in result.indices) < LEAST or len(first.of("threads")) != 1:
        return
    reads = {r for e in spec.equations for r in e.reads() if len(r.at) > 2}
    found = [t for r in reads if (t := _gathered(r, result) or _apart(r, result, lengths))]
    if len(found) != 1:
        return
    (tiles,) = found
    cuts = [tiled(i, tiles.get(i, 1), "grid") for i in result.indices if _cut(i, tiles, lengths)]
    threads = Decision("threads", first.of("threads")[0].subject, (("count", THREADS),))
    yield SHARE, canonical(Schedule(first.kernel, (*(d for cut in cuts for d in cut), threads)))


def _reduces(e: Equation) -> bool:
    return e.accumulate or any(isinstance(n, Reduce | Scan) for n in e.value.walk())


def _cut(index: str, tiles: Tiles, lengths: Mapping[str, int]) -> bool:
    """Whether an index is tiled."""
    return lengths[index] > tiles.get(index, 1)


def _gathered(read: Read, result: Equation) -> Tiles | None:
    """Tiles where each element computes its phase: parts of rows, and as many rows as fill a block."""
    last, rows = result.indices[-1], result.indices[-2]
    if not _is(read.at[-1], "floordiv", last) or not any(_takes_phase(p, last) for p in read.at):
        return None
    return {last: PIECE, rows: ELEMENTS // PIECE}


def _apart(read: Read, result: Equation, lengths: Mapping[str, int]) -> Tiles | None:
    """Tiles where phases have an index of their own, the last one of the result."""
    phase = result.indices[-1]
    row, rows = read.at[-1], read.at[-2]
    forms = [affine(p) for p in read.at]
    phases = [f for f in forms if f and len(f.terms) > 1 and f.coefficient(phase) == 1]
    if not isinstance(row, Index) or not isinstance(rows, Index) or len(phases) != 1:
        return None
    if read.pad is not None or lengths[phase] > MOST_PHASES:
        return None
    most = ELEMENTS // power_of_two(lengths[phase])
    length = lengths[row.name]
    sides = [
        n for n in (16, 32, 64, 128, 256) if n <= most and -(-length // n) * n <= OUTSIDE * length
    ]
    if not sides:
        return None
    return {phase: lengths[phase], row.name: sides[-1], rows.name: most // sides[-1]}


def _takes_phase(position: Expr, index: str) -> bool:
    return any(_is(n, "mod", index) for n in position.walk())


def _is(expr: Expr, function: str, index: str) -> bool:
    return isinstance(expr, Apply) and expr.function == function and index in indices(expr)
