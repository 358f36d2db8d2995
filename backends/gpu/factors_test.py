"""Factors that are hoisted: positive ones of values that only maxima and exponentials read."""

import pytest

from backends.gpu.factors import exact_differences, factors
from ir.nest.nest import Tile
from ir.spec import Number
from testing.samples.samples import WITH_TF32, lowered, spec_of

SOFTMAX = (
    "mx[m] = max(a[m, k], k)",
    "p[m, k] = exp(a[m, k] - mx[m])",
    "l[m] = sum(p[m, k], k)",
    "y[m, k] = p[m, k] / l[m]",
)


def found(*equations, **kwargs):
    nest = lowered(
        spec_of(*equations, **kwargs), "tile(m, size=4)", sizes=dict(M=8, K=16), machine=WITH_TF32
    )
    return factors(nest.launches[0])


@pytest.mark.parametrize(
    "factor", ["0.5", "rsqrt(f32(K))", "(1.0 / f32(K))", "sqrt(2.0)", "(2.0 * exp(1.0))"]
)
def test_a_positive_factor_waits(factor):
    scaled = found(f"a[m, k] = x[m, k] * {factor}", *SOFTMAX)
    assert set(scaled) == {"a"}
    assert scaled["a"].of == Tile("x")


def test_it_may_stand_on_either_side():
    assert found("a[m, k] = 0.5 * x[m, k]", *SOFTMAX)["a"].factor == Number(0.5)


@pytest.mark.parametrize("factor", ["-0.5", "0.0", "log(f32(K))", "(f32(K) - 3.0)", "w[m]"])
def test_what_may_not_be_positive_does_not(factor):
    kwargs = dict(inputs="x: f32[M, K], w: f32[M]") if "w" in factor else {}
    assert not found(f"a[m, k] = x[m, k] * {factor}", *SOFTMAX, **kwargs)


def test_a_mask_of_minus_infinity_stays_outside():
    scaled = found("a[m, k] = where(k <= m, x[m, k] * 0.5, -inf)", *SOFTMAX)
    assert scaled["a"].factor == Number(0.5)
    assert scaled["a"].of.function == "where" and scaled["a"].of.args[1] == Tile("x")
    assert not found("a[m, k] = where(k <= m, x[m, k] * 0.5, 0.0)", *SOFTMAX)


def test_a_value_that_is_read_otherwise_is_made_at_once():
    more = ("mx[m] = max(a[m, k], k)", "y[m, k] = exp(a[m, k] - mx[m]) + a[m, k]")
    assert not found("a[m, k] = x[m, k] * 0.5", *more)
    plain = ("mx[m] = max(a[m, k], k)", "y[m, k] = exp(a[m, k]) + mx[m]")
    assert not found("a[m, k] = x[m, k] * 0.5", *plain)
    least = ("mx[m] = min(a[m, k], k)", "y[m, k] = exp(a[m, k] - mx[m])")
    assert not found("a[m, k] = x[m, k] * 0.5", *least)


def test_values_of_other_dtypes_are_rounded_first():
    assert not found(
        "a[m, k] = f16(x[m, k] * 0.5)",
        "mx[m] = max(a[m, k], k)",
        "y[m, k] = f32(exp(a[m, k] - mx[m]))",
    )


def test_sums_and_what_is_made_of_them_may_be_next_to_the_ends():
    nest = lowered(
        spec_of("b[m, k] = x[m, k] - 1.0", "a[m, k] = b[m, k] * 0.5", *SOFTMAX),
        "tile(m, size=4)",
        sizes=dict(M=8, K=16),
        machine=WITH_TF32,
    )
    assert {"a", "b"} <= exact_differences(nest.launches[0])
    assert not factors(nest.launches[0])
    for least, near in (("-inf", set()), ("-3e38", {"a"})):
        nest = lowered(
            spec_of(f"a[m, k] = where(k <= m, x[m, k], {least})", *SOFTMAX),
            "tile(m, size=4)",
            sizes=dict(M=8, K=16),
            machine=WITH_TF32,
        )
        assert exact_differences(nest.launches[0]) & {"a"} == near


def test_with_a_logarithm_of_the_sum_differences_are_taken_first():
    """A row's factor of the exponentials does not cancel then."""
    last = "y[m, k] = exp((a[m, k] - mx[m]) - log(l[m]))"
    nest = lowered(
        spec_of("a[m, k] = x[m, k] * 0.5", *SOFTMAX[:-1], last),
        "tile(m, size=4)",
        sizes=dict(M=8, K=16),
        machine=WITH_TF32,
    )
    assert {"a", "p", "x"} <= exact_differences(nest.launches[0])
    assert not factors(nest.launches[0])
