"""Cooperative launches: flags and the launch that clears them, legality, and the edits that propose
them."""

import pytest

from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.nest.nest import Fill, Meeting, Store
from ir.nest.text import nest_text
from ir.schedule import Decision
from ir.spec import Apply, Number, Size
from testing.samples.samples import WITH_INSTRUCTIONS, decisions, lowered, spec_of

SPEC = spec_of(
    "a[t, b, j] = sum(pad(y[t - 1, b, k], 0.0) * w[j, k], k)",
    "y[t, b, j] = tanh(a[t, b, j] + x[t, b, j])",
    inputs="x: f32[T, B, H], w: f32[H, H]",
    result="f32[T, B, H]",
)
SIZES = {"T": 7, "B": 16, "H": 32}
GRID = ("tile(t, size=1)", "tile(b, size=8)", "tile(j, size=16)")
PLACED = tuple(f"place({i}.outer, level=grid)" for i in "tbj")
STEPS = (*GRID, *PLACED)
ONE = "cooperative(y)"


def nest_of(*lines, sizes=SIZES):
    return lowered(SPEC, *lines, sizes=sizes, machine=WITH_INSTRUCTIONS)


def test_a_launch_gets_flags_that_the_launch_before_clears():
    clear, launch = nest_of(*STEPS, ONE).launches
    assert launch.meeting == Meeting("a_met") and launch.repeat is not None
    flags = next(p for p in launch.parameters if p.name == "a_met")
    assert flags.role == "workspace" and flags.dtype == "i32"
    assert flags.shape == (Apply("mul", (Size("T"), Number(WITH_INSTRUCTIONS.parallel))),)
    assert clear.parameters == (flags,) and clear.repeat is None
    assert [type(s) for s in clear.body] == [Fill, Store]


def test_the_steps_are_those_of_one_launch_each():
    plain, cooperative = nest_of(*STEPS), nest_of(*STEPS, ONE)
    assert cooperative.launches[-1].body == plain.launches[-1].body
    assert "all steps in one cooperative launch" in nest_text(cooperative, WITH_INSTRUCTIONS)


@pytest.mark.parametrize(
    "lines, sizes, why",
    [
        ((*STEPS, "persistent(y, programs=1)"), SIZES, "more than one tile"),
        ((*STEPS, "kernel(a)"), SIZES, "a step has several launches"),
        (STEPS, SIZES | {"B": 1024}, "256 blocks do not run at once: there are 128 processors"),
    ],
)
def test_blocks_that_cannot_run_all_steps_are_refused(lines, sizes, why):
    nest_of(*lines, sizes=sizes)
    with pytest.raises(KernelError, match=why) as found:
        nest_of(*lines, ONE, sizes=sizes)
    assert found.value.place and found.value.allowed and "drop cooperative(y)" in found.value.hint


def test_running_all_steps_is_an_edit_of_a_recurrence_and_so_is_not_running_them():
    plain, cooperative = decisions(SPEC, *STEPS), decisions(SPEC, *STEPS, ONE)
    made = Decision("cooperative", "y", ())
    assert made in {e.new for e in neighbours(SPEC, plain, WITH_INSTRUCTIONS, SIZES)}
    assert any(
        e.old == made and e.new is None
        for e in neighbours(SPEC, cooperative, WITH_INSTRUCTIONS, SIZES)
    )
