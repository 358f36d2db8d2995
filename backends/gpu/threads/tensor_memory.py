"""Tensor memory: matmuls that one thread issues, and that accumulate outside of registers
(tcgen05).

Lowering makes warpgroup matmuls onto fragments. Here each fragment gets an accumulator in tensor
memory. A result stays there, and is loaded once, if it begins with 0 and only matmuls touch it
until the last of them is complete:

    begun = 0
    loop:  accumulator = a @ b, onto what is there where begun;  begun = 1
    result = accumulator;  barrier

Otherwise each matmul's result is loaded, and added in registers. The barrier is needed since a
thread that does not wait for the loads of others may overwrite the accumulator.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.threads import thread as to
from backends.gpu.threads.fragments import registers
from backends.gpu.threads.plans import Plan
from backends.gpu.threads.signals import Signal
from backends.gpu.threads.staging import Staging
from backends.gpu.tile import Name
from backends.gpu.values import typed
from ir.spec import DTYPES, Apply, Expr, Number

GROUP = 128  # threads that load an accumulator
LEAST = 32  # least columns of a block; larger numbers are powers of two
DONE, ISSUED = Name("done"), Name("issued")


def in_tensor_memory(
    lowering: Staging,
    planned: Mapping[int, Plan],
    table: Mapping[str, Any],
    blocks: tuple[to.Block, to.Block],
) -> tuple[tuple[to.Block, to.Block], tuple[to.Accumulator, ...]]:
    """The statements before the first tile and of each tile, with matmuls in tensor memory where
    their plans use it, and the accumulators.

    table: of the target file. Raises BackendError where columns do not suffice, or where blocks of
    clusters may wait for each other's columns in a cycle.
    """
    columns = table.get("tensor_columns", 0)
    names = {p.instruction.name for p in planned.values() if p.tensor and p.instruction}
    multiplies = [s for block in blocks for s in _of(block, names)]
    if not multiplies:
        return blocks, ()
    stages = _stages(lowering, multiplies)
    made = _InTensorMemory(lowering, names)
    once, body = map(made.block, blocks)
    if (taken := made.columns()) > columns:
        what = f"results of matmuls take {taken} columns of tensor memory; there are {columns}"
        raise BackendError("emit", f"{what}: tile M or N smaller")
    held = max(LEAST, 1 << (taken - 1).bit_length())
    if lowering.meets() and held * _blocks(lowering, table) > columns:
        what = f"blocks with {held} columns, several of which a multiprocessor has room for"
        raise BackendError(
            "emit", f"blocks of clusters would wait for tensor memory in a circle: {what}"
        )
    groups = Number(lowering.threads // GROUP)
    lowering.signals.append(Signal(DONE, stages, groups, ()))
    first = to.Each(ISSUED, Number(2 * stages - 1))
    return ((first, *once), body), tuple(made.accumulators)


def _blocks(lowering: Staging, table: Mapping[str, Any]) -> int:
    """The most blocks of a multiprocessor, by their warps and by shared memory tiles of known size."""
    regions: dict[str, int] = {}
    for tile in lowering.shared.values():
        known = [int(e.value) for e in tile.extents if isinstance(e, Number)]
        size = tile.stages * DTYPES[tile.dtype] * prod(known) if len(known) == len(tile.axes) else 0
        regions[tile.region] = max(size, regions.get(tile.region, 0))
    by_warps = table["warps_per_unit"] * table["warp"] // lowering.threads
    return min(by_warps, table["shared_bytes_per_unit"] // max(1, sum(regions.values())))


def _of(block: to.Block, names: Collection[str]) -> list[to.WarpgroupMultiply]:
    """The matmuls with these instructions."""
    every = (s for s in to.statements(block) if isinstance(s, to.WarpgroupMultiply))
    return [s for s in every if s.instruction.name in names]


def _stages(lowering: Staging, multiplies: list[to.WarpgroupMultiply]) -> int:
    """Stages of the signal. Warps that only wait may lag behind the issuing warp by one round of
    the producers' circular buffer, and must still find the phase for which they wait."""
    rounds = max((s.stages for s in lowering.signals), default=1)
    pending = max(s.pending for s in multiplies)
    return 1 << (rounds * len(multiplies) + pending).bit_length()


class _InTensorMemory:
    def __init__(self, lowering: Staging, names: set[str]):
        self.lowering = lowering
        self.names = names  # of instructions
        self.accumulators: list[to.Accumulator] = []
        # Results that stay in tensor memory, with the scalar that says whether anything was added.
        self.kept: dict[Name, Name] = {}
        lowering.fragment(ISSUED, "i32")

    def block(self, block: to.Block) -> to.Block:
        """The block with its matmuls in tensor memory."""
        found: list[to.Statement] = []
        loads: dict[int, list[Name]] = {}
        for n, s in enumerate(block):
            name, last = self._begins(block, n)
            if name is not None:
                loads.setdefault(last, []).append(name)
                self.kept[name] = self.lowering.fragment(replace(name, sort="begun"), "i32")
                found.append(to.Each(self.kept[name], Number(0)))
                continue
            found += self._one(s)
            for done in loads.get(n, ()):
                found += self._loaded(done, _runs(s, done))
                del self.kept[done]
        return tuple(found)

    def _begins(self, block: to.Block, n: int) -> tuple[Name | None, int]:
        """The result that a statement sets to 0 and that stays in tensor memory, and the position
        of the last statement that adds to it."""
        s = block[n]
        zero = isinstance(s, to.Each) and _is_zero(s.value)
        if isinstance(s, to.Regroup):
            before = [x for x in block[:n] if _touches(x, s.source)]
            zero = bool(before) and isinstance(before[-1], to.Each) and _is_zero(before[-1].value)
        name = getattr(s, "name", None)
        places = [i for i, x in enumerate(block) if i > n and self._adds(x, name)]
        if not zero or not places or name in self.kept:
            return None, 0
        for x in to.statements(block[n + 1 : places[-1] + 1]):
            if not self._adds(x, name) and not isinstance(x, to.WarpgroupWait):
                if _touches(x, name):  # type: ignore[arg-type]
                    return None, 0
        return name, places[-1]

    def _adds(self, s: to.Statement, name: Name | None) -> bool:
        return any(x.to == name for x in _of((s,), self.names))

    def _one(self, s: to.Statement) -> list[to.Statement]:
        if isinstance(s, to.WarpgroupWait):
            return []  # loading a result waits
        if not isinstance(s, to.WarpgroupMultiply) or s.instruction.name not in self.names:
            return [to.changed_inside(s, self.block)]
        if begun := self.kept.get(s.to):
            onto: Expr = of.Compute("eq", (to.Element(begun), Number(1)))
            return [*self._multiplied(s, s.to, onto, s.pending), to.Each(begun, Number(1))]
        fragment = self.lowering.fragments[s.to]
        name = self.lowering.temporary(fragment.dtype, fragment.axes)
        indices = tuple(a.index for a in fragment.axes)
        joined = of.Joined("sum", to.Element(s.to, indices), to.Element(name, indices), False)
        made = self._multiplied(s, name, Number(False), 0)
        return [*made, *self._loaded(name, True), to.Each(s.to, joined)]

    def _multiplied(
        self, s: to.WarpgroupMultiply, name: Name, onto: Expr, pending: int
    ) -> list[to.Statement]:
        number = to.Each(ISSUED, Apply("add", (to.Element(ISSUED), Number(1))))
        made = to.TensorMultiply(
            self._accumulator(name).name,
            s.a,
            s.b,
            s.instruction,
            s.shape,
            onto,
            DONE,
            to.Element(ISSUED),
            s.a_stage,
            s.b_stage,
            pending,
        )
        return [number, made]

    def _loaded(self, name: Name, certain: bool) -> list[to.Statement]:
        """Loads a result into registers. certain: whether anything was certainly added to it."""
        source = self._accumulator(name).name
        found: list[to.Statement] = [
            to.TensorLoad(name, source, DONE, to.Element(ISSUED)),
            to.Barrier(),
        ]
        if not certain:
            fragment = self.lowering.fragments[name]
            held = to.Element(name, tuple(a.index for a in fragment.axes))
            some = of.Compute("eq", (to.Element(self.kept[name]), Number(1)))
            zero = typed(0.0, fragment.dtype)
            found.append(to.Each(name, of.Compute("where", (some, held, zero))))
        return found

    def _accumulator(self, name: Name) -> to.Accumulator:
        for known in self.accumulators:
            if known.fragment == name:
                return known
        groups = self.lowering.threads // GROUP
        made = to.Accumulator(replace(name, sort="accumulator"), name, groups)
        self.accumulators.append(made)
        return made

    def columns(self) -> int:
        """Columns of tensor memory, at the sizes for which the program is tuned."""
        total = 0
        for one in self.accumulators:
            own = one.groups
            for axis in self.lowering.fragments[one.fragment].axes:
                width = self.lowering.owners.widths.get(axis.index, 0)
                own *= registers(replace(axis, width=Number(width)) if width else axis) or 1
            total += own
        return total


def _is_zero(value: Expr) -> bool:
    while isinstance(value, of.Converted):
        value = value.value
    return isinstance(value, Number) and not value.value


def _touches(s: to.Statement, name: Name) -> bool:
    """Whether a statement, or a nested one, accesses a fragment."""
    return any(e == name or isinstance(e, to.Element) and e.name == name for e in of.expressions(s))


def _runs(s: to.Statement, name: Name) -> bool:
    """Whether a statement certainly adds to a result."""
    match s:
        case to.WarpgroupMultiply():
            return s.to == name
        case to.Loop(certain=True, body=body):
            return any(_runs(x, name) for x in body)
    return False
