"""Matrix instructions against the formulas of the vendors' manuals, by one-hot matrices.

The formulas say row and column of each thread's elements. They are written here as the manuals
write them, and independently of the layouts in machines/gpu/instructions/.
"""

from dataclasses import replace

import numpy as np
import pytest

from backends.gpu.layout.text import parse_swizzle
from backends.gpu.matrix.fragments import fragments, multiply
from ir.errors import KernelError
from machines.gpu.matrix_instructions import families, family

INSTRUCTIONS = [i for name in families() for i in family(name)]
BITS = {"f64": 64, "f32": 32, "tf32": 32, "i32": 32, "f16": 16, "bf16": 16}


def bits(dtype):
    return BITS.get(dtype, 8)


# PTX, by the number of the thread in its warp: groupID = thread >> 2, threadID_in_group = thread % 4.


def mma_a(thread, i, dtype):
    """Row and column of a_i of mma.m16n8k8 (tf32), .m16n8k16 (16 bits), .m16n8k32 (8 bits)."""
    group, within = thread >> 2, thread % 4
    if bits(dtype) == 32:
        return group + (8 if i in (1, 3) else 0), within + (4 if i in (2, 3) else 0)
    if bits(dtype) == 16:
        low = 0 <= i < 2 or 4 <= i < 6
        return group + (0 if low else 8), within * 2 + (i & 1) + (8 if i >= 4 else 0)
    low = 0 <= i < 4 or 8 <= i < 12
    return group + (0 if low else 8), within * 4 + (i & 3) + (16 if i >= 8 else 0)


def mma_b(thread, i, dtype):
    """Row (of K) and column (of N) of b_i."""
    group, within = thread >> 2, thread % 4
    if bits(dtype) == 32:
        return within + (4 if i == 1 else 0), group
    if bits(dtype) == 16:
        return within * 2 + (i & 1) + (8 if i >= 2 else 0), group
    return within * 4 + (i & 3) + (16 if i >= 4 else 0), group


def mma_c(thread, i, dtype):
    """Row and column of c_i of all shapes m16n8."""
    group, within = thread >> 2, thread % 4
    return group + (0 if i < 2 else 8), within * 2 + (i & 1)


def wgmma_a(thread, i, dtype):
    """A of wgmma in registers: each warp has 16 rows, in which it lies as A of mma.m16 does."""
    row, column = mma_a(thread % 32, i, dtype)
    return 16 * (thread // 32) + row, column


def wgmma_d(thread, i, dtype):
    """D of wgmma.m64nN: d_i of each 8 columns as C of mma.m16n8, in rows of a warp."""
    row, column = mma_c(thread % 32, i % 4, dtype)
    return 16 * (thread // 32) + row, 8 * (i // 4) + column


def tcgen05_d(thread, i, dtype):
    """D of tcgen05.mma of 128 rows as tcgen05.ld of 32x32b gives it: each warp has 32 rows, each of its
    threads one, with a column in each register."""
    return 32 * (thread // 32) + thread % 32, i


# AMD's calculator: the thread and the GPR of an element; `side` is M, equal to N. A thread's values
# are counted over its GPRs, each of which holds as many as 32 bits do.


def mfma_a(thread, i, side, k):
    """A i: thread % side; A k: (values of a thread) * floor(thread / side) + value."""
    return thread % side, k * side // 64 * (thread // side) + i


def mfma_a_f8f6f4(thread, i, side, k):
    """Of a thread's 32 values of 8 bits, 16 lie in each half of K."""
    return thread % side, 16 * (thread // side) + k // 2 * (i // 16) + i % 16


def mfma_d(thread, i, side, dtype):
    """D i: 8 * floor(GPR / 4) % 32 + 4 * floor(thread / side) + GPR % 4; D j: thread % side.

    In f64 each value takes two GPRs: 2 * floor(i / 4) and the next, of thread 16 * (i % 4) + j.
    """
    if dtype == "f64":
        return 4 * i + thread // 16, thread % 16
    return 8 * (i // 4) % 32 + 4 * (thread // side) + i % 4, thread % side


def documented(instruction):
    """Functions (thread, register) -> (row, column) of A (M x K), B (K x N) and D (M x N)."""
    one, a, b, c = instruction, instruction.a.dtype, instruction.b.dtype, instruction.c.dtype
    if one.family.startswith("mfma"):
        of_a = mfma_a_f8f6f4 if "f8f6f4" in one.name else mfma_a
        return (
            lambda t, i: of_a(t, i, one.m, one.k),
            lambda t, i: of_a(t, i, one.n, one.k)[::-1],
            lambda t, i: mfma_d(t, i, one.m, c),
        )
    if one.family == "wgmma":
        return lambda t, i: wgmma_a(t, i, a), None, lambda t, i: wgmma_d(t, i, c)
    if one.family == "tcgen05":
        return None, None, lambda t, i: tcgen05_d(t, i, c)
    return lambda t, i: mma_a(t, i, a), lambda t, i: mma_b(t, i, b), lambda t, i: mma_c(t, i, c)


def places(formula, threads, rows, columns):
    """The (thread, register) of each element of a matrix, which must be one."""
    found = {}
    for thread in range(threads):
        for register in range(rows * columns // threads):
            at = formula(thread, register)
            assert at not in found, f"{at} is held twice"
            found[at] = thread, register
    assert set(found) == {(r, c) for r in range(rows) for c in range(columns)}
    return found


def sizes(instruction):
    """The least N, one in the middle and the greatest."""
    found = instruction.sizes_n
    return sorted({found[0], found[len(found) // 3], found[-1]})


def name(instruction):
    dtypes = (instruction.a.dtype, instruction.b.dtype, instruction.c.dtype)
    return "-".join((instruction.family, instruction.name, *dtypes))


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=name)
def test_layouts_are_the_formulas_of_the_manual(instruction):
    of_a, of_b, of_d = documented(instruction)
    for n in sizes(instruction):
        held = fragments(instruction, n)
        m, k = held.m, held.k
        if of_a:
            for (row, column), at in places(of_a, held.threads, m, k).items():
                assert held.a(*at) == row + m * column
        else:
            assert held.a is None
        for (row, column), at in places(of_d, held.threads, m, n).items():
            assert held.c(*at) == row + m * column
        if of_b:
            for (row, column), at in places(of_b, held.threads, k, n).items():
                assert held.b(*at) == column + n * row
        else:
            assert held.b is None


def spread(matrix, formula, threads):
    """The fragments of a matrix by the manual's formula."""
    if formula is None:
        return matrix
    registers = matrix.size // threads
    return np.array([[matrix[formula(t, i)] for i in range(registers)] for t in range(threads)])


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=name)
def test_one_hot_operands_set_the_one_right_element(instruction):
    """A has its 1 at (i, p) and B at (q, j): D is 1 at (i, j) where p = q, else 0."""
    of_a, of_b, of_d = documented(instruction)
    held = fragments(instruction)
    m, n, k, threads = held.m, held.n, held.k, held.threads
    at_d = places(of_d, threads, m, n)
    whole_a = {(i, p): (i, p) for i in range(m) for p in range(k)}
    at_a = places(of_a, threads, m, k) if of_a else whole_a
    at_b = (
        places(of_b, threads, k, n)
        if of_b
        else {(q, j): (j, q) for q in range(k) for j in range(n)}
    )
    rng = np.random.default_rng(0)
    for row in range(m):
        p, column = int(rng.integers(k)), int(rng.integers(n))
        for q in (p, int(rng.integers(k))):
            a = np.zeros((threads, m * k // threads) if of_a else (m, k), np.float32)
            b = np.zeros((threads, n * k // threads) if of_b else (n, k), np.float32)
            a[at_a[row, p]] = 1
            b[at_b[q, column]] = 1
            d = multiply(held, a, b, np.zeros((threads, m * n // threads), np.float32))
            assert d.sum() == (p == q)
            assert d[at_d[row, column]] == (p == q)


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=name)
def test_all_elements_of_a_product_are_right(instruction):
    """Small integers, exact in f32; C is added; several multiplications at once."""
    of_a, of_b, of_d = documented(instruction)
    rng = np.random.default_rng(1)
    for n in sizes(instruction):
        held = fragments(instruction, n)
        a, b, c = (
            rng.integers(-4, 5, (2, *shape)).astype(np.float32)
            for shape in ((held.m, held.k), (held.k, n), (held.m, n))
        )
        by_thread = (
            np.stack([spread(one, formula, held.threads) for one in both])
            for both, formula in ((a, of_a), (b if of_b else b.swapaxes(1, 2), of_b), (c, of_d))
        )
        wanted = np.stack([spread(one, of_d, held.threads) for one in a @ b + c])
        assert (multiply(held, *by_thread) == wanted).all()


def test_operands_in_shared_memory_are_whole_matrices():
    one = next(i for i in family("wgmma") if i.a.dtype == "bf16")
    rng = np.random.default_rng(2)
    a = rng.integers(-4, 5, (64, 16)).astype(np.float32)
    b = rng.integers(-4, 5, (24, 16)).astype(np.float32)
    c = np.zeros((128, 12), np.float32)
    shared, held = fragments(one, 24, a="shared"), fragments(one, 24)
    assert shared.a is None and held.a is not None
    found = multiply(shared, a, b, c)
    assert (found == spread(a @ b.T, lambda t, i: wgmma_d(t, i, "f32"), 128)).all()


def test_wgmma_has_the_n_of_the_manual():
    by_type = {i.a.dtype: i.sizes_n for i in family("wgmma")}
    assert by_type["f16"] == by_type["tf32"] == by_type["f8e5m2"] == tuple(range(8, 257, 8))
    assert by_type["i8"] == (8, 16, 24, 32, *range(48, 257, 16))
    assert len(fragments(family("wgmma")[0], 256).c[1].indices()) == 128


def test_what_an_instruction_does_not_have_is_refused():
    wide, warp = family("wgmma")[-1], family("mma_sync")[0]
    with pytest.raises(KernelError, match="no N of 40"):
        fragments(wide, 40)
    with pytest.raises(KernelError, match="B from 'registers'"):
        fragments(wide, b="registers")
    with pytest.raises(KernelError, match="A from 'shared'"):
        fragments(warp, a="shared")
    with pytest.raises(KernelError, match="shape"):
        multiply(fragments(warp), np.zeros((32, 4)), np.zeros((32, 4)), np.zeros((32, 4)))


def changed(instruction, registers):
    """An instruction with another layout of A."""
    return replace(instruction, a=replace(instruction.a, registers=registers))


@pytest.mark.parametrize(
    ("registers", "fault"),
    [
        ("((4,8),(2,2,2)):((32,1),(16,8,64))", "does not hold each of 256 elements once"),
        ("((4,8),(2,2)):((32,1),(16,8))", "does not hold each of 256 elements once"),
        ("((4,4),(2,2,4)):((32,1),(16,8,128))", "of 32 threads"),
    ],
)
def test_a_layout_that_does_not_cover_its_matrix_is_refused(registers, fault):
    with pytest.raises(KernelError, match=fault):
        fragments(changed(family("mma_sync")[0], registers))


def test_every_swizzle_of_a_family_keeps_16_bytes_together():
    swizzles = {s for i in INSTRUCTIONS for s in i.swizzles}
    assert {parse_swizzle(s).base for s in swizzles} == {4}
