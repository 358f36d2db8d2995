"""Matmuls in tensor memory: one warp of each warpgroup issues them, and all threads load the accumulators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from backends.gpu.threads.interpreter.accesses import WholeTile
from backends.gpu.threads.interpreter.expressions import Code, Run
from backends.gpu.threads.interpreter.faults import FRAGMENT, SIGNAL, WRITE_AFTER_READ
from backends.gpu.threads.interpreter.products import computed_in, matrices
from backends.gpu.threads.interpreter.shared import SharedMemory
from backends.gpu.threads.interpreter.state import Block, Variable
from backends.gpu.threads.interpreter.warpgroups import instruction_of_shape, require_operands
from backends.gpu.threads.thread import TensorLoad, TensorMultiply
from machines.gpu.matrix_instructions import MatrixInstruction


def multiply(
    block: Block,
    s: TensorMultiply,
    onto: Variable,
    tiles: tuple[WholeTile, WholeTile],
    codes: tuple[Code, Code],
    stages: int,
    table: Sequence[MatrixInstruction],
) -> Run:
    """The closure of a matmul over all of K. onto: the accumulator. codes: whether it accumulates,
    and its number. stages: of the signal that reports its completion."""
    a, b = tiles
    m, n, _ = s.shape
    memory = b.memory
    row = instruction_of_shape(block, s, table)
    if s.pending >= stages:
        hint = "give the signal more stages than matmuls may be in flight"
        raise block.fault(SIGNAL, f"{s.pending} of {stages} stages are in flight", hint)
    of_c = matrices(block, onto, (s.instruction.c, s.instruction.c_steps), row.c, (m, n))
    rows, columns = onto.axes[-2].index, onto.axes[-1].index
    require_operands(block, s, (a, b), (rows, columns), table)
    (depth_axis,) = (i for i in b.tile.shared.axes if i != columns)
    depth = np.arange(b.tile.extents[b.tile.shared.axes.index(depth_axis)])[None]
    threads = np.arange(0, block.threads, row.threads)[:, None, None]
    kind, (adds, number) = computed_in(onto), codes

    def run() -> None:
        block.require_all("a matmul in tensor memory")
        if onto.loaded == block.barriers:
            what = f"`{onto.name.stem}` is written while threads may still load it"
            raise block.fault(WRITE_AFTER_READ, what, "put a barrier after the loads")
        block.issued = 2 * stages if block.issued is None else block.issued + 1
        if (found := int(block.alike(number.run()))) != block.issued:
            what = f"matmul {block.issued} in tensor memory has the number {found}"
            raise block.fault(SIGNAL, what, f"count them, from {2 * stages} on")
        memory.begin_matmul()
        left = a.read({rows: of_c.rows[:, :, :1], depth_axis: depth[:, None, :]}, threads)
        right = b.read({depth_axis: depth[:, :, None], columns: of_c.columns[:, :1]}, threads)
        sums = np.matmul(left.astype(kind, copy=False), right.astype(kind, copy=False))
        product = sums.reshape(-1)[of_c.home].reshape(onto.shape)
        if bool(block.alike(adds.run())):
            product = block.read(onto) + product
        block.write(onto, product, "f32")
        memory.settle(s.pending)

    return run


def load(
    block: Block,
    s: TensorLoad,
    variables: tuple[Variable, Variable],
    number: Code,
    memory: SharedMemory,
) -> Run:
    """The closure of a load to registers, after all matmuls. variables: the fragment, and the
    accumulator. number: of the latest matmul."""
    v, source = variables
    if v.shape != source.shape:
        hint = "let the accumulator have the registers of the fragment"
        raise block.fault(FRAGMENT, f"`{s.name.stem}` has other registers", hint)

    def run() -> None:
        block.require_all("a load of tensor memory")
        if block.issued is not None and int(block.alike(number.run())) != block.issued:
            what = f"it waits for matmul {int(block.alike(number.run()))}; the latest is {block.issued}"
            raise block.fault(SIGNAL, what, "wait for the latest")
        memory.settle(0)
        if source.value is None:  # nothing was added: the loaded value is not used
            block.write(v, np.full(v.shape, np.nan, np.float32), "f32")
        else:
            block.write(v, block.read(source), "f32")
        source.loaded = block.barriers

    return run
