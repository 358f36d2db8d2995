"""The interpreter finds faults: each nest here has one statement spoilt."""

from dataclasses import replace

import numpy as np
import pytest

from ir.errors import KernelError
from ir.nest.nest import Fill, Load, Loop, LoopNest, Map, Statement, Store
from ir.reference.inputs import random_inputs
from ir.reference.interpret import NestFault, interpret
from ir.reference.reference import evaluate
from testing.samples.samples import lowered, spec_of, statements, workload

LOOPED = {
    "softmax": (
        "tile(m, size=4)",
        "tile(k, size=8)",
        "place(m.outer, level=grid)",
        "online(mx, into=s)",
    ),
    "rmsnorm_matmul": (
        "tile(m, size=16)",
        "tile(k, size=8)",
        "place(m.outer, level=grid)",
        "tile(n, size=32)",
        "place(n.outer, level=grid)",
        "compute(acc, unit=matrix)",
    ),
    "cumsum": ("tile(m, size=4)", "tile(k, size=8)", "place(m.outer, level=grid)"),
    "embedding_bag": ("tile(b, size=1)", "tile(l, size=2)", "place(b.outer, level=grid)"),
    "map_id": ("tile(b, size=4)", "place(b.outer, level=grid)"),
}


def without(block: tuple[Statement, ...], gone: Statement) -> tuple[Statement, ...]:
    kept = []
    for s in block:
        if s is gone:
            continue
        kept.append(replace(s, body=without(s.body, gone)) if isinstance(s, Loop) else s)
    return tuple(kept)


def swapped(block: tuple[Statement, ...], old: Statement, new: Statement) -> tuple[Statement, ...]:
    return tuple(
        new
        if s is old
        else replace(s, body=swapped(s.body, old, new))
        if isinstance(s, Loop)
        else s
        for s in block
    )


def edited(nest: LoopNest, change, *arguments) -> LoopNest:
    """The nest with `change` applied to the blocks of its only launch."""
    (launch,) = nest.launches
    changed = replace(
        launch, once=change(launch.once, *arguments), body=change(launch.body, *arguments)
    )
    return replace(nest, launches=(changed,))


def run(nest: LoopNest, sizes, **options):
    inputs = random_inputs(nest.spec, sizes, np.random.default_rng(2))
    return interpret(nest, inputs, sizes, **options), evaluate(nest.spec, inputs, sizes)


@pytest.mark.parametrize("name", LOOPED)
def test_no_statement_can_be_left_out_unnoticed(name):
    nest = lowered(name, *LOOPED[name])
    sizes = workload(name).checks[1]
    found, expected = run(nest, sizes)
    np.testing.assert_allclose(found["y"], expected["y"], 1e-9, 1e-9)
    for gone in list(nest.launches[0].statements()):
        try:
            found, _ = run(edited(nest, without, gone), sizes)
        except NestFault:
            continue
        wrong = not np.allclose(found["y"], expected["y"])
        assert wrong, f"without {gone} the result is the same"


@pytest.mark.parametrize("name", LOOPED)
def test_a_tile_that_runs_over_the_edge_is_cut_off(name):
    nest = lowered(name, *LOOPED[name])
    for sizes in workload(name).checks:
        found, expected = run(nest, sizes, rng=np.random.default_rng(3))
        np.testing.assert_allclose(found["y"], expected["y"], 1e-9, 1e-9)


def softmax() -> LoopNest:
    return lowered("softmax", *LOOPED["softmax"])


def fault(nest: LoopNest, name: str = "softmax") -> str:
    with pytest.raises(NestFault) as caught:
        run(nest, workload(name).checks[1])
    return str(caught.value)


def test_a_read_of_what_was_not_written_is_found():
    nest = softmax()
    (fill,) = statements(nest, Fill, "s")
    assert "`s` is read where nothing was written" in fault(edited(nest, without, fill))


def test_a_value_of_the_tile_before_is_not_there_any_more():
    nest = lowered("softmax", "tile(m, size=4)", "place(m.outer, level=grid)")
    (load,) = statements(nest, Load)
    (launch,) = nest.launches
    spoilt = replace(nest, launches=(replace(launch, body=without(launch.body, load)),))
    assert "`x` is read where nothing was written" in fault(spoilt)


def test_a_place_that_is_stored_twice_is_found():
    nest = softmax()
    (store,) = statements(nest, Store)
    again = replace(store, once=())
    (launch,) = nest.launches
    loop = next(s for s in launch.body if isinstance(s, Loop) and store in s.body)
    twice = edited(nest, swapped, loop, replace(loop, body=(*loop.body, again)))
    assert "a place of `y` is stored twice" in fault(twice)


def test_an_output_that_is_not_stored_whole_is_found():
    nest = softmax()
    (store,) = statements(nest, Store)
    assert "`y` is read where nothing was written" in fault(
        edited(nest, swapped, store, replace(store, once=("m",)))
    )


def test_a_load_outside_its_tensor_is_found():
    nest = lowered("conv1d", "compute(acc, unit=matrix)")
    (load,) = statements(nest, Load, "x")
    assert "`x` is read at -1 to" in fault(
        edited(nest, swapped, load, replace(load, pad=None)), "conv1d"
    )


def test_a_store_of_another_dtype_is_found():
    nest = softmax()
    (launch,) = nest.launches
    values = tuple(replace(v, dtype="f16") if v.name == "y" else v for v in launch.values)
    spoilt = replace(nest, launches=(replace(launch, values=values),))
    assert "`y` is f32, `y` is f16" in fault(spoilt)


def test_floats_in_an_integer_value_are_found():
    nest = softmax()
    (launch,) = nest.launches
    values = tuple(replace(v, dtype="i32") if v.name == "mx" else v for v in launch.values)
    assert "`mx` is i32 and is given floats" in fault(
        replace(nest, launches=(replace(launch, values=values),))
    )


def test_a_value_without_room_is_found():
    nest = softmax()
    (launch,) = nest.launches
    small = tuple(
        replace(v, axes=tuple(replace(a, extent=launch.value("mx").axes[0].extent) for a in v.axes))
        if v.name == "x"
        else v
        for v in launch.values
    )
    assert "`x` has room for (4, 4) and is given (4, 8)" in fault(
        replace(nest, launches=(replace(launch, values=small),))
    )


def test_a_value_that_is_kept_for_all_tiles_is_not_written_by_one():
    nest = lowered("layer_norm", "tile(m, size=4)", "place(m.outer, level=grid)")
    (launch,) = nest.launches
    load = next(s for s in launch.once if isinstance(s, Load))
    spoilt = replace(nest, launches=(replace(launch, body=(load, *launch.body)),))
    assert "may not be given" in fault(spoilt, "layer_norm")


def test_a_loop_inside_its_own_loop_is_found():
    nest = softmax()
    (launch,) = nest.launches
    loop = next(s for s in launch.body if isinstance(s, Loop))
    assert "`k` is looped over inside its own loop" in fault(
        edited(nest, swapped, loop, replace(loop, body=(loop,)))
    )


def test_rounding_is_to_the_dtype_of_each_value():
    spec = spec_of("t[m, k] = bf16(x[m, k])", "y[m, k] = f32(t[m, k])", inputs="x: f32[M, K]")
    sizes = {"M": 3, "K": 5}
    inputs = random_inputs(spec, sizes, np.random.default_rng(2))
    nest = lowered(spec, "kernel(t)", sizes=sizes)
    exact = interpret(nest, inputs, sizes)["y"]
    rounded = interpret(nest, inputs, sizes, rounded=True)["y"]
    np.testing.assert_array_equal(exact, inputs["x"].astype(np.float64))
    error = np.abs(rounded - exact) / np.abs(exact)
    assert 0 < error.max() <= 2.0**-8


def test_sizes_are_checked_as_everywhere():
    with pytest.raises(KernelError):
        interpret(softmax(), {"x": np.zeros((2, 2))}, {"M": 2})


def test_a_map_onto_its_own_value_keeps_what_it_reads():
    nest = softmax()
    own = [m for m in statements(nest, Map) if m.value == "s"]
    assert own, "an online sum is scaled in place"
