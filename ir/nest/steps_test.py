"""The steps of an expression, run in order, give the expression."""

import numpy as np
import pytest

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.lower.lower import lower
from ir.nest.nest import Axis, Map, Tile, Value
from ir.nest.steps import Temporary, promote, scalar, steps, whole
from ir.reference.labelled import Labelled, apply
from ir.spec import Apply, Cast, Expr, Index, Number, Size
from testing.samples.samples import KERNELS, SMALL, workload

EXTENT = 3
SCALARS = dict.fromkeys("MKNDBLHWPQCOUVF", 5) | {"eps": 1e-5}


def value(name: str, dtype: str, *axes: str) -> Value:
    return Value(name, name, dtype, tuple(Axis(a, Number(EXTENT)) for a in axes))


VALUES = {
    v.name: v
    for v in (
        value("out", "f32", "m", "k"),
        value("x", "f32", "m", "k"),
        value("h", "bf16", "m", "k"),
        value("r", "f32", "m"),
        value("i", "i32", "m"),
        value("b", "b8", "m", "k"),
    )
}
OUT, X, H, R, I, B = (Tile(name) for name in VALUES)


def op(function: str, *args: Expr) -> Apply:
    return Apply(function, args)


def evaluated(expr: Expr, held: dict[str, Labelled]) -> Labelled:
    match expr:
        case Tile(name) | Temporary(name):
            return held[name]
        case Index(name):
            return Labelled((name,), np.arange(EXTENT))
        case Number(number):
            return Labelled((), np.asarray(number))
        case Size(name):
            return Labelled((), np.asarray(SCALARS[name]))
        case Cast(dtype, inner):
            found = evaluated(inner, held)
            return Labelled(found.axes, found.data.astype(_kind(dtype)))
        case Apply(function, args):
            return apply(function, [evaluated(a, held) for a in args], np.float64)
    raise AssertionError(expr)


def _kind(dtype: str) -> type:
    return {"i32": np.int64, "i64": np.int64, "b8": np.bool_}.get(dtype, np.float64)


def run(statement: Map, values: dict[str, Value], held: dict[str, Labelled]) -> Labelled:
    """The content of the map's value after the steps."""
    held = dict(held)
    for step in steps(statement, values):
        if step.function in ("copy", "iota"):
            found = evaluated(step.args[0], held)
        else:
            found = evaluated(Apply(step.function, step.args), held)
        kind = _kind(
            step.to.dtype if isinstance(step.to, Temporary) else values[step.to.value].dtype
        )
        name = step.to.name if isinstance(step.to, Temporary) else step.to.value
        held[name] = Labelled(found.axes, found.data.astype(kind))
    return held[statement.value]


def random_tiles(values: dict[str, Value]) -> dict[str, Labelled]:
    rng = np.random.default_rng(1)
    made = {}
    for v in values.values():
        drawn = rng.uniform(0.5, 2.0, [EXTENT] * len(v.axes))
        kind = _kind(v.dtype)
        drawn = drawn > 1 if kind is np.bool_ else drawn * 3 if kind is np.int64 else drawn
        made[v.name] = Labelled(v.names, drawn.astype(kind))
    return made


def require_equal(statement: Map, values: dict[str, Value]) -> None:
    held = random_tiles(values)
    axes = values[statement.value].names
    kind = _kind(values[statement.value].dtype)
    expected = evaluated(statement.expression, held).along(axes).astype(kind)
    found = run(statement, values, held).along(axes)
    np.testing.assert_allclose(*np.broadcast_arrays(found, expected), rtol=1e-12)


@pytest.mark.parametrize("scheduler", [autoschedule, plain])
@pytest.mark.parametrize("name", KERNELS)
def test_the_steps_of_every_map_of_the_library_give_its_expression(name, scheduler):
    w = workload(name)
    sizes = w.checks[-1]
    nest = lower(w.spec, scheduler(w.spec, SMALL, sizes), SMALL, sizes)
    for launch in nest.launches:
        values = {v.name: v for v in launch.values}
        for s in launch.statements():
            if isinstance(s, Map) and not any(
                isinstance(n, Tile) and (n.windows or n.shifted) for n in s.expression.walk()
            ):
                require_equal(s, values)


BY_HAND = {
    "a product of two sums": op("mul", op("add", X, R), op("sub", X, R)),
    "what it holds, read again at the end": op("mul", op("exp", op("add", OUT, R)), OUT),
    "what it holds, read first": op("add", op("mul", OUT, X), op("mul", X, X)),
    "both sides need a tile between": op(
        "add", op("mul", op("exp", X), op("exp", R)), op("mul", op("exp", H), op("tanh", X))
    ),
    "three sums deep": op(
        "sub",
        op("sub", op("sub", X, op("exp", X)), op("exp", R)),
        op("mul", op("exp", X), op("sub", X, op("exp", R))),
    ),
    "a choice": op("where", op("gt", X, R), op("mul", X, Number(2.0)), op("neg", X)),
    "a choice by truth values": op("where", op("and", B, op("not", op("lt", X, R))), X, R),
    "an index as a value": op("where", op("ge", Index("m"), Index("k")), X, Number(0.0)),
    "integers that meet floats": op("mul", op("add", I, Number(1)), X),
    "an integer tile that is divided": op("div", I, op("add", I, Number(2))),
    "a square": op("pow", op("sub", X, R), Number(2)),
    "another power": op("pow", X, Number(3)),
    "a widened tile": op("mul", Cast("f32", H), Cast("f32", H)),
    "a cast to integers and back": op("mul", Cast("f32", Cast("i32", op("mul", X, X))), X),
    "a number alone": Number(2.5),
    "a tile alone": X,
    "a row alone": R,
    "an index alone": Index("k"),
    "sizes": op("div", X, op("rsqrt", op("add", Cast("f32", Size("K")), Size("eps")))),
}


@pytest.mark.parametrize("expression", BY_HAND.values(), ids=BY_HAND.keys())
def test_steps_give_their_expression(expression):
    require_equal(Map("out", expression), VALUES)


def test_the_last_step_writes_the_value_and_single_operations_need_nothing_between():
    (only,) = steps(Map("out", op("add", X, R)), VALUES)
    assert (only.to, only.function, only.args) == (OUT, "add", (X, R))


def test_a_chain_of_operations_is_done_in_the_value_itself():
    found = steps(Map("out", op("exp", op("neg", op("add", X, R)))), VALUES)
    assert [s.to for s in found] == [OUT, OUT, OUT]


def test_a_value_that_is_read_again_is_not_written_before():
    found = steps(Map("out", op("mul", op("exp", op("add", OUT, R)), OUT)), VALUES)
    assert [isinstance(s.to, Temporary) for s in found] == [True, True, False]


def test_a_row_between_has_the_axes_of_a_row():
    first, _ = steps(Map("out", op("mul", X, op("exp", R))), VALUES)
    assert first.to == Temporary("f32_m_0", "f32", ("m",))


def test_temporaries_that_are_alive_together_have_different_names():
    found = steps(Map("out", op("add", op("mul", op("exp", R), op("tanh", R)), OUT)), VALUES)
    assert found[0].to != found[1].to


def test_truth_values_between_are_bytes():
    first, _ = steps(Map("out", op("where", op("gt", X, R), X, R)), VALUES)
    assert first.to.dtype == "b8"


@pytest.mark.parametrize(
    "dtypes, expected",
    [
        ((), "f32"),
        (("bf16", "bf16"), "f32"),
        (("f16", "f64"), "f64"),
        (("i32", "i64"), "i64"),
        (("b8", "i32"), "i32"),
        (("i64", "f16"), "f32"),
        (("f32", "bf16"), "f32"),
    ],
)
def test_operands_meet_in_the_wider_dtype_and_never_in_16_bits(dtypes, expected):
    assert promote(dtypes) == promote(dtypes[::-1]) == expected


def test_scalars_are_made_of_sizes_and_numbers():
    assert scalar(op("add", Size("K"), Number(1))) and not scalar(op("add", Index("k"), X))
    assert whole(op("add", Size("K"), Number(1))) and not whole(op("add", Size("K"), Number(1.0)))
    assert not whole(Size("eps")) and not whole(Cast("f32", Size("K")))
    assert not whole(op("div", Size("K"), Number(2))) and whole(Number(True))
