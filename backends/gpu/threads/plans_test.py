"""Plans: operand layouts of instructions as distributions of axes, and warps over M and N."""

import pytest

from backends.gpu.layout.text import parse_layout
from backends.gpu.threads.distribution import Spread
from backends.gpu.threads.expressions import Typing
from backends.gpu.threads.facts import Facts, Matmul
from backends.gpu.threads.facts import Operand as Given
from backends.gpu.threads.plans import factored, plans
from backends.gpu.tile import Name
from machines.gpu.matrix_instructions import MatrixInstruction, Operand, family

A = "((4,8),(2,2,2)):((32,1),(16,8,128))"
B = "((4,8),(2,2)):((16,1),(8,64))"
C = "((4,8),(2,2)):((32,1),(16,8))"
MMA = MatrixInstruction(
    name="mma.m16n8k16.bf16",
    family="made_up",
    m=16,
    n=8,
    k=16,
    sizes_n=(8,),
    threads=32,
    a=Operand("bf16", A),
    b=Operand("bf16", B),
    c=Operand("f32", C),
    cycles=None,
    swizzles=(),
    source="PTX ISA",
)


@pytest.mark.parametrize(
    ("text", "first", "row", "column"),
    [
        # PTX ISA, mma.m16n8k16: rows and columns of each register by group and thread in group.
        (
            A,
            16,
            lambda g, t, i: g + 8 * (i >> 1 & 1),
            lambda g, t, i: 2 * t + (i & 1) + 8 * (i >> 2),
        ),
        (B, 8, lambda g, t, i: g, lambda g, t, i: 2 * t + (i & 1) + 8 * (i >> 1)),
        (C, 16, lambda g, t, i: g + 8 * (i >> 1), lambda g, t, i: 2 * t + (i & 1)),
    ],
)
def test_an_operand_of_an_instruction_is_a_product_of_two_axes(text, first, row, column):
    (m, k), registers = factored(parse_layout(text), first)
    axes = [s.axis(n, None, 32) for s, n in ((m, "m"), (k, "k"))]
    for thread_of_warp in range(32):
        for register, (r_m, r_k) in enumerate(registers):
            at = [
                a.thread(thread_of_warp) + a.register(r)
                for a, r in zip(axes, (r_m, r_k), strict=True)
            ]
            group, thread = thread_of_warp >> 2, thread_of_warp % 4
            assert at == [row(group, thread, register), column(group, thread, register)]


def planned(m, n, warps, dtype="bf16", chained=False, table=(MMA,), staged="b"):
    facts = Facts(Typing({}))
    a, b, c, d = (Name("value", v) for v in "abcd")
    for name, axes in ((a, ("m", "k")), (b, ("k", "n")), (c, ("m", "n")), (d, ("m", "e"))):
        facts.typing.known[name] = (dtype, axes)
    facts.staged = frozenset(n for n in (a, b) if n.stem in staged)
    facts.matmuls[0] = Matmul(
        c, Given(a, (("m",), ("k",))), Given(b, (("k",), ("n",))), False, dtype
    )
    if chained:
        facts.matmuls[1] = Matmul(
            d, Given(c, (("m",), ("n",))), Given(b, (("n",), ("e",))), False, dtype
        )
    widths = {"m": m, "n": n, "k": 64, "e": 64}
    return plans(facts, widths, warps, 5, table)[0]


def warps_along(spread):
    return sum(bit >= 5 for bit, _ in spread.bits)


@pytest.mark.parametrize(
    ("m", "n", "warps", "along_m", "along_n"),
    [
        (128, 128, 4, 1, 1),
        (256, 64, 4, 2, 0),
        (64, 256, 4, 0, 2),
        (16, 256, 8, 0, 3),
        (16, 16, 8, 0, 1),
    ],
)
def test_the_tiles_of_warps_are_near_to_square(m, n, warps, along_m, along_n):
    plan = planned(m, n, warps)
    assert (warps_along(plan.c[0]), warps_along(plan.c[1])) == (along_m, along_n)
    assert warps_along(plan.a[0]) == along_m and warps_along(plan.b[1]) == along_n


def test_warps_have_whole_rows_where_a_matmul_takes_the_result_of_another():
    assert warps_along(planned(128, 128, 8, chained=True).c[0]) == 3


def test_without_an_instruction_threads_have_neighbouring_rows_and_columns():
    plan = planned(64, 128, 4, dtype="f32")
    assert plan.instruction is None
    m, n = plan.c
    assert m.modes == n.modes == ((4, 1),) and len(m.bits) + len(n.bits) == 7
    assert plan.a[1] == Spread((), ((4, 1),))


WGMMA = family("wgmma")


@pytest.mark.parametrize(("dtype", "k_major"), [("bf16", False), ("tf32", True)])
def test_instructions_of_warpgroups_say_how_their_tiles_are_contiguous(dtype, k_major):
    plan = planned(128, 128, 4, dtype=dtype, table=WGMMA)
    assert plan.k_major is k_major and plan.warpgroup[2] == (8 if k_major else 16)


@pytest.mark.parametrize(
    ("m", "n", "staged", "shape"),
    [
        (128, 128, "ab", (64, 128)),  # what reads the least of shared memory
        (128, 256, "ab", (64, 256)),
        (128, 256, "b", (64, 256)),  # a computed A: no row in both warpgroups
        (64, 256, "b", (64, 128)),  # where there are rows for both
    ],
)
def test_warpgroups_share_rows_only_of_operands_that_are_loaded(m, n, staged, shape):
    plan = planned(m, n, 8, table=WGMMA, staged=staged)
    assert plan.warpgroup[:2] == shape


def test_two_neighbours_of_k_are_a_threads_own_in_tf32():
    plan = planned(64, 64, 4, dtype="tf32", table=family("mma_sync"))
    pairs = Spread(((0, 2), (1, 4)), ((2, 1),))
    assert plan.a[1] == plan.b[0] == pairs and plan.c[1].bits[:2] == pairs.bits
