"""Stream-K at the tiles of large matmuls: no spills, matmuls in flight, and right where shares are cut
across tiles. Only this backend offers it."""

from __future__ import annotations

import subprocess

import pytest

from backends.cuda.testing.emulation import emulated, machine_of
from backends.cuda.testing.samples import backend, nest_of, work_of
from backends.gpu.cubins.code import cuobjdump
from backends.measure import compare, reference
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from testing.slow import slow

TILES = """schedule(dense)
tile(m, size=128)
tile(n, size={n})
tile(k, size=64)
place(m.outer, level=grid)
place(n.outer, level=grid)
compute(acc, unit=matrix)
pipeline(x, stages=3)
pipeline(w, stages=3)
threads(y, count=256)
persistent(y, programs=1)
"""
SHARED, BULK = "stream_k(y, over=k)\n", "copy(x, by=bulk)\ncopy(w, by=bulk)\n"
WORK = work_of("staged")


def dense(machine, columns, more=SHARED):
    schedule = parse_schedule(TILES.format(n=columns) + more)
    return lower(WORK.spec, schedule, machine, WORK.tune)


@pytest.mark.parametrize(
    "target, columns, more",
    [
        ("a100", 128, SHARED),
        slow("h100", 128, SHARED),
        slow("h100", 256, SHARED + BULK),
        ("h100", 128, f"{SHARED}{BULK}copy(y, by=bulk)\nroles(y, producers=32)\n"),
    ],
)
def test_large_tiles_spill_nothing_and_keep_matmuls_in_flight(target, columns, more, tmp_path):
    machine = machine_of(target)
    nest = dense(machine, columns, more)
    built = backend().build(backend().emit(nest, machine), nest, machine, tmp_path)
    assert built.figures["spills"] == 0
    if BULK in more:
        (image,) = tmp_path.glob("*.cubin")
        words = [str(cuobjdump()), "-sass", str(image)]
        sass = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert 0 < sass.count("WARPGROUP.DEPBAR") < sass.count("HGMMA")


@pytest.mark.parametrize("target, name", [slow("a100", "stream_k"), ("h100", "stream_k_by_roles")])
def test_shares_that_are_cut_across_tiles_give_the_sum(target, name, tmp_path):
    machine, nest = machine_of(target), nest_of(name, target)
    sizes = dict(M=200, K=1048, N=264)  # 20 tiles of 33 iterations
    known = reference(nest.spec, sizes, 7)
    source = backend().emit(nest, machine)
    found = emulated(source, nest, machine, sizes, known.inputs, tmp_path)
    for output, array in found.items():
        compare(nest.spec, sizes, output, array, known)
    found = backend()._interpreted(nest, machine, sizes, known.inputs)
    for output, array in found.items():
        compare(nest.spec, sizes, output, array, known)
