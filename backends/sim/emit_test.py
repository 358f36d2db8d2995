"""Golden texts of emitted kernels, one for each kind of statement, and statements that cannot be
emitted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.backend import BackendError
from backends.registry import REGISTRY, target
from backends.sim import backend as sim_backend
from backends.sim.backend import Sim
from ir.lower.lower import lower
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_schedule
from testing.samples.samples import decisions, spec_of, workload

MACHINE = target("npu")
SCHEDULES = {
    "fused": (
        "rmsnorm_matmul",
        """
        hoist(r, into=y)
        tile(m, size=64)
        tile(n, size=128)
        tile(k, size=64)
        place(m.outer, level=grid)
        place(n.outer, level=grid)
        place(k.outer, level=loop)
        fuse(ss, into=acc)
        compute(acc, unit=matrix)
        precision(acc, dtype=bf16)
        multicast(x, over=n.outer)
        pipeline(x, stages=3)
        pipeline(w, stages=3)
        """,
    ),
    "streamed": (
        "attention",
        """
        tile(h, size=1)
        tile(m, size=32)
        tile(n, size=64)
        place(h.outer, level=grid)
        place(m.outer, level=grid)
        place(n.outer, level=loop)
        fuse(l, into=o)
        online(mx, into=o)
        compute(s, unit=matrix)
        compute(o, unit=matrix)
        precision(o, dtype=bf16)
        """,
    ),
    "kept": (
        "attention",
        """
        tile(h, size=1)
        tile(m, size=16)
        tile(n, size=64)
        place(h.outer, level=grid)
        place(m.outer, level=grid)
        place(n.outer, level=loop)
        fuse(l, into=o)
        compute(s, unit=matrix)
        compute(o, unit=matrix)
        precision(o, dtype=bf16)
        multicast(k, over=m.outer)
        keep(a, over=n.outer)
        pipeline(p, stages=2)
        """,
    ),
    "broadcast_table": (
        "map_id",
        "tile(b, size=64)\nplace(b.outer, level=grid)\nmulticast(keys, over=b.outer)",
    ),
    "windows": (
        "max_pool2d",
        """
        tile(n, size=1)
        tile(c, size=4)
        place(n.outer, level=grid)
        place(c.outer, level=grid)
        """,
    ),
    "jagged": (
        "embedding_bag",
        """
        tile(b, size=1)
        tile(l, size=32)
        place(b.outer, level=grid)
        pipeline(table, stages=2)
        """,
    ),
    "searched": ("map_id", "tile(b, size=64)\nplace(b.outer, level=grid)"),
    "scanned": (
        "cumsum",
        """
        tile(m, size=8)
        tile(k, size=256)
        place(m.outer, level=grid)
        place(k.outer, level=loop)
        """,
    ),
    "staged_whole": (
        "softmax",
        """
        tile(m, size=4)
        tile(k, size=128)
        place(m.outer, level=grid)
        place(k.outer, level=loop)
        load(x, at=grid)
        """,
    ),
    "recurrent": (
        "rnn",
        """
        tile(t, size=4)
        tile(j, size=32)
        tile(i, size=128)
        tile(k, size=64)
        place(t.outer, level=grid)
        place(j.outer, level=grid)
        place(i.outer, level=loop)
        place(k.outer, level=loop)
        compute(gx, unit=matrix)
        compute(a, unit=matrix)
        """,
    ),
    "launches": ("layer_norm", "kernel(r)\ntile(m, size=1)\nplace(m.outer, level=grid)"),
}


def nest(kernel: str, decisions: str) -> LoopNest:
    lines = "\n".join(line.strip() for line in decisions.strip().splitlines())
    schedule = parse_schedule(f"schedule({kernel})\n{lines}\n")
    given = workload(kernel)
    return lower(given.spec, schedule, MACHINE, given.tune)


def sim() -> Sim:
    return Sim(REGISTRY.manifest("sim"))


@pytest.mark.parametrize("name", SCHEDULES)
def test_an_emitted_kernel_is_the_golden_one(name, golden):
    golden(f"backends/sim/golden/{name}.cc", sim().emit(nest(*SCHEDULES[name]), MACHINE))


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_golden_kernel_builds_without_a_warning(name, tmp_path, monkeypatch):
    monkeypatch.setattr(sim_backend, "FLAGS", (*sim_backend.FLAGS, "-Werror"))
    backend = sim()
    made = nest(*SCHEDULES[name])
    assert backend.build(backend.emit(made, MACHINE), made, MACHINE, tmp_path).file.exists()


def test_a_source_that_does_not_compile_says_where(tmp_path):
    text, made = "KERNEL(f) { const int n = nothing; }\n", nest(*SCHEDULES["fused"])
    with pytest.raises(BackendError, match="kernel.cc, line 1: "):
        sim().build(text, made, MACHINE, tmp_path)


def test_what_the_device_lacks_is_refused_at_emission():
    made = nest("softmax", "tile(m, size=4)\nplace(m.outer, level=grid)")
    launch = made.launches[0]
    odd = [
        replace(s, reduction="argmax") if type(s).__name__ == "Reduction" else s
        for s in launch.body
    ]
    broken = replace(made, launches=(replace(launch, body=tuple(odd)),))
    with pytest.raises(BackendError, match="`argmax` has no reduction on this device"):
        sim().emit(broken, MACHINE)


def test_a_constant_that_a_double_does_not_hold_is_refused():
    spec = spec_of("y[m] = x[m] + 9007199254740993", inputs="x: i64[M]", result="i64[M]")
    nest = lower(spec, decisions(spec), MACHINE, {"M": 400})
    with pytest.raises(BackendError, match="no constant as large as 9007199254740993"):
        Sim(REGISTRY.manifest("sim")).emit(nest, MACHINE)
