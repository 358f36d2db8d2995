"""Memory transactions: the requests and sectors of moving a tile between registers and global memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd, inf, prod

from backends.gpu.model.extents import Extents
from ir.nest.bulk import shared
from ir.nest.neighbours import contiguous, neighbours
from ir.nest.nest import Load, Slice, Store
from ir.sizes import power_of_two
from ir.sizes import value as number
from ir.spec import DTYPES

NOT_KEPT = 0.3  # share of a thread block's rereads that miss the L1 cache
VECTOR_BYTES = 16  # most bytes that one thread moves with one instruction


@dataclass(frozen=True, slots=True)
class Move:
    """A load or a store, and how often a thread block executes it."""

    tensor: str
    store: bool
    times: float  # executions per thread block
    fresh: float  # of these, the executions that would touch each address once
    requests: float  # thread instructions of one execution, padding included
    sectors: float  # bytes in whole sectors of one execution
    needs: frozenset[str]  # grid indices that the addresses depend on
    rows: float = 0.0  # bytes of one row of a gather, else 0
    bytes: float = 0.0  # in registers while it is in flight; 0 for a bulk copy
    sharing: int = 1  # cluster size, where one request serves all of its blocks
    cache: str = ""  # the cache hint
    backwards: bool = False  # whether its loop runs in reverse

    @property
    def asked(self) -> float:
        """Executions that reach the L2 cache: first accesses, and rereads that miss L1."""
        return self.fresh + NOT_KEPT * max(0.0, self.times - self.fresh)


def move(
    s: Load | Store, ext: Extents, sector: int, threads: int, around: Iterable[tuple[str, float]]
) -> Move:
    """The transactions of a load or store. around: the enclosing loops with their iterations."""
    shape = ext.shapes[s.tensor]
    width = DTYPES[next(p.dtype for p in ext.launch.parameters if p.name == s.tensor)]
    spread = _spread(s.region, ext)
    elements = ext.elements(spread) * _fixed(s, ext)
    vector = _vector(s, width, ext, max(1, elements // threads))
    used = {i for one in s.region for i in _indices(one)}
    times = fresh = 1.0
    for index, iterations in around:
        times *= iterations
        fresh *= _growth(s, ext, index, iterations, width, sector)
    run, runs, pitch = _runs(s.region, shape, ext.region(s))
    waste = 1 - gcd(_pitch(shape, width, sector), sector) / sector
    rows = width * run if any(one.rows is not None for one in s.region) else 0.0
    sectors = runs * min(
        sector * (max(1.0, width * run / sector) + waste), max(width * run, width * pitch)
    )
    if rows:
        extents = {i: float(ext.width(i)) for i in spread}
        together = neighbours(ext.launch, s, shape, extents, max(1, sector // width))
        sectors = min(sectors, elements * sector / together)
        side_by_side = contiguous(ext.launch, s, shape, extents, VECTOR_BYTES // width)
        vector = max(1, min(side_by_side, elements // threads))
    return Move(
        tensor=s.tensor,
        store=isinstance(s, Store),
        times=times,
        fresh=fresh,
        requests=0.0 if s.bulk else max(elements / vector, min(threads, elements)),
        sectors=sectors,
        needs=frozenset(i for i in ext.grid if i in used or rows),
        rows=rows,
        bytes=0.0 if s.bulk else float(width * elements),
        sharing=_sharing(s, ext),
        cache=s.cache,
    )


def untouched(s: Load, earlier: Iterable[Load], ext: Extents) -> float:
    """The share of the elements of a load that no earlier load of the same tensor touched. Small
    where it reads the next tap of an unrolled window."""
    return 1 - max((_overlap(s, one, ext) for one in earlier), default=0.0)


def _overlap(s: Load, other: Load, ext: Extents) -> float:
    kept, last = 1.0, len(s.region) - 1
    for dim, (a, b) in enumerate(zip(s.region, other.region, strict=True)):
        if (a.terms, a.step) != (b.terms, b.step) or a.rows is not None or b.rows is not None:
            return 0.0
        shift = abs(number(a.offset, ext.sizes) - number(b.offset, ext.sizes))
        if dim < last and shift % a.step:
            return 0.0  # between the rows of the other
        kept *= max(0.0, 1 - shift / max(1.0, ext.region(s)[dim]))
    return kept


def _sharing(s: Load | Store, ext: Extents) -> int:
    """The number of blocks that one copy serves: the cluster size, where clusters are whole."""
    cluster = ext.launch.cluster
    if cluster is None or not isinstance(s, Load) or not shared(s, cluster.index):
        return 1
    return 1 if ext.grid[cluster.index] % cluster.size else cluster.size


def _spread(region: tuple[Slice, ...], ext: Extents) -> tuple[str, ...]:
    """The indices over which the elements of a region extend, as far as they have axes."""
    found = dict.fromkeys(i for one in region for i in _indices(one) if i in ext.blocks.blocks)
    return tuple(found)


def _indices(one: Slice) -> tuple[str, ...]:
    if one.rows is not None and not one.terms:
        return (one.axis,) if one.axis else ()
    return tuple(i for i, _ in one.terms)


def _fixed(s: Load | Store, ext: Extents) -> int:
    """Elements along axes that no index moves."""
    value = next(v for v in ext.launch.values if v.name == s.value)
    extents = {a.name: a.extent for a in value.axes}
    alone = [o.axis for o in s.region if o.axis and not o.terms and o.rows is None]
    return prod([power_of_two(number(extents[axis], ext.sizes)) for axis in alone])


def _growth(
    s: Load | Store, ext: Extents, index: str, iterations: float, width: int, sector: int
) -> float:
    """The factor by which a loop enlarges the region that is touched: its iterations where each
    touches other addresses, less where it shifts a window or stays within sectors, 1 where the
    index is not in the region."""
    extents, shape = ext.region(s), ext.shapes[s.tensor]
    for dim, (one, extent) in enumerate(zip(s.region, extents, strict=True)):
        if one.rows is not None and one.axis == index:
            return iterations
        steps = dict(one.terms)
        if one.rows is not None or index not in steps:
            continue
        each = abs(steps[index]) * ext.tiles.get(index, 1)
        if len(steps) > 1:
            return min(iterations, (extent + (iterations - 1) * each) / max(extent, 1.0))
        step = width * each * prod(shape[dim + 1 :])
        return min(iterations, max(1.0, iterations * step / sector))
    return 1.0


def _vector(s: Load | Store, width: int, ext: Extents, each: int) -> int:
    """Elements that one thread moves with one instruction: contiguous, and provably aligned at compile time."""
    if not s.region:
        return 1
    last = s.region[-1]
    plain = last.rows is None and last.step == 1 and len(last.terms) == 1
    if not plain or last.terms[0][1] != 1:
        return 1
    most = VECTOR_BYTES // width
    aligned = gcd(most, number(last.offset, ext.sizes), ext.width(last.terms[0][0]))
    parameter = next(p for p in ext.launch.parameters if p.name == s.tensor)
    if len(parameter.shape) > 1:
        aligned = gcd(aligned, ext.multiple(parameter.shape[-1]))
    return max(1, min(aligned, each))


def _runs(
    region: tuple[Slice, ...], shape: tuple[int, ...], extents: list[float]
) -> tuple[float, float, float]:
    """Elements of a contiguous run, the number of runs, and the distance between runs in elements."""
    run = pitch = 1.0
    for one, size, extent in zip(reversed(region), reversed(shape), reversed(extents), strict=True):
        if one.rows is not None:
            pitch = inf
            break
        if one.step > 1:
            pitch *= one.step
            break
        run *= extent
        pitch *= size
        if extent < size:
            break
    return run, prod(extents) / run, pitch


def _pitch(shape: tuple[int, ...], width: int, sector: int) -> int:
    """Bytes between rows; a one-dimensional tensor is aligned."""
    return width * shape[-1] if len(shape) > 1 else sector
