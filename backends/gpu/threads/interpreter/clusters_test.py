"""Clusters: right at all sizes and dtypes, and what goes wrong between their blocks."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from backends.backend import BackendError
from backends.gpu.plain_rules import RULES
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.program import thread_program
from backends.gpu.threads.text import program_text
from backends.shared.arrays import from_device, to_device
from ir.spec import Number
from machines.gpu.matrix_instructions import family
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

TABLE = (*family("mma_sync"), *family("wgmma"))
MACHINE = replace(WITH_INSTRUCTIONS, details={"gpu": {"cluster_blocks": 8}})
BOXED = dict(M=200, N=80, K=336)  # four tiles of M; rows are multiples of 16 bytes
SIZES = {
    "whole clusters": BOXED,
    "an odd number of blocks": BOXED | dict(M=190),
    "one block": dict(M=8, N=16, K=16),
    "short of a tile along K": dict(M=128, N=64, K=16),
    "no boxes": dict(M=128, N=81, K=331),
}


@cache
def program(*more, dtype="bf16", count=128, tile=64):
    read = ("x[m, k]", "w[n, k]") if dtype == "f32" else ("f32(x[m, k])", "f32(w[n, k])")
    nest = lowered(
        spec_of(
            f"y[m, n] = sum({' * '.join(read)}, k)",
            inputs=f"x: {dtype}[M, K], w: {dtype}[N, K]",
            result="f32[M, N]",
        ),
        *(f"tile({i}, size={tile})" for i in "mnk"),
        *("place(m.outer, level=grid)", "place(n.outer, level=grid)", "compute(y, unit=matrix)"),
        *(f"{how}" for x in "xw" for how in (f"pipeline({x}, stages=2)", f"copy({x}, by=bulk)")),
        f"threads(y, count={count})",
        *more,
        sizes=dict(M=256, N=128, K=128),
        machine=MACHINE,
    )
    return thread_program(nest, MACHINE, RULES, TABLE)


def run(made, sizes=BOXED, dtype="bf16"):
    draw = np.random.default_rng(0)
    shapes = ((sizes["M"], sizes["K"]), (sizes["N"], sizes["K"]))
    x, w = (to_device(draw.integers(-2, 3, size=s).astype(float), dtype) for s in shapes)
    tensors = {"x": x, "w": w, "y": np.full((sizes["M"], sizes["N"]), np.nan, np.float32)}
    interpret(made, sizes, tensors, TABLE, 1 << 18, seed=1)
    return tensors["y"], from_device(x, dtype) @ from_device(w, dtype).T


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize(
    "lines",
    [
        ("cluster(m, size=2)",),
        ("cluster(n, size=2)",),
        ("cluster(m, size=4)", "rasterize(m, size=4, over=n)"),
        ("cluster(m, size=2)", "persistent(y, programs=1)", "copy(y, by=bulk)"),
    ],
    ids=" ".join,
)
def test_blocks_that_share_copies_are_right(lines, name):
    got, wanted = run(program(*lines), SIZES[name])
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", ["f16", "f8e4m3", "f8e5m2", "f32"])
def test_all_dtypes_that_warpgroups_multiply_are_shared(dtype):
    more = ("precision(y, dtype=tf32)",) if dtype == "f32" else ()
    made = program("cluster(m, size=2)", *more, dtype=dtype)
    (launch,) = made.launches
    assert any(isinstance(s, to.WarpgroupMultiply) for s in to.statements(launch.body))
    got, wanted = run(made, BOXED, dtype)
    np.testing.assert_array_equal(got, wanted)


def test_each_block_walks_through_tiles_with_its_cluster():
    made = program("cluster(m, size=2)", "persistent(y, programs=1)", "copy(y, by=bulk)")
    (launch,) = made.launches
    few = replace(made, groups=((None, (replace(launch, resident=2),)),))
    got, wanted = run(few)
    np.testing.assert_array_equal(got, wanted)


def test_what_blocks_share_is_told():
    text = program_text(program("cluster(m, size=2)"))
    (launch,) = program("cluster(m, size=2)").launches
    full, empty = launch.signals
    assert "clusters of m_cluster blocks" in text and "barrier of the cluster" in text
    assert (
        "part (tile % m_cluster) of the cluster's" in text
        and "in all blocks of the cluster" in text
    )
    assert launch.cluster.stem == "m" and empty.arrivals != full.arrivals
    parts = [s.part for s in to.statements(launch.producer.body) if isinstance(s, to.BoxCopy)]
    assert [p is None for p in parts] == [True, False], "each block has rows of x of its own"


def test_tiles_that_have_no_parts_are_refused():
    with pytest.raises(BackendError, match="share no copies"):
        program("cluster(m, size=8)", tile=32)


# -- faults ---------------------------------------------------------------------------------------


def block(statements, change):
    found = []
    for s in statements:
        if isinstance(s, to.Loop):
            s = replace(s, body=block(s.body, change))
        elif isinstance(s, to.Guard):
            s = replace(s, body=block(s.body, change), others=block(s.others, change))
        found += change(s)
    return tuple(found)


def planted(of_launch, *parts):
    """The program with a change of its launch, and of the statements of some of its parts."""
    (launch,) = program("cluster(m, size=2)").launches
    made = of_launch(launch)
    for part, change in parts:
        made = replace(made, **{part: block(getattr(made, part), change)})
        own = replace(made.producer, **{part: block(getattr(made.producer, part), change)})
        made = replace(made, producer=own)
    assert made != launch, "nothing was planted"
    return replace(program("cluster(m, size=2)"), groups=((None, (made,)),))


def counted(number):
    """Signals of empty stages that count other arrivals."""

    def change(launch):
        of = {"empty": Number(number)}
        return replace(
            launch,
            signals=tuple(
                replace(s, arrivals=of.get(s.name.sort, s.arrivals)) for s in launch.signals
            ),
        )

    return change


def at_home(s):
    """Arrivals at the own block's signals alone."""
    return (replace(s, everywhere=False),) if isinstance(s, to.Arrive) else (s,)


def apart(s):
    return () if isinstance(s, to.ClusterBarrier) else (s,)


def same(s):
    """All blocks copy the first part."""
    return (replace(s, part=Number(0)),) if isinstance(s, to.BoxCopy) and s.part else (s,)


def early(s):
    """Gives a stage back, to all blocks, that the matmul in flight still reads."""
    (launch,) = program("cluster(m, size=2)").launches
    empty = launch.signals[1].name
    if isinstance(s, to.Guard) and getattr(s.condition, "function", "") == "gt":
        stage = to.Element(replace(empty, sort="read_stage"))
        return (to.Arrive(empty, stage, warps=True, everywhere=True),)
    return () if isinstance(s, to.Arrive) and s.warps else (s,)


CASES = {
    "a stage counts its own block's consumers alone": (
        counted(4),
        [("body", at_home)],
        faults.STAGE_IN_USE,
    ),
    "a stage is given back while a peer's matmul reads it": (
        lambda x: x,
        [("body", early)],
        faults.STAGE_IN_USE,
    ),
    "arrivals are lost": (lambda x: x, [("body", at_home)], faults.DEADLOCK),
    "a block leaves": (lambda x: x, [("end", apart)], faults.CLUSTER),
    "a block is reached before it begins": (lambda x: x, [("once", apart)], faults.CLUSTER),
    "two blocks copy the same part": (
        lambda x: x,
        [("body", same)],
        faults.STAGE_IN_USE,
    ),
    "more arrive than a stage counts": (counted(7), [], faults.SIGNAL),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_planted_is_named(name):
    of_launch, parts, kind = CASES[name]
    with pytest.raises(ThreadFault) as fault:
        run(planted(of_launch, *parts))
    assert fault.value.kind == kind, fault.value
