"""The text of a nest: golden for some kernels, and nothing of a nest is left out of it."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

import pytest

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.lower.lower import lower
from ir.nest.nest import Bound, LoopNest, Slice, Statement, Tile
from ir.nest.text import nest_text, space_of
from ir.parse.parse import parse_spec
from ir.spec import Expr, Number
from testing.samples.samples import (
    KERNELS,
    RECURRENT,
    SMALL,
    WITH_THREADS,
    lowered,
    spec_of,
    workload,
)

TILED = ("place(m.outer, level=grid)", "place(n.outer, level=grid)", "compute(acc, unit=matrix)")
PRODUCT = ("tile(m, size=32)", "tile(n, size=64)", "tile(k, size=16)", *TILED)
ATOMIC = spec_of(
    "h[row[l], d] += g[l, d]",
    "y[v, d] = h[v, d] * 2.0",
    inputs="g: f32[L, D], row: i32[L]",
    result="f32[V, D]",
)
GOLDEN = {  # kernel, decisions, machine
    "staged": (
        "rmsnorm_matmul",
        ("hoist(r, into=y)", "fuse(ss, into=acc)", *PRODUCT, "pipeline(x, stages=3)"),
        SMALL,
    ),
    "mapped": (
        "matmul_bias_gelu",
        (
            *PRODUCT,
            "pipeline(x, stages=3)",
            "copy(x, by=bulk)",
            "rasterize(m, size=4, over=n)",
            "threads(y, count=128)",
            "persistent(y, programs=2)",
            "specialize(y)",
        ),
        WITH_THREADS,
    ),
    "jagged": (
        "embedding_bag",
        ("tile(b, size=1)", "tile(l, size=8)", "place(b.outer, level=grid)"),
        SMALL,
    ),
    "window": ("conv1d", ("tile(b, size=1)", "tile(o, size=8)", "tile(l, size=8)"), SMALL),
    "scanned": ("cumsum", ("tile(m, size=4)", "tile(k, size=16)"), SMALL),
    "recurrent": ("backwards", (), SMALL),
    "searched": ("map_id", ("tile(b, size=16)", "place(b.outer, level=grid)"), SMALL),
    "atomic": (ATOMIC, ("atomic(h)", "tile(l, size=16)", "tile(d, size=32)"), WITH_THREADS),
}


def nest(case: str) -> LoopNest:
    kernel, lines, machine = GOLDEN[case]
    sizes = {"L": 96, "D": 64, "V": 32} if kernel is ATOMIC else workload(kernel).tune
    return lowered(kernel, *lines, sizes=sizes, machine=machine)


@pytest.mark.parametrize("case", GOLDEN)
def test_golden(case, golden):
    golden(f"ir/nest/golden/{case}.txt", nest_text(nest(case), GOLDEN[case][2]))


@pytest.mark.parametrize("scheduler", [plain, autoschedule])
@pytest.mark.parametrize("name", [*KERNELS, *RECURRENT])
def test_every_kernel_has_a_text_of_one_statement_a_line(name, scheduler):
    w = workload(name)
    for machine in (SMALL, WITH_THREADS):
        made = lower(w.spec, scheduler(w.spec, machine, w.tune), machine, w.tune)
        lines = nest_text(made, machine).splitlines()
        inside = [n for n, line in enumerate(lines) if line in ("  prologue:", "  body:")]
        deep = [line for n, line in enumerate(lines) if inside and n > inside[0]]
        count = sum(1 for launch in made.launches for _ in launch.statements())
        assert sum(line.startswith("    ") for line in deep) == count


def variants(node):
    """Each value that differs from a frozen one in one field, at any depth, with where it does."""
    for f in fields(node):
        held = getattr(node, f.name)
        if f.name == "place" or unused(node, f.name):
            continue
        for text, new in changed(held):
            yield f"{type(node).__name__}.{f.name}{text}", replace(node, **{f.name: new})


def unused(node, name):
    """Whether a field says nothing in this value: it belongs to the other form of its kind."""
    if isinstance(node, Bound):
        return name == "tensor" and node.size is not None
    return isinstance(node, Slice) and name == "step" and (node.axis is None or node.rows)


def changed(held):
    """Other values for one of a field; nothing for one whose change no nest can have."""
    if isinstance(held, bool):
        yield "", not held
    elif isinstance(held, int | float):
        yield "", held + 1
    elif isinstance(held, str):
        yield "", (held or "sum") + "_x"
    elif isinstance(held, Expr) and not isinstance(held, Tile):
        yield "", Number(77)
    elif is_dataclass(held):
        yield from ((f" {where}", new) for where, new in variants(held))
    elif isinstance(held, tuple):
        for n, item in enumerate(held):
            for where, new in changed(item):
                yield f"[{n}]{where}", (*held[:n], new, *held[n + 1 :])


REFERRED = (  # names that must be those of something else in the launch
    "Axis.name",
    "Value.name",
    "Slice.axis",
    "Load.value",
    "Store.value",
    "Scan.reduction",
    "Dot.a Tile.value",
    "Dot.b Tile.value",
    "Slice.whole",
    "LoopNest.spec",
    "LoopNest.variant",
    "LoopNest.schedule",
    "Value.tensor",
)


@pytest.mark.parametrize("case", GOLDEN)
def test_no_two_nests_have_one_text(case):
    """Whatever field of a nest changes, its text does too."""
    made, machine = nest(case), GOLDEN[case][2]
    text, seen = nest_text(made, machine), 0
    short = replace(made, spec=replace(made.spec, equations=()), variant=None, schedule=None)
    assert nest_text(short, machine) == text
    for where, other in variants(replace(short, spec=None)):
        if any(word in where for word in REFERRED):
            continue
        other = replace(other, spec=short.spec)
        assert nest_text(other, machine) != text, where
        seen += 1
    assert seen > 20


def test_values_are_said_to_lie_where_the_machine_has_them():
    made = nest("mapped")
    (launch,) = made.launches
    spaces = {v.name: space_of(v, launch, WITH_THREADS) for v in launch.values}
    assert spaces["x"] == spaces["w"] == "shared" and spaces["acc"] == "register"
    assert {space_of(v, launch, SMALL) for v in launch.values} == {"local"}


def test_constants_of_all_sorts_are_printed_as_the_language_has_them():
    text = 'def f(x: f32[M], c: b8[M]) -> f32[M]:\n    """F."""\n'
    text += "    y[m] = where(c[m], pad(x[m - 1], -inf), 1e-06) + m\n    return y\n"
    made = lower(parse_spec(text), plain(parse_spec(text), SMALL, {"M": 9}), SMALL, {"M": 9})
    shown = nest_text(made, SMALL)
    assert "out of bounds -inf" in shown and "1e-06" in shown
    assert isinstance(made.launches[0].body[0], Statement)
