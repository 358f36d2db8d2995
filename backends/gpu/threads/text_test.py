"""Thread programs as text: every statement has a line, and layouts are in CuTe's notation."""

from dataclasses import fields, replace

from backends.gpu.layout.layout import Layout
from backends.gpu.layout.swizzle import Swizzle
from backends.gpu.threads import multiplies
from backends.gpu.threads import thread as to
from backends.gpu.threads.testing import samples
from backends.gpu.threads.text import program_text, shared_text, statement_lines, statement_text
from backends.gpu.tile import Check, Name, Place, Term
from ir.nest.nest import Repeat
from ir.spec import Number, Size

X, Y, Z = (Name("value", stem) for stem in "xyz")
TILE = Name("shared", "x")
SUM = """program row_sum

launch sum(x, s): 128 threads, warps of 32
    grid (M)
    i32 k_positions:
        k: thread 128:1, register 1:0, 512 positions, 128 at once
    f32 x:
        k: thread 128:1, register 1:0, 512 positions, 128 at once
    f32 s
    f32 own:
        w: thread (32,4):(0,1), register 1:0, 4 positions, 4 at once
    f32 all:
        w: thread 128:0, register 4:1, 4 positions, 4 at once
    shared f32 part_shared[w=4]: region exchange, 16 bytes
    for each tile:
        k_positions = positions
        x = load x_pointer[tile * K + k_positions[k]] if (k_positions[k] < K) else 0.0
        s = sum(x[k] over k)
        s = sum(s over threads ^ 1, ^ 2, ^ 4, ^ 8, ^ 16)
        own = s
        part_shared = own, by threads & 31 == 0
        barrier
        all = part_shared
        s = sum(all[w] over w)
        store s_pointer[tile] = s, by threads & 127 == 0
"""
MATMUL = to.WarpgroupMultiply(
    X,
    Y,
    TILE,
    to.Instruction("mma", (), (), (), (0, 0), (0, 0), (0, 0)),
    (64, 8, 16),
    None,
    Number(2),
)
LOOP, FULL = to.Loop(X, Number(0), Size("K"), 16, ()), Name("full", "k")
OWN = (to.__name__, multiplies.__name__)  # modules with statements
FLAG = Place(X, (Term(Number(3)),))
LINES = {
    "for x in 0..K, by 16, unrolled:": to.Loop(X, Number(0), Size("K"), 16, (), True),
    "if (thread < 32):": to.Guard(samples.Check(to.Thread(), below=Number(32)), ()),
    "x = cumsum(y[n] along n)": to.Scan(X, "sum", samples.at("y", "n"), "n", False),
    "x = cumsum(y[n] along n), of each warp by itself, y of each": to.Scan(
        X, "sum", samples.at("y", "n"), "n", False, Y
    ),
    "x = x after sum of y before, along n": to.ScanAfter(X, Y, Z, "sum", "n", False),
    "x = max(x over threads ^ 1, nan)": to.Shuffle(X, "max", (1,), True),
    "x += y[4:] @ z": to.Multiply(X, Y, Z, first=Number(4)),
    "x = y, m_n as (m, n)": to.Regroup(X, Y, (("m_n", ("m", "n")),), True),
    "x = y, m from register 4": to.Part(X, Y, "m", Number(4)),
    "x = y, (m, n) as m_n": to.Regroup(X, Y, (("m_n", ("m", "n")),), False),
    "x = x_shared[1], k from 16 by matrix": to.SharedLoad(
        X, TILE, Number(1), (("k", Number(16)),), "matrix"
    ),
    "wait until 1 in flight": to.Wait(1),
    "interleave 8 reads of shared memory with 2 matrix instructions each": to.Interleave(8, 2),
    "barrier, for the asynchronous proxy too": to.Barrier(proxy=True),
    "x += y @ x_shared[2] by mma": MATMUL,
    "x += y @ x_shared[2] by mma, 1 in flight": replace(MATMUL, pending=1),
    "wait for x": to.WarpgroupWait(X),
    "x = y @ x_shared[2], onto it where y, by mma, number z, 1 in flight": to.TensorMultiply(
        X, Y, TILE, MATMUL.instruction, MATMUL.shape, Y, Name("done"), Z, None, Number(2), 1
    ),
    "x = y after number z": to.TensorLoad(X, Y, Name("done"), Z),
    "for x in 0..K, by 16, once at least:": replace(LOOP, certain=True),
    "copy x_shared[1] = box x_map[0, k], then k_full[1]": to.BoxCopy(
        TILE, Name("map", "x"), (Number(0), Size("k")), Number(1), FULL
    ),
    "store box x_map[0] = x_shared": to.BoxStore(TILE, Name("map", "x"), (Number(0),)),
    "arrive at k_full[1], with the bytes of x_shared": to.Arrive(FULL, Number(1), expects=(TILE,)),
    "arrive at k_full[1], once for each warp": to.Arrive(FULL, Number(1), warps=True),
    "await k_full[1], parity 0": to.Await(FULL, Number(1), Number(0)),
    "arrive at k_full[1], once for each warp, in all blocks of the cluster": to.Arrive(
        FULL, Number(1), warps=True, everywhere=True
    ),
    "copy x_shared[1] = box x_map[0], part 1 of the cluster's, then k_full[1]": to.BoxCopy(
        TILE, Name("map", "x"), (Number(0),), Number(1), FULL, Number(1)
    ),
    "barrier of the cluster": to.ClusterBarrier(),
    "fence, for the asynchronous proxy": to.Fence(),
    "fence, for all threads of the GPU": to.DeviceFence(),
    "raise x[3]": to.Raise(FLAG),
    "await x[3]": to.AwaitRaised(FLAG),
}


def test_a_program_is_written_whole():
    assert program_text(samples.row_sum()) == SUM


def test_every_statement_has_a_line():
    for text, statement in LINES.items():
        assert statement_text(statement) == text
    kinds = {type(s).__name__ for s in LINES.values()}
    for make in (samples.vector_add, samples.row_sum, samples.transpose, samples.matmul):
        kinds |= {type(s).__name__ for one in make().launches for s in to.statements(one.body)}
    every = (k for k in to.Statement.__subclasses__() if k.__module__ in OWN)
    assert kinds == {kind.__name__ for kind in every}


def test_bodies_are_indented():
    guard = to.Guard(Check(to.Thread(), below=Number(1)), (to.Commit(),), (to.Barrier(),))
    loop = to.Loop(X, Number(0), Number(2), 1, (guard,))
    assert list(statement_lines((loop,))) == [
        "for x in 0..2:",
        "    if (thread < 1):",
        "        commit",
        "    else:",
        "        barrier",
    ]


def test_tiles_say_how_they_lie():
    tile = to.Shared(TILE, "bf16", ("m", "k"), (Number(64), Number(64)), "x", 3)
    assert shared_text(tile) == ("bf16 x_shared[m=64, k=64]: 3 stages, region x, 24576 bytes")
    swizzled = replace(tile, panel=32, swizzle=Swizzle(2, 3, 3), stages=1)
    assert "panels of 32, Sw<2,3,3>, region x, 8192 bytes" in shared_text(swizzled)
    joined = replace(tile, axes=("m", "p", "q"), extents=(Number(8),) * 3, row=2, padding=4)
    assert "3 stages, rows of 2 axes, rows padded by 4, region x, 3264 bytes" in shared_text(joined)
    padded = replace(tile, padding=8, extents=(Number(64), Size("K")))
    assert shared_text(padded) == "bf16 x_shared[m=64, k=K]: 3 stages, rows padded by 8, region x"


def test_launches_say_what_they_are_given():
    (one,) = samples.vector_add().launches
    one = replace(
        one,
        sizes=("N",),
        specialized=True,
        attributes=(("eps", 0.5),),
        limits=((Size("N"), 4096),),
        resident=8,
        once=(to.Barrier(),),
    )
    program = replace(samples.vector_add(), groups=((Repeat("t", Size("T"), "x"), (one,)),))
    lines = program_text(program).splitlines()
    for expected in (
        "for t_at in 0..T, each after the last",
        "    grid (cdiv(N, 512)), 8 resident",
        "    sizes N as constants",
        "    up to N = 4096",
        "    constant eps = 0.5",
        "    constant n_aligned = fills(N, 4)",
        "    barrier",
    ):
        assert expected in lines, expected


def test_all_fields_of_an_axis_are_written():
    axis = samples.axis("m", Layout((4, 8), (0, 1)), Layout(2, 8), 16, 64)
    fragment = to.Fragment(X, "f32", (axis,))
    (one,) = samples.vector_add().launches
    program = replace(
        samples.vector_add(), groups=((None, (replace(one, fragments=(fragment,)),)),)
    )
    assert "        m: thread (4,8):(0,1), register 2:8, 64 positions, 16 at once" in (
        program_text(program).splitlines()
    )
    assert len(fields(axis)) == 5
