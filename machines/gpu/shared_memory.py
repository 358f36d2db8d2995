"""Shared memory of a launch: which values it holds, and how many bytes.

Matmul operands are loaded into shared memory, in as many slots as the enclosing loop has stages.
Tiles from which operands are computed are prefetched too.

- A matrix unit that reads shared memory occupies the slot that it reads. It needs its second
  operand there even if that operand is computed.
- Another matrix unit takes operands from registers, so one slot less is needed. Computed operands
  pass through shared memory for a layout conversion.
- An operand that is not prefetched is in shared memory for one matmul only.

Perfectly nested loops that prefetch run as one loop. A short loop over single steps that does not
prefetch is unrolled; if the loop around it prefetches, each of its loads has slots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from ir.machine import Machine
from ir.memo import by_parts
from ir.nest.nest import Dot, Launch, Load, Loop, LoopNest, Map, Statement, Store, Tile, Value
from ir.nest.nested import nested
from ir.nest.steps import tile_axes
from ir.sizes import bind, power_of_two
from ir.sizes import value as number
from ir.spec import DTYPES, Number

LEAST_SIDE = 16  # least padded M, N and K of a matmul operand
WRITTEN_OUT = 8  # longest loop of single steps that is unrolled
RUN = 4  # bytes of the shortest contiguous run that is copied to shared memory


@by_parts("values", "once", "body")
def staged_values(launch: Launch) -> frozenset[str]:
    """The values that are loaded into shared memory: matmul operands and bulk copies."""
    moved = {s.value for s in launch.statements() if isinstance(s, Load | Store) and s.bulk}
    return frozenset(moved | {t.value for t in _operands(launch) if launch.value(t.value).loaded})


def shared_parts(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> dict[str, int]:
    """Bytes of shared memory of each value that takes some, padded to powers of two."""
    return dict(_parts(launch, machine.reads_shared, tuple(sizes.items())))


# Threads and the order of tiles change nothing in shared memory: schedules often differ in these alone.
@by_parts("values", "once", "body", "tiles", "whole", "resident")
def _parts(launch: Launch, reads: bool, sizes: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    """The same. reads: whether the matrix unit reads shared memory."""
    return _SharedMemory(launch, reads, dict(sizes)).parts()


def shared_bytes(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> int:
    """Bytes of shared memory that one block of a launch takes."""
    return sum(_parts(launch, machine.reads_shared, tuple(sizes.items())).values())


def most_shared(nest: LoopNest, machine: Machine) -> int:
    """The most bytes of shared memory that a block of a nest's launches uses, at the nest's own sizes."""
    sizes = bind(nest.spec, dict(nest.sizes))
    return max(shared_bytes(launch, machine, sizes) for launch in nest.launches)


def padded_bytes(value: Value, sizes: Mapping[str, int]) -> int:
    """Bytes of one slot of a value, each axis padded to a power of two."""
    return DTYPES[value.dtype] * prod(power_of_two(number(a.extent, sizes)) for a in value.axes)


@by_parts("values", "tiles")
def value_bytes(launch: Launch, sizes: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    """`padded_bytes` of each value of a launch."""
    bound = dict(sizes)
    return {v.name: padded_bytes(v, bound) for v in launch.values}


class _SharedMemory:
    """Counts slots, block by block."""

    def __init__(self, launch: Launch, reads: bool, sizes: Mapping[str, int]):
        self.launch = launch
        self.sizes = sizes
        self.values = {v.name: v for v in launch.values}
        self.padded = value_bytes(launch, tuple(sizes.items()))
        self.tiles, self.whole = dict(launch.tiles), dict(launch.whole)
        self.reads = reads
        self.bytes = self._operand_bytes()
        self.fed = _fed(launch) - self.bytes.keys()
        self.found: dict[str, int] = {}

    def parts(self) -> dict[str, int]:
        """Bytes of shared memory by value: prefetched tiles, and the largest set that is there for one matmul."""
        self._block(self.launch.once, 1, 1)
        self._block(self.launch.body, 1, 1)
        passing = [
            p for s in self.launch.statements() if isinstance(s, Dot) for p in self._passing(s)
        ]
        return self.found | max(passing, key=lambda p: sum(p.values()), default={})

    def _passing(self, dot: Dot) -> list[dict[str, int]]:
        """Bytes of a matmul's operands that are not prefetched, as groups that share the memory at the same time."""
        here = {
            tile.value: self.bytes[tile.value]
            for side, tile in enumerate((dot.a, dot.b, *dot.scales))
            if tile.value not in self.found
            and (self.values[tile.value].loaded or side or not self.reads)
        }
        return [here] if self.reads else [{name: taken} for name, taken in here.items()]

    def _block(self, block: tuple[Statement, ...], stages: int, copies: int) -> None:
        """Adds up the loads of a block.

        stages: stages of the enclosing loop, 1: it prefetches nothing. copies: of the block after
        unrolling.
        """
        for s in block:
            if isinstance(s, Loop):
                own = max((d for d in self._stages((s,))), default=1)
                loops = nested(s)
                if len(loops) > 1 and own > 1 and not self.launch.resident:
                    self._block(loops[-1].body, own, copies)
                    continue
                iterations = _written_out(s) if own == 1 else 0
                self._block(s.body, stages if iterations else own, copies * (iterations or 1))
            elif isinstance(s, Load):
                taken = self._loaded(s, stages, copies)
                if taken:
                    self.found[s.value] = max(self.found.get(s.value, 0), taken)
            elif isinstance(s, Store) and s.bulk:
                self.found.setdefault(s.value, self._stored(s))

    def _stored(self, s: Store) -> int:
        """Bytes of the staging buffer of a bulk store: as many columns of the tile as the epilogue decides."""
        value = self.values[s.value]
        whole = self.padded[s.value]
        columns = s.epilogue.columns if s.epilogue is not None else 0
        width = power_of_two(number(value.axes[-1].extent, self.sizes)) if value.axes else 1
        return whole * min(columns or width, width) // width

    def _stages(self, block: tuple[Statement, ...]) -> Iterator[int]:
        for s in block:
            if isinstance(s, Loop):
                yield from self._stages(s.body)
            elif isinstance(s, Load):
                yield self.values[s.value].stages

    def _loaded(self, s: Load, stages: int, copies: int) -> int:
        """Bytes that a load occupies throughout the launch."""
        own = self.padded[s.value]
        if s.value in self.bytes:
            if not s.bulk and (stages == 1 or self._alone(s)):
                return 0
            # A unit that reads shared memory holds one slot while the next tiles are in flight.
            rows = self.values[s.value].rows
            direct = rows is not None and rows.direct
            slots = stages if (self.reads or direct) and copies == 1 else max(1, stages - 1)
            return self.bytes[s.value] * slots * copies
        if s.bulk:
            return own * max(1, stages - 1)
        ahead = self.reads and s.value in self.fed and not self._alone(s)
        return own * (stages - 1) * copies if ahead else 0

    def _alone(self, s: Load) -> bool:
        """Whether elements are loaded one by one to registers, since the contiguous run is too short for a copy."""
        value, last = self.values[s.value], s.region[-1] if s.region else None
        if s.bulk or last is None or DTYPES[value.dtype] >= RUN:
            return False
        return last.rows is not None or last.offset != Number(0) or len(last.terms) > 1

    def _operand_bytes(self) -> dict[str, int]:
        """Bytes of one slot of each matmul operand, over the indices through which it is read."""
        found: dict[str, int] = {}
        for dot in (s for s in self.launch.statements() if isinstance(s, Dot)):
            for tile in (dot.a, dot.b, *dot.scales):
                taken = self._operand(dot, tile)
                found[tile.value] = max(found.get(tile.value, 0), taken)
        return found

    def _operand(self, dot: Dot, tile: Tile) -> int:
        summed, kept, batch = 1, 1, 1
        both = set(tile_axes(dot.a, self.values)) & set(tile_axes(dot.b, self.values))
        for index in tile_axes(tile, self.values):
            width = power_of_two(self._extent(index))
            if index in dot.over:
                summed *= width
            elif index in both:
                batch *= width
            else:
                kept *= width
        padded = batch * max(summed, LEAST_SIDE) * max(kept, LEAST_SIDE)
        return DTYPES[self.values[tile.value].dtype] * padded

    def _extent(self, index: str) -> int:
        return self.tiles.get(index) or number(self.whole[index], self.sizes)


def _operands(launch: Launch) -> Iterator[Tile]:
    for s in launch.statements():
        if isinstance(s, Dot):
            yield from (s.a, s.b, *s.scales)


def _fed(launch: Launch) -> set[str]:
    """The matmul operands and the values from which they are computed pointwise."""
    made = {s.value: s for s in launch.statements() if isinstance(s, Map)}
    found: set[str] = set()
    left = [t.value for t in _operands(launch)]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            if name in made:
                left += [n.value for n in made[name].expression.walk() if isinstance(n, Tile)]
    return found


def _written_out(s: Loop) -> int:
    """The iterations of a loop that is unrolled; 0 for other loops."""
    low, high = s.low.size, s.high.size
    if s.tile != 1 or any(isinstance(x, Loop) for x in s.body):
        return 0
    if not isinstance(low, Number) or not isinstance(high, Number):
        return 0
    iterations = int(high.value - low.value)
    return iterations if iterations <= WRITTEN_OUT else 0
