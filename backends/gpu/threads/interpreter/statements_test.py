"""Each statement by itself: what it computes, and the faults that only it has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.layout.layout import Layout
from backends.gpu.layout.swizzle import Swizzle
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.cases import TABLE
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.testing import samples
from backends.gpu.threads.testing.samples import EVERY, ONE, THREADS, TILE, at, axis, place
from backends.gpu.threads.thread import Element, Fragment
from backends.gpu.tile import Name, Term
from backends.shared.arrays import to_device
from ir.nest.nest import Parameter, Repeat
from ir.spec import Apply, Number, Size
from machines.gpu.matrix_instructions import family

X, Y, Z = (Name("value", stem) for stem in "xyz")
TWO = (axis("m", EVERY, Layout(4, 1), 4, 4), axis("n", Layout(THREADS, 1), ONE, THREADS, THREADS))


def at_two(tensor):
    """An element of a matrix of 4 x 128."""
    m, n = (Element(Name("positions", i), (i,)) for i in "mn")
    return place(tensor, Term(m, (Number(THREADS),)), Term(n))


def positions(*axes):
    """The positions along axes, as fragments and statements."""
    fragments = [Fragment(Name("positions", a.index), "i32", (a,)) for a in axes]
    return fragments, [to.Positions(f.name, None) for f in fragments]


def run(body, *parts, x, y, table=TABLE, sizes=None, repeat=None, seed=0, **fields):
    """Runs one launch on tensors x and y; gives y."""
    dtypes = {np.dtype(np.float32): "f32", np.dtype(np.int32): "i32", np.dtype(np.uint16): "bf16"}
    arrays = {"x": np.ascontiguousarray(x), "y": np.array(y, copy=True)}
    made = samples.launch("one", "x y", (Number(1),), *parts, list(body))
    tensors = tuple(Parameter(n, dtypes[a.dtype], (), "input") for n, a in arrays.items())
    program = to.ThreadProgram("one", ((repeat, (replace(made, **fields),)),), tensors)
    interpret(program, sizes or {}, arrays, table, 1 << 20, seed)
    return arrays["y"]


def through(statements, fragments, x, dtype="f32"):
    """Loads x of 4 x 128, runs statements, stores z."""
    held, start = positions(*TWO)
    return run(
        [
            *start,
            to.Load(X, at_two("x"), Number(0.0)),
            *statements,
            to.Store(at_two("y"), at("z", "m", "n"), TWO, copies=0),
        ],
        *held,
        Fragment(X, dtype, TWO),
        Fragment(Z, dtype, TWO),
        *fragments,
        x=x,
        y=np.zeros_like(x),
    )


VALUES = np.random.default_rng(0).normal(size=(4, THREADS)).astype(np.float32)


# -- registers ------------------------------------------------------------------------------------


def test_a_scan_goes_over_registers_threads_and_repetitions():
    scanned = axis("n", Layout((32, 4), (2, 0)), Layout(2, 1), 64, 256)
    rows = axis("m", Layout((32, 4), (0, 1)), ONE, 4, 4)
    (held, start) = positions(rows, scanned)
    x = np.random.default_rng(1).integers(-9, 9, (4, 256)).astype(np.int32)
    m, n = (Element(Name("positions", i), (i,)) for i in "mn")
    here = [place(t, Term(m, (Number(256),)), Term(n)) for t in "xy"]
    body = [
        *start,
        to.Load(X, here[0], Number(0)),
        to.Scan(Z, "sum", at("x", "m", "n"), "n", False),
        to.Store(here[1], at("z", "m", "n"), (rows, scanned)),
    ]
    both = [Fragment(f, "i32", (rows, scanned)) for f in (X, Z)]
    assert (run(body, *held, *both, x=x, y=x) == x.cumsum(axis=1)).all()


def test_a_scan_over_several_warps_is_a_fault():
    body = [to.Each(X, Number(1)), to.Scan(Z, "sum", at("x", "n"), "n", False)]
    parts = [Fragment(f, "i32", (TWO[1],)) for f in (X, Z)]
    with pytest.raises(ThreadFault) as found:
        run(body, *parts, x=np.zeros(1, np.int32), y=np.zeros(1, np.int32))
    assert found.value.kind == faults.FRAGMENT and "several warps" in found.value.what


def test_a_shuffle_beyond_a_warp_is_a_fault():
    body = [to.Each(X, Number(1)), to.Shuffle(X, "sum", (32,), False)]
    with pytest.raises(ThreadFault) as found:
        run(body, Fragment(X, "i32"), x=np.zeros(1, np.int32), y=np.zeros(1, np.int32))
    assert found.value.kind == faults.FRAGMENT and found.value.statement.startswith("x = sum")


@pytest.mark.parametrize("nan", (False, True))
def test_a_maximum_propagates_nan_where_it_must(nan):
    x = VALUES.copy()
    x[1, 3] = np.nan
    low = Fragment(Y, "f32", TWO[1:])
    reduced = to.Reduce(Y, "max", at("x", "m", "n"), TWO, "m", nan)
    found = through([reduced, to.Each(Z, at("y", "n"))], [low], x)
    wanted = np.max(x, axis=0) if nan else np.nanmax(x, axis=0)
    assert np.array_equal(found, np.broadcast_to(wanted, x.shape), equal_nan=True)


def test_registers_under_other_axes_keep_their_elements():
    one = axis("mq", EVERY, Layout(4, 1), 4, 4)
    halves = (axis("m", EVERY, Layout(2, 1), 2, 2), axis("q", EVERY, Layout(2, 1), 2, 2))
    merged, divided = Name("value", "merged"), Name("value", "divided")
    n = TWO[1]
    body = [
        to.Each(Y, at("x", "m", "n")),
        to.Regroup(merged, Y, (("w", ("m",)),), False),
        to.Regroup(divided, merged, (("w", ("a", "b")),), True),
        to.Regroup(merged, divided, (("w", ("a", "b")),), False),
        to.Regroup(Z, merged, (("w", ("m",)),), True),
    ]
    w = replace(one, index="w")
    a, b = (replace(h, index=i) for h, i in zip(halves, "ab"))
    fragments = [
        Fragment(Y, "f32", TWO),
        Fragment(merged, "f32", (w, n)),
        Fragment(divided, "f32", (n, a, b)),  # in any order
    ]
    assert (through(body, fragments, VALUES) == VALUES).all()


def test_registers_that_do_not_count_through_others_are_a_fault():
    wrong = axis("w", EVERY, Layout((2, 2), (2, 1)), 4, 4)
    merged = Name("value", "merged")
    body = [to.Regroup(merged, X, (("w", ("m",)),), False), to.Each(Z, at("x", "m", "n"))]
    with pytest.raises(ThreadFault) as found:
        through(body, [Fragment(merged, "f32", (wrong, TWO[1]))], VALUES)
    assert found.value.kind == faults.FRAGMENT


# -- matmuls --------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", (None, 2))
def test_threads_multiply_what_they_hold(first):
    k = axis("k", EVERY, Layout(4, 1), 4, 4)
    part = axis("k", EVERY, Layout(2, 1), 2, 2)
    m, n = TWO
    held, start = positions(k)
    weights = Name("value", "b")
    given = part if first is not None else k
    statements = [
        *start,
        to.Each(Y, of.Converted(Element(Name("positions", "k"), ("k",)), "f32")),
        to.Each(weights, at("x0", "n")),
        to.Each(Z, Number(0.5)),
        to.Multiply(Z, Y, weights, None, None if first is None else Number(first)),
    ]
    low = Name("value", "x0")
    reduced = to.Reduce(low, "sum", at("x", "m", "n"), TWO, "m", False)
    fragments = [
        *held,
        Fragment(Y, "f32", (m, k)),
        Fragment(weights, "f32", (given, n)),
        Fragment(low, "f32", (n,)),
    ]
    found = through([reduced, *statements], fragments, VALUES)
    total = sum(range(4)) if first is None else 2 + 3
    np.testing.assert_allclose(found, 0.5 + total * VALUES.sum(0) * np.ones((4, 1)), rtol=1e-5)


def warpgroups(panel=64, swizzle=Swizzle(3, 3, 3), proxy=True, registers=False, filled=True):
    """y = x @ x transposed of 64 x 64, by an instruction of four warps: what it computes, and x."""
    row = next(r for r in family("wgmma") if r.a.dtype == "bf16")
    m = axis("m", Layout((4, 8, 4), (0, 1, 16)), Layout(2, 8), 64, 64)
    n = axis("n", Layout((4, 32), (2, 0)), Layout((2, 8), (1, 8)), 64, 64)
    depth = axis("k", Layout((4, 32), (2, 0)), Layout((2, 2), (1, 8)), 16, 64)
    copied = (
        axis("p", Layout((8, 16), (0, 1)), ONE, 16, 64),
        axis("q", Layout((8, 16), (8, 0)), Layout(8, 1), 64, 64),
    )
    held, start = positions(m, n, *copied)
    p, q, row_at, column_at = (Element(Name("positions", i), (i,)) for i in "pqmn")
    acc, left = Name("value", "acc"), Name("value", "left")
    operands = to.Instruction(
        row.name.format(n=64),
        a=((0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)),
        b=(),
        c=tuple((r >> 1 & 1, (r >> 2) * 2 + (r & 1)) for r in range(32)),
        a_steps=(2, 4),
        b_steps=(0, 0),
        c_steps=(2, 16),
    )
    # The same memory under the names of the axes that the instruction has.
    tile = Name("shared", "x")
    of_a, of_b = (Name("shared", "x", copy=c) for c in (1, 2))
    extents = (Number(64), Number(64))
    shared = [
        to.Shared(name, "bf16", axes, extents, "x", panel=panel, swizzle=swizzle)
        for name, axes in ((tile, ("p", "q")), (of_a, ("m", "k")), (of_b, ("n", "k")))
    ]
    body = [
        *start,
        to.Load(X, place("x", Term(p, (Number(64),)), Term(q)), Number(0.0)),
        *([to.SharedStore(tile, X)] if filled else []),
        to.Barrier(proxy),
        to.Each(acc, Number(0.0)),
        *([to.SharedLoad(left, of_a)] if registers else []),
        to.WarpgroupMultiply(acc, left if registers else of_a, of_b, operands, (64, 64, 16)),
        to.Store(
            place("y", Term(row_at, (Number(64),)), Term(column_at)), at("acc", "m", "n"), (m, n)
        ),
    ]
    fragments = [Fragment(X, "bf16", copied), Fragment(acc, "f32", (m, n))]
    fragments += [Fragment(left, "bf16", (m, depth))] if registers else []
    x = np.random.default_rng(2).integers(-4, 4, (64, 64)).astype(np.float32)
    y = np.zeros((64, 64), np.float32)
    parts = (*held, *fragments, *shared)
    return run(body, *parts, x=to_device(x, "bf16"), y=y, table=family("wgmma")), x


@pytest.mark.parametrize("registers", (False, True))
def test_four_warps_multiply_tiles(registers):
    found, x = warpgroups(registers=registers)
    assert (found == x @ x.T).all()


@pytest.mark.parametrize(
    "kind, options",
    [
        (faults.READ_AFTER_WRITE, {"proxy": False}),
        (faults.FRAGMENT, {"swizzle": None}),
        (faults.FRAGMENT, {"panel": 0}),
        (faults.FRAGMENT, {"panel": 32}),
        (faults.UNINITIALISED, {"filled": False}),
    ],
)
def test_faults_of_four_warps_are_found(kind, options):
    with pytest.raises(ThreadFault) as found:
        warpgroups(**options)
    assert found.value.kind == kind, str(found.value)


# -- control --------------------------------------------------------------------------------------


def test_threads_take_both_sides_of_a_guard():
    low = Apply("lt", (to.Thread(), Number(40)))
    inner = to.Guard(
        Apply("lt", (to.Thread(), Number(8))),
        (to.Each(Z, Number(1.0)),),
        (to.Each(Z, Number(2.0)),),
    )
    found = through([to.Guard(low, (inner,), (to.Each(Z, at("x", "m", "n")),))], [], VALUES)
    n = np.arange(THREADS)
    assert (found == np.where(n < 8, 1, np.where(n < 40, 2, VALUES))).all()


def test_threads_leave_a_loop_when_theirs_ends():
    count, step = Name("value", "count"), Name("step", "i")
    body = [
        to.Each(count, Number(0)),
        to.Loop(
            step,
            Number(0),
            to.Thread(),
            3,
            (to.Each(count, Apply("add", (at("count"), Number(1)))),),
        ),
        to.Each(Z, of.Converted(at("count"), "f32")),
    ]
    found = through(body, [Fragment(count, "i32"), Fragment(step, "i32")], VALUES)
    assert (found == -(-np.arange(THREADS) // 3)).all()


@pytest.mark.parametrize("resident", (0, 3))
@pytest.mark.parametrize("seed", (0, 1))
def test_blocks_walk_through_all_tiles(resident, seed):
    held, start = positions(TWO[1])
    n = Element(Name("positions", "n"), ("n",))
    body = [
        to.Store(
            place("y", Term(TILE, (Number(THREADS),)), Term(n)),
            Apply("add", (TILE, at("base"))),
            (TWO[1],),
        )
    ]
    base = Fragment(Name("value", "base"), "i32")
    once = (*start, to.Each(base.name, Number(100)))
    y = run(
        body,
        *held,
        base,
        x=np.zeros(1, np.int32),
        y=np.zeros(7 * THREADS, np.int32),
        tiles=(Size("T"),),
        sizes={"T": 7},
        resident=resident,
        once=once,
        seed=seed,
    )
    assert (y.reshape(7, -1) == 100 + np.arange(7)[:, None]).all()


def test_registers_do_not_outlive_a_tile():
    body = [
        to.Guard(Apply("eq", (TILE, Number(0))), (to.Each(X, Number(1)),)),
        to.Store(place("y", Term(TILE)), at("x"), (), copies=THREADS - 1),
    ]
    with pytest.raises(ThreadFault) as found:
        run(
            body,
            Fragment(X, "i32"),
            x=np.zeros(1, np.int32),
            y=np.zeros(2, np.int32),
            tiles=(Number(2),),
            resident=1,
        )
    assert found.value.kind == faults.UNINITIALISED


@pytest.mark.parametrize("backwards", (False, True))
def test_a_recurrence_runs_step_by_step(backwards):
    step = Name("step", "t")
    before = of.Entry(place("y", Term(Number(0))))
    body = [
        to.Each(X, Apply("add", (Apply("mul", (before, Number(10))), step))),
        to.Store(place("y", Term(Number(0))), at("x"), (), copies=THREADS - 1),
    ]
    y = run(
        body,
        Fragment(X, "i32"),
        x=np.zeros(1, np.int32),
        y=np.zeros(1, np.int32),
        step=step,
        repeat=Repeat("t", Size("T"), "y", backwards),
        sizes={"T": 4},
    )
    assert y[0] == (3210 if backwards else 123)


# -- memory ---------------------------------------------------------------------------------------


def test_registers_beyond_an_axis_have_no_element():
    over = axis("n", Layout(THREADS, 1), Layout(2, 128), 256, 200)
    held, start = positions(over)
    n = Element(Name("positions", "n"), ("n",))
    tile = to.Shared(Name("shared", "x"), "f32", ("n",), (Number(200),), "x")
    x = np.random.default_rng(3).normal(size=200).astype(np.float32)
    body = [
        *start,
        to.Load(X, place("x", Term(n)), Number(0.0)),
        to.SharedStore(tile.name, X),
        to.Barrier(),
        to.SharedLoad(Z, tile.name),
        to.Store(place("y", Term(n)), at("z", "n"), (over,)),
    ]
    fragments = [Fragment(f, "f32", (over,)) for f in (X, Z)]
    assert (run(body, *held, *fragments, tile, x=x, y=np.zeros(200, np.float32)) == x).all()


def test_memory_of_a_region_is_not_read_as_another_tile():
    first, second = (
        to.Shared(Name("shared", stem), dtype, ("n",), (Number(THREADS),), "both")
        for stem, dtype in (("a", "f32"), ("b", "i32"))
    )
    row = TWO[1]
    body = [
        to.Each(X, Number(1.0)),
        to.SharedStore(first.name, X),
        to.Barrier(),
        to.SharedLoad(Y, second.name),
    ]
    parts = [Fragment(X, "f32", (row,)), Fragment(Y, "i32", (row,)), first, second]
    with pytest.raises(ThreadFault) as found:
        run(body, *parts, x=np.zeros(1, np.int32), y=np.zeros(1, np.int32))
    assert found.value.kind == faults.UNINITIALISED and "another tile" in found.value.hint


def test_reuse_of_a_region_needs_a_barrier():
    first, second = (
        to.Shared(Name("shared", stem), dtype, ("n",), (Number(THREADS),), "both")
        for stem, dtype in (("a", "f32"), ("b", "bf16"))
    )
    row = TWO[1]
    body = [
        to.Each(X, Number(1.0)),
        to.SharedStore(first.name, X),
        to.Barrier(),
        to.SharedLoad(X, first.name),
        to.SharedStore(second.name, X),
    ]
    parts = [Fragment(X, "f32", (row,)), first, second]
    with pytest.raises(ThreadFault) as found:
        run(body, *parts, x=np.zeros(1, np.int32), y=np.zeros(1, np.int32))
    assert found.value.kind == faults.WRITE_AFTER_READ
    run(
        [*body[:4], to.Barrier(), body[4]], *parts, x=np.zeros(1, np.int32), y=np.zeros(1, np.int32)
    )


@pytest.mark.parametrize("reduction", ("sum", "max", "min"))
def test_stores_join_atomically(reduction):
    x = VALUES
    held, start = positions(*TWO)
    body = [
        *start,
        to.Load(X, at_two("x"), Number(0.0)),
        to.Store(
            place("y", Term(Element(Name("positions", "m"), ("m",)))),
            at("x", "m", "n"),
            TWO,
            reduction=reduction,
        ),
    ]
    y = run(body, *held, Fragment(X, "f32", TWO), x=x, y=np.zeros(4, np.float32))
    joined = {"sum": np.sum, "max": np.max, "min": np.min}[reduction](x, axis=1)
    wanted = joined if reduction == "sum" else getattr(np, f"{reduction}imum")(joined, 0)
    np.testing.assert_allclose(y, wanted, rtol=1e-4)


def test_what_a_launch_lacks_is_said():
    for body in (
        [to.Each(X, Number(1))],
        [to.Load(X, place("w", Term(Number(0))), Number(0))],
        [to.Multiply(X, X, X, replace(_unknown(), name="mma.unknown"))],
    ):
        with pytest.raises(BackendError):
            parts = [] if isinstance(body[0], to.Each) else [Fragment(X, "i32")]
            run(body, *parts, x=np.zeros(1, np.int32), y=np.zeros(1, np.int32))


def _unknown():
    return to.Instruction("", (), (), (), (1, 1), (1, 1), (1, 1))
