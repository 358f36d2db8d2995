"""Tensor memory (sm_100): matmuls that one thread issues, with accumulators that all threads load.

A column has 128 rows of 32 bits. Row n belongs to thread n of a warpgroup.
"""

from __future__ import annotations

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, TFloat32
from cutlass._mlir.dialects import nvvm
from cutlass.cute.nvgpu import OperandMajorMode, tcgen05

from backends.cutedsl.kernel.matrices import EIGHT, Matrix

WARP, ROWS = 32, 128
ROW = 1 << 16  # address distance between two rows
LEAST, MOST = 32, 32  # least columns per allocation, most columns per load


@cute.jit
def take_columns(count: cutlass.Constexpr) -> Any:
    """Allocates columns of tensor memory; the block waits for them. Their address passes through
    the first bytes of shared memory."""
    held = cute.arch.get_dyn_smem(Int32, 1024)
    if cute.arch.thread_idx()[0] < WARP:
        cute.arch.alloc_tmem(_taken(count), held)
        cute.arch.relinquish_tmem_alloc_permit()
    cute.arch.sync_threads()
    found = cute.arch.retrieve_tmem_ptr(Float32, 16, held)
    cute.arch.sync_threads()
    return found


@cute.jit
def give_columns_back(columns: Any, count: cutlass.Constexpr) -> None:
    """Frees the columns of a block, after a barrier that follows their last load."""
    if cute.arch.thread_idx()[0] < WARP:
        cute.arch.dealloc_tmem(columns, _taken(count))


def _taken(count: int) -> int:
    """The number of columns to allocate: the next power of two."""
    return max(LEAST, 1 << (count - 1).bit_length())


def tensor_mma(columns: Any, a: Matrix, b: Matrix, shape: tuple[int, int, int], onto: Any) -> None:
    """columns += a * b if `onto`, else columns = a * b; asynchronous until `signal_matmuls` reports
    it. A whole warp calls it; one thread issues it."""
    _fence(nvvm.Tcgen05FenceKind.AFTER_THREAD_SYNC)
    place, source = tcgen05.CtaGroup.ONE, tcgen05.OperandSource.SMEM
    majors = [OperandMajorMode.K if m.by_k else OperandMajorMode.MN for m in (a, b)]
    left, right = (_operand(m) for m in (a, b))
    dtypes = left.element_type, right.element_type
    if dtypes[0] is TFloat32:
        operation = tcgen05.MmaTF32Op(shape, place, source, *majors)
    elif dtypes[0] in EIGHT:
        operation = tcgen05.MmaF8F6F4Op(*dtypes, Float32, shape, place, source, *majors)
    else:
        operation = tcgen05.MmaF16BF16Op(dtypes[0], Float32, shape, place, source, *majors)
    atom = cute.make_tiled_mma(operation)
    atom.set(tcgen05.Field.ACCUMULATE, onto)
    own = atom.get_slice(0)
    lies = cute.make_layout(((shape[0], shape[1]), 1, 1), stride=((ROW, 1), 0, 0))
    acc = cute.make_tensor(columns, lies)
    operands = (
        atom.make_fragment_A(own.partition_A(left)),
        atom.make_fragment_B(own.partition_B(right)),
    )
    cute.gemm(atom, acc, *operands, acc)


def _operand(m: Matrix) -> Any:
    """A matrix in the instruction's form; f32 is read as tf32."""
    if m.tensor.element_type is not Float32:
        return m.tensor
    # The swizzle for this panel width
    bits = (m.panel * Float32.width // 8 >> 4).bit_length() - 1
    swizzle = cute.make_swizzle(bits, 4, 3)
    pointer = cute.recast_ptr(m.tensor.iterator, swizzle, TFloat32)
    return cute.make_tensor(pointer, m.tensor.layout)


@cute.jit
def signal_matmuls(signal: Any) -> None:
    """One thread of the issuing warp arrives at a signal when all its earlier matmuls are
    complete."""
    with cute.arch.elect_one():
        tcgen05.commit(signal)


def load_columns(columns: Any, to: Any) -> None:
    """Loads each thread's registers from consecutive columns in its row."""
    _fence(nvvm.Tcgen05FenceKind.AFTER_THREAD_SYNC)
    count = cute.size(to)
    each = min(count & -count, MOST)
    atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition(each)), Float32)
    for at in range(0, count, each):
        lies = cute.make_layout((ROWS, each), stride=(ROW, 1))
        source = cute.make_tensor(columns + at, lies)
        copy = tcgen05.make_tmem_copy(atom, source)
        own = copy.get_slice(cute.arch.thread_idx()[0] % ROWS)
        registers = cute.make_layout(((each, 1), 1, 1))
        cute.copy(copy, own.partition_S(source), cute.make_tensor(to.iterator + at, registers))
    cute.arch.fence_view_async_tmem_load()
    _fence(nvvm.Tcgen05FenceKind.BEFORE_THREAD_SYNC)


def _fence(kind: Any) -> None:
    """Orders matmuls and loads of tensor memory relative to barriers and signals."""
    nvvm.tcgen05_fence(kind)
