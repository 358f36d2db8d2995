"""Live registers: the bytes of registers that a thread block holds at once, as compilers allocate
them.

The count exceeds the values themselves: loads hold addresses, and matmul operands that are not
prefetched pass through registers. It is fitted to some two hundred builds of the library's kernels
for four GPUs: the builds that spilled are those that hold more than half of the registers by this
count.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ir.machine import Machine
from ir.memo import kept
from ir.nest.bulk import later_taps
from ir.nest.footprint import tables, touched
from ir.nest.nest import Dot, Launch, Load, Loop, Map, Scan, Statement, Store
from ir.sizes import power_of_two
from ir.sizes import value as number
from ir.spec import DTYPES, Number
from machines.gpu.registers import register_parts
from machines.gpu.shared_memory import LEAST_SIDE, value_bytes

ADDRESSES = 0.5  # bytes of addresses for each byte that is moved, in runs of 16 bytes
SHARED = 3  # copies of an operand, held by warps that share it along the other dimension
# Bytes for each element that is loaded by itself: address, predicate, value, and the next one's
ALONE = 20
STAGED = 16  # bytes for each element that is copied to shared memory by itself
RUN = 4  # bytes of the shortest run that is copied to shared memory asynchronously
DEEPEST = 64  # longest K on the threads: compilers unroll such a loop and hoist its loads


def live_bytes(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> float:
    """The most bytes of registers that one thread block of a launch holds at once, tiles padded to powers of two."""
    counter = _Live(launch, machine, sizes)
    most, needed = counter.block(launch.body, frozenset(), _names(launch.once))
    return max(most, counter.block(launch.once, needed, frozenset())[0])


def too_deep(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> float:
    """The relative excess of K over what registers hold, for matmuls that stay on the threads
    because the matrix unit does not take their operands; 0: none exceeds."""
    units = machine.units
    if "matrix" not in units:
        return 0.0
    dtype = {v.name: v.dtype for v in launch.values}
    extents = {a.name: a.extent for v in launch.values for a in v.axes}
    most = DEEPEST
    for s in launch.statements():
        if not isinstance(s, Dot) or dtype[s.a.value] != "f32":
            continue
        if units["matrix"].flops.get("f32", 0.0) > units["vector"].flops.get("f32", 0.0):
            continue
        tiles = (number(extents[i], sizes) for i in s.over if i in extents)
        most = max(most, prod(power_of_two(t) for t in tiles))
    return most / DEEPEST - 1


def warp_bytes(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> float:
    """Bytes of registers in which each warp holds computed (not loaded) operands of a matmul: all
    of K, for the smallest M or N of the matrix unit. Independent of the number of warps."""
    values = {v.name: v for v in launch.values}
    dots = [s for s in launch.statements() if isinstance(s, Dot)]
    most = 0.0
    for dot in dots if "matrix" in machine.units else ():
        depth = prod(
            power_of_two(number(a.extent, sizes))
            for a in values[dot.a.value].axes
            if a.name in dot.over
        )
        made = {t.value for t in (dot.a, dot.b) if not values[t.value].loaded}
        most = max(most, sum(LEAST_SIDE * depth * DTYPES[values[n].dtype] for n in made))
    return most


class _Live:
    """Walks blocks backwards, as a liveness analysis does."""

    def __init__(self, launch: Launch, machine: Machine, sizes: Mapping[str, int]):
        self.fragments = not machine.reads_shared
        self.sizes = sizes
        self.values = {v.name: v for v in launch.values}
        self.held = register_parts(launch, sizes)
        self.padded = value_bytes(launch, tuple(sizes.items()))
        self.tables = tables(launch) | later_taps(launch)  # values without a load of their own
        tiles = dict(launch.tiles)
        dots = (s.over for s in launch.statements() if isinstance(s, Dot))
        deep = ([i for i in over if tiles.get(i) != 1] for over in dots)
        self.summed = {over[0] for over in deep if len(over) == 1}

    def block(
        self, block: tuple[Statement, ...], needed: frozenset[str], made: frozenset[str]
    ) -> tuple[float, frozenset[str]]:
        """The most bytes that a block holds at once, and the names that are live when it begins.

        needed: names that are live after it. made: names that are defined before it.
        """
        before = [made]
        for s in block:
            before.append(before[-1] | _made(s))
        most, alone = self._bytes(needed), 0.0
        for s, known in zip(reversed(block), reversed(before[:-1]), strict=True):
            if isinstance(s, Loop):
                needed |= touched(s.body) & (known | needed)
                most = max(most, self.block(s.body, needed, known)[0])
                continue
            after, start = self._around(s, needed)
            if isinstance(s, Map | Scan):  # element by element: dead inputs make room
                most = max(most, self._bytes(after), self._bytes(start))
            else:
                apart = self._alone(s)
                beside = self._addresses(s, apart) + self._fragments(s)
                most = max(most, self._bytes(after | start) + beside)
                alone += apart
            needed = start
        return most + alone, needed

    def _around(
        self, s: Statement, needed: frozenset[str]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """The names that are live after a statement, and before it."""
        own = _made(s)
        kept = own if getattr(s, "accumulate", False) else frozenset()
        read = frozenset(touched((s,))) - own
        return needed | own, (needed - own) | kept | read

    def _bytes(self, names: frozenset[str]) -> float:
        return sum(self.held.get(n, 0) for n in names)

    def _addresses(self, s: Statement, apart: float) -> float:
        """Bytes of the addresses of a load or a store, and of values that only pass through registers. apart: see
        `_alone`."""
        if not isinstance(s, Load | Store) or s.bulk or s.value in self.tables or apart:
            return 0.0
        value = self.values[s.value]
        own = self.padded[s.value]
        passes = isinstance(s, Load) and s.value not in self.held and value.stages == 1
        return own * (ADDRESSES + passes)

    def _fragments(self, s: Statement) -> float:
        """Bytes of a matmul's loaded operands, where the matrix unit takes them from registers."""
        if not isinstance(s, Dot) or not self.fragments:
            return 0.0
        loaded = (t.value for t in (s.a, s.b) if self.values[t.value].loaded)
        return float(SHARED * sum(self.padded[name] for name in loaded))

    def _alone(self, s: Statement) -> float:
        """Bytes for a load whose elements are not in contiguous runs: addresses of all elements are
        computed before any arrives."""
        if not isinstance(s, Load) or s.bulk or not s.region or s.value in self.tables:
            return 0.0
        value, last = self.values[s.value], s.region[-1]
        width = DTYPES[value.dtype]
        if not value.axes or value.rows is not None and value.rows.window:
            return 0.0
        extents = {a.name: number(a.extent, self.sizes) for a in value.axes}
        run = width * extents.get(last.axis or "", 1)
        aligned = last.rows is None and last.offset == Number(0) and len(last.terms) < 2
        staged = width >= RUN and value.stages > 1
        if aligned and last.axis is not None and run >= (RUN + 1 if staged else RUN):
            return 0.0
        each = STAGED if staged else ALONE
        return each * prod(self._width(a, e) for a, e in extents.items())

    def _width(self, axis: str, extent: int) -> int:
        """Elements along an axis, padded; K of a matmul has a minimum."""
        return max(power_of_two(extent), LEAST_SIDE if axis in self.summed else 1)


def _names(block: tuple[Statement, ...]) -> frozenset[str]:
    """The names of values that a block defines."""
    return frozenset(name for s in block for name in _made(s))


@kept
def _made(s: Statement) -> frozenset[str]:
    """The names of the values that a statement defines."""
    if isinstance(s, Loop):
        return _names(s.body)
    return frozenset(() if isinstance(s, Store) else (getattr(s, "value", ""),)) - {""}
