"""Matmuls one iteration ahead: the same results as without; each way to get the order wrong is a fault."""

from dataclasses import replace

import numpy as np
import pytest

from backends.gpu.plain_rules import RULES
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.cases import WARPGROUPS, attended
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.program import thread_program
from ir.errors import KernelError
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

LINES = (
    *(f"tile({i}, size=64)" for i in "mn"),
    *("place(m.outer, level=grid)", "online(t, into=o)", "fuse(l, into=o)"),
    *("compute(s, unit=matrix)", "compute(o, unit=matrix)", "precision(o, dtype=bf16)"),
    *(f"copy({x}, by=bulk)" for x in "kv"),
    "threads(y, count=128)",
)
SPEC = spec_of(
    "s[m, n] = sum(f32(q[m, d]) * f32(k[n, d]), d)",
    "t[m] = max(s[m, n], n)",
    "p[m, n] = exp(s[m, n] - t[m])",
    "l[m] = sum(p[m, n], n)",
    "o[m, d] = sum(p[m, n] * f32(v[n, d]), n)",
    "y[m, d] = o[m, d] / l[m]",
    inputs="q: bf16[M, D], k: bf16[N, D], v: bf16[N, D]",
    result="f32[M, D]",
)
SIZES = dict(M=70, N=260, D=64)


def program(*more, stages=3):
    staged = [f"pipeline({x}, stages={stages})" for x in "kv"]
    sizes = dict(M=128, N=256, D=64)
    nest = lowered(SPEC, *LINES, *staged, *more, sizes=sizes, machine=WITH_INSTRUCTIONS)
    return thread_program(nest, WITH_INSTRUCTIONS, RULES, WARPGROUPS)


AHEAD = program("overlap(o, ahead=1)")


@pytest.mark.parametrize(
    "sizes",
    [SIZES, dict(M=3, N=64, D=24), dict(M=9, N=131, D=13), dict(M=1, N=1, D=1)],
)
def test_results_are_those_without(sizes):
    np.testing.assert_allclose(
        attended(AHEAD, sizes), attended(program(), sizes), rtol=1e-4, atol=1e-6
    )


def loops(made):
    (launch,) = made.launches
    return [s for s in to.statements(launch.body) if isinstance(s, to.Loop)]


def places(body, kind):
    return [n for n, s in enumerate(body) if isinstance(s, kind)]


def changed(change):
    """The program with the body of its second loop changed."""
    (launch,) = AHEAD.launches
    last = loops(AHEAD)[-1]

    def inside(block):
        return tuple(
            replace(s, body=tuple(change(list(s.body))))
            if s is last
            else to.changed_inside(s, inside)
            for s in block
        )

    return replace(AHEAD, groups=((None, (replace(launch, body=inside(launch.body)),)),))


def test_the_next_matmul_is_issued_between_the_maximum_and_the_exponentials():
    body = loops(AHEAD)[-1].body
    later, first = places(body, to.WarpgroupMultiply)
    wait, last = places(body, to.WarpgroupWait)
    reduced = {body[n].reduction: n for n in places(body, to.Reduce)}
    assert later < reduced["max"] < first < reduced["sum"] < wait < last
    assert [body[n].pending for n in (later, first, wait, last)] == [1, 2, 1, 0]


def test_threads_join_their_sums_behind_the_loop():
    (launch,) = AHEAD.launches
    within = [s for s in to.statements(loops(AHEAD)[-1].body) if isinstance(s, to.Shuffle)]
    every = [s for s in to.statements(launch.body) if isinstance(s, to.Shuffle)]
    assert [s.reduction for s in within] == ["max"]
    assert every[-1].reduction == "sum"


def without(kind, which=0):
    def change(body):
        del body[places(body, kind)[which]]
        return body

    return change


def never_waited_for(body):
    """The next matmul, neither at the end nor by the one that the next iteration begins with."""
    first = places(body, to.WarpgroupMultiply)[0]
    body[first] = replace(body[first], pending=2)
    return without(to.WarpgroupWait, 1)(body)


def given_back_early(body):
    wait = places(body, to.WarpgroupWait)[0]
    body[wait], body[wait + 1] = body[wait + 1], body[wait]
    return body


def read_late(body):
    """The maximum behind the next matmul, whose result replaces what it reads."""
    body.insert(places(body, to.WarpgroupMultiply)[1] + 1, body[places(body, to.Reduce)[0]])
    return body


@pytest.mark.parametrize(
    "change, kind",
    [
        (without(to.WarpgroupWait, 0), faults.STAGE_IN_USE),
        (never_waited_for, faults.MATMUL_IN_FLIGHT),
        (without(to.Await), faults.READ_AFTER_WRITE),
        (given_back_early, faults.STAGE_IN_USE),
        (read_late, faults.MATMUL_IN_FLIGHT),
    ],
)
def test_a_wrong_order_is_a_fault(change, kind):
    with pytest.raises(ThreadFault) as seen:
        attended(changed(change), SIZES)
    assert seen.value.kind == kind


def test_two_stages_are_too_few():
    with pytest.raises(KernelError, match="needs 3 stages of its loop"):
        program("overlap(o, ahead=1)", stages=2)


def test_further_ahead_is_refused():
    with pytest.raises(KernelError, match="at most one iteration ahead"):
        program("overlap(o, ahead=2)")
