"""Layouts of operands that edits propose: those that something reads."""

import tomllib
from pathlib import Path

from ir.edits.edits import neighbours
from ir.lower.lower import fits
from ir.parse.schedule import parse_schedule
from machines.registry import read
from testing.samples.samples import spec_of

TARGETS = Path(__file__).parents[2] / "backends" / "targets"
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


def proposed(name, more=""):
    """The decisions on layouts that edits propose beside a schedule, all of which are legal."""
    served = read(tomllib.loads((TARGETS / f"{name}.toml").read_text(encoding="utf-8")))
    schedule = parse_schedule(f"{TILES}{more}")
    found = [
        e
        for e in neighbours(SPEC, schedule, served, SIZES)
        if e.decision.verb in ("swizzle", "pad")
    ]
    assert all(fits(SPEC, e.apply(schedule), served, SIZES) for e in found)
    return {str(e) for e in found}


def test_rows_are_padded_where_no_instruction_reads_panels_alone():
    panels = {f"+ swizzle({x}, bytes={n})" for x in "xw" for n in (32, 64, 128)}
    assert proposed("h200") == panels
    assert proposed("a100") == panels | {f"+ pad({x}, bytes={n})" for x in "xw" for n in (16, 32)}


def test_results_leave_in_other_ways():
    def found(more):
        served = read(tomllib.loads((TARGETS / "h200.toml").read_text(encoding="utf-8")))
        edits = neighbours(SPEC, parse_schedule(f"{TILES}{more}"), served, SIZES)
        return {str(e) for e in edits if e.decision.verb == "epilogue"}

    parts = {f"+ epilogue(y, by=shared, columns={n})" for n in (32, 64)}  # of 128
    assert found("") == {"+ epilogue(y, by=registers)", "+ epilogue(y, by=shared)", *parts}
    assert "+ epilogue(y, by=registers)" not in found("copy(y, by=bulk)\n")


def test_a_layout_is_changed_or_dropped_before_the_other_kind_is_tried():
    found = proposed("a100", "pad(x, bytes=16)\n")
    own = {e for e in found if "(x, " in e}
    assert own == {"pad(x, bytes=16) -> pad(x, bytes=32)", "- pad(x, bytes=16)"}
