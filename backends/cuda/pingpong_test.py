"""Ping-pong consumers: the text is right thread by thread, and is built without spills."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from backends.backend import BackendError
from backends.cuda.testing.emulation import emulated, machine_of
from backends.cuda.testing.samples import BULK_CASES, backend, work_of
from backends.gpu.cubins.code import cuobjdump
from backends.measure import compare, reference
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from testing.slow import slow

CHIP = machine_of("h200")
SMALL = replace(CHIP, levels={**CHIP.levels, "grid": 2})  # whose blocks each have several tiles
CASE = BULK_CASES["pingpong"]
STORED = "copy(y, by=bulk)\n"
TILES = "tile(m, size=64)\ntile(n, size=64)\ntile(k, size=32)"


def lowered(schedule, machine=SMALL):
    work = work_of("pingpong")
    return lower(work.spec, parse_schedule(f"schedule(dense)\n{schedule}\n"), machine, work.tune)


@pytest.mark.parametrize(
    "schedule",
    [
        CASE,
        slow(CASE.replace(STORED, "") + "\nepilogue(y, by=shared, columns=32)"),
        slow(CASE + "\ncluster(m, size=2)"),
    ],
    ids=["by boxes", "some columns at a time", "in clusters"],
)
def test_results_are_right(schedule, tmp_path):
    nest = lowered(schedule)
    source = backend().emit(nest, SMALL)
    assert "sync_group<128>(consumer)" in source and "tile += 2 * gridDim.x" in source
    for sizes in (dict(M=200, K=136, N=264), dict(M=330, K=72, N=67), dict(M=64, K=32, N=64)):
        known = reference(nest.spec, sizes, 7)
        found = emulated(source, nest, SMALL, sizes, known.inputs, tmp_path)
        for output, array in found.items():
            compare(nest.spec, sizes, output, array, known)
        backend()._interpreted(nest, SMALL, sizes, known.inputs)


def test_a_convolution_over_filter_taps_is_right(tmp_path):
    work = work_of("windowed")
    case = BULK_CASES["windowed"].replace("\ncluster(o, size=2)", "")
    lines = f"schedule({work.spec.name})\n{case}\npersistent(y, programs=1)\npingpong(y)\n"
    nest = lower(work.spec, parse_schedule(lines), SMALL, work.tune)
    source = backend().emit(nest, SMALL)
    assert "consumer * (cdiv(C, 64) * (3 * 3))" in source
    sizes = dict(B=2, H=11, W=35, C=72, O=72, P=6, Q=18)
    known = reference(nest.spec, sizes, 7)
    found = emulated(source, nest, SMALL, sizes, known.inputs, tmp_path)
    compare(nest.spec, sizes, "y", found["y"], known)
    backend()._interpreted(nest, SMALL, sizes, known.inputs)


@pytest.mark.parametrize("tile", [(128, 128), slow((64, 256))], ids=str)
def test_a_large_matmul_is_built_without_spills_and_its_matmuls_stay_in_flight(tile, tmp_path):
    tiles = "tile(m, size={})\ntile(n, size={})\ntile(k, size=64)".format(*tile)
    nest = lowered(CASE.replace(TILES, tiles).replace("stages=3", "stages=4"), CHIP)
    built = backend().build(backend().emit(nest, CHIP), nest, CHIP, tmp_path)
    assert built.figures["spills"] == 0 and built.figures["dense_0.warps"] == 12
    (image,) = tmp_path.glob("*.cubin")
    words = [str(cuobjdump()), "-sass", str(image)]
    sass = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    # A matmul that the compiler serializes is waited for where it was issued.
    assert "WARPGROUP.DEPBAR.LE gsb0, 0x1" in sass
    assert sass.count("WARPGROUP.DEPBAR") < sass.count("HGMMA")


def test_a_program_with_one_tile_has_no_turns_and_parts_of_tiles_have_none():
    with pytest.raises(KernelError, match="has one tile, so there are no two"):
        lowered(CASE.replace("persistent(y, programs=1)\n", ""))
    with pytest.raises(KernelError, match="have parts of tiles"):
        lowered(CASE + "\nstream_k(y, over=k)")
    with pytest.raises(KernelError, match="copies nothing in bulk"):
        lowered(CASE.replace("copy(x, by=bulk)\ncopy(w, by=bulk)\ncopy(y, by=bulk)\n", ""))


def test_other_targets_have_no_such_consumers():
    work = work_of("pingpong")
    with pytest.raises((KernelError, BackendError)):
        lower(
            work.spec, parse_schedule(f"schedule(dense)\n{CASE}\n"), machine_of("a100"), work.tune
        )
