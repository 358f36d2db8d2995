"""Unrolled loops: chunks of a known number of iterations, the last of which may be cut short."""

import numpy as np
import pytest

from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.testing.lowered_samples import WARPGROUPS, matmul
from backends.gpu.threads.thread import Guard, Loop, ThreadProgram, statements
from backends.shared.arrays import from_device, to_device
from ir.nest.nest import Parameter
from ir.reference.rounding import round_to
from ir.spec import Size

PIPELINED = ("pipeline(x, stages=3)", "pipeline(w, stages=3)")
BULK = (*PIPELINED, "copy(x, by=bulk)", "copy(w, by=bulk)")
DIMS = {"x": ("M", "K"), "w": ("K", "N"), "y": ("M", "N")}


def made(*lines, k=256):
    sizes = {"M": 64, "N": 64, "K": k}
    own = ("threads(y, count=128)", "unroll_loop(k.outer, factor=2)", *lines)
    return matmul(*own, table=WARPGROUPS, sizes=sizes, m=64, n=64, k=64)


def loops(launch):
    return [s for s in statements((*launch.once, *launch.body)) if isinstance(s, Loop)]


def test_a_loop_walks_chunks_and_an_inner_one_of_a_known_length_their_iterations():
    chunk, inner = (s for s in loops(made()) if s.name.sort in ("chunk", "origin"))
    assert (chunk.name.sort, chunk.step, chunk.unrolled) == ("chunk", 128, False)
    assert (inner.name.sort, inner.step, inner.unrolled) == ("origin", 64, True)
    (guard,) = inner.body
    assert isinstance(guard, Guard) and chunk.body == (inner,)


@pytest.mark.parametrize("lines", [(), PIPELINED, BULK, (*PIPELINED, "persistent(y, programs=1)")])
@pytest.mark.parametrize("k", [64, 200, 256, 320])
def test_the_result_is_the_same_however_many_iterations_there_are(lines, k):
    launch = made(*lines)
    assert any(s.name.sort == "chunk" for s in loops(launch))
    sizes = {"M": 64, "N": 64, "K": k}
    tensors = tuple(
        Parameter(n, "bf16", tuple(map(Size, dims)), "output" if n == "y" else "input")
        for n, dims in DIMS.items()
    )
    rng = np.random.default_rng(0)
    drawn = {
        n: round_to(rng.standard_normal([sizes[d] for d in dims]).astype("f4"), "bf16")
        for n, dims in DIMS.items()
    }
    given = {n: to_device(a, "bf16") for n, a in drawn.items()}
    program = ThreadProgram("matmul", ((None, (launch,)),), tensors)
    interpret(program, sizes, given, WARPGROUPS, 1 << 20, 0)
    exact = drawn["x"].astype("f8") @ drawn["w"].astype("f8")
    assert np.allclose(from_device(given["y"], "bf16").astype("f8"), exact, rtol=1e-2, atol=1e-1)
