"""Seeds of 3xTF32 matmuls that split their operands in the loop: larger tiles.

Each element is split once per tile, and parts of the right operand pass through registers into
shared memory. Larger tiles split less, and less of the right operand where it is transposed on the
way. Measured on an H200, us, by rows x columns x K of a tile of 256 threads:

    right operand        128 x 64 x 32   128 x 64 x 64   128 x 128 x 32   256 x 64 x 32
    contiguous along K             919             883              787               -
    contiguous along N            1472            1367             1950            1077

These are 128 x 16384 x 16384, and 256 x 256 x 524288 in 32 parts. The time model estimates the
larger tiles 1.2 to 1.3 times as slow as the smaller ones: it guesses that two thread blocks fit a
multiprocessor, but both parts of the operands are in registers, so that only one does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil, prod

from ir.autoschedule.seeds import tiled
from ir.contraction import Contraction, contraction, indices
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.schedule import Schedule
from ir.spec import Expr, Index, Read, Spec
from ir.variant.derived import TRIPLE
from machines.gpu.index_roles import extents

THREADS, STEP = 256, 32  # of a block; K of an iteration
ALONG_K, ALONG_N = (128, 128), (256, 64)  # rows and columns, by how the right operand is contiguous
FILLED = 7 / 8  # least share of the multiprocessors that have a thread block
SHARE = 0.75  # factor on the time model's estimate of such tiles
VERBS = {
    "split_k",
    "tile",
    "place",
    "compute",
    "precision",
    "pipeline",
    "rasterize",
    "threads",
}


def split_seeds(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], first: Schedule
) -> Iterator[tuple[float, Schedule]]:
    """Yields the seed, `first`, with larger tiles and a factor on its estimate. Empty for other
    kernels, and where the matrix unit takes both operands from registers.

    sizes: the free and the derived ones.
    """
    triple = [d.subject for d in first.of("precision") if d.option("dtype") == TRIPLE]
    if {d.verb for d in first.decisions} - VERBS or len(first.of("compute")) != 1 != len(triple):
        return
    found = contraction(spec.equation(triple[0])) if triple and machine.reads_shared else None
    if found is None or found.batch or not _is_plain(found, spec):
        return
    sides, lengths = (found.rows, found.columns, found.over), extents(spec, sizes)
    if any(len(side) != 1 for side in sides):
        return
    row, column, step = (side[0] for side in sides)
    size = ALONG_K if _last(found.b) == step else ALONG_N
    tiles = dict(zip((row, column), size, strict=True))
    parts = prod(d.number("parts") for d in first.of("split_k"))
    blocks = parts * prod(ceil(lengths[i] / n) for i, n in tiles.items())
    if any(lengths[i] < n for i, n in tiles.items()) or blocks < FILLED * machine.parallel:
        return
    cut = {i: tiled(i, n, "grid") for i, n in tiles.items() if lengths[i] > n}
    cut[step] = tiled(step, STEP, "loop")
    whole = len(cut) <= len(tiles)  # one side is a single tile, so their order is not decided
    last = f"{triple[0]}_parts" if first.of("split_k") else first.of("threads")[-1].subject
    made = [d for one in cut.values() for d in one]
    for d in first.decisions:
        if (d.verb, d.subject) == ("threads", last):
            made.append(replace(d, options=(("count", THREADS),)))
        elif d.verb not in ("tile", "place") and not (whole and d.verb == "rasterize"):
            made.append(d)
        elif d.subject.removesuffix(".outer") not in (row, column, step):
            made.append(d)
    yield SHARE, canonical(Schedule(first.kernel, tuple(made)))


def _is_plain(found: Contraction, spec: Spec) -> bool:
    """Whether both operands are read as they are, and the epilogue reads no other tile of the
    result's size: its elements would spill."""
    inputs = {t.name for t in spec.inputs}
    sides = {*found.rows, *found.columns}
    if not all(isinstance(o, Read) and o.tensor in inputs for o in (found.a, found.b)):
        return False
    read = [r for e in spec.equations for r in e.reads() if r not in (found.a, found.b)]
    return not any(r.tensor in inputs and sides <= set(indices(r)) for r in read)


def _last(operand: Expr) -> str:
    """The index along which an operand is contiguous; empty where it is none."""
    last = operand.at[-1] if isinstance(operand, Read) and operand.at else None
    return last.name if isinstance(last, Index) else ""
