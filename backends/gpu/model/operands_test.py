"""Operands that several warps hold: where the tile of a matmul is small, and in registers."""

from backends.gpu.model.extents import Extents
from backends.gpu.model.operands import repeated
from backends.gpu.plain_rules import RULES
from backends.registry import target
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from machines.gpu.facts import facts
from testing.samples.samples import spec_of

CHIP = target("h200")
SPEC = spec_of(
    "y[m, n] = sum(x[m, k] * w[k, n], k)",
    inputs="x: f32[256, 1024], w: f32[1024, 256]",
    result="f32[256, 256]",
)


def words(m=32, n=32, warps=4):
    text = "\n".join(
        (
            f"schedule({SPEC.name})",
            f"tile(m, size={m})",
            f"tile(n, size={n})",
            "tile(k, size=64)",
            "place(m.outer, level=grid)",
            "place(n.outer, level=grid)",
            "place(k.outer, level=loop)",
            "compute(y, unit=matrix)",
            "precision(y, dtype=tf32)",
        )
    )
    (launch,) = lower(SPEC, parse_schedule(text), CHIP, {}).launches
    return repeated(launch, Extents(launch, {}, RULES), facts(CHIP), warps)


def test_warps_beside_and_above_each_other_hold_the_same_operands():
    assert words() == 32 * 64 + 32 * 64  # two warps by two
    assert words(warps=2) == 32 * 64  # columns alone
    assert words(m=16, warps=2) == 16 * 64  # rows alone


def test_a_tile_that_an_instruction_of_all_warps_multiplies_is_held_once():
    assert words(m=64) == words(n=64) == 0


def test_what_one_warp_multiplies_is_held_once():
    assert words(m=16, n=16, warps=1) == 0
