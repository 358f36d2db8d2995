"""Decisions on matmuls: the instruction and the parts of warps are those of the schedule, and results
stay right."""

from dataclasses import replace

import numpy as np
import pytest

from backends.backend import BackendError
from backends.gpu.plain_rules import RULES
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.program import thread_program
from backends.gpu.threads.testing.lowered_samples import (
    GRID,
    MATMUL,
    PRODUCT,
    WARPGROUPS,
    WARPS,
    of,
    tiles,
)
from backends.gpu.threads.thread import Multiply, ThreadProgram, WarpgroupMultiply
from backends.shared.arrays import from_device, to_device
from ir.errors import KernelError
from ir.nest.nest import Parameter
from ir.reference.rounding import round_to
from ir.spec import Size
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

SIZES = {"M": 128, "N": 128, "K": 64}


CHIP = replace(WITH_INSTRUCTIONS, details={"gpu": {"instructions": ["mma_sync", "wgmma"]}})
SPEC = spec_of(PRODUCT, "y[m, n] = acc[m, n]", **MATMUL)


def made(*lines, count=128, table=WARPGROUPS, unit="matrix", **extents):
    extents = extents or {"m": 128, "n": 128, "k": 32}
    own = (f"compute(acc, unit={unit})", f"threads(y, count={count})", *lines)
    nest = lowered(SPEC, *tiles(**extents), *GRID, *own, sizes=SIZES, machine=CHIP)
    return thread_program(nest, CHIP, RULES, table).launches[-1]


@pytest.mark.parametrize(
    ("line", "kind", "shape"),
    [
        ("instruction(acc, shape=m16n8k16)", Multiply, "m16n8k16"),
        ("instruction(acc, shape=m64n32k16)", WarpgroupMultiply, "m64n32k16"),
        ("instruction(acc, shape=m64n128k16)", WarpgroupMultiply, "m64n128k16"),
        ("warps(acc, m=2, n=2)", Multiply, "m16n8k16"),
        ("warps(acc, m=4, n=1)", WarpgroupMultiply, "m64n128k16"),
    ],
)
def test_the_instruction_is_the_one_that_is_decided(line, kind, shape):
    (found,) = of(kind, made(line))
    assert shape in found.instruction.name


@pytest.mark.parametrize(
    ("parts", "rows", "columns"), [((1, 4), 128, 32), ((2, 2), 64, 64), ((4, 1), 32, 128)]
)
def test_each_warp_has_its_part_of_the_result(parts, rows, columns):
    m, n = parts
    launch = made(f"warps(acc, m={m}, n={n})", "instruction(acc, shape=m16n8k16)")
    (found,) = of(Multiply, launch)
    of_m, of_n = launch.fragment(found.to).axes
    for axis, extent, whole in ((of_m, rows, 128), (of_n, columns, 128)):
        repeats = -(-whole // axis.span)
        held = {
            axis.thread(t) + axis.register(r) + again * axis.span
            for t in range(32)  # the first warp
            for r in range(axis.register.size)
            for again in range(repeats)
        }
        assert len(held) == extent


@pytest.mark.parametrize("count", [128, 256])
@pytest.mark.parametrize("shape", ["m16n8k16", "m64n32k16", "m64n64k16"])
def test_all_parts_give_the_same_result(count, shape):
    warps = count // 32
    step = 4 if shape.startswith("m64") else 1
    for m in (p for p in (1, 2, 4, 8) if p % step == 0 and p <= warps):
        lines = (f"warps(acc, m={m}, n={warps // m})", f"instruction(acc, shape={shape})")
        assert_right(made(*lines, count=count))


def assert_right(launch):
    types = {"x": ("M", "K"), "w": ("K", "N"), "y": ("M", "N")}
    tensors = tuple(
        Parameter(n, "bf16", tuple(map(Size, dims)), "output" if n == "y" else "input")
        for n, dims in types.items()
    )
    program = ThreadProgram("matmul", ((None, (launch,)),), tensors)
    rng = np.random.default_rng(0)
    drawn = {
        n: round_to(rng.standard_normal([SIZES[d] for d in dims]).astype("f4"), "bf16")
        for n, dims in types.items()
    }
    given = {n: to_device(a, "bf16") for n, a in drawn.items()}
    interpret(program, SIZES, given, WARPGROUPS, 1 << 20, 0)
    exact = drawn["x"].astype("f8") @ drawn["w"].astype("f8")
    found = from_device(given["y"], "bf16").astype("f8")
    assert np.allclose(found, exact, rtol=1e-2, atol=1e-1)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("instruction(acc, shape=m16n8k9)",), "no matrix instruction of shape `m16n8k9`"),
        (("instruction(acc, shape=m16n8k8)",), "`m16n8k8` does not multiply bf16"),
        (("instruction(acc, shape=m64n256k16)",), "computes more"),
        (("warps(acc, m=2, n=4)",), "2 x 4 parts for the warps of a block, which has 4"),
        (("warps(acc, m=3, n=1)",), "no power of two"),
        (
            ("warps(acc, m=2, n=2)", "instruction(acc, shape=m64n64k16)"),
            "executed by 4 warps, which lie along M",
        ),
        (("warps(acc, m=1, n=4)", "instruction(acc, shape=m16n8k16)"), ""),
    ],
)
def test_what_does_not_go_together_is_refused_in_lowering(lines, words):
    if not words:
        made(*lines)
        return
    with pytest.raises(KernelError) as seen:
        made(*lines)
    assert words in str(seen.value) and seen.value.place


def test_parts_smaller_than_the_instruction_are_refused():
    with pytest.raises(KernelError, match="too few for 1 x 4 parts of m16n8k16"):
        made("warps(acc, m=1, n=4)", m=16, n=16, k=32)


def test_a_matmul_on_the_vector_unit_has_no_instruction():
    with pytest.raises(KernelError, match="is not done on the matrix unit"):
        made("instruction(acc, shape=m16n8k16)", unit="vector")


def test_what_the_language_cannot_multiply_so_is_refused_when_it_is_emitted():
    with pytest.raises(BackendError, match="is not multiplied in bf16 by m64n64k16"):
        made("instruction(acc, shape=m64n64k16)", table=WARPS)
