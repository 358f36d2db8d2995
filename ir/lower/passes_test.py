"""Serpentine loops over the same tiles, and the cache hints of last loads."""

from dataclasses import replace

import numpy as np
import pytest

from ir.errors import KernelError
from ir.lower.lower import lower, settled
from ir.nest.nest import Load, Loop
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from testing.samples.samples import SMALL, WITH_THREADS, decisions, spec_of, workload

HINTS = {"gpu": {"cache_hints": ["evict_first", "evict_last"]}}
CHIP = replace(WITH_THREADS, details=HINTS)
ROWS = ("tile(m, size=2)", "tile(k, size=16)", "place(m.outer, level=grid)")
SIZES = {"M": 5, "K": 37}
SERPENTINE = "serpentine(k.outer)"


def made(*lines, spec=None, machine=CHIP):
    spec = spec or workload("softmax").spec
    return lower(spec, decisions(spec, *ROWS, *lines), machine, SIZES)


def loops(nest):
    return [s for la in nest.launches for s in la.statements() if isinstance(s, Loop)]


def hints(nest, tensor="x"):
    moves = [s for la in nest.launches for s in la.statements() if isinstance(s, Load)]
    return [s.cache for s in moves if s.tensor == tensor]


def test_every_second_loop_runs_from_its_end():
    assert [s.backwards for s in loops(made())] == [False, False, False]
    assert [s.backwards for s in loops(made(SERPENTINE))] == [False, True, False]
    assert [s.backwards for s in loops(made("online(mx, into=s)", SERPENTINE))] == [False, True]


def test_loops_inside_of_others_turn_in_the_order_of_the_text():
    spec = spec_of(
        "s[m] = sum(x[m, k, j], k, j)",
        "y[m, k, j] = x[m, k, j] / s[m]",
        inputs="x: f32[M, K, 7]",
        result="f32[M, K, 7]",
    )
    inner = ("tile(j, size=2)", "serpentine(j.outer)")
    found = [(s.index, s.backwards) for s in loops(made(*inner, SERPENTINE, spec=spec))]
    assert found == [("k", False), ("j", False), ("k", True), ("j", True)]


@pytest.mark.parametrize("sizes", [SIZES, {"M": 1, "K": 1}, {"M": 4, "K": 32}])
def test_results_are_the_same(sizes):
    nest = made(SERPENTINE)
    inputs = random_inputs(nest.spec, sizes, np.random.default_rng(1))
    (found,) = interpret(nest, inputs, sizes).values()
    (expected,) = evaluate(nest.spec, inputs, sizes).values()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_loop_without_another_one_is_refused():
    spec = spec_of("y[m, k] = x[m, k] + 1.0")
    with pytest.raises(KernelError) as refused:
        made(SERPENTINE, "place(k.outer, level=loop)", spec=spec)
    assert "would change nothing: no launch has a second loop over `k`" in refused.value.what
    assert refused.value.hint == f"drop {SERPENTINE}"
    schedule = decisions(spec, *ROWS, SERPENTINE, "place(k.outer, level=loop)")
    assert not settled(spec, schedule, CHIP, SIZES).schedule.of("serpentine")


def test_a_running_reduction_runs_in_order():
    spec = spec_of(
        "s[m] = sum(x[m, k], k)", "t[m, k] = cumsum(x[m, k], k)", "y[m, k] = t[m, k] / s[m]"
    )
    with pytest.raises(KernelError, match="has a running reduction along it") as refused:
        made(SERPENTINE, spec=spec)
    assert refused.value.place and refused.value.hint == f"drop {SERPENTINE}"


def test_steps_of_a_recurrence_run_in_order():
    spec = spec_of("y[m, k] = 0.5 * pad(y[m, k - 1], 0.0) + x[m, k]")
    with pytest.raises(KernelError, match="counts the steps of a recurrence"):
        made(SERPENTINE, spec=spec)


def test_other_classes_of_machines_have_no_such_decision():
    with pytest.raises(KernelError, match="which has no `serpentine`"):
        made(SERPENTINE, machine=SMALL)


def test_the_last_load_has_a_hint_of_its_own():
    assert hints(made("cache(x, hint=evict_last, last=evict_first)")) == [
        *("evict_last", "evict_last"),
        "evict_first",
    ]
    assert hints(made("cache(x, last=evict_first)")) == ["", "", "evict_first"]
    assert hints(made("cache(x, hint=evict_last)")) == ["evict_last"] * 3


@pytest.mark.parametrize(
    "line, what",
    [
        (
            "cache(x, hint=evict_last, last=evict_last)",
            "all loads of `x` have the hint `evict_last`",
        ),
        ("cache(x)", "`cache(x)` has no hint"),
        ("cache(x, hint=evict_last, last=no_allocate)", "has no hint `no_allocate` to its caches"),
        ("cache(y, hint=evict_first, last=evict_last)", "no launch has several loads of `y`"),
    ],
)
def test_hints_that_say_nothing_are_refused(line, what):
    with pytest.raises(KernelError) as refused:
        made(line)
    assert what in refused.value.what and refused.value.place and refused.value.hint
