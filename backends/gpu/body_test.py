"""What thread blocks do: late loads, hoisted factors, peeled and flattened loops, copies in bulk."""

from dataclasses import replace

import pytest

from backends.gpu import tile as to
from backends.gpu.body import BodyBuilder
from backends.gpu.plain_rules import RULES
from backends.gpu.tile import Check, Name, Term, expressions, statements
from ir.parse.parse import parse_spec
from ir.spec import Number, Size
from testing.samples.samples import WITH_TF32, WITH_THREADS, lowered, spec_of

GRID = ("tile(m, size=4)", "place(m.outer, level=grid)")
LOOP = (*GRID, "tile(k, size=16)")
SIZES = dict(M=21, K=70)


def made(equations, *lines, sizes=SIZES, machine=WITH_TF32, **kwargs):
    """The statements of a launch, with those of its `once` block first."""
    spec = spec_of(*equations, **kwargs) if isinstance(equations, tuple) else equations
    body = BodyBuilder(lowered(spec, *lines, sizes=sizes, machine=machine).launches[0], RULES)
    return body, (*body.once(), *body.each())


def of(kind, found):
    return [s for s in statements(found) if isinstance(s, kind)]


def assigned(found, name):
    return [s.value for s in of(to.Assign, found) if s.name == Name("value", name)]


def test_a_region_is_an_affine_sum_and_a_mask_for_each_index():
    _, found = made(("y[m, k] = x[m, k] * 2.0",), *GRID)
    (load,) = of(to.Load, found)
    m, k = (
        to.Spread(Name("positions", i), a) for i, a in (("m", (True, False)), ("k", (False, True)))
    )
    assert load.place.terms == (Term(m, (Size("K"),)), Term(k))
    assert [c.value for c in load.place.mask] == [Name("mask", "m"), Name("mask", "k")]
    assert load.other == Number(0.0)


def test_positions_outside_a_padded_tensor_are_named_and_checked():
    _, found = made(("y[m, k] = pad(x[m, k - 1], 0.0)",), *GRID)
    (load,) = of(to.Load, found)
    at = to.Name("dim", "x", 1)
    assert load.place.mask[-2:] == (Check(at), Check(at, below=Size("K")))
    assert load.place.terms[-1] == Term(at)


def test_a_known_sum_is_masked_and_a_loaded_one_is_not():
    _, masked = made(("y[m] = sum(x[m, k] + 2.0, k)",), *LOOP, result="f32[M]")
    _, plain = made(("y[m] = sum(x[m, k] * 2.0, k)",), *LOOP, result="f32[M]")
    assert [e for e in expressions(masked) if isinstance(e, to.Masked)]
    assert not [e for e in expressions(plain) if isinstance(e, to.Masked)]


def test_what_is_read_by_windows_is_loaded_at_its_use():
    spec = "y[m, k] = sum(pad(x[m, k + i], 0.0), i=3)"
    _, found = made((spec,), *GRID, "unroll(i)")
    names = [load.name for load in of(to.Load, found)]
    assert len(names) == len(set(names)) == 3, "each part has a variable of its own"


def test_a_factor_is_hoisted_out_of_a_maximum_and_into_the_power():
    equations = (
        "a[m, k] = x[m, k] * 0.5",
        "mx[m] = max(a[m, k], k)",
        "y[m, k] = exp(a[m, k] - mx[m])",
    )
    _, found = made(equations, *GRID)
    factor = Name("factor", "a")
    assert found[0] == to.Assign(factor, Number(0.5))
    assert not assigned(found, "a"), "the factor waits"
    (power,) = [e for e in expressions(found) if isinstance(e, to.Power)]
    assert power.factor == factor and power.value == Name("value", "x")
    (scaled,) = [e for e in expressions(found) if isinstance(e, to.Scaled)]
    assert scaled.factor == factor


def test_an_exponent_that_is_as_large_as_what_it_is_subtracted_from_is_left_alone():
    _, found = made(
        ("y[m, k] = exp(x[m, k] - w[m, k])",), *GRID, inputs="x: f32[M, K], w: f32[M, K]"
    )
    (y,) = assigned(found, "y")
    assert y.function == "exp" and y.args[0].function == "sub"


def test_what_a_spelling_reads_twice_has_a_name():
    _, found = made(("y[m, k] = gelu(x[m, k] + 1.0)",), *GRID)
    part = Name("part", copy=1)
    (sum_,) = [s.value for s in of(to.Assign, found) if s.name == part]
    assert sum_.function == "add"
    assert assigned(found, "y") == [to.Compute("gelu", (part,), True)]


def test_constants_of_functions_that_take_none_are_typed():
    _, found = made(("y[m, k] = log1p(2.0) * x[m, k]",), *GRID)
    (y,) = assigned(found, "y")
    assert y.args[0].args == (to.Converted(Number(2.0), "f32", True),)


def test_operands_meet_in_the_wider_dtype():
    _, found = made(
        ("y[m, k] = a[m, k] + i[m, k]",),
        *GRID,
        inputs="a: f16[M, K], i: i32[M, K]",
        result="f16[M, K]",
    )
    (y,) = assigned(found, "y")
    assert y.dtype == "f16" and {e.dtype for e in y.value.args} == {"f32"}


def test_a_short_loop_of_scalars_is_unrolled_unless_it_prefetches():
    kwargs = dict(inputs="x: f32[M, K, 3]", result="f32[M, K]")
    spec = ("y[m, k] = sum(x[m, k, i], i)",)
    (loop,) = of(to.Loop, made(spec, *GRID, "tile(i, size=1)", **kwargs)[1])
    assert loop.unrolled and not loop.stages
    staged = "pipeline(x, stages=2)"
    (loop,) = of(to.Loop, made(spec, *GRID, "tile(i, size=1)", staged, **kwargs)[1])
    assert not loop.unrolled and loop.stages == 2


@pytest.mark.parametrize("one_loop", [False, True])
def test_loops_of_a_persistent_block_have_stages_unless_they_are_one_with_that_around_them(
    one_loop,
):
    lines = (*LOOP, "pipeline(x, stages=3)", "persistent(y, programs=1)")
    spec = spec_of("y[m] = sum(x[m, k] * 2.0, k)", result="f32[M]")
    launch = lowered(spec, *lines, sizes=SIZES, machine=WITH_TF32).launches[0]
    body = BodyBuilder(launch, replace(RULES, persistent_is_one_loop=one_loop))
    assert [s.stages for s in of(to.Loop, body.each())] == [0 if one_loop else 3]


@pytest.mark.parametrize(("dtype", "transposed"), [("tf32", 1), ("tf32x3", 0)])
def test_a_product_alone_is_transposed_and_those_that_are_added_up_are_not(dtype, transposed):
    lines = tuple(f"tile({i}, size=64)" for i in "mn")
    lines += tuple(f"place({i}.outer, level=grid)" for i in "mn")
    lines += ("compute(y, unit=matrix)", f"precision(y, dtype={dtype})")
    spec = spec_of(
        "y[m, n] = sum(x[m, k] * w[k, n], k)",
        inputs="x: f32[M, K], w: f32[K, N]",
        result="f32[M, N]",
    )
    launch = lowered(spec, *lines, sizes=dict(M=128, N=128, K=32), machine=WITH_TF32).launches[0]
    every = list(expressions(*BodyBuilder(launch, replace(RULES, k_last=True)).each()))
    products = [e for e in every if isinstance(e, to.Product)]
    found = [e for e in every if isinstance(e, to.Permuted) and e.value in products]
    assert len(found) == transposed and products


def test_bounds_in_data_are_loaded():
    lines = ("tile(b, size=1)", "tile(l, size=8)", "place(b.outer, level=grid)")
    _, found = made("embedding_bag", *lines, sizes=dict(V=9, D=20, L=64, B=12))
    (loop,) = of(to.Loop, found)
    assert (loop.low, loop.high) == (Name("low", "l"), Name("high", "l"))
    (bounds,) = [s for s in of(to.Bounds, found) if s.name == Name("mask", "l")]
    assert bounds.end == loop.high and bounds.even is None


def test_a_causal_loop_is_peeled_and_its_first_part_has_no_mask():
    equations = (
        "a[m, n] = where(n <= m, x[m, n], -inf)",
        "y[m] = max(a[m, n], n)",
    )
    lines = (
        "tile(m, size=16)",
        "tile(n, size=8)",
        "place(m.outer, level=grid)",
        "causal_bound(n, at=m)",
    )
    kwargs = dict(inputs="x: f32[M, N]", result="f32[M]", sizes=dict(M=64, N=64))
    _, found = made(equations, *lines, **kwargs)
    first, last = of(to.Loop, found)
    assert first.high == last.low
    choices = [
        [e for e in expressions(loop.body) if isinstance(e, to.Compute) and e.function == "where"]
        for loop in (first, last)
    ]
    assert not choices[0] and len(choices[1]) == 1


def test_a_copy_in_bulk_is_guarded_by_what_the_launcher_can_describe():
    lines = ("tile(m, size=16)", "tile(k, size=32)", "place(m.outer, level=grid)")
    staged = "pipeline(x, stages=2)", "copy(x, by=bulk)"
    body, found = made(
        ("y[m] = sum(x[m, k], k)",),
        *lines,
        *staged,
        result="f32[M]",
        machine=WITH_THREADS,
        sizes=dict(M=32, K=64),
    )
    (guard,) = of(to.Guard, found)
    assert isinstance(guard.body[0], to.BoxLoad) and isinstance(guard.others[0], to.Load)
    (descriptor,) = body.descriptors
    assert guard.condition == descriptor.flag and guard.body[0].box.descriptor == descriptor.name


def test_a_search_takes_its_steps_from_the_launcher():
    kwargs = dict(inputs="x: f32[M], b: f32[U]", result="i32[M]", sizes=dict(M=20, U=13))
    lines = ("tile(m, size=8)", "place(m.outer, level=grid)")
    body, found = made(("y[m] = bucketize(x[m], b)",), *lines, **kwargs)
    assert body.steps == {Name("steps", "b"): to.Bits(Size("U"))}
    assert [e.count for e in expressions(found) if isinstance(e, to.Ranked)] == [Size("U")]


@pytest.mark.parametrize("tile", [(), ("tile(k, size=8)",)])
def test_a_scan_carries_what_it_ran_through_in_a_loop_only(tile):
    _, found = made(("y[m, k] = cumsum(x[m, k], k)",), *GRID, *tile)
    assert bool(assigned(found, "y_carry")) == bool(tile)


def test_what_a_grid_index_does_not_enter_is_stored_by_the_first_tile_along_it():
    spec = parse_spec(
        "def f(x: f32[M, K], g: f32[M]) -> (f32[M, K], f32[M]):\n"
        '    """F."""\n    y[m, k] = x[m, k] + 1.0\n    z[m] = g[m] * 2.0\n    return y, z\n'
    )
    _, found = made(spec, *LOOP, "place(k.outer, level=grid)")
    masks = {s.value.stem: s.place.mask for s in of(to.Store, found)}
    first = Check(Name("origin", "k"), equal=Number(0))
    assert first in masks["z"] and first not in masks["y"]


def test_one_thread_block_stores_what_no_grid_index_enters():
    spec = parse_spec(
        "def f(x: f32[M, K], g: f32[K]) -> (f32[M, K], f32[K]):\n"
        '    """F."""\n    z[k] = g[k] * 2.0\n    y[m, k] = x[m, k] + z[k]\n    return y, z\n'
    )
    _, found = made(spec, *GRID)
    guards = {g.body[0].value.stem: g.condition for g in of(to.Guard, found)}
    assert guards == {"z": to.FirstProgram()}
