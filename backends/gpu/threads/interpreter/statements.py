"""The statements of a launch, compiled to closures once for all of its blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from backends.backend import BackendError
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter import (
    accesses,
    handed,
    places,
    products,
    scans,
    signals,
    tensors,
    warpgroups,
)
from backends.gpu.threads.interpreter.counts import Traffic
from backends.gpu.threads.interpreter.expressions import Code, Compiler, Run
from backends.gpu.threads.interpreter.faults import FRAGMENT, ThreadFault
from backends.gpu.threads.interpreter.registers import Held, require_same
from backends.gpu.threads.interpreter.shared import SharedMemory
from backends.gpu.threads.interpreter.state import Block, Variable
from backends.gpu.threads.interpreter.values import joining
from backends.gpu.threads.signals import TensorMap
from backends.gpu.threads.text import statement_text
from backends.gpu.tile import Name
from machines.gpu.matrix_instructions import MatrixInstruction

Steps = tuple[tuple[to.Statement, Run], ...]


def run_all(block: Block, steps: Steps) -> None:
    """Runs statements in order."""
    for statement, run in steps:
        block.statement = statement
        run()


class Statements:
    """Makes the closures of one launch."""

    def __init__(
        self,
        compiler: Compiler,
        found: places.Places,
        memory: SharedMemory,
        table: Sequence[MatrixInstruction],
        own: signals.Signals,
        given: handed.Handed,
    ):
        self.handed = given
        self.signals = own
        self.compiler = compiler
        self.block = compiler.block
        self.places = found
        self.memory = memory
        self.table = table
        self.rows: list[Traffic] = []

    def all(self, block: Sequence[to.Statement]) -> Steps:
        """The closures of statements."""
        return tuple((s, self._one(s)) for s in block)

    def _one(self, s: to.Statement) -> Run:
        self.block.statement = s
        try:
            return getattr(self, f"_{type(s).__name__.lower()}")(s)
        except ThreadFault as fault:
            if not fault.statement:
                fault.launch, fault.statement = self.block.launch, statement_text(s)
            raise

    def _row(self, s: to.Statement, memory: str, name: Name) -> Traffic:
        row = Traffic(self.block.launch, s, memory, name)
        self.rows.append(row)
        return row

    def _copies(self, copies: int) -> np.ndarray | None:
        """The threads that store, where others hold copies."""
        return np.arange(self.block.threads) & copies == 0 if copies else None

    def _variable(self, name: Name) -> Variable:
        return self.compiler.variable(name)

    # -- registers ----------------------------------------------------------------------------

    def _each(self, s: to.Each) -> Run:
        block, v = self.block, self._variable(s.name)
        value = self.compiler.of(s.value, v.axes)
        return lambda: block.write(v, value.run(), value.dtype)

    def _positions(self, s: to.Positions) -> Run:
        block, v = self.block, self._variable(s.name)
        (axis,) = v.axes
        if s.origin is None:
            return lambda: block.write(v, axis.positions, "i32")
        origin = self.compiler.cast(self.compiler.of(s.origin, v.axes), "i32")
        return lambda: block.write(v, axis.positions + origin.run(), "i32")

    def _reduce(self, s: to.Reduce) -> Run:
        block, v = self.block, self._variable(s.name)
        axes = [self.compiler.axis(a) for a in s.axes]
        names = [a.index for a in axes]
        along = names.index(s.over)
        rest = [n for n in names if n != s.over]
        own = [a.index for a in v.axes]
        if sorted(rest) != sorted(own):
            raise BackendError("emit", f"a reduction of {names} over {s.over} gives {own}")
        for axis in v.axes:
            require_same(f"`{s.name.stem}`", axis, axes[names.index(axis.index)])
        order = (0, *(1 + rest.index(n) for n in own))
        shape = (block.threads, *(a.count for a in axes))
        value = self._summed(self.compiler.of(s.value, axes), s.reduction, v)
        joined = joining(s.reduction, s.nan)

        def run() -> None:
            data = np.broadcast_to(value.run(), shape)
            block.write(v, joined.reduce(data, axis=along + 1).transpose(order), value.dtype)

        return run

    def _summed(self, value: Code, reduction: str, v: Variable) -> Code:
        """A value in the dtype in which its reduction is computed."""
        if value.dtype == "b8" and reduction in ("sum", "prod"):
            return self.compiler.cast(value, "i32")
        return self.compiler.cast(value, "i64") if v.dtype == "i64" else value

    def _shuffle(self, s: to.Shuffle) -> Run:
        block, v = self.block, self._variable(s.name)
        joined = joining(s.reduction, s.nan)
        if not all(0 < d < block.warp for d in s.distances):
            hint = "let threads of different warps exchange through shared memory"
            raise block.fault(FRAGMENT, f"a shuffle reaches threads ^ {s.distances}", hint)
        partners = [np.arange(block.threads) ^ d for d in s.distances]

        def run() -> None:
            block.require_groups("a shuffle")
            data = block.whole(v)
            for other in partners:
                block.write(v, joined(data, data[other]), v.dtype)
                data = block.whole(v)

        return run

    def _scan(self, s: to.Scan) -> Run:
        v = self._variable(s.name)
        value = self._summed(self.compiler.of(s.value, v.axes), s.reduction, v)
        totals = self._variable(s.totals) if s.totals else None
        return scans.scan(self.block, s, v, value, totals)

    def _scanafter(self, s: to.ScanAfter) -> Run:
        v, before, totals = (self._variable(n) for n in (s.name, s.before, s.totals))
        return scans.after(self.block, s, v, before, totals)

    def _multiply(self, s: to.Multiply) -> Run:
        onto, a, b = (self._variable(n) for n in (s.to, s.a, s.b))
        first = None if s.first is None else self.compiler.of(s.first, ()).run
        scales = [self._variable(n) for n in (s.a_scale, s.b_scale) if n is not None]
        given = (onto, a, b), s.instruction, self.table, first
        return products.multiply(self.block, *given, scales)

    def _warpgroupmultiply(self, s: to.WarpgroupMultiply) -> Run:
        onto, held = self._variable(s.to), self.block.variables.get(s.a)
        tile = accesses.whole_tile
        a = None if held else tile(self.compiler, self.memory, s.a, s.a_stage)
        b = tile(self.compiler, self.memory, s.b, s.b_stage)
        return warpgroups.multiply(self.block, s, (onto, held), (a, b), self.table)

    def _tensormultiply(self, s: to.TensorMultiply) -> Run:
        tile = accesses.whole_tile
        a = tile(self.compiler, self.memory, s.a, s.a_stage)
        b = tile(self.compiler, self.memory, s.b, s.b_stage)
        codes = self.compiler.of(s.onto, ()), self.compiler.of(s.number, ())
        stages = self._stages(s.signal)
        onto = self._variable(s.to)
        return tensors.multiply(self.block, s, onto, (a, b), codes, stages, self.table)

    def _tensorload(self, s: to.TensorLoad) -> Run:
        both, number = (
            (self._variable(s.name), self._variable(s.source)),
            self.compiler.of(s.number, ()),
        )
        return tensors.load(self.block, s, both, number, self.memory)

    def _stages(self, name: Name) -> int:
        """The stages of a signal."""
        return next(x.stages for x in self.compiler.launch.signals if x.name == name)

    def _warpgroupwait(self, s: to.WarpgroupWait) -> Run:
        block, v = self.block, self._variable(s.name)
        after = self._variable(s.after) if s.after else None

        def run() -> None:
            block.require_groups("a wait for matmuls", 4 * block.warp)
            if after is not None:
                block.read(after)
            self.memory.settle(s.pending)
            block.land(s.pending)
            block.read(v)

        return run

    def _regroup(self, s: to.Regroup) -> Run:
        block, v, source = self.block, self._variable(s.name), self._variable(s.source)
        whole, parts = (source, v) if s.split else (v, source)
        groups = dict(s.groups)
        found = {a.index: a for a in parts.axes}
        order = [i for a in whole.axes for i in groups.get(a.index, (a.index,))]
        if sorted(order) != sorted(found):
            raise BackendError("emit", f"{list(found)} are not {order}")
        for axis in whole.axes:
            self._require_counted(axis, [found[i] for i in groups.get(axis.index, (axis.index,))])
        counts = (block.threads, *(found[i].count for i in order))
        names = [a.index for a in parts.axes]
        if s.split:
            turn = (0, *(1 + order.index(i) for i in names))
            return lambda: block.write(
                v, block.whole(source).reshape(counts).transpose(turn), source.dtype
            )
        turn = (0, *(1 + names.index(i) for i in order))
        return lambda: block.write(
            v, block.whole(source).transpose(turn).reshape(v.shape), source.dtype
        )

    def _part(self, s: to.Part) -> Run:
        block, v, source = self.block, self._variable(s.name), self._variable(s.source)
        if [a.index for a in v.axes] != [a.index for a in source.axes]:
            raise BackendError("emit", f"`{s.name.stem}` has other axes than what it is a part of")
        along = [a.index for a in v.axes].index(s.axis)
        own, whole = v.axes[along], source.axes[along]
        for one, other in zip(v.axes, source.axes, strict=True):
            if one is not own:
                require_same(f"`{s.name.stem}`", one, other)
        first = self.compiler.of(s.first, ()).run

        def run() -> None:
            at = int(block.alike(first()))
            held = whole.positions[:, at : at + own.count]
            if held.shape != own.positions.shape or len(np.unique(held - own.positions)) > 1:
                hint = "let a part have the first positions of all threads, and those after them"
                what = f"registers of `{s.axis}` from {at} on are no part of {own.count}"
                raise block.fault(FRAGMENT, what, hint)
            data = block.whole(source).take(np.arange(at, at + own.count), along + 1)
            block.write(v, data, source.dtype)

        return run

    def _require_counted(self, axis: Held, into: Sequence[Held]) -> None:
        """Raises ThreadFault where the registers of an axis do not enumerate those of several axes."""
        found = np.zeros((self.block.threads, 1), np.int64)
        for a in into:
            found = (found[:, :, None] * a.width + a.positions[:, None, :]).reshape(len(found), -1)
        if found.shape != axis.positions.shape or (found != axis.positions).any():
            hint = (
                "let the registers of one axis count through those of the several, the last fastest"
            )
            parts = " x ".join(a.index for a in into)
            raise self.block.fault(FRAGMENT, f"`{axis.index}` is not {parts}", hint)

    # -- memory -------------------------------------------------------------------------------

    def _load(self, s: to.Load) -> Run:
        block, v = self.block, self._variable(s.name)
        found = self.places.accessor(s.place, v.axes, s.vector)
        other = self.compiler.cast(self.compiler.of(s.other, v.axes), found.tensor.dtype)
        row = self._row(s, "global", s.place.tensor)  # type: ignore[arg-type]

        def run() -> None:
            at = found.find()
            data = found.take(at, other)
            block.write(v, data if v.axes else block.alike(data), found.tensor.dtype)
            found.traffic(at, row)

        return run

    def _store(self, s: to.Store) -> Run:
        axes = [self.compiler.axis(a) for a in s.axes]
        found = self.places.accessor(s.place, axes, s.vector)
        value, copies = self.compiler.of(s.value, axes), self._copies(s.copies)
        row = self._row(s, "global", s.place.tensor)  # type: ignore[arg-type]
        return lambda: found.traffic(places.store(found, value, copies, s.reduction), row)

    def _sharedstore(self, s: to.SharedStore) -> Run:
        v = self._variable(s.name)
        view = accesses.view_of(self.compiler, self.memory, s, v.axes, self._copies(s.copies))
        return accesses.shared_store(view, v, self._row(s, "shared", s.tile))

    def _sharedload(self, s: to.SharedLoad) -> Run:
        v = self._variable(s.name)
        view = accesses.view_of(self.compiler, self.memory, s, v.axes, None)
        return accesses.shared_load(view, v, self._row(s, "shared", s.tile))

    def _copy(self, s: to.Copy) -> Run:
        axes = [self.compiler.axis(a) for a in s.axes]
        view = accesses.view_of(self.compiler, self.memory, s, axes, None)
        source = self.places.accessor(s.place, axes, s.vector)
        taken = self._row(s, "global", s.place.tensor)  # type: ignore[arg-type]
        return accesses.copy(view, source, (taken, self._row(s, "shared", s.tile)))

    def _commit(self, s: to.Commit) -> Run:
        return self._by_all("a commit", self.memory.commit)

    def _interleave(self, s: to.Interleave) -> Run:
        return lambda: None  # it only orders instructions, not statements

    def _wait(self, s: to.Wait) -> Run:
        return self._by_all("a wait", lambda: self.memory.wait(s.pending))

    def _barrier(self, s: to.Barrier) -> Run:
        def meet() -> None:
            self.memory.barrier(s.proxy)
            self.handed.barrier(self.block)

        return self._by_all("a barrier", meet)

    def _devicefence(self, s: to.DeviceFence) -> Run:
        return lambda: self.handed.fence(self.block)

    def _raise(self, s: to.Raise) -> Run:
        flag = self.places.accessor(s.flag, ())
        return handed.raised(self.block, self.handed, self.signals.turns, flag)

    def _awaitraised(self, s: to.AwaitRaised) -> Run:
        flag = self.places.accessor(s.flag, ())
        count = None if s.count is None else self.compiler.of(s.count, ())
        return handed.awaited(self.block, self.handed, self.signals.turns, flag, count)

    def _fence(self, s: to.Fence) -> Run:
        return self.memory.fence

    def _arrive(self, s: to.Arrive) -> Run:
        return signals.arrive(self.block, self.signals, s, self.compiler.of(s.stage, ()))

    def _await(self, s: to.Await) -> Run:
        codes = (self.compiler.of(s.stage, ()), self.compiler.of(s.parity, ()))
        return signals.await_(self.block, self.signals, s, codes)

    def _clusterbarrier(self, s: to.ClusterBarrier) -> Run:
        return signals.meet(self.block, self.signals)

    def _boxcopy(self, s: to.BoxCopy) -> Run:
        tensor, at = self._described(s)
        part = None if s.part is None else self.compiler.of(s.part, ())
        codes = (at, self.compiler.of(s.stage, ()), part)
        return signals.box_copy(self.compiler, self.signals, s, tensor, codes)

    def _boxstore(self, s: to.BoxStore) -> Run:
        return signals.box_store(self.compiler, self.memory, s, *self._described(s))

    def _described(
        self, s: to.BoxCopy | to.BoxStore
    ) -> tuple[tuple[TensorMap, places.Tensor], list[Code]]:
        """The tensor of a box with its tensor map, and the start of the box."""
        found = next(m for m in self.compiler.launch.maps if m.name == s.map)
        at = [self.compiler.of(e, ()) for e in s.at]
        return (found, self.places.tensors[found.tensor]), at

    def _by_all(self, what: str, act: Callable[[], None]) -> Run:
        def run() -> None:
            self.block.require_all(what)
            act()

        return run

    # -- control ------------------------------------------------------------------------------

    def _guard(self, s: to.Guard) -> Run:
        condition = self.compiler.cast(self.compiler.of(s.condition, ()), "b8")
        body, others = self.all(s.body), self.all(s.others)
        block = self.block

        def run() -> None:
            holds = block.alike(condition.run())
            if np.ndim(holds) == 0:
                run_all(block, body if holds else others)
                return
            before = block.active
            for mask, steps in ((holds, body), (~holds, others)):
                block.active = mask if before is None else mask & before
                if block.active.any():
                    run_all(block, steps)
            block.active = before

        return run

    def _loop(self, s: to.Loop) -> Run:
        block = self.block
        if s.name not in block.variables:
            block.variables[s.name] = Variable(s.name, "i32", (), (block.threads,))
        v = self._variable(s.name)
        low, high = (self.compiler.cast(self.compiler.of(e, ()), "i32") for e in (s.low, s.high))
        body = self.all(s.body)

        def run() -> None:
            first, last = block.alike(low.run()), block.alike(high.run())
            if np.ndim(first) == np.ndim(last) == 0:
                for number in range(int(first), int(last), s.step):
                    block.write(v, np.int32(number), "i32")
                    run_all(block, body)
                return
            before, at = block.active, np.broadcast_to(first, block.threads).astype(np.int32)
            while True:
                left = at < last if before is None else (at < last) & before
                if not left.any():
                    break
                block.active = None if left.all() else left
                block.write(v, at, "i32")
                run_all(block, body)
                at = at + np.int32(s.step)
            block.active = before

        return run
