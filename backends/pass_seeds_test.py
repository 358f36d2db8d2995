"""Programs that read rows of their own again: the seed turns their passes and tells the caches."""

from dataclasses import replace

import pytest

from backends.registry import target
from ir.autoschedule.autoschedule import autoschedule
from ir.edits.edits import Edit, neighbours
from ir.lower.lower import lower
from ir.machine import Rendering
from machines.gpu.pass_seeds import with_passes
from testing.samples.samples import decisions, spec_of, workload

CHIP = replace(target("h200"), rendering=Rendering())  # of a backend that renders all
ROWS = (
    "tile(m, size=1)",
    "tile(k, size=4096)",
    "place(m.outer, level=grid)",
    "place(k.outer, level=loop)",
)
SERPENTINE = "serpentine(k.outer)"
LONG = {"M": 4096, "K": 1 << 17}
SUMS = spec_of("s[m] = sum(x[m, k], k)", "y[m, k] = x[m, k] / s[m]")


def more(spec, *lines, sizes=LONG, machine=CHIP):
    """The decisions that rows get beside these."""
    schedule = decisions(spec, *lines)
    found = with_passes(spec, machine, sizes, schedule).decisions
    return [str(d) for d in found if d not in schedule.decisions]


@pytest.mark.parametrize("name", ["softmax", "sums"])
def test_long_rows_turn_and_stay_until_they_were_read_last(name):
    spec = SUMS if name == "sums" else workload("softmax").spec
    first = autoschedule(spec, CHIP, LONG)
    told = ["cache(x, hint=evict_last, last=evict_first)", "cache(y, hint=evict_first)"]
    assert [str(d) for d in first.decisions][-3:] == [SERPENTINE, *told]
    assert more(spec, *ROWS) == [SERPENTINE, *told]
    assert lower(spec, first, CHIP, LONG).schedule == first


def test_what_is_decided_stays():
    line = "cache(x, hint=no_allocate)"
    assert more(SUMS, *ROWS, line) == [SERPENTINE, "cache(y, hint=evict_first)"]


@pytest.mark.parametrize(
    "sizes, machine",
    [
        ({"M": 16, "K": 1 << 17}, CHIP),  # all of it fits into the cache
        (LONG, replace(target("mi300"), rendering=Rendering())),  # has no hint that keeps
        (LONG, replace(CHIP, rendering=Rendering(verbs=("threads",)))),
    ],
)
def test_other_rows_and_chips_are_left_alone(sizes, machine):
    assert more(SUMS, *ROWS, sizes=sizes, machine=machine) == []


def test_what_all_programs_read_is_left_to_the_cache():
    """Each program reads the same table twice, and rows of its own once."""
    spec = spec_of(
        "s[m] = sum(g[k] * g[k], k)",
        "y[m, k] = x[m, k] * g[k] / s[m]",
        inputs="x: f32[M, K], g: f32[K]",
    )
    assert more(spec, *ROWS) == []


def test_rows_that_are_read_once_have_nothing_to_turn():
    whole = (ROWS[0], ROWS[2])
    assert more(SUMS, *whole, sizes={"M": 65536, "K": 8192}) == []
    apart = ("kernel(s)", *ROWS)
    assert more(SUMS, *apart) == []


def test_edits_turn_loops_and_tell_the_last_load():
    spec = workload("softmax").spec
    schedule = decisions(spec, *ROWS)
    found = {str(e) for e in neighbours(spec, schedule, CHIP, LONG)}
    told = {
        f"+ cache(x, {more})" for more in ("hint=evict_last, last=evict_first", "last=evict_first")
    }
    assert told | {f"+ {SERPENTINE}"} <= found
    assert not any("serpentine(m.outer)" in one for one in found)
    schedule = decisions(spec, *ROWS, SERPENTINE)
    assert f"- {SERPENTINE}" in {str(e) for e in neighbours(spec, schedule, CHIP, LONG)}
    (tile,) = (d for d in schedule.of("tile") if d.subject == "k")
    assert not Edit(tile, None).apply(schedule).of("serpentine")
    flat = {str(e) for e in neighbours(spec, decisions(spec, ROWS[0], ROWS[2]), CHIP, LONG)}
    assert not any("last=" in one for one in flat)  # no loop loads it twice
