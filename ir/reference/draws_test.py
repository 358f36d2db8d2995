"""Draws other than the normal one: what they change and what they keep."""

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.reference.draws import LARGE, SHIFT, drawn, draws
from ir.reference.inputs import random_inputs
from ir.reference.rounding import round_to
from testing.samples.samples import KERNELS, spec_of, workload

POSITIONS = ("ends", "repeated", "ascending")
SPEC = spec_of(
    "y[m, k] = x[m, k] * g[k] + t[i[m], k] / d[m, k]",
    inputs="x: f32[M, K], g: f32[K], t: f32[V, K], i: i32[M], d: f32[M, K]",
    result="f32[M, K]",
)
SIZES = {"M": 6, "K": 5, "V": 4}


def of(draw, spec=SPEC, sizes=SIZES):
    return drawn(spec, sizes, np.random.default_rng(1), draw)


NORMAL = random_inputs(SPEC, SIZES, np.random.default_rng(1))


def test_scaled_draws_scale_every_float():
    for name in "xgtd":
        assert np.allclose(of("large")[name], NORMAL[name] * LARGE)
        assert 0 < np.abs(of("tiny")[name]).max() < 0.01


def test_the_first_float_is_shifted_and_no_other():
    found = of("shifted")
    assert np.allclose(found["x"], NORMAL["x"] + SHIFT)
    assert all(np.array_equal(found[name], NORMAL[name]) for name in "gtid")


def test_every_other_row_is_zero_but_of_divisors_and_vectors():
    found = of("zero_rows")
    for name in "xt":
        assert not found[name][::2].any() and np.array_equal(found[name][1::2], NORMAL[name][1::2])
    assert all(np.array_equal(found[name], NORMAL[name]) for name in "gd")


@pytest.mark.parametrize("draw", [d for d in draws(SPEC) if d not in POSITIONS])
def test_integers_stay_as_they_are(draw):
    assert np.array_equal(of(draw)["i"], NORMAL["i"])


@pytest.mark.parametrize("kernel", KERNELS)
def test_inputs_are_finite_numbers_of_their_dtypes(kernel):
    w = workload(kernel)
    for draw in draws(w.spec):
        for t in w.spec.inputs:
            array = of(draw, w.spec, w.checks[1])[t.name]
            assert np.array_equal(
                array, round_to(array, t.dtype), equal_nan=array.dtype.kind == "f"
            )
            if draw not in ("nan", "infinite", "positive_infinite"):
                assert np.isfinite(array).all()


def test_a_float_of_8_bits_is_shifted_by_less():
    spec = spec_of("y[m, k] = f32(x[m, k])", inputs="x: f8e4m3[M, K]", result="f32[M, K]")
    found = of("shifted", spec, {"M": 9, "K": 9})["x"]
    assert 50 < found.mean() < 62 and len(np.unique(found)) > 1


def test_integers_take_their_whole_range_where_every_integer_will_do():
    free = spec_of("y[m] = x[m] + 1", inputs="x: i32[M]", result="i32[M]")
    assert draws(free) == ("whole",)
    found = of("whole", free, {"M": 40})["x"]
    assert found.min() == -(2**31) and found.max() == 2**31 - 1
    shifted = spec_of("y[m] = x[m] << x[m]", inputs="x: i32[M]", result="i32[M]")
    assert draws(shifted) == ()


def test_positions_lie_at_both_ends_or_are_one_or_ascend():
    assert set(of("ends")["i"]) == {0, 3}
    assert len(set(of("repeated")["i"])) == 1
    assert list(of("ascending")["i"]) == sorted(of("ascending")["i"])


def test_some_elements_are_not_numbers_in_some_rows_alone():
    for draw, bad in (("nan", np.isnan), ("infinite", np.isinf)):
        found = bad(of(draw)["x"])
        assert found.any(1).sum() == 2 and not found[::4].any()


def test_rows_differ_in_scale_and_all_elements_may_be_alike():
    sizes = np.abs(of("scaled_rows")["x"]).mean(1)
    assert sizes.max() > 100 * sizes.min()
    assert len(np.unique(of("equal")["x"])) == 1
    assert np.array_equal(of("ties")["x"], np.rint(of("ties")["x"]))
    assert 0 < np.abs(of("denormal")["x"]).max() < 2.0**-126


def test_the_same_seed_draws_the_same():
    one, other = of("large"), of("large")
    assert all(np.array_equal(one[name], other[name]) for name in one)


RANGED = parse_spec(
    "def ranged(x: f32[M, K], p: f16[K], v: f32[M]) -> f32[M, K]:\n"
    '    """Floats of which the spec says something."""\n'
    "    range(x, -0.5, 3.0)\n    range(p, 2.0, 4.0)\n"
    "    y[m, k] = x[m, k] * f32(p[k]) + v[m]\n    return y\n"
)


def test_floats_keep_to_the_range_that_the_spec_declares():
    sizes = {"M": 40, "K": 50}
    normal = random_inputs(RANGED, sizes, np.random.default_rng(2))
    every = [normal, *(of(draw, RANGED, sizes) for draw in draws(RANGED))]
    for found in every:
        assert found["x"].min() >= -0.5 and found["x"].max() <= 3.0
        assert found["p"].min() >= 2.0 and found["p"].max() <= 4.0
    assert normal["p"].min() < 2.5 and normal["p"].max() > 3.5
    assert any(np.abs(found["v"]).max() > 10 for found in every)
    assert {"large", "shifted"} < set(draws(RANGED))
    assert not {"nan", "infinite", "positive_infinite"} & set(draws(RANGED))
