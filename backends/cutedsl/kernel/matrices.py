"""Matrix instructions of warps and warpgroups, on fragments in registers and tiles in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cutlass.cute as cute
from cutlass import Float8E4M3FN, Float8E5M2, Float32, Int8, Int32, TFloat32, Uint8, Uint32, Uint64
from cutlass._mlir.dialects import llvm
from cutlass.cute.nvgpu import OperandMajorMode, warp, warpgroup

from backends.cutedsl.kernel.memory import layout_of

EIGHT = {Int8: "s8", Uint8: "u8", Float8E4M3FN: "e4m3", Float8E5M2: "e5m2"}


def operand(fragment: Any, at: Any, offsets: Sequence[Any]) -> Any:
    """The registers of an instruction's operand: one at `at`, the others at offsets from it.
    Registers that share a 32-bit word must be contiguous."""
    places = [cute.crd2idx(o, fragment.layout) for o in offsets]
    shared = 32 // min(fragment.element_type.width, 32)
    if any(places[n] != n for n in range(shared)):
        raise ValueError("the registers of an operand do not lie in words")
    found = layout_of([p - places[0] for p in places])
    first = cute.crd2idx(at, fragment.layout)
    layout = cute.make_layout((found.shape, 1, 1), stride=(found.stride, 0, 0))
    return cute.make_tensor(fragment.iterator + first, layout)


def result(fragment: Any, at: Any, columns: int) -> Any:
    """The registers of a warpgroup's result from `at` on, in the instruction's order."""
    first = cute.crd2idx(at, fragment.layout)
    return cute.make_tensor(
        fragment.iterator + first, cute.make_layout(((2, 2, columns // 8), 1, 1))
    )


def _tf32(view: Any) -> Any:
    """Copies an operand's registers so that they are contiguous. For other layouts the compiler
    halves the strides, as for 16-bit elements, and reads the wrong registers."""
    count = cute.size(view)
    held = cute.make_rmem_tensor(count, Float32)
    for n in range(count):
        held[n] = view[n]
    pointer = cute.recast_ptr(held.iterator, dtype=TFloat32)
    return cute.make_tensor(pointer, cute.make_layout((count, 1, 1)))


def mma(acc: Any, a: Any, b: Any) -> None:
    """acc += a * b in a warp: m16n8k32 for 8-bit operands, m16n8k16 for 16-bit ones, m16n8k8 for
    tf32."""
    if a.element_type in EIGHT:
        _eight_mma(acc, a, b)
        return
    if a.element_type is Float32:
        atom = cute.make_tiled_mma(warp.MmaTF32Op((16, 8, 8)))
        a, b = _tf32(a), _tf32(b)
    else:
        atom = cute.make_tiled_mma(warp.MmaF16BF16Op(a.element_type, Float32, (16, 8, 16)))
    cute.gemm(atom, acc, a, b, acc)


def _words(view: Any) -> list[Any]:
    """An operand's 8-bit registers packed into 32-bit words."""
    count = cute.size(view)
    words = cute.make_rmem_tensor(count // 4, Uint32)
    pointer = cute.recast_ptr(words.iterator, dtype=view.element_type)
    elements = cute.make_tensor(pointer, cute.make_layout(count))
    for n in range(count):
        elements[n] = view[n]
    return [words[n] for n in range(count // 4)]


def _eight_mma(acc: Any, a: Any, b: Any) -> None:
    """acc += a * b for 8-bit operands. CuTe DSL has no such warp-level operation for integers."""
    dtype = acc.element_type
    wide, letter = ("s32", "r") if dtype is Int32 else ("f32", "f")
    words = [w.ir_value() for w in (*_words(a), *_words(b))]
    text = (
        f"mma.sync.aligned.m16n8k32.row.col.{wide}.{EIGHT[a.element_type]}.{EIGHT[b.element_type]}.{wide}"
        " {$0, $1, $2, $3}, {$8, $9, $10, $11}, {$12, $13}, {$4, $5, $6, $7};"
    )
    made = llvm.inline_asm(
        llvm.StructType.get_literal([dtype.mlir_type] * 4),
        [*(acc[n].ir_value() for n in range(4)), *words],
        text,
        ",".join([f"={letter}"] * 4 + [str(n) for n in range(4)] + ["r"] * len(words)),
    )
    for n in range(4):
        acc[n] = dtype(llvm.extractvalue(dtype.mlir_type, made, [n]))


def keep_order(x: Any) -> None:
    """Makes the computation of x's registers precede a following wait: the compiler may move a wait
    to an earlier place, but not past a branch. It has no other effect."""
    for n in range(cute.size(x)):
        _keep_before_waits(x[n])


def _keep_before_waits(x: Any) -> None:
    text = "{\n.reg .pred p;\nsetp.eq.f32 p, $0, 0fCF000000;\n@p nanosleep.u32 0;\n}"
    llvm.inline_asm(None, [Float32(x).ir_value()], text, "f", has_side_effects=True)


def load_matrices(tile: Any, at: Any, to: Any, registers: Sequence[Any], transposed: bool) -> None:
    """Loads 8 x 8 matrices of 16-bit elements into pairs of registers. Groups of eight threads give
    the addresses of a matrix's rows."""
    count = len(registers) // 2
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transposed, count), tile.element_type)
    held = cute.make_rmem_tensor((2 * count,), tile.element_type)
    offset = cute.assume(cute.crd2idx(at, tile.layout), divby=8)
    row = cute.make_tensor(tile.iterator + offset, cute.make_layout((8,)))
    cute.copy_atom_call(atom, row, held)
    for n, register in enumerate(registers):
        to[register] = held[n]


@dataclass(frozen=True, slots=True)
class Matrix:
    """An operand in shared memory, M or N by K, in panels of `panel` elements."""

    tensor: Any
    by_k: bool  # whether K is the contiguous dimension
    panel: int
    rows: int  # rows of the whole tile


def matrix(tile: Any, at: Any, shape: Sequence[int], by_k: bool, panel: int, rows: int) -> Matrix:
    """The part of a tile from an element on, in the form of a warpgroup's instruction."""
    mn, k = shape
    if by_k:
        layout = cute.make_layout((mn, k), stride=(panel, 1))
    elif mn <= panel:
        layout = cute.make_layout((mn, k), stride=(1, panel))
    else:
        layout = cute.make_layout(((panel, mn // panel), k), stride=((1, rows * panel), panel))
    first = tile.iterator + cute.crd2idx(at, tile.layout)
    return Matrix(cute.make_tensor(first, layout), by_k, panel, rows)


def warpgroup_mma(acc: Any, a: Any, b: Matrix, shape: tuple[int, int, int]) -> None:
    """acc += a * b in four warps, asynchronous until a wait. a: a matrix, or registers."""
    held = not isinstance(a, Matrix)
    left, right = a.element_type if held else a.tensor.element_type, b.tensor.element_type
    if right is Float32:
        _tf32_mma(acc, a, b, shape[1])
        return
    majors = [OperandMajorMode.K if k else OperandMajorMode.MN for k in (held or a.by_k, b.by_k)]
    source = warpgroup.OperandSource.RMEM if held else warpgroup.OperandSource.SMEM
    if right in EIGHT:
        op = warpgroup.MmaI8Op if acc.element_type is Int32 else warpgroup.MmaF8Op
        operation = op(left, right, acc.element_type, shape, source, *majors)
    else:
        operation = warpgroup.MmaF16BF16Op(right, Float32, shape, source, *majors)
    atom = cute.make_tiled_mma(operation)
    atom.set(warpgroup.Field.ACCUMULATE, True)
    own = atom.get_slice(0)
    operand_a = a if held else atom.make_fragment_A(own.partition_A(a.tensor))
    cute.gemm(atom, acc, operand_a, atom.make_fragment_B(own.partition_B(b.tensor)), acc)


def _tf32_mma(acc: Any, a: Any, b: Matrix, columns: int) -> None:
    """acc += a * b for tf32, which CuTe DSL does not support; K is contiguous in both operands."""
    count = columns // 2  # accumulator registers of a thread
    left = [_descriptor(a)] if isinstance(a, Matrix) else [a[n].ir_value() for n in range(4)]
    results = ", ".join(f"${n}" for n in range(count))
    operands = ", ".join(f"${2 * count + n}" for n in range(len(left)))
    operands = operands if len(left) == 1 else "{" + operands + "}"
    text = (
        "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"
        f"wgmma.mma_async.sync.aligned.m64n{columns}k8.f32.tf32.tf32 {{{results}}}, {operands}, "
        f"${2 * count + len(left)}, p, 1, 1;\n}}"
    )
    constraints = ["=f"] * count + [str(n) for n in range(count)]
    constraints += ["l" if len(left) == 1 else "f"] * len(left) + ["l"]
    if len(left) == 4:  # registers are 32 bits wide for any dtype
        left = [Uint32(a[n].bitcast(Uint32)).ir_value() for n in range(4)]
        constraints[2 * count : 2 * count + 4] = ["r"] * 4
    made = llvm.inline_asm(
        llvm.StructType.get_literal([Float32.mlir_type] * count),
        [*(acc[n].ir_value() for n in range(count)), *left, _descriptor(b)],
        text,
        ",".join(constraints),
        has_side_effects=True,
    )
    for n in range(count):
        acc[n] = Float32(llvm.extractvalue(Float32.mlir_type, made, [n]))


def _descriptor(m: Matrix) -> Any:
    """The wgmma descriptor of a matrix: its address, and the strides of panels and of groups of 8
    rows, in units of 16 bytes."""
    row = m.panel * m.tensor.element_type.width // 8
    swizzle = {128: 1, 64: 2, 32: 3}[row]
    fixed = (m.rows * row >> 4) << 16 | (8 * row >> 4) << 32 | swizzle << 62
    start = Uint64(Uint32(m.tensor.iterator.toint())) >> 4
    return (start | Uint64(fixed)).ir_value()
