"""Statements that access shared memory, compiled to closures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.counts import IDLE, Traffic, wavefronts
from backends.gpu.threads.interpreter.expressions import Code, Compiler, Run
from backends.gpu.threads.interpreter.places import Accessor
from backends.gpu.threads.interpreter.registers import Held
from backends.gpu.threads.interpreter.shared import Access, SharedMemory, Tile
from backends.gpu.threads.interpreter.state import Variable, spread
from backends.gpu.threads.interpreter.values import converted, unknown
from backends.gpu.threads.thread import Copy, SharedLoad, SharedStore
from backends.gpu.tile import Name
from ir.spec import DTYPES, Expr

WIDEST = 16  # bytes of the widest access of a thread
_MATRIX = 8  # rows and columns of an ldmatrix matrix of 16-bit elements


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of a tile that registers correspond to, at one stage and origin."""

    access: Access
    inside: np.ndarray | None  # [threads, registers...], where some registers have no element
    cost: tuple[int, int]  # wavefronts, and the least possible


@dataclass(slots=True)
class View:
    """The correspondence between a fragment's registers and the elements of a shared memory tile."""

    compiler: Compiler
    memory: SharedMemory
    tile: Tile
    axes: tuple[Held, ...]
    stage: Code
    at: tuple[tuple[int, Code], ...]  # axis of the tile, first position
    copies: np.ndarray | None  # the threads that access, where others hold copies
    by: str
    most: int  # elements of the widest access
    direct: int  # elements per thread of a copy to consecutive addresses; 0: another access
    known: dict[tuple[int, ...], Elements] = field(default_factory=dict)

    def find(self) -> Elements:
        """The elements at the current stage and origin."""
        block = self.compiler.block
        key = tuple(int(block.alike(c.run())) for c in (self.stage, *(c for _, c in self.at)))
        if key not in self.known:
            self.known[key] = self._elements(key[0], dict(zip((n for n, _ in self.at), key[1:])))
        return self.known[key]

    def access(self, found: Elements) -> tuple[Access, np.ndarray | None]:
        """The elements that the active threads access, and their mask; None: all of `found`."""
        block = self.compiler.block
        if block.active is None:
            return found.access, None
        mask = block.active[found.access.threads - block.first]
        return found.access.where(mask), mask

    def _elements(self, stage: int, first: dict[int, int]) -> Elements:
        block, shared = self.compiler.block, self.tile.shared
        shape = (block.threads, *(a.count for a in self.axes))
        ones = [1] * len(self.axes)
        positions = [np.full((1, *ones), first.get(n, 0)) for n in range(len(shared.axes))]
        inside = np.ones((block.threads, *ones), np.bool_)
        if self.copies is not None:
            inside = inside & self.copies.reshape(-1, *ones)
        for n, axis in enumerate(self.axes):
            if (
                axis.index in shared.axes
                and first.get(shared.axes.index(axis.index), 0) % axis.span
            ):
                raise self._unfit(f"`{axis.index}` begins within {axis.span}")
            own = axis.positions.reshape(-1, *ones[:n], axis.count, *ones[n + 1 :])
            # Registers beyond the end of a tile have no element
            inside = inside & (own < axis.width)
            if axis.index not in shared.axes:
                raise self._unfit(f"`{axis.index}` is no axis of the tile")
            place = shared.axes.index(axis.index)
            positions[place] = positions[place] + own
        wrong = np.zeros(shape, np.bool_)
        for along, end in zip(positions, self.tile.extents):
            wrong |= ((along < 0) | (along >= end)) & inside
        if wrong.any() or not 0 <= stage < shared.stages:
            raise self._outside(stage, positions, wrong)
        offsets = np.broadcast_to(self.tile.offsets(positions), shape)
        inside = np.broadcast_to(inside, shape)
        if (offsets[inside] >= self.tile.stage).any():
            raise self._unfit("the swizzle leaves the stage")
        numbers = np.arange(block.first, block.first + block.threads)
        threads = np.broadcast_to(numbers.reshape(-1, *ones), shape)
        elements = offsets + stage * self.tile.stage
        if self.direct:
            self._require_consecutive(elements, inside)
        cost = self._cost(elements, inside)
        access = Access.of(self.tile, elements[inside], threads[inside])
        return Elements(access, None if inside.all() else inside, cost)

    def _outside(
        self, stage: int, positions: list[np.ndarray], wrong: np.ndarray
    ) -> faults.ThreadFault:
        shared, thread = self.tile.shared, np.argwhere(wrong)[:1, 0]
        where = [int(np.broadcast_to(p, wrong.shape)[wrong][0]) for p in positions if wrong.any()]
        what = f"stage {stage} of {shared.stages}" if not wrong.any() else f"the element at {where}"
        return self.compiler.block.fault(
            faults.OUT_OF_BOUNDS,
            f"{what} of `{shared.name.stem}`, which has {list(self.tile.extents)}",
            "let the positions of the axes, and the stage, lie in the tile",
            thread,
        )

    def _require_consecutive(self, elements: np.ndarray, inside: np.ndarray) -> None:
        """Raises ThreadFault where the threads of a warp do not copy to consecutive addresses."""
        block = self.compiler.block
        runs = elements.reshape(len(elements) // block.warp, block.warp, -1, self.direct)
        place = np.arange(block.warp).reshape(-1, 1, 1) * self.direct + np.arange(self.direct)
        wrong = (runs != runs[:, :1, :, :1] + place).reshape(inside.shape) | ~inside
        if wrong.any():
            raise block.fault(
                faults.LAYOUT,
                f"`{self.tile.shared.name.stem}`: a warp copies past the registers, and its threads' "
                f"runs of {self.direct} elements are not one after the other",
                "let the tile lie in the order of the threads, without padding or swizzle",
                np.argwhere(wrong)[:1, 0],
            )

    def _unfit(self, what: str) -> faults.ThreadFault:
        hint = "let the registers be elements of the tile, as the instruction moves them"
        what = f"`{self.tile.shared.name.stem}`: {what}"
        return self.compiler.block.fault(faults.FRAGMENT, what, hint)

    # -- what it costs ------------------------------------------------------------------------

    def _cost(self, elements: np.ndarray, inside: np.ndarray) -> tuple[int, int]:
        """The wavefronts of all warps."""
        if self.by:
            return self._cost_of_matrices(elements, inside)
        size, warp = DTYPES[self.tile.shared.dtype], self.compiler.block.warp
        last = self.tile.shared.axes[-1:]
        along = [n for n, a in enumerate(self.axes) if (a.index,) == last]
        elements, inside = (
            np.moveaxis(x, [n + 1 for n in along], [-1] * len(along)).reshape(len(x), -1)
            for x in (elements, inside)
        )
        vector = self._vector(elements, inside, self.axes[along[0]].count if along else 1)
        addresses = np.where(inside, elements * size, IDLE)[:, ::vector]
        warps = addresses.reshape(-1, warp, addresses.shape[1])
        return wavefronts(np.swapaxes(warps, 1, 2).reshape(-1, warp), vector * size)

    def _vector(self, elements: np.ndarray, inside: np.ndarray, count: int) -> int:
        """The number of adjacent, aligned registers along a row that one access moves."""
        vector = self.most
        while vector > 1:
            if count % vector == 0:
                runs = elements.reshape(-1, vector)
                fits = (runs == runs[:, :1] + np.arange(vector)).all(axis=1)
                if (fits & (runs[:, 0] % vector == 0) | ~inside.reshape(-1, vector)[:, 0]).all():
                    return vector
            vector //= 2
        return 1

    def _cost_of_matrices(self, elements: np.ndarray, inside: np.ndarray) -> tuple[int, int]:
        """The wavefronts of ldmatrix. Raises ThreadFault where the registers do not form 8 x 8
        matrices.

        Row r of a matrix is in threads 4r to 4r + 3, two registers each; transposed, column c is.
        """
        size, last = DTYPES[self.tile.shared.dtype], self.tile.shared.axes[-1]
        axes = [n for n, a in enumerate(self.axes) if (a.index == last) == (self.by == "matrix")]
        if not inside.all():
            raise self._unfit("it is loaded by matrices, which overshoot an axis")
        if size != 2 or not axes or self.axes[axes[-1]].count % 2:
            raise self._unfit(f"it has no pairs of 16-bit registers to load by `{self.by}`")
        pairs = np.moveaxis(elements, axes[-1] + 1, -1).reshape(len(elements), -1, 2)
        # [warps, threads / 4, threads % 4, matrices, 2]
        warps = pairs.reshape(-1, _MATRIX, _MATRIX // 2, pairs.shape[1], 2)
        order = (0, 3, 1, 2, 4) if self.by == "matrix" else (0, 3, 2, 4, 1)
        rows = warps.transpose(order).reshape(-1, _MATRIX, _MATRIX)
        if (rows != rows[..., :1] + np.arange(_MATRIX)).any() or (rows[..., 0] % _MATRIX).any():
            raise self._unfit(
                f"its registers are no matrices of contiguous rows to load by `{self.by}`"
            )
        return wavefronts(rows[..., 0] * size, _MATRIX * size, _MATRIX)


def shared_store(view: View, v: Variable, row: Traffic) -> Run:
    """The closure of a store to shared memory."""
    block, dtype = view.compiler.block, view.tile.shared.dtype

    def run() -> None:
        found = view.find()
        values = converted(block.whole(v), v.dtype, dtype)
        values = values.reshape(-1) if found.inside is None else values[found.inside]
        access, mask = view.access(found)
        view.memory.write(view.tile, access, values if mask is None else values[mask])
        row.executions += 1
        row.add(found.cost)

    return run


def shared_load(view: View, v: Variable, row: Traffic) -> Run:
    """The closure of a load from shared memory; a register without an element gets a poison value."""
    block, dtype = view.compiler.block, view.tile.shared.dtype
    blank = unknown(dtype)

    def run() -> None:
        if view.by:
            block.require_groups("a load of matrices")
        found = view.find()
        access, mask = view.access(found)
        values = view.memory.read(view.tile, access)
        if found.inside is not None or mask is not None:
            whole = np.full(v.shape, blank)
            where = np.ones(v.shape, np.bool_) if found.inside is None else found.inside.copy()
            if block.active is not None:
                where &= block.active.reshape(-1, *[1] * len(v.axes))
            whole[where] = values
            values = whole
        block.write(v, values.reshape(v.shape), dtype)
        row.executions += 1
        row.add(found.cost)

    return run


def copy(view: View, source: Accessor, rows: tuple[Traffic, Traffic]) -> Run:
    """The closure of a copy from global memory, which arrives at the wait for it."""
    dtype = view.tile.shared.dtype
    zero = Code.of(0, source.tensor.dtype)
    taken, put = rows

    def run() -> None:
        found = view.find()
        at = source.find()
        values = spread(source.take(at, zero), source.shape)
        values = converted(values, source.tensor.dtype, dtype)
        values = values.reshape(-1) if found.inside is None else values[found.inside]
        access, active = view.access(found)
        view.memory.start(view.tile, access, values if active is None else values[active])
        source.traffic(at, taken)
        put.executions += 1
        put.add(found.cost)

    return run


def view_of(
    compiler: Compiler,
    memory: SharedMemory,
    s: SharedStore | SharedLoad | Copy,
    axes: Sequence[Held],
    copies: np.ndarray | None,
) -> View:
    """The view of a tile for a statement."""
    tile = memory.tiles[s.tile]
    at = s.at if isinstance(s, SharedLoad) else ()
    most = max(1, WIDEST // DTYPES[tile.shared.dtype])
    if isinstance(s, Copy):
        holds = s.vector is not None and (
            s.vector.aligned is None or compiler.constants[s.vector.aligned]
        )
        most = s.vector.count if s.vector is not None and holds else 1
    size = DTYPES[tile.shared.dtype]
    direct = most if isinstance(s, Copy) and most * size == s.direct else 0
    return View(
        compiler,
        memory,
        tile,
        tuple(axes),
        _scalar(compiler, s.stage),
        tuple((tile.shared.axes.index(i), _scalar(compiler, e)) for i, e in at),
        copies,
        s.by if isinstance(s, SharedLoad) else "",
        most,
        direct,
    )


@dataclass(frozen=True, slots=True)
class WholeTile:
    """A tile at a stage, which an instruction reads without registers."""

    memory: SharedMemory
    tile: Tile
    stage: Run

    def read(self, positions: dict[str, np.ndarray], threads: np.ndarray) -> np.ndarray:
        """The elements at positions along each axis, for the threads that execute the instruction."""
        shared, block = self.tile.shared, self.memory.block
        along = [positions[i] for i in shared.axes]
        at = int(block.alike(self.stage()))
        inside = [(p >= 0) & (p < e) for p, e in zip(along, self.tile.extents)]
        if not all(i.all() for i in inside) or not 0 <= at < shared.stages:
            raise block.fault(
                faults.OUT_OF_BOUNDS,
                f"stage {at} of `{shared.name.stem}`, which has {list(self.tile.extents)} and "
                f"{shared.stages} stages, does not hold what the instruction reads",
                "let the fragment of the result lie in the tile",
            )
        offsets = self.tile.offsets(along) + at * self.tile.stage
        owners = np.broadcast_to(threads, offsets.shape)
        access = Access.of(self.tile, offsets.reshape(-1), owners.reshape(-1))
        return self.memory.read_past_registers(self.tile, access).reshape(offsets.shape)


def whole_tile(
    compiler: Compiler, memory: SharedMemory, name: Name, stage: Expr | None
) -> WholeTile:
    """A tile as an instruction reads it."""
    return WholeTile(memory, memory.tiles[name], _scalar(compiler, stage).run)


def _scalar(compiler: Compiler, expr: Expr | None) -> Code:
    return Code.constant(0) if expr is None else compiler.of(expr, ())
