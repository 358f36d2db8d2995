"""Decisions on matmuls that edits propose: instructions of the operands' dtype, parts for all warps."""

import tomllib
from dataclasses import replace
from pathlib import Path

from ir.edits.edits import Edit, neighbours
from ir.lower.lower import fits
from ir.machine import NOTED, Rendering
from ir.parse.schedule import parse_schedule
from machines.gpu.matmuls import shapes
from machines.registry import read
from testing.samples.samples import spec_of

SIZES = {"M": 256, "K": 256, "N": 256}
SPEC = spec_of(
    "y[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
    inputs="x: f16[M, K], w: f16[K, N]",
    result="f32[M, N]",
)
TILES = """schedule(f)
tile(m, size=128)
tile(n, size=128)
tile(k, size=64)
place(m.outer, level=grid)
place(n.outer, level=grid)
compute(y, unit=matrix)
"""


TARGETS = Path(__file__).parents[2] / "backends" / "targets"
OTHERS = tuple(verb for verb in NOTED if verb not in ("warps", "instruction"))


def target(name="h200", verbs=NOTED):
    made = read(tomllib.loads((TARGETS / f"{name}.toml").read_text(encoding="utf-8")))
    return replace(made, rendering=Rendering(verbs=verbs))


def proposed(served, more=""):
    """The decisions on matmuls that edits propose beside a schedule."""
    schedule = parse_schedule(f"{TILES}{more}".replace("schedule(f)", f"schedule({SPEC.name})"))
    found = neighbours(SPEC, schedule, served, SIZES)
    verbs = ("warps", "instruction")
    return schedule, [e for e in found if e.decision.verb in verbs]


def test_only_a_backend_that_renders_them_has_such_edits():
    assert proposed(target(verbs=OTHERS))[1] == []
    assert proposed(target())[1] != []


def test_instructions_are_those_of_the_operands():
    _, found = proposed(target())
    words = {str(e.decision.option("shape")) for e in found}
    assert words == {"m16n8k16", "m64n64k16", "m64n128k16", "m64n256k16"}
    _, found = proposed(target("a100"))
    assert {str(e.decision.option("shape")) for e in found} == {"m16n8k16"}


def test_warps_share_a_result_where_their_number_is_decided():
    served = target()
    schedule, found = proposed(served, "threads(y, count=128)\n")
    parts = {str(e.decision) for e in found if e.decision.verb == "warps"}
    assert parts == {f"warps(y, m={m}, n={4 // m})" for m in (1, 2, 4)}
    legal = [e for e in found if fits(SPEC, e.apply(schedule), served, SIZES)]
    assert len(legal) == len(found) - 1  # one instruction has more columns than the tile


def test_other_threads_take_the_parts_away():
    schedule, _ = proposed(target(), "threads(y, count=128)\nwarps(y, m=2, n=2)\n")
    (old,) = schedule.of("threads")
    new = replace(old, options=(("count", 256),))
    assert not Edit(old, new).apply(schedule).of("warps")
    (compute,) = schedule.of("compute")
    other = replace(compute, options=(("unit", "vector"),))
    assert not Edit(compute, other).apply(schedule).of("warps")


def test_limits_of_registers_leave_room_for_the_result():
    """128 x 128 elements of 256 threads are 64 registers of each."""
    found = neighbours(SPEC, proposed(target(), "threads(y, count=256)\n")[0], target(), SIZES)
    limits = {e.decision.number("limit") for e in found if e.decision.verb == "registers"}
    assert limits == {128}


def test_roles_are_proposed_where_something_is_copied_in_bulk():
    def found(more):
        edits = neighbours(SPEC, parse_schedule(f"{TILES}{more}"), target(), SIZES)
        return {str(e.decision) for e in edits if e.decision.verb == "roles"}

    assert found("") == set()
    proposed = {"roles(y, producers=32)", "roles(y, producers=128, registers=24)"}
    assert found("copy(x, by=bulk)\n") == proposed


def test_consumers_take_turns_where_persistent_programs_copy_whole_tiles_in_bulk():
    def found(more, verbs=NOTED):
        schedule = parse_schedule(f"{TILES}{more}")
        edits = neighbours(SPEC, schedule, target(verbs=verbs), SIZES)
        return {str(e.decision) for e in edits if e.decision.verb == "pingpong"}

    persistent, bulk = "persistent(y, programs=1)\n", "copy(x, by=bulk)\n"
    assert found(persistent) == found(bulk) == set()
    assert found(bulk + persistent) == {"pingpong(y)"}
    assert found(f"{bulk}{persistent}stream_k(y, over=k)\n") == set()
    turns = parse_schedule(f"{TILES}{bulk}{persistent}pingpong(y)\n")
    edits = [e.apply(turns) for e in neighbours(SPEC, turns, target(), SIZES)]
    assert all(s.of("persistent") for s in edits if s.of("pingpong"))
    assert any(not s.of("pingpong") for s in edits)
    assert found(bulk + persistent, tuple(v for v in NOTED if v != "pingpong")) == set()


def test_shapes_are_those_that_sum_in_f32():
    assert shapes(target("a100"), "bf16") == ((16, 8, 16),)
    assert (64, 256, 16) in shapes(target("h200"), "bf16")
    assert shapes(target("mi300"), "f16") == ((16, 16, 16), (32, 32, 8))
