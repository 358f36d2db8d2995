"""Roles and signals: right at odd sizes, by boxes and without, and what goes wrong between them."""

from dataclasses import replace

import numpy as np
import pytest

from backends.gpu import tile as of
from backends.gpu.plain_rules import RULES
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.program import thread_program
from backends.shared.arrays import from_device, to_device
from ir.spec import Number
from machines.gpu.matrix_instructions import family
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

TABLE = (*family("mma_sync"), *family("wgmma"))
NEST = lowered(
    spec_of(
        "y[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
        inputs="x: bf16[M, K], w: bf16[K, N]",
        result="f32[M, N]",
    ),
    "tile(m, size=64)",
    "tile(n, size=64)",
    "tile(k, size=64)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
    "compute(y, unit=matrix)",
    "pipeline(x, stages=2)",
    "pipeline(w, stages=2)",
    "copy(x, by=bulk)",
    "copy(w, by=bulk)",
    "copy(y, by=bulk)",
    "threads(y, count=128)",
    sizes=dict(M=128, N=128, K=128),
    machine=WITH_INSTRUCTIONS,
)
PROGRAM = thread_program(NEST, WITH_INSTRUCTIONS, RULES, TABLE)
BOXED = dict(M=72, N=80, K=328)  # rows are multiples of 16 bytes
COPIED = dict(M=72, N=81, K=331)


def run(program, sizes=BOXED):
    draw = np.random.default_rng(0)
    shapes = ((sizes["M"], sizes["K"]), (sizes["K"], sizes["N"]))
    x, w = (to_device(draw.normal(size=s), "bf16") for s in shapes)
    tensors = {"x": x, "w": w, "y": np.full((sizes["M"], sizes["N"]), np.nan, np.float32)}
    interpret(program, sizes, tensors, TABLE, 1 << 18)
    return tensors["y"], from_device(x, "bf16") @ from_device(w, "bf16")


def block(statements, change):
    found = []
    for s in statements:
        if isinstance(s, to.Loop):
            s = replace(s, body=block(s.body, change))
        elif isinstance(s, to.Guard):
            s = replace(s, body=block(s.body, change), others=block(s.others, change))
        found += change(s)
    return tuple(found)


def changed(change, role="both"):
    """The program with statements replaced at any depth. role: whose."""
    (launch,) = PROGRAM.launches
    made = launch
    if role != "producer":
        made = replace(made, once=block(made.once, change), body=block(made.body, change))
    if role != "consumer":
        p = made.producer
        made = replace(
            made, producer=replace(p, once=block(p.once, change), body=block(p.body, change))
        )
    assert made != launch, "nothing was planted"
    return replace(PROGRAM, groups=((None, (made,)),))


def without(kind, where=lambda s: True):
    return lambda s: () if isinstance(s, kind) and where(s) else (s,)


@pytest.mark.parametrize("sizes", [BOXED, COPIED], ids=["boxes", "copies"])
def test_a_matmul_that_producers_feed_is_right(sizes):
    got, wanted = run(PROGRAM, sizes)
    assert np.allclose(got, wanted, rtol=1e-5, atol=1e-4)


def test_blocks_that_walk_through_tiles_keep_their_place_in_the_ring():
    (launch,) = PROGRAM.launches
    apart = tuple(
        replace(t, region="apart") if t.name.stem == "stored" else t for t in launch.shared
    )
    walking = replace(launch, resident=1, shared=apart)
    got, wanted = run(replace(PROGRAM, groups=((None, (walking,)),)))
    assert np.allclose(got, wanted, rtol=1e-5, atol=1e-4)


def test_a_stage_is_given_back_when_loads_from_it_have_arrived():
    """The engine's copies are of another proxy: an arrival by itself does not order loads before them."""
    by_warps = thread_program(NEST, WITH_INSTRUCTIONS, RULES, family("mma_sync"))
    for sizes in (BOXED, COPIED):
        got, wanted = run(by_warps, sizes)
        assert np.allclose(got, wanted, rtol=1e-5, atol=1e-4)
    (launch,) = by_warps.launches
    loose = replace(launch, body=block(launch.body, without(to.Fence)))
    assert loose != launch
    with pytest.raises(ThreadFault, match="may not have arrived") as found:
        run(replace(by_warps, groups=((None, (loose,)),)))
    assert found.value.kind == faults.STAGE_IN_USE


CASES = {
    "nothing is given back": (without(to.Arrive), "consumer", BOXED, faults.DEADLOCK),
    "bytes are not expected": (
        lambda s: (replace(s, expects=()),) if isinstance(s, to.Arrive) and s.expects else (s,),
        "producer",
        BOXED,
        faults.SIGNAL,
    ),
    "a box is missing": (
        without(to.BoxCopy, lambda s: s.tile.stem == "w"),
        "producer",
        BOXED,
        faults.DEADLOCK,
    ),
    "a phase is lost": (
        lambda s: (
            (replace(s, value=Number(0)),)
            if isinstance(s, to.Each) and s.name.sort == "read_parity"
            else (s,)
        ),
        "consumer",
        BOXED,
        faults.DEADLOCK,
    ),
    "no wait for a full stage": (without(to.Await), "consumer", BOXED, faults.UNINITIALISED),
    "no wait for an empty stage": (without(to.Await), "producer", BOXED, faults.STAGE_IN_USE),
    "given back too early": (
        lambda s: early(s),
        "consumer",
        BOXED,
        faults.STAGE_IN_USE,
    ),
    "all threads start a box": (
        lambda s: s.body if isinstance(s, to.Guard) and isinstance(s.condition, of.Check) else (s,),
        "producer",
        BOXED,
        faults.SIGNAL,
    ),
    "no fence after copies": (without(to.Fence), "producer", COPIED, faults.READ_AFTER_WRITE),
    "no wait for copies": (without(to.Wait), "producer", COPIED, faults.COPY_IN_FLIGHT),
    "no barrier before a store": (without(to.Barrier), "consumer", BOXED, faults.WRITE_AFTER_READ),
}


def early(s):
    """Gives back the stage that the matmul in flight still reads."""
    (launch,) = PROGRAM.launches
    empty = launch.signals[1].name
    if isinstance(s, to.Guard) and getattr(s.condition, "function", "") == "gt":
        return (to.Arrive(empty, to.Element(replace(empty, sort="read_stage")), warps=True),)
    return () if isinstance(s, to.Arrive) else (s,)


@pytest.mark.parametrize("name", CASES)
def test_what_is_planted_is_named(name):
    change, role, sizes, kind = CASES[name]
    with pytest.raises(ThreadFault) as fault:
        run(changed(change, role), sizes)
    assert fault.value.kind == kind, fault.value


def test_more_arrivals_than_a_phase_counts_are_named():
    (launch,) = PROGRAM.launches
    signals = tuple(
        replace(s, arrivals=Number(1)) if s.name.sort == "empty" else s for s in launch.signals
    )
    with pytest.raises(ThreadFault) as fault:
        run(replace(PROGRAM, groups=((None, (replace(launch, signals=signals),)),)))
    assert fault.value.kind == faults.SIGNAL


def test_boxes_that_do_not_fill_their_tile_are_named():
    (launch,) = PROGRAM.launches
    maps = tuple(replace(m, box=(Number(32), m.box[1])) for m in launch.maps)
    with pytest.raises(ThreadFault) as fault:
        run(replace(PROGRAM, groups=((None, (replace(launch, maps=maps),)),)))
    assert fault.value.kind == faults.FRAGMENT
