"""A matmul with an operand in registers is in flight until the operand is written again: right at odd
sizes; without the wait, or with the stage given back before it, a fault."""

from dataclasses import replace

import numpy as np
import pytest

from backends.gpu.plain_rules import RULES
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.program import thread_program
from backends.shared.arrays import from_device, to_device
from machines.gpu.matrix_instructions import family
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

TABLE = (*family("mma_sync"), *family("wgmma"))
INPUTS = "x: bf16[M, K], g: bf16[K], w: bf16[K, N]"
LINES = (
    *(f"tile({i}, size=64)" for i in "mnk"),
    *(f"place({i}.outer, level=grid)" for i in "mn"),
    *(f"pipeline({x}, stages=3)" for x in "xw"),
    *(f"copy({x}, by=bulk)" for x in "xw"),
)
BOXED, COPIED = dict(M=72, N=80, K=328), dict(M=72, N=81, K=331)


def program(*equations, more=()):
    spec = spec_of(*equations, inputs=INPUTS, result="f32[M, N]")
    decided = (*LINES, "compute(y, unit=matrix)", "precision(y, dtype=bf16)", *more)
    sizes = dict(M=128, N=128, K=128)
    nest = lowered(spec, *decided, "threads(y, count=128)", sizes=sizes, machine=WITH_INSTRUCTIONS)
    return thread_program(nest, WITH_INSTRUCTIONS, RULES, TABLE)


SCALED = program("y[m, n] = sum(f32(x[m, k]) * f32(g[k]) * f32(w[k, n]), k)")


def run(made, sizes=BOXED):
    draw = np.random.default_rng(0)
    x, w = ((draw.normal(size=s)) for s in ((sizes["M"], sizes["K"]), (sizes["K"], sizes["N"])))
    x, w = to_device(x, "bf16"), to_device(w, "bf16")
    g = to_device(2.0 ** draw.integers(-2, 3, sizes["K"]), "bf16")  # products are exact
    tensors = {"x": x, "g": g, "w": w, "y": np.full((sizes["M"], sizes["N"]), np.nan, np.float32)}
    interpret(made, sizes, tensors, TABLE, 1 << 18)
    return tensors["y"], (from_device(x, "bf16") * from_device(g, "bf16")) @ from_device(w, "bf16")


def loop_of(made):
    (launch,) = made.launches
    return next(s for s in launch.body if isinstance(s, to.Loop))


def changed(change):
    """The program with the body of its loop changed."""
    (launch,) = SCALED.launches
    loop = loop_of(SCALED)
    body = tuple(
        replace(s, body=tuple(change(list(s.body)))) if s is loop else s for s in launch.body
    )
    return replace(SCALED, groups=((None, (replace(launch, body=body),)),))


def place(body, kind):
    return next(n for n, s in enumerate(body) if isinstance(s, kind))


def test_the_wait_stands_before_the_operand_is_written_again():
    body = loop_of(SCALED).body
    wait, multiply = place(body, to.WarpgroupWait), body[place(body, to.WarpgroupMultiply)]
    written = next(n for n, s in enumerate(body) if getattr(s, "name", None) == multiply.a)
    given = next(n for n, s in enumerate(body) if isinstance(s, to.Guard))
    assert multiply.pending == 1 and (given, written) == (wait + 1, wait + 2)
    assert not any(isinstance(s, to.Arrive) for s in body)


@pytest.mark.parametrize("sizes", [BOXED, COPIED, dict(M=1, N=8, K=1)])
def test_it_is_right(sizes):
    found, known = run(SCALED, sizes)
    np.testing.assert_allclose(found, known, rtol=2e-3, atol=2e-2)


def test_an_operand_that_is_written_before_the_wait_is_a_fault():
    def change(body):
        wait = place(body, to.WarpgroupWait)
        return [*body[:wait], body[wait + 2], body[wait], body[wait + 1], *body[wait + 3 :]]

    with pytest.raises(ThreadFault, match="is written while a matmul in flight takes it") as seen:
        run(changed(change))
    assert seen.value.kind == faults.MATMUL_IN_FLIGHT


def test_a_stage_that_is_given_back_before_the_wait_is_a_fault():
    def change(body):
        wait, given = place(body, to.WarpgroupWait), place(body, to.Guard)
        body[wait], body[given] = body[given], body[wait]
        return body

    with pytest.raises(ThreadFault) as seen:
        run(changed(change))
    assert seen.value.kind == faults.STAGE_IN_USE


def test_a_result_that_the_loop_scales_is_waited_for_at_once():
    """Online softmax: the sum is multiplied by a factor in each iteration."""
    spec = spec_of(
        "mx[m] = max(f32(x[m, k]), k)",
        "p[m, k] = exp(f32(x[m, k]) - mx[m])",
        "y[m, n] = sum(p[m, k] * f32(w[k, n]), k)",
        inputs="x: bf16[M, K], w: bf16[K, N]",
        result="f32[M, N]",
    )
    decided = (*LINES, "online(mx, into=y)", "compute(y, unit=matrix)", "precision(y, dtype=bf16)")
    sizes = dict(M=128, N=128, K=128)
    nest = lowered(spec, *decided, "threads(y, count=128)", sizes=sizes, machine=WITH_INSTRUCTIONS)
    body = loop_of(thread_program(nest, WITH_INSTRUCTIONS, RULES, TABLE)).body
    assert body[place(body, to.WarpgroupMultiply)].pending == 0
