"""Limits of registers: those that let a multiprocessor hold another block."""

import tomllib
from pathlib import Path

import pytest

from ir.errors import KernelError
from ir.schedule import Decision
from machines.gpu.facts import facts
from machines.gpu.limits import check_decision, register_limits
from machines.gpu.occupancy import programs_per_unit
from machines.registry import read

TARGETS = Path(__file__).parents[2] / "backends" / "targets"


def target(name):
    return read(tomllib.loads((TARGETS / f"{name}.toml").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", ["a100", "h200", "mi300"])
@pytest.mark.parametrize("warps", [4, 8])
def test_each_limit_lets_a_multiprocessor_hold_more_than_the_one_before(name, warps):
    machine = target(name)
    table = facts(machine)
    found = register_limits(machine, warps * machine.warp)
    held = [programs_per_unit(table, limit, 0, warps).programs for limit in found]
    assert len(found) > 2 and held == sorted(set(held))
    step = table["register_granularity"]
    more = [programs_per_unit(table, limit + step, 0, warps).programs for limit in found]
    assert all(m < h for m, h in zip(more, held, strict=True))


def test_limits_leave_room_for_what_matrix_instructions_add_to():
    """ptxas refuses fewer registers than a warpgroup's instruction needs, and spills no accumulators."""
    limits = register_limits(target("h200"), 128)
    assert register_limits(target("h200"), 128, held=64 * 64) == tuple(n for n in limits if n >= 64)
    assert register_limits(target("h200"), 256, held=128 * 256) == ()


def test_limits_leave_room_for_producers():
    assert register_limits(target("h200"), 512) == (128, 64, 40, 32)
    assert register_limits(target("h200"), 512, bulk=True) == (64, 40, 32)


@pytest.mark.parametrize("limit", [8, 100, 512])
def test_other_numbers_are_refused_with_those_that_are_allowed(limit):
    with pytest.raises(KernelError, match="no number of registers") as seen:
        check_decision(Decision("registers", "y", (("limit", limit),)), target("h200"))
    assert seen.value.allowed == "multiples of 8 from 32 to 248"


def test_a_hint_to_the_caches_is_one_that_the_chip_has():
    check_decision(Decision("cache", "y", (("hint", "evict_first"),)), target("h200"))
    with pytest.raises(KernelError, match="has no hint `evict_first`") as seen:
        check_decision(Decision("cache", "y", (("hint", "evict_first"),)), target("mi300"))
    assert seen.value.allowed.startswith("none")
