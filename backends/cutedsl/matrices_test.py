"""What the compiler makes of operands of matrix instructions: the registers that a kernel names."""

import re

import pytest

from backends.cutedsl.testing.assembly import ptx
from backends.cutedsl.testing.fakes import installed

KERNEL = """
    x = cute.make_tensor(x_ptr, cute.make_layout(1024))
    y = cute.make_tensor(y_ptr, cute.make_layout(1024))
    a = cute.make_rmem_tensor(cute.make_layout((2, 2), stride=({a})), Float32)
    b = cute.make_rmem_tensor(cute.make_layout((2, 1), stride=({b})), Float32)
    c = cute.make_rmem_tensor(cute.make_layout((2, 2), stride=({c})), Float32)
    for i in cutlass.range_constexpr(2):
        b[i, 0] = x[32 + i]
        for j in cutlass.range_constexpr(2):
            a[i, j] = x[2 * j + i]
            c[i, j] = x[64 + 2 * i + j]
    mma(
        operand(c, (0, 0), [(0, 0), (0, 1), (1, 0), (1, 1)]),
        operand(a, (0, 0), [(0, 0), (1, 0), (0, 1), (1, 1)]),
        operand(b, (0, 0), [(0, 0), (1, 0)]),
    )
    for i in cutlass.range_constexpr(2):
        for j in cutlass.range_constexpr(2):
            y[2 * i + j] = c[i, j]
"""
EIGHT = """
    a = cute.make_rmem_tensor(cute.make_layout(16), {dtype})
    b = cute.make_rmem_tensor(cute.make_layout(8), {dtype})
    c = cute.make_rmem_tensor(cute.make_layout(4), {wide})
    load(a, x_ptr, 0)
    load(b, x_ptr, 16)
    load(c, y_ptr, 0)
    mma(operand(c, 0, [0, 1, 2, 3]), operand(a, 0, list(range(16))), operand(b, 0, list(range(8))))
    store(y_ptr, 0, c)
"""
WORD = 4  # bytes


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [("1, 2", "1, 2", "2, 1"), ("2, 1", "1, 2", "1, 2"), ("8, 1", "5, 1", "8, 1")],
)
def test_registers_of_tf32_go_to_the_instruction_in_its_order(a, b, c):
    text = ptx(KERNEL.format(a=a, b=b, c=c))
    held = {}  # which word of x a register holds
    for names, at in re.findall(
        r"ld\.global\S*\s+\{?([^}\[]+?)\}?,\s*\[%rd\d+(?:\+(\d+))?\]", text
    ):
        for n, name in enumerate(names.split(",")):
            held[name.strip()] = int(at or 0) // WORD + n
    (instruction,) = re.findall(r"mma\.sync[^;]*;", text)
    _, *operands = re.findall(r"\{([^}]*)\}", instruction)
    found = [[held[name.strip()] for name in one.split(",")] for one in operands]
    assert found == [[0, 1, 2, 3], [32, 33], [64, 65, 66, 67]]


@pytest.mark.parametrize(
    ("dtype", "wide", "types"),
    [("Int8", "Int32", "s32.s8.s8.s32"), ("Float8E5M2", "Float32", "f32.e5m2.e5m2.f32")],
)
def test_words_of_8_bit_operands_are_those_of_memory(dtype, wide, types):
    text = ptx(EIGHT.format(dtype=dtype, wide=wide), (dtype, wide))
    loads = re.findall(r"ld\.global\.v\d\.b32\s+\{([^}]*)\}", text)
    (instruction,) = re.findall(rf"mma\.sync\.aligned\.m16n8k32\.row\.col\.{types}[^;]*;", text)
    _, a, b, c = re.findall(r"\{([^}]*)\}", instruction)
    assert [a, b, c] == loads


def test_the_twin_refuses_operands_that_the_compiler_misreads():
    with installed() as kernel:
        view = kernel.matrices._tf32  # as it is, and one that keeps an operand's layout
        cute = kernel.matrices.cute
        a = cute.make_rmem_tensor(cute.make_layout((2, 2), stride=(2, 1)), kernel.matrices.Float32)
        for n in range(4):
            a[n % 2, n // 2] = kernel.matrices.Float32(n)
        own = kernel.operand(a, (0, 0), [(0, 0), (1, 0), (0, 1), (1, 1)])
        gathered = view(own)
        assert [int(gathered[n, 0, 0]) for n in range(4)] == [0, 1, 2, 3]
        pointer = cute.recast_ptr(own.iterator, dtype=kernel.matrices.TFloat32)
        atom = cute.make_tiled_mma(kernel.matrices.warp.MmaTF32Op((16, 8, 8)))
        with pytest.raises(ValueError, match="do not lie in words"):
            cute.gemm(atom, own, cute.make_tensor(pointer, own.layout), gathered, own)
