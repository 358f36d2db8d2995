"""Matmuls in tensor memory: right at odd sizes, and what goes wrong there."""

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
from ir.spec import Number
from machines.gpu.matrix_instructions import family
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

TABLE = (*family("mma_sync"), *family("tcgen05"))
GPU = {"tensor_columns": 512}
MACHINE = replace(WITH_INSTRUCTIONS, details={**WITH_INSTRUCTIONS.details, "gpu": GPU})
SIZES = dict(M=140, N=80, K=136)
NEST = lowered(
    spec_of(
        "y[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
        inputs="x: bf16[M, K], w: bf16[K, N]",
        result="f32[M, N]",
    ),
    *(f"tile({i}, size={s})" for i, s in (("m", 128), ("n", 128), ("k", 32))),
    *(f"place({i}.outer, level=grid)" for i in "mn"),
    "compute(y, unit=matrix)",
    *(f"pipeline({x}, stages=3)" for x in "xw"),
    "threads(y, count=256)",
    "persistent(y, programs=1)",
    sizes=dict(M=256, N=256, K=128),
    machine=MACHINE,
)
(LAUNCH,) = thread_program(NEST, MACHINE, RULES, TABLE).launches
PROGRAM = thread_program(NEST, MACHINE, RULES, TABLE)
ONE_BLOCK = 1


def run(launch):
    draw = np.random.default_rng(0)
    x, w = (to_device(draw.normal(size=s), "bf16") for s in ((140, 136), (136, 80)))
    tensors = {"x": x, "w": w, "y": np.full((140, 80), np.nan, np.float32)}
    made = replace(PROGRAM, groups=((None, (replace(launch, resident=ONE_BLOCK),)),))
    interpret(made, SIZES, tensors, TABLE, 1 << 18)
    return tensors["y"], from_device(x, "bf16") @ from_device(w, "bf16")


def changed(change):
    """The launch with statements replaced at any depth."""

    def block(statements):
        found = []
        for s in statements:
            s = replace(s, body=block(s.body)) if isinstance(s, to.Loop | to.Guard) else s
            found += change(s)
        return tuple(found)

    made = replace(LAUNCH, body=block(LAUNCH.body))
    assert made != LAUNCH, "nothing was planted"
    return made


def test_a_block_with_several_tiles_is_right():
    got, wanted = run(LAUNCH)
    assert np.allclose(got, wanted, rtol=1e-5, atol=1e-4)


def of_multiply(**fields):
    return lambda s: (replace(s, **fields),) if isinstance(s, to.TensorMultiply) else (s,)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (of_multiply(onto=Number(True)), faults.UNINITIALISED),
        (of_multiply(number=Number(7)), faults.SIGNAL),
        (of_multiply(pending=64), faults.SIGNAL),
        (of_multiply(b_stage=Number(9)), faults.OUT_OF_BOUNDS),
        (of_multiply(shape=(64, 64, 16)), faults.FRAGMENT),
        (of_multiply(pending=2), faults.STAGE_IN_USE),
        (
            lambda s: (to.Barrier(),) if s == to.Barrier(proxy=True) else (s,),
            faults.READ_AFTER_WRITE,
        ),
    ],
    ids=["nothing there", "number", "stages", "stage", "shape", "in flight", "no fence"],
)
def test_what_is_planted_is_named(change, kind):
    with pytest.raises(ThreadFault) as fault:
        run(changed(change))
    assert fault.value.kind == kind


def test_a_load_waits_for_the_latest_matmul():
    def change(s):
        return (replace(s, number=Number(3)),) if isinstance(s, to.TensorLoad) else (s,)

    with pytest.raises(ThreadFault, match="the latest is") as fault:
        run(changed(change))
    assert fault.value.kind == faults.SIGNAL


def test_an_accumulator_is_not_written_before_all_have_loaded_it():
    loads = [n for n, s in enumerate(LAUNCH.body) if isinstance(s, to.TensorLoad)]
    multiply = next(s for s in to.statements(LAUNCH.body) if isinstance(s, to.TensorMultiply))
    again = replace(multiply, a_stage=Number(0), b_stage=Number(0))
    number = next(
        s for s in to.statements(LAUNCH.body) if isinstance(s, to.Each) and s.name.sort == "issued"
    )
    (place,) = loads
    body = (*LAUNCH.body[: place + 1], number, again, *LAUNCH.body[place + 1 :])
    with pytest.raises(ThreadFault, match="while threads may still load it") as fault:
        run(replace(LAUNCH, body=body))
    assert fault.value.kind == faults.WRITE_AFTER_READ
