"""Matmuls one iteration later: the same bits as without; each way to get the order wrong is a fault."""

from dataclasses import replace

import numpy as np
import pytest

from backends.gpu.plain_rules import RULES
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.cases import WARPGROUPS, attended
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.program import thread_program
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

LINES = (
    *(f"tile({i}, size=64)" for i in "mn"),
    *("place(m.outer, level=grid)", "online(t, into=y)"),
    *("compute(s, unit=matrix)", "compute(y, unit=matrix)", "precision(y, dtype=bf16)"),
    *(f"pipeline({x}, stages=2)" for x in "kv"),
    *(f"copy({x}, by=bulk)" for x in "kv"),
    "threads(y, count=128)",
)
SPEC = spec_of(
    "s[m, n] = sum(f32(q[m, d]) * f32(k[n, d]), d)",
    "t[m] = max(s[m, n], n)",
    "p[m, n] = exp(s[m, n] - t[m])",
    "y[m, d] = sum(p[m, n] * f32(v[n, d]), n)",
    inputs="q: bf16[M, D], k: bf16[N, D], v: bf16[N, D]",
    result="f32[M, D]",
)


def program(*more):
    nest = lowered(SPEC, *LINES, *more, sizes=dict(M=128, N=256, D=64), machine=WITH_INSTRUCTIONS)
    return thread_program(nest, WITH_INSTRUCTIONS, RULES, WARPGROUPS)


LATER = program("overlap(y)")


@pytest.mark.parametrize(
    "sizes",
    [dict(M=70, N=200, D=64), dict(M=3, N=64, D=24), dict(M=9, N=131, D=13), dict(M=1, N=1, D=1)],
)
def test_results_are_the_same_bits(sizes):
    np.testing.assert_array_equal(attended(LATER, sizes), attended(program(), sizes))


def loops(made):
    (launch,) = made.launches
    return [s for s in to.statements(launch.body) if isinstance(s, to.Loop)]


def changed(change):
    """The program with the body of its second loop changed."""
    (launch,) = LATER.launches
    last = loops(LATER)[-1]

    def inside(block):
        return tuple(
            replace(s, body=tuple(change(list(s.body))))
            if s is last
            else to.changed_inside(s, inside)
            for s in block
        )

    return replace(LATER, groups=((None, (replace(launch, body=inside(launch.body)),)),))


def waits(body):
    return [n for n, s in enumerate(body) if isinstance(s, to.WarpgroupWait)]


def test_both_matmuls_are_in_flight_at_once():
    body = loops(LATER)[-1].body
    issued = [s for s in body if isinstance(s, to.WarpgroupMultiply)]
    assert [s.pending for s in issued] == [1, 2]
    first, last = (body[n] for n in waits(body))
    assert (first.name, first.pending) == (issued[0].to, 1)
    assert (last.name, last.pending) == (issued[1].to, 0)


@pytest.mark.parametrize("which, kind", [(0, faults.MATMUL_IN_FLIGHT), (1, faults.STAGE_IN_USE)])
def test_a_wait_that_lacks_is_a_fault(which, kind):
    def change(body):
        del body[waits(body)[which]]
        return body

    with pytest.raises(ThreadFault) as seen:
        attended(changed(change), dict(M=70, N=200, D=64))
    assert seen.value.kind == kind


def test_a_wait_for_one_that_still_flies_is_a_fault():
    def change(body):
        at = waits(body)[1]
        body[at] = replace(body[at], pending=1)
        return body

    with pytest.raises(ThreadFault, match="while a matmul that adds to it is in flight"):
        attended(changed(change), dict(M=70, N=200, D=64))


def test_a_stage_that_is_given_back_while_it_is_read_is_a_fault():
    def change(body):
        at = waits(body)[1]
        body[at], body[at + 1] = body[at + 1], body[at]
        return body

    with pytest.raises(ThreadFault) as seen:
        attended(changed(change), dict(M=70, N=260, D=64))
    assert seen.value.kind == faults.STAGE_IN_USE
