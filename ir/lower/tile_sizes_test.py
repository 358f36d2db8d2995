"""A launch with open tile sizes, once filled in, equals the launch built for these sizes."""

import random
from dataclasses import replace

import pytest

from ir.affine import fold_constants
from ir.autoschedule.autoschedule import plain
from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.access import extent
from ir.lower.launches import GRID, Tiling
from ir.lower.lower import lower
from ir.lower.tile_sizes import OpenLaunch, OpenTile, TileSize, told_apart
from ir.nest.nest import Axis, Bound, GridAxis, Launch, Load, Loop, Value
from ir.parse.parse import parse_workload
from ir.spec import Number, Range, Size
from ir.variant.variant import formulate
from ir.workload import LIBRARY
from testing.samples.samples import (
    KERNELS,
    SMALL,
    WITH_THREADS,
    decisions,
    workload,
)

K = Size("K")


def fresh(name):
    """The spec of a library's kernel as a new object, of which nothing is remembered."""
    return parse_workload((LIBRARY / f"{name}.kir").read_text(encoding="utf-8"), name).spec


def lowered(spec, schedule, machine, sizes):
    try:
        return lower(spec, schedule, machine, sizes)
    except KernelError as error:
        return str(error)


def walk(name, machine, steps=8):
    """Schedules that lead from the plain one to one of many decisions, with others near them."""
    w, rng = workload(name), random.Random(7)
    now = plain(w.spec, machine, w.checks[-1])
    for _ in range(steps):
        near = neighbours(w.spec, now, machine, w.checks[-1])
        some = [e.apply(now) for e in rng.sample(near, min(6, len(near)))]
        yield from some
        legal = [s for s in some if not isinstance(lowered(w.spec, s, machine, w.checks[-1]), str)]
        now = rng.choice(legal or [now])


@pytest.mark.parametrize("machine", [SMALL, WITH_THREADS], ids=lambda m: m.name)
@pytest.mark.parametrize("name", KERNELS)
def test_a_nest_does_not_depend_on_what_was_lowered_before(name, machine):
    w = workload(name)
    seen = set()
    for schedule in walk(name, machine):
        found = lowered(w.spec, schedule, machine, w.checks[-1])
        assert found == lowered(fresh(name), schedule, machine, w.checks[-1]), str(schedule)
        seen.add(isinstance(found, str))
    assert False in seen


def test_a_schedule_with_other_tile_sizes_is_lowered_with_less_work(calls):
    spec, sizes = fresh("rmsnorm_matmul"), {"M": 64, "N": 64, "K": 64}

    def tiled(m, k):
        lines = (f"tile(m, size={m})", f"tile(k, size={k})", "place(m.outer, level=grid)")
        return decisions(spec, *lines, "place(k.outer, level=loop)")

    first = calls(lambda: lower(spec, tiled(8, 8), SMALL, sizes))
    assert calls(lambda: lower(spec, tiled(4, 16), SMALL, sizes)) < first / 4


def test_decisions_that_are_equal_but_not_the_same_are_told_apart():
    spec, sizes = fresh("softmax"), {"M": 8, "K": 8}
    legal, wrong = (decisions(spec, f"tile(m, size={size})") for size in ("2", "2.0"))
    assert legal == wrong and lower(spec, legal, SMALL, sizes)
    with pytest.raises(KernelError, match="is not a positive integer"):
        lower(spec, wrong, SMALL, sizes)


def test_an_extent_names_the_tile_where_there_is_one():
    span = Range("k", Number(0), K)
    assert extent(Tiling("k", GRID, 16, span, "k")) == TileSize("k")
    assert extent(Tiling("k", "whole", 0, span)) == K


def test_sizes_are_filled_into_values_loops_and_the_grid():
    room = fold_constants("add", TileSize("m"), fold_constants("add", TileSize("k"), Number(-1)))
    value = Value("x", "x", "f32", (Axis("x_0", room), Axis("n", Size("N"))))
    load = Load("x", "x", ())
    loop = Loop("k", 8, Bound(Number(0)), Bound(K), (load,))
    launch = Launch(
        "f_0",
        parameters=(),
        sizes=("M", "N", "K"),
        grid=(GridAxis("m", 16, Size("M")),),
        values=(value,),
        once=(),
        body=(loop,),
        tiles=(("m", 16), ("k", 8)),
        whole=(("n", Size("N")),),
    )
    given = OpenLaunch(launch, (OpenTile("m", 16, "m"), OpenTile("k", 8, "")))
    found = given.filled(decisions(workload("softmax").spec, "tile(m, size=4)"))
    assert found.grid == (GridAxis("m", 4, Size("M")),)
    assert found.tiles == (("m", 4), ("k", 8)) and found.body == (loop,)
    assert found.value("x").axes == (Axis("x_0", Number(11)), Axis("n", Size("N")))


def test_launches_that_differ_in_threads_share_what_is_inside(calls):
    spec, sizes = fresh("rmsnorm_matmul"), {"M": 64, "N": 64, "K": 64}
    lines = ("tile(m, size=8)", "place(m.outer, level=grid)", "tile(k, size=8)")
    one, other = (
        lower(spec, decisions(spec, *lines, *more), WITH_THREADS, sizes).launches[0]
        for more in ((), ("threads(y, count=64)",))
    )
    assert (one.threads, other.threads) == (0, 64)
    assert other == replace(one, threads=64)
    assert other.body is one.body and other.values is one.values


def test_a_decision_on_a_tensor_changes_only_launches_that_use_it():
    spec, sizes = fresh("rmsnorm_matmul"), {"M": 64, "N": 64, "K": 64}
    lines = ("kernel(r)", "tile(m, size=8)", "place(m.outer, level=grid)", "tile(k, size=8)")
    lines = (*lines, "place(k.outer, level=loop)")
    plain, deep = (
        lower(spec, decisions(spec, *lines, *more), WITH_THREADS, sizes).launches
        for more in ((), ("pipeline(w, stages=2)",))
    )
    assert deep[0] is plain[0] and deep[1] != plain[1]
    assert deep[1].value("w").stages == 2


def test_more_than_extents_depends_on_tile_sizes_under_some_decisions():
    even, jagged = workload("softmax").spec, workload("embedding_bag").spec
    tiles = ("tile(m, size=2)", "tile(k, size=2)")
    assert not told_apart(even.equations, decisions(even, *tiles))
    split = decisions(even, *tiles, "split_k(s, over=k, parts=2)")
    assert told_apart(even.equations, split) == {"k"}
    assert told_apart(formulate(even, split).equations, split) == {"k"}
    assert told_apart(jagged.equations, decisions(jagged, *tiles)) == {"m", "k"}


def test_the_tile_of_what_is_split_is_told_apart_and_others_are_filled_in(calls):
    spec, sizes = fresh("rmsnorm_matmul"), {"M": 64, "N": 64, "K": 256}

    def split(spec, m, k):
        lines = (f"tile(m, size={m})", f"tile(k, size={k})", "place(m.outer, level=grid)")
        return decisions(
            spec, *lines, "place(k.outer, level=loop)", "split_k(acc, over=k, parts=2)"
        )

    first = calls(lambda: lower(spec, split(spec, 8, 8), WITH_THREADS, sizes))
    assert calls(lambda: lower(spec, split(spec, 4, 8), WITH_THREADS, sizes)) < first / 3
    for m, k in ((16, 8), (4, 32), (8, 64)):
        anew = fresh("rmsnorm_matmul")
        found = lower(spec, split(spec, m, k), WITH_THREADS, sizes)
        assert found == lower(anew, split(anew, m, k), WITH_THREADS, sizes)
