"""Legal edits are listed with their values, and each of them lowers."""

import pytest

from ir.autoschedule.autoschedule import autoschedule
from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.lower.verbs import require_legal
from ir.parse.parse import parse_schedule
from ir.schedule import Schedule
from search.core.testing import CHIP, SIZES, SPEC
from search.prompt.legal import legal_edits, sizes_of
from testing.samples.samples import SMALL, WITH_THREADS, workload

LINES = """
`tile(m, size=16)` -> size=1, 2, 4, 6, 8, 32, 64 | drop it
add `tile(n)` with size=
`pipeline(a, stages=2)` -> stages=3, 4, 6, 8 | drop it
add `kernel(acc)`
"""


def test_each_decision_has_a_line_with_its_values():
    found = legal_edits(SPEC, autoschedule(SPEC, CHIP, SIZES), CHIP, [SIZES])
    for line in LINES.strip().splitlines():
        assert any(told.startswith(line) for told in found.lines), (line, found.lines)


@pytest.mark.parametrize("machine", [SMALL, WITH_THREADS], ids=lambda m: m.name)
@pytest.mark.parametrize("kernel", ["rmsnorm_matmul", "attention"])
def test_as_many_changes_are_told_as_lower(kernel, machine):
    w = workload(kernel)
    schedule = autoschedule(w.spec, machine, w.tune)
    found = legal_edits(w.spec, schedule, machine, [w.tune])
    legal = 0
    for edit in neighbours(w.spec, schedule, machine, w.tune):
        try:
            require_legal(w.spec, edit.apply(schedule), machine)
            lower(w.spec, edit.apply(schedule), machine, w.tune)
        except KernelError:
            continue
        legal += 1
    told = sum(line.count(", ") + line.count(" | ") + 1 for line in found.lines)
    assert legal <= told, "an edit that takes the effect from a decision of the parent is told too"
    assert all("would change nothing" not in line for line in found.lines)


def test_an_edit_that_does_not_fit_at_another_shape_is_not_told():
    schedule = autoschedule(SPEC, CHIP, SIZES)
    large = {name: 64 * size for name, size in SIZES.items()}
    every = sizes_of(SIZES, [SIZES, large])
    assert every == (SIZES, large)
    alone, both = (legal_edits(SPEC, schedule, CHIP, some) for some in ([SIZES], every))
    assert len(both.lines) < len(alone.lines) and both.refused


def test_what_does_not_lower_itself_has_no_edits_but_those_that_mend_it():
    schedule = Schedule(
        SPEC.name, parse_schedule(f"schedule({SPEC.name})\ntile(q, size=4)\n").decisions
    )
    assert all("tile(q" in line for line in legal_edits(SPEC, schedule, CHIP, [SIZES]).lines)
