"""Random inputs are valid: positions in bounds, offsets and borders sorted, dtypes as declared."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.parse.parse import parse_spec
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.rounding import HELD_AS, round_to
from ir.sizes import bind, shape
from testing.samples.random_specs import sizes_for, specs

SEEDS = st.integers(0, 2**32)


def made(lines: str, signature: str, result: str, sizes, seed: int, **options):
    body = "".join(f"    {line.strip()}\n" for line in lines.split(";"))
    spec = parse_spec(f'def s({signature}) -> {result}:\n    """Doc."""\n{body}    return y\n')
    return random_inputs(spec, sizes, np.random.default_rng(seed), **options)


@given(data=st.data(), spec=specs(), seed=SEEDS)
def test_any_spec_evaluates_on_its_inputs(data, spec, seed):
    sizes = data.draw(sizes_for(spec))
    inputs = random_inputs(spec, sizes, np.random.default_rng(seed))
    for t in spec.inputs:
        assert inputs[t.name].dtype == HELD_AS[t.dtype]
        assert inputs[t.name].shape == shape(t, bind(spec, sizes))
        np.testing.assert_array_equal(round_to(inputs[t.name], t.dtype), inputs[t.name])
    evaluate(spec, inputs, sizes)


def test_the_same_generator_gives_the_same_inputs():
    signature = "x: bf16[M], i: i32[M]"
    a, b = (made("y[m] = x[m] * i[m]", signature, "bf16[M]", {"M": 9}, 1) for _ in "ab")
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


def test_scale_is_the_deviation_of_floats():
    x = made("y[m] = x[m]", "x: f32[M]", "f32[M]", {"M": 10_000}, 0, scale=0.02)["x"]
    assert 0.019 < x.std() < 0.021


@given(SEEDS)
def test_positions_lie_in_every_dimension_they_are_used_in(seed):
    lines = "j[n] = i[n] + 0 * k[n]; y[n] = w[i[n]] + w[k[n]] + v[j[n], 0]"
    signature = "v: f32[V, D], w: f32[W], i: i32[N], k: i64[N]"
    found = made(lines, signature, "f32[N]", {"V": 3, "D": 1, "W": 5, "N": 40}, seed)
    assert found["i"].min() >= 0 and found["i"].max() < 3
    assert found["k"].min() >= 0 and found["k"].max() < 3


@pytest.mark.parametrize(
    "position", ["i[n] + 3", "i[n] * 2 + 1", "4 - i[n]", "i[n] // 3", "i[n] + j", "i[n] * 3 - i[n]"]
)
def test_computed_positions_lie_inside(position):
    lines = f"y[n] = sum(w[{position}] + 0.0 * v[j], j)"
    sizes = {"W": 9, "N": 40, "J": 3}
    for seed in range(5):
        found = made(lines, "w: f32[W], v: f32[J], i: i64[N]", "f32[N]", sizes, seed)["i"]
        j = np.arange(3)[:, None] if "j" in position else 0
        at = eval(position.replace("[n]", ""), {"i": found, "j": j})
        assert at.min() >= 0 and at.max() < 9


def test_a_declared_range_holds_for_what_is_no_position():
    found = made("range(i, 5, 8); y[n] = i[n]", "i: i32[N]", "i32[N]", {"N": 99}, 0)["i"]
    assert set(found) == {5, 6, 7}


def test_a_declared_range_and_a_position_hold_both():
    lines = "range(i, 2, 9); y[n] = w[i[n] * 2]"
    found = made(lines, "w: f32[W], i: i32[N]", "f32[N]", {"W": 9, "N": 99}, 0)["i"]
    assert set(found) == {2, 3, 4}


def test_scattered_positions_lie_in_the_result():
    found = made("y[i[n]] += v[n]", "i: i32[N], v: f32[N]", "f32[V]", {"N": 99, "V": 2}, 0)
    assert set(found["i"]) == {0, 1}


@given(SEEDS, st.integers(1, 9), st.integers(1, 20))
def test_offsets_are_sorted_from_nothing_to_everything(seed, bags, length):
    line = "y[b] = sum(v[l], l=range(o[b], o[b + 1]))"
    sizes = {"L": length, "B": bags}
    offsets = made(line, "v: f32[L], o: i32[B + 1]", "f32[B]", sizes, seed)["o"]
    assert offsets[0] == 0 and offsets[-1] == length
    assert (np.diff(offsets) >= 0).all()
    assert bags < 3 or (np.diff(offsets) == 0).any()


@given(SEEDS, st.integers(1, 9))
def test_starts_and_ends_are_partners(seed, bags):
    line = "y[b] = sum(v[l], l=range(lo[b], hi[b]))"
    signature = "v: f32[L], lo: i32[B], hi: i32[B]"
    found = made(line, signature, "f32[B]", {"L": 7, "B": bags}, seed)
    assert (found["lo"] <= found["hi"]).all() and found["hi"][-1] == 7


@given(SEEDS, st.integers(1, 50))
def test_integer_borders_are_distinct_and_hit(seed, count):
    sizes = {"M": 99, "U": count}
    found = made("y[m] = bucketize(i[m], b)", "i: i32[M], b: i32[U]", "i32[M]", sizes, seed)
    assert (np.diff(found["b"]) > 0).all()
    hits = np.isin(found["i"], found["b"])
    assert 20 < hits.sum() <= 99


def test_float_borders_are_sorted():
    signature = "x: f32[M], b: bf16[U]"
    found = made("y[m] = bucketize(x[m], b)", signature, "i32[M]", {"M": 3, "U": 50}, 0)
    assert (np.diff(found["b"]) >= 0).all()


def test_borders_and_ends_that_are_computed_are_no_inputs():
    line = "e[b] = o[b] + 1; y[b] = sum(v[l], l=range(o[b], e[b]))"
    found = made(line, "v: f32[L], o: i32[B]", "f32[B]", {"L": 9, "B": 3}, 0)
    assert set(found) == {"v", "o"} and found["o"][0] == 0
    line = "e[b] = cumsum(square(x[b]), b); y[m] = bucketize(v[m], e)"
    assert set(made(line, "v: f32[M], x: f32[B]", "i32[M]", {"M": 9, "B": 3}, 0)) == {"v", "x"}


POSITIVE = ["sqrt(x[m] + 1e-05)", "log(x[m])", "1.0 / x[m]", "rsqrt(f32(x[m]))"]


@pytest.mark.parametrize("use", POSITIVE)
def test_what_must_be_positive_is(use):
    assert made(f"y[m] = {use}", "x: f32[M]", "f32[M]", {"M": 99}, 0)["x"].min() > 0.09


def test_truth_values_are_mixed():
    found = made("y[m] = where(t[m], 1.0, 0.0)", "t: b8[M]", "f32[M]", {"M": 99}, 0)["t"]
    assert found.dtype == np.bool_ and found.any() and not found.all()
