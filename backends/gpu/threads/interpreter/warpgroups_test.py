"""Matmuls of warpgroups: right at odd sizes, in flight over an iteration, and what goes wrong there."""

from dataclasses import replace

import numpy as np
import pytest

from backends.gpu.plain_rules import RULES
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.counts import require_no_conflicts
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.program import thread_program
from backends.shared.arrays import from_device, to_device
from ir.spec import Number
from machines.gpu.matrix_instructions import family
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

TABLE = (*family("mma_sync"), *family("wgmma"))
SIZES = dict(M=72, N=80, K=136)
STAGES = 3
NEST = lowered(
    spec_of(
        "y[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
        inputs="x: bf16[M, K], w: bf16[K, N]",
        result="f32[M, N]",
    ),
    "tile(m, size=64)",
    "tile(n, size=64)",
    "tile(k, size=32)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
    "compute(y, unit=matrix)",
    f"pipeline(x, stages={STAGES})",
    f"pipeline(w, stages={STAGES})",
    "threads(y, count=128)",
    sizes=dict(M=128, N=128, K=128),
    machine=WITH_INSTRUCTIONS,
)
PROGRAM = thread_program(NEST, WITH_INSTRUCTIONS, RULES, TABLE)


def run(program):
    draw = np.random.default_rng(0)
    x, w = (to_device(draw.normal(size=s), "bf16") for s in ((72, 136), (136, 80)))
    tensors = {"x": x, "w": w, "y": np.full((72, 80), np.nan, np.float32)}
    interpret(program, SIZES, tensors, TABLE, 1 << 18)
    return tensors["y"], from_device(x, "bf16") @ from_device(w, "bf16")


def changed(change):
    """The program with statements replaced at any depth."""

    def block(statements):
        found = []
        for s in statements:
            s = replace(s, body=block(s.body)) if isinstance(s, to.Loop | to.Guard) else s
            found += change(s)
        return tuple(found)

    (launch,) = PROGRAM.launches
    made = replace(launch, body=block(launch.body))
    assert made != launch, "nothing was planted"
    return replace(PROGRAM, groups=((None, (made,)),))


def multiplies():
    every = to.statements(PROGRAM.launches[0].body)
    return [s for s in every if isinstance(s, to.WarpgroupMultiply)]


def test_a_matmul_in_flight_over_an_iteration_is_right():
    (found,) = multiplies()
    assert found.pending == 1
    got, wanted = run(PROGRAM)
    assert np.allclose(got, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda s: () if isinstance(s, to.WarpgroupWait) else (s,), faults.MATMUL_IN_FLIGHT),
        (
            lambda s: (replace(s, pending=2),) if isinstance(s, to.WarpgroupMultiply) else (s,),
            faults.STAGE_IN_USE,
        ),
        (
            lambda s: (to.Barrier(),) if s == to.Barrier(proxy=True) else (s,),
            faults.READ_AFTER_WRITE,
        ),
        (lambda s: () if isinstance(s, to.Wait) else (s,), faults.COPY_IN_FLIGHT),
        (
            lambda s: (
                (replace(s, b_stage=Number(STAGES + 1)),)
                if isinstance(s, to.WarpgroupMultiply)
                else (s,)
            ),
            faults.OUT_OF_BOUNDS,
        ),
        (
            lambda s: (
                (replace(s, shape=(64, 64, 8)),) if isinstance(s, to.WarpgroupMultiply) else (s,)
            ),
            faults.FRAGMENT,
        ),
    ],
    ids=["no wait", "too many", "no fence", "copies", "stage", "shape"],
)
def test_what_is_planted_is_named(change, kind):
    with pytest.raises(ThreadFault) as fault:
        run(changed(change))
    assert fault.value.kind == kind


def test_a_tile_without_its_swizzle_is_not_what_the_instruction_reads():
    (launch,) = PROGRAM.launches
    plain = replace(launch, shared=tuple(replace(t, swizzle=None) for t in launch.shared))
    with pytest.raises(ThreadFault) as fault:
        run(replace(PROGRAM, groups=((None, (plain,)),)))
    assert fault.value.kind == faults.FRAGMENT


def split(machine=WITH_INSTRUCTIONS):
    """A product in f32 of three in tf32, whose operands are rounded in registers."""
    spec = spec_of(
        "y[m, n] = sum(x[m, k] * w[k, n], k)",
        inputs="x: f32[M, K], w: f32[K, N]",
        result="f32[M, N]",
    )
    decided = (*(f"tile({i}, size={s})" for i, s in (("m", 64), ("n", 64), ("k", 32))),)
    decided += ("place(m.outer, level=grid)", "place(n.outer, level=grid)", "threads(y, count=128)")
    decided += ("compute(y, unit=matrix)", "precision(y, dtype=tf32x3)")
    more = ("pipeline(x, stages=2)", "pipeline(w, stages=2)")
    nest = lowered(spec, *decided, *more, sizes=dict(M=128, N=128, K=128), machine=machine)
    return thread_program(nest, machine, RULES, TABLE)


def of_f32():
    draw = np.random.default_rng(0)
    x, w = (draw.normal(size=s).astype(np.float32) for s in ((72, 136), (136, 80)))
    return {"x": x, "w": w, "y": np.full((72, 80), np.nan, np.float32)}


def test_products_in_tf32_read_tiles_that_are_contiguous_along_k():
    program = split()
    (launch,) = program.launches
    found = [s for s in to.statements(launch.body) if isinstance(s, to.WarpgroupMultiply)]
    tiles = {t.name: t for t in launch.shared}
    assert len(found) == 3 and {tiles[s.b].axes for s in found} == {("n", "k")}
    tensors = of_f32()
    counts = interpret(program, SIZES, tensors, TABLE, 1 << 18)
    wanted = tensors["x"].astype(np.float64) @ tensors["w"]
    assert np.allclose(tensors["y"], wanted, rtol=1e-5, atol=1e-5)
    require_no_conflicts(counts, *(t.name for t in launch.shared if t.panel))


def test_a_tile_that_is_contiguous_along_n_is_not_for_tf32():
    program = split()
    (launch,) = program.launches
    transposed = tuple(
        replace(t, axes=t.axes[::-1], extents=t.extents[::-1]) if t.axes == ("n", "k") else t
        for t in launch.shared
    )
    changed = replace(program, groups=((None, (replace(launch, shared=transposed),)),))
    with pytest.raises(ThreadFault, match="contiguous along n, of tf32") as fault:
        interpret(changed, SIZES, of_f32(), TABLE, 1 << 18)
    assert fault.value.kind == faults.FRAGMENT
