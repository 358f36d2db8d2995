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


def work(second="k, n"):
    return parse_workload(
        f"def f(x: bf16[M, K], w: bf16[{second.upper()}]) -> bf16[M, N]:\n"
        f'    """Multiply."""\n    acc[m, n] = sum(f32(x[m, k]) * f32(w[{second}]), k)\n'
        "    y[m, n] = bf16(acc[m, n])\n    return y\n"
        "tune(M=256, K=512, N=256)\ncheck(M=33, K=70, N=40)\n",
        "f",
    )


def machine_of(target, backend_name):
    return REGISTRY.served_by(REGISTRY.target(target), REGISTRY.backend(backend_name))


def lowered(machine, lines, kernel):
    return lower(kernel.spec, parse_schedule(lines), machine, kernel.tune)


OTHERS = [("hip", "mi300"), ("triton", "h100")]


@pytest.mark.parametrize(("backend_name", "target"), OTHERS)
def test_equal_shares_of_iterations_are_not_of_all(backend_name, target):
    machine, kernel = machine_of(target, backend_name), work()
    with pytest.raises(KernelError, match="does not render `stream_k`"):
        lowered(machine, f"{PERSISTENT}stream_k(y, over=k)\n", kernel)
    edits = neighbours(kernel.spec, parse_schedule(PERSISTENT), machine, kernel.tune)
    assert not any(e.decision.verb == "stream_k" for e in edits)


@pytest.mark.parametrize("backend_name", ["cuda", "cutedsl"])
def test_languages_for_hopper_offer_equal_shares_and_hip_emits_none(backend_name):
    hopper, kernel = machine_of("h100", backend_name), work()
    edits = neighbours(kernel.spec, parse_schedule(PERSISTENT), hopper, kernel.tune)
    assert [str(e.decision) for e in edits if e.decision.verb == "stream_k"]
    shared = lowered(hopper, f"{PERSISTENT}stream_k(y, over=k)\n", kernel)
    with pytest.raises(BackendError, match="hand no parts of sums"):
        REGISTRY.backend("hip").emit(shared, hopper)


def test_copies_past_the_registers_are_offered_by_hip_alone():
    kernel = work("n, k")  # contiguous along the loop, as such copies are
    for name, offered in (("hip", True), ("triton", False)):
        edits = neighbours(
            kernel.spec, parse_schedule(TILES), machine_of("mi350", name), kernel.tune
        )
        assert any(str(e.decision).endswith("by=lds)") for e in edits) is offered
