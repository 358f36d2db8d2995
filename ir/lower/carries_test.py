"""Loop-carried recurrences give the results of a launch per step."""

import numpy as np
import pytest

from ir.autoschedule.autoschedule import autoschedule
from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.nest.nest import Fill, Loop, Map, Store
from ir.parse.parse import parse_spec
from ir.reference.interpret import interpret
from ir.schedule import Decision
from testing.samples.right import require_right
from testing.samples.samples import (
    SMALL,
    WITH_THREADS,
    decisions,
    lowered,
    spec_of,
    statements,
    workload,
)

EXACT = 1e-12
GRID = ("tile(d, size=4)", "place(d.outer, level=grid)")
RUNNING = spec_of(
    "s[m, k] = where(m == 0, w[k], pad(s[m - 1, k], 0.0)) * 0.5 + x[m, k]",
    "y[m, k] = s[m, k] - pad(s[m - 1, k], 1.0)",
    inputs="x: f32[M, K], w: f32[K]",
)


@pytest.mark.parametrize("machine", [SMALL, WITH_THREADS], ids=lambda m: m.name)
def test_a_state_that_no_other_program_needs_never_leaves_its_program(machine):
    w = workload("ssm")
    sizes = w.checks[-1]
    nest = lowered("ssm", "carry(h)", *GRID, sizes=sizes, machine=machine)
    (launch,) = nest.launches
    assert launch.repeat is None
    assert [s.index for s in launch.body if isinstance(s, Loop)] == ["t"]
    assert {s.tensor for s in statements(nest, Store)} == {"y"}
    for checked in w.checks:
        require_right(nest, checked, exact=EXACT)


@pytest.mark.parametrize("machine", [SMALL, WITH_THREADS], ids=lambda m: m.name)
def test_an_autoschedule_goes_through_the_steps_in_one_launch_where_it_can(machine):
    w = workload("ssm")
    schedule = autoschedule(w.spec, machine, w.tune | {"T": 64, "D": 64})
    assert schedule.of("carry")
    assert not autoschedule(workload("rnn").spec, machine, workload("rnn").tune).of("carry")


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("tile(k, size=2)", "place(k.outer, level=grid)"),
        ("tile(k, size=2)", "place(k.outer, level=loop)"),
    ],
)
@pytest.mark.parametrize("machine", [SMALL, WITH_THREADS], ids=lambda m: m.name)
def test_each_read_of_the_step_before_starts_with_its_own_pad(machine, lines):
    sizes = {"M": 5, "K": 3}
    nest = lowered(RUNNING, "carry(s)", *lines, sizes=sizes, machine=machine)
    assert len(nest.launches) == 1
    starts = {s.number for s in statements(nest, Fill) if s.value.startswith("s_before")}
    assert starts == {0.0, 1.0}
    require_right(nest, sizes, exact=EXACT)


def test_a_tensor_that_only_the_next_step_needs_is_computed_in_each():
    spec = spec_of(
        "a[m, k] = pad(s[m - 1, k], 0.0) + x[m, k]",
        "b[m, k] = pad(a[m - 1, k], 0.0) * 0.5",
        "s[m, k] = b[m, k] * x[m, k]",
        "y[m, k] = a[m, k] * 2.0",
    )
    nest = lowered(spec, "carry(s)", sizes={"M": 6, "K": 2})
    require_right(nest, {"M": 6, "K": 2}, exact=EXACT)


def test_what_is_handed_on_has_the_precision_that_memory_would_give_it():
    spec = parse_spec(
        'def f(x: bf16[T, D]) -> bf16[T, D]:\n    """F."""\n'
        "    s[t, d] = f32(pad(s[t - 1, d], 0.0)) + f32(x[t, d])\n    return s\n"
    )
    nest = lowered(spec, "carry(s)", sizes={"T": 3, "D": 1})
    x = np.array([[1.0], [2.0**-9], [2.0**-9]])
    assert interpret(nest, {"x": x}, {"T": 3, "D": 1}, rounded=True)["s"][2, 0] == 1.0
    (handed,) = [s for s in statements(nest, Map) if s.value == "s_before"]
    assert nest.launches[0].value(handed.value).dtype == "bf16"


def test_two_recurrences_over_one_index_share_its_loop():
    spec = spec_of(
        "a[m, k] = pad(a[m - 1, k], 0.0) * 0.5 + x[m, k]",
        "y[m, k] = pad(y[m - 1, k], 0.0) * 0.5 + a[m, k]",
    )
    nest = lowered(spec, "carry(a)", "carry(y)", sizes={"M": 5, "K": 3})
    assert len(nest.launches) == 1 and len(statements(nest, Store)) == 1
    require_right(nest, {"M": 5, "K": 3}, exact=EXACT)


def test_a_reduction_over_all_steps_goes_through_them_too():
    spec = spec_of(
        "a[m, k] = pad(a[m - 1, k], 0.0) * 0.5 + x[m, k]",
        "y[k] = max(a[m, k], m)",
        result="f32[K]",
    )
    nest = lowered(spec, "carry(a)", sizes={"M": 5, "K": 3})
    assert len(nest.launches) == 1
    require_right(nest, {"M": 5, "K": 3}, exact=EXACT)


def test_carrying_is_an_edit_and_so_is_not_carrying():
    spec, sizes = workload("ssm").spec, workload("ssm").checks[-1]
    plain, walked = decisions(spec), decisions(spec, "carry(h)")
    carry = Decision("carry", "h")
    assert carry in {e.new for e in neighbours(spec, plain, SMALL, sizes)}
    assert any(e.old == carry and e.new is None for e in neighbours(spec, walked, SMALL, sizes))


@pytest.mark.parametrize("machine", [SMALL, WITH_THREADS], ids=lambda m: m.name)
def test_steps_from_the_last_to_the_first_are_gone_through_that_way(machine):
    w = workload("backwards")
    nest = lowered("backwards", "carry(s)", *GRID, sizes=w.checks[-1], machine=machine)
    assert [s.backwards for s in nest.launches[0].body if isinstance(s, Loop)] == [True]
    for checked in w.checks:
        require_right(nest, checked, exact=EXACT)


BOTH_WAYS = spec_of(
    "a[m, k] = pad(a[m - 1, k], 0.0) * 0.5 + x[m, k]",
    "y[m, k] = pad(y[m + 1, k], 0.0) * 0.5 + a[m, k]",
)


def test_two_directions_are_two_launches():
    with pytest.raises(KernelError, match="`y` are gone through from the last, those of `a`"):
        lowered(BOTH_WAYS, "carry(a)", "carry(y)", sizes={"M": 5, "K": 3})
    nest = lowered(BOTH_WAYS, "carry(a)", "carry(y)", "kernel(a)", sizes={"M": 5, "K": 3})
    assert len(nest.launches) == 2
    require_right(nest, {"M": 5, "K": 3}, exact=EXACT)


def test_a_scan_does_not_run_from_the_last_step():
    spec = spec_of(
        "a[m, k] = pad(a[m + 1, k], 0.0) * 0.5 + x[m, k]", "y[m, k] = cumsum(a[m, k], m)"
    )
    with pytest.raises(KernelError, match="those of `y` in the same launch from the first"):
        lowered(spec, "carry(a)", sizes={"M": 5, "K": 3})


FAULTS = [
    ("ssm", ("carry(x)",), "`x` is part of no recurrence, so nothing is carried"),
    ("softmax", ("carry(y)",), "`y` is part of no recurrence, so nothing is carried"),
    ("rnn", ("carry(h)", "kernel(gx)"), "a program would need `h` of the step before from others"),
    ("lstm", ("carry(h)", "carry(c)"), "`carry(c)` is decided for the recurrence of `h` already"),
    (
        "gru",
        ("carry(h)", "kernel(r)"),
        "a launch ends between the equations of the recurrence of `h`",
    ),
    (
        "ssm",
        (
            "carry(h)",
            "tile(d, size=4)",
            "tile(t, size=2)",
            "place(t.outer, level=loop)",
            "place(d.outer, level=loop)",
        ),
        "a program would need `h` of the step before",
    ),
]


@pytest.mark.parametrize(("name", "lines", "what"), FAULTS)
def test_what_cannot_be_carried_is_refused(name, lines, what):
    with pytest.raises(KernelError) as error:
        lowered(name, *lines, sizes=workload(name).checks[-1])
    assert what in error.value.what
    assert error.value.place is not None
