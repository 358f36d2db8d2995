"""Ping-pong: two groups of consumers are right at odd sizes, and what goes wrong between them is found."""

from dataclasses import replace

import numpy as np
import pytest

from backends.backend import BackendError
from backends.gpu.plain_rules import RULES
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.pingpong import PARITY
from backends.gpu.threads.program import thread_program
from backends.gpu.tile import Name
from backends.shared.arrays import from_device, to_device
from ir.spec import Number
from machines.gpu.matrix_instructions import family
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

TABLE = (*family("mma_sync"), *family("wgmma"))
MACHINE = replace(  # two blocks, each of which has several tiles
    WITH_INSTRUCTIONS, levels={**WITH_INSTRUCTIONS.levels, "grid": 2}
)
LINES = (
    "tile(m, size=64)",
    "tile(n, size=64)",
    "tile(k, size=64)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
    "compute(acc, unit=matrix)",
    "pipeline(x, stages=3)",
    "pipeline(w, stages=3)",
    "copy(x, by=bulk)",
    "copy(w, by=bulk)",
    "copy(y, by=bulk)",
    "threads(y, count=128)",
    "persistent(y, programs=1)",
    "pingpong(y)",
)
SPEC = spec_of(
    "acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
    "y[m, n] = acc[m, n] * 0.5",
    inputs="x: bf16[M, K], w: bf16[K, N]",
    result="bf16[M, N]",
)
TUNED = dict(M=320, N=128, K=256)
# Rows are multiples of 16 bytes, or not; fewer iterations than stages, as many tiles for both groups, or
# not, and none for the second one.
CASES = {
    "boxes": dict(M=328, N=136, K=264),
    "copies": dict(M=200, N=131, K=331),
    "one iteration": dict(M=320, N=128, K=64),
    "two iterations": dict(M=300, N=128, K=128),
    "one tile": dict(M=64, N=64, K=328),
}


def program(*lines):
    nest = lowered(SPEC, *LINES, *lines, sizes=TUNED, machine=MACHINE)
    return thread_program(nest, MACHINE, RULES, TABLE)


PROGRAM = program()


def run(program, sizes=CASES["boxes"], seed=0):
    draw = np.random.default_rng(0)
    shapes = ((sizes["M"], sizes["K"]), (sizes["K"], sizes["N"]))
    x, w = (to_device(draw.normal(size=s), "bf16") for s in shapes)
    y = to_device(np.full((sizes["M"], sizes["N"]), np.nan), "bf16")
    tensors = {"x": x, "w": w, "y": y}
    interpret(program, sizes, tensors, TABLE, 1 << 18, seed)
    return from_device(y, "bf16"), 0.5 * from_device(x, "bf16") @ from_device(w, "bf16")


@pytest.mark.parametrize("sizes", CASES.values(), ids=CASES)
def test_two_groups_that_take_turns_are_right(sizes):
    got, wanted = run(PROGRAM, sizes)
    assert np.allclose(got, wanted, rtol=1e-2, atol=1e-2)


def test_each_group_has_the_threads_of_the_schedule_and_stores_through_the_same_memory():
    (launch,) = PROGRAM.launches
    assert (launch.threads, launch.consumers, launch.block_threads) == (128, 2, 384)
    turns = {s.name.stem: s.tiles for s in launch.signals if s.name.sort == "turn"}
    assert not turns["multiply"] and {n.stem for n in turns["store"]} == {"stored"}
    assert all(t.stages == 1 for t in launch.shared if t.name.stem == "stored")


def planted(change):
    """The program with the statements of consumers replaced at any depth."""
    (launch,) = PROGRAM.launches

    def block(statements):
        inside = (to.changed_inside(s, block) for s in statements)
        return tuple(x for s in inside for x in change(s))

    made = replace(launch, once=block(launch.once), body=block(launch.body))
    assert made != launch, "nothing was planted"
    return replace(PROGRAM, groups=((None, (made,)),))


def turn(stem):
    return lambda s: getattr(s, "signal", None) == Name("turn", stem)


def without(kind, where):
    return lambda s: () if isinstance(s, kind) and where(s) else (s,)


def skips(s):
    """Whether a statement takes a group past what is the other's."""
    found = isinstance(s, to.Each) and s.name.sort in ("read_stage", "read_parity")
    return found and getattr(s.value, "function", "") == "mod"


def early(stem):
    """Hands on the turn when it begins."""

    def change(s):
        if isinstance(s, to.Arrive) and turn(stem)(s):
            return ()
        if isinstance(s, to.Await) and turn(stem)(s):
            (launch,) = PROGRAM.launches
            return (s, next(x for x in launch.body if isinstance(x, to.Arrive) and turn(stem)(x)))
        return (s,)

    return change


FAULTS = {
    "nobody hands on the turn to multiply": (
        without(to.Arrive, turn("multiply")),
        faults.DEADLOCK,
    ),
    "nobody hands on the turn to store": (without(to.Arrive, turn("store")), faults.DEADLOCK),
    "a group keeps the turn for itself": (
        lambda s: (
            (replace(s, stage=Number(0)),)
            if isinstance(s, to.Arrive) and turn("multiply")(s)
            else (s,)
        ),
        faults.DEADLOCK,
    ),
    "no turn to multiply": (
        without(to.Await, turn("multiply")),
        faults.UNINITIALISED,
    ),
    "no turn to store": (without(to.Await, turn("store")), faults.WRITE_AFTER_READ),
    "the turn to store is handed on too early": (
        early("store"),
        faults.WRITE_AFTER_READ,
    ),
    "the turn to multiply is handed on too early": (
        early("multiply"),
        faults.SIGNAL,
    ),
    "the parity of turns stays": (
        without(to.Each, lambda s: s.name == PARITY and to.Element(PARITY) in s.value.walk()),
        faults.SIGNAL,
    ),
    "a group takes the stages of the other one": (
        without(to.Each, skips),
        faults.DEADLOCK,
    ),
    "no barrier of a group": (
        without(to.Barrier, lambda s: True),
        faults.READ_AFTER_WRITE,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_planted_is_named(name):
    change, kind = FAULTS[name]
    with pytest.raises(ThreadFault) as fault:
        run(planted(change))
    assert fault.value.kind == kind, fault.value


@pytest.mark.parametrize(
    "line, why",
    [
        ("copy(b, by=bulk)", "not one pipelined loop"),
        ("threads(y, count=512)", "2 x 512 threads and the producers has more than 1024"),
    ],
)
def test_where_no_groups_take_turns_the_reason_is_given(line, why):
    spec = spec_of(
        "acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
        "y[m, n] = acc[m, n] + f32(b[m, n])",
        inputs="x: bf16[M, K], w: bf16[K, N], b: bf16[M, N]",
        result="bf16[M, N]",
    )
    lines = [x for x in LINES if x.split("(")[0] != line.split("(")[0] or "copy" in x]
    nest = lowered(spec, *lines, line, sizes=TUNED, machine=MACHINE)
    with pytest.raises(BackendError, match=why):
        thread_program(nest, MACHINE, RULES, TABLE)
