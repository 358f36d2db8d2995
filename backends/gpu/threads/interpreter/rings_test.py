"""Two loops that load one tensor in bulk: they share a ring of stages, and a ring of each is a fault."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

from backends.gpu.plain_rules import RULES
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.program import thread_program
from backends.gpu.tile import Name
from backends.shared.arrays import from_device, to_device
from machines.gpu.matrix_instructions import family
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

TABLE = (*family("mma_sync"), *family("wgmma"))
SIZES = dict(M=72, N=80, K=328)  # more stages than a ring has
LINES = (
    *("tile(m, size=64)", "tile(n, size=64)", "tile(k, size=64)"),
    *("place(m.outer, level=grid)", "place(n.outer, level=grid)"),
    "compute(t, unit=matrix)",
    *("pipeline(w, stages=2)", "copy(x, by=bulk)", "copy(w, by=bulk)", "threads(y, count=128)"),
)
SPEC = spec_of(
    "s[m] = sum(f32(x[m, k]), k)",
    "t[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
    "y[m, n] = t[m, n] + s[m]",
    inputs="x: bf16[M, K], w: bf16[K, N]",
    result="f32[M, N]",
)


def program(*lines):
    sizes = dict(M=128, N=128, K=512)
    nest = lowered(SPEC, *LINES, *lines, sizes=sizes, machine=WITH_INSTRUCTIONS)
    return thread_program(nest, WITH_INSTRUCTIONS, RULES, TABLE)


PROGRAM = program("pipeline(x, stages=2)")


def run(made):
    draw = np.random.default_rng(0)
    x, w = (to_device(draw.normal(size=s), "bf16") for s in ((72, 328), (328, 80)))
    tensors = {"x": x, "w": w, "y": np.full((72, 80), np.nan, np.float32)}
    interpret(made, SIZES, tensors, TABLE, 1 << 18)
    left, right = from_device(x, "bf16"), from_device(w, "bf16")
    return tensors["y"], left @ right + left.sum(1, keepdims=True)


def test_loops_that_load_one_tensor_share_a_ring():
    (launch,) = PROGRAM.launches
    assert [s.name.sort for s in launch.signals] == ["full", "empty"]
    assert {t.stem for t in launch.signals[0].tiles} == {"x", "w"}
    got, wanted = run(PROGRAM)
    assert np.allclose(got, wanted, rtol=1e-5, atol=1e-3)


def renamed(value):
    """The same with a ring of another number."""
    if isinstance(value, Name) and value.sort.startswith(("full", "empty", "read_", "write_")):
        return replace(value, copy=9)
    if isinstance(value, tuple):
        return tuple(map(renamed, value))
    if is_dataclass(value):
        return replace(value, **{f.name: renamed(getattr(value, f.name)) for f in fields(value)})
    return value


def apart(block):
    """A block whose second loop over K has a ring of its own."""
    *before, second = (n for n, s in enumerate(block) if type(s).__name__ == "Loop")
    assert len(before) == 1
    return tuple(renamed(s) if n >= second else s for n, s in enumerate(block))


def test_a_ring_of_each_loop_is_named():
    (launch,) = PROGRAM.launches
    own = launch.producer
    planted = replace(
        launch,
        signals=(*launch.signals, *map(renamed, launch.signals)),
        fragments=(
            *launch.fragments,
            *(f for f in map(renamed, launch.fragments) if f.name.copy == 9),
        ),
        once=(*launch.once, *map(renamed, launch.once)),
        body=apart(launch.body),
        producer=replace(own, once=(*own.once, *map(renamed, own.once)), body=apart(own.body)),
    )
    with pytest.raises(ThreadFault, match="another copy brought, for which nobody waited") as fault:
        run(replace(PROGRAM, groups=((None, (planted,)),)))
    assert fault.value.kind == faults.STAGE_IN_USE
