"""Occupancy by hand, and against the rules of both vendors."""

import tomllib
from math import ceil
from pathlib import Path

import pytest

from machines.gpu.facts import facts
from machines.gpu.occupancy import programs_per_unit
from machines.registry import read

TARGETS = Path(__file__).parents[2] / "backends" / "targets"


def table(name):
    return facts(read(tomllib.loads((TARGETS / f"{name}.toml").read_text())))


@pytest.mark.parametrize(
    ("registers", "shared", "warps", "programs", "limit"),
    [
        (32, 0, 4, 16, "warps"),  # 64 warps / 4
        (255, 0, 4, 2, "registers"),  # 65536 // 4 // (256 * 32) = 2 warps in each of 4 parts
        (255, 0, 8, 1, "registers"),
        (168, 100_000, 4, 2, "shared"),  # 233472 // 101120
        (16, 0, 1, 32, "programs"),
        (128, 232_448, 8, 1, "shared"),
        (128, 232_449, 8, 0, "shared"),
        (256, 0, 16, 0, "registers"),
    ],
)
def test_programs_of_a_multiprocessor(registers, shared, warps, programs, limit):
    found = programs_per_unit(table("h200"), registers, shared, warps)
    assert (found.programs, found.limit) == (programs, limit)
    assert found.share == programs * warps / 64


def waves_per_simd(vgpr, lds, threads, lds_of_unit):
    """LLVM's rule for AMDGPU, written down from its source."""
    by_registers = min(8, 512 // (ceil(vgpr / 8) * 8))
    if not lds:
        return by_registers
    groups = max(1, min(lds_of_unit // lds, 32 if threads == 64 else 16))
    return min(by_registers, ceil(groups * ceil(threads / 64) / 4))


@pytest.mark.parametrize("name", ["mi300", "mi350"])
@pytest.mark.parametrize("vgpr", [24, 64, 96, 128, 168, 256])
@pytest.mark.parametrize("lds", [0, 4096, 20_480, 33_792, 65_536])
@pytest.mark.parametrize("warps", [4, 8])
def test_programs_of_a_compute_unit_follow_the_compilers_rule(name, vgpr, lds, warps):
    limits = table(name)
    waves = waves_per_simd(vgpr, lds, warps * 64, limits["shared_bytes_per_unit"])
    found = programs_per_unit(limits, vgpr, lds, warps)
    assert found.programs == waves * 4 // warps


def test_a_compute_unit_holds_more_programs_of_one_warp():
    assert programs_per_unit(table("mi300"), 32, 512, 1).programs == 32
    assert programs_per_unit(table("mi300"), 32, 512, 2).programs == 16


def test_more_threads_than_a_program_may_have_hold_none():
    assert programs_per_unit(table("mi300"), 32, 0, 32).programs == 0
    assert programs_per_unit(table("h200"), 32, 0, 64).limit == "warps"
