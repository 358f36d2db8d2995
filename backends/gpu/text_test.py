"""Tile programs as text: every node has one, and what is decided can be read in it."""

import pytest

from backends.gpu import tile
from backends.gpu.plain_rules import RULES
from backends.gpu.program import tile_program
from backends.gpu.text import program_text
from ir.autoschedule.autoschedule import plain
from ir.lower.lower import lower
from testing.samples.samples import KERNELS, WITH_TF32, WITH_THREADS, lowered, spec_of, workload

PRODUCT = spec_of(
    "acc[m, n] = sum(x[m, k] * w[k, n], k)",
    "y[m, n] = acc[m, n] + 1.0",
    inputs="x: f16[M, K], w: f16[K, N]",
    result="f16[M, N]",
)
TILES = (
    "tile(m, size=64)",
    "tile(n, size=64)",
    "tile(k, size=32)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
    "compute(acc, unit=matrix)",
    "pipeline(x, stages=3)",
)


def text(spec, *lines, machine=WITH_TF32, **sizes):
    made = lowered(spec, *lines, machine=machine, **({"sizes": sizes} if sizes else {}))
    return program_text(tile_program(made, machine, RULES))


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_of_the_library_prints(kernel):
    spec, sizes = workload(kernel).spec, workload(kernel).checks[0]
    made = lower(spec, plain(spec, WITH_TF32, sizes), WITH_TF32, sizes)
    assert f"launch {kernel}_0(" in program_text(tile_program(made, WITH_TF32, RULES))


def test_what_is_decided_can_be_read():
    lines = [line.strip() for line in text(PRODUCT, *TILES, M=256, N=256, K=256).splitlines()]
    for expected in (
        "launch f_0(x, w, y): 4 warps, 3 stages",
        "grid (cdiv(M, 64)) * (cdiv(N, 64))",
        "constant K_EVEN = fills(K, 32)",
        "m_at = ((tile // n_tiles) * 64)",
        "k_mask = k_positions < K or K_EVEN",
        "for k_at in 0..K, by 32, 3 stages:",
        "acc = matmul(x, w, onto=acc, f16)",
    ):
        assert expected in lines, expected


def test_copies_in_bulk_can_be_read():
    bulk = (*TILES[:-1], "pipeline(x, stages=3)", "copy(x, by=bulk)")
    found = text(PRODUCT, *bulk, machine=WITH_THREADS, M=256, N=256, K=256)
    assert "if X_BULK:\n                x = copy x_descriptor[m_at, k_at] of [64, 32]\n" in found
    assert "    box x_descriptor of x: [64, 32]\n" in found


def test_equal_nests_have_equal_programs():
    first, second = (
        tile_program(lowered(PRODUCT, *TILES, sizes=dict(M=256, N=256, K=256)), WITH_TF32, RULES)
        for _ in range(2)
    )
    assert first == second and hash(first.launches[0].body) == hash(second.launches[0].body)


def test_sorts_of_names_are_told_apart():
    assert set(tile.CONSTANTS) < set(tile.SORTS) and len(set(tile.SORTS)) == len(tile.SORTS)
