"""What one language renders and others do not: these refuse it, and none of their edits offers it."""

import pytest

from backends.backend import BackendError
from backends.registry import REGISTRY
from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload

TILES = """schedule(f)
tile(m, size=128)
tile(n, size=128)
tile(k, size=64)
place(m.outer, level=grid)
place(n.outer, level=grid)
compute(acc, unit=matrix)
pipeline(x, stages=2)
pipeline(w, stages=2)
threads(y, count=256)
"""
PERSISTENT = f"{TILES}persistent(y, programs=1)\n"


def work():
    return parse_workload(
        "def f(x: bf16[M, K], w: bf16[K, N]) -> bf16[M, N]:\n"
        '    """Multiply."""\n    acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)\n'
        "    y[m, n] = bf16(acc[m, n])\n    return y\n"
        "tune(M=256, K=512, N=256)\ncheck(M=33, K=70, N=40)\n",
        "f",
    )


def machine_of(target, backend_name):
    return REGISTRY.served_by(REGISTRY.target(target), REGISTRY.backend(backend_name))


def lowered(machine, lines, kernel):
    return lower(kernel.spec, parse_schedule(lines), machine, kernel.tune)


OTHERS = [("hip", "mi300"), ("triton", "h100"), ("cutedsl", "h100")]


@pytest.mark.parametrize(("backend_name", "target"), OTHERS)
def test_equal_shares_of_iterations_are_of_cuda_alone(backend_name, target):
    machine, kernel = machine_of(target, backend_name), work()
    with pytest.raises(KernelError, match="does not render `stream_k`"):
        lowered(machine, f"{PERSISTENT}stream_k(y, over=k)\n", kernel)
    edits = neighbours(kernel.spec, parse_schedule(PERSISTENT), machine, kernel.tune)
    assert not any(e.decision.verb == "stream_k" for e in edits)


def test_cuda_offers_equal_shares_and_hip_emits_none():
    cuda, kernel = machine_of("h100", "cuda"), work()
    edits = neighbours(kernel.spec, parse_schedule(PERSISTENT), cuda, kernel.tune)
    assert [str(e.decision) for e in edits if e.decision.verb == "stream_k"]
    shared = lowered(cuda, f"{PERSISTENT}stream_k(y, over=k)\n", kernel)
    with pytest.raises(BackendError, match="hand no parts of sums"):
        REGISTRY.backend("hip").emit(shared, cuda)


def test_copies_past_the_registers_are_offered_by_hip_alone():
    kernel = work()
    for name, offered in (("hip", True), ("triton", False)):
        edits = neighbours(
            kernel.spec, parse_schedule(TILES), machine_of("mi350", name), kernel.tune
        )
        assert any(str(e.decision).endswith("by=lds)") for e in edits) is offered
