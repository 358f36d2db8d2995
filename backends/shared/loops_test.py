"""Statements become loops with the right order, conditions and accumulators for the language."""

from __future__ import annotations

import pytest

from backends.backend import BackendError
from backends.registry import target
from backends.shared.blocks import Walk
from backends.shared.loops import Assign, Declare, Elements, Guarded, Loops
from ir.autoschedule.autoschedule import plain
from ir.lower.lower import lower
from testing.samples.samples import decisions, spec_of, workload

MACHINE = target("cpu")


class Vectors(Loops):
    """A machine whose vectors are longer than an axis of four."""

    vector = 16


def body(equation, inputs, result, *lines, sizes, made=Loops):
    spec = spec_of(equation, inputs=inputs, result=result)
    (launch,) = lower(spec, decisions(spec, *lines), MACHINE, sizes).launches
    found = made(launch).view()
    return (*found["once"], *found["body"])


def nodes(found, kind):
    for node in found:
        if isinstance(node, kind):
            yield node
        if isinstance(node, Walk):
            yield from nodes(node.body, kind)
        if isinstance(node, Elements):
            yield from nodes((*node.before, *node.body, *node.after), kind)


def test_a_reduction_of_the_last_axis_has_an_accumulator():
    found = body("y[m] = sum(x[m, k], k)", "x: f32[M, K]", "f32[M]", sizes={"M": 8, "K": 8})
    (loops,) = (e for e in nodes(found, Elements) if e.reduces)
    assert [i for i, _ in loops.loops] == ["m", "k"]
    assert loops.reduces.reduction == "sum" and isinstance(loops.before[0], Declare)


def test_a_reduction_of_another_axis_keeps_the_last_one_innermost():
    found = body("y[k] = max(x[m, k], m)", "x: f32[M, K]", "f32[K]", sizes={"M": 8, "K": 8})
    assert not [e for e in nodes(found, Elements) if e.reduces]
    *_, loops, _ = nodes(found, Elements)
    assert [i for i, _ in loops.loops] == ["m", "k"] and loops.unordered


@pytest.mark.parametrize(("made", "order"), [(Loops, ["m", "k"]), (Vectors, ["k", "m"])])
def test_a_short_reduced_axis_is_not_innermost_where_vectors_are_longer(made, order):
    found = body("y[m] = sum(x[m, k], k)", "x: f32[M, 4]", "f32[M]", sizes={"M": 64}, made=made)
    assert order in [[i for i, _ in e.loops] for e in nodes(found, Elements)]


def test_a_load_that_may_leave_its_tensor_is_guarded():
    w = workload("max_pool2d")
    (launch,) = lower(w.spec, plain(w.spec, MACHINE, w.tune), MACHINE, w.tune).launches
    assigned = [a.value for a in nodes(Loops(launch).view()["body"], Assign)]
    (guard,) = (v for v in assigned if isinstance(v, Guarded))
    assert [size for _, size in guard.tests] == ["N", "C", "H", "W"]


def test_what_a_text_has_no_loops_for_is_refused():
    with pytest.raises(BackendError, match="a Dot has no loops here") as caught:
        body(
            "y[m, n] = sum(a[m, k] * b[k, n], k)",
            "a: f32[M, K], b: f32[K, N]",
            "f32[M, N]",
            "compute(y, unit=matrix)",
            sizes={"M": 8, "N": 8, "K": 8},
        )
    assert caught.value.stage == "emit"
