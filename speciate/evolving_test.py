"""The seconds of a search go to kernels that are far from their roofline, and are called often."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.registry import target
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.lower.lower import lower
from ir.parse.parse import parse_spec
from speciate.evolving import EVEN, shared, to_gain

GAINS = st.dictionaries(
    st.text("abcdef", min_size=1), st.floats(0, 1e9, allow_subnormal=False), min_size=1
)


@given(st.floats(1e-3, 1e6), GAINS)
def test_all_seconds_are_given_out_and_each_kernel_has_some(seconds, gains):
    found = shared(seconds, gains)
    assert sum(found.values()) == pytest.approx(seconds) and set(found) == set(gains)
    least = min(EVEN * seconds / len(gains), *found.values())
    assert least >= 0.999 * EVEN * seconds / len(gains)


def test_the_rest_goes_by_what_is_to_gain():
    assert shared(80.0, {"a": 0.0, "b": 30.0, "c": 10.0, "d": 0.0}) == pytest.approx(
        {"a": 5.0, "b": 50.0, "c": 20.0, "d": 5.0}
    )
    assert shared(8.0, {"a": 0.0, "b": 0.0}) == {"a": 4.0, "b": 4.0}


def test_a_worse_schedule_has_more_to_gain():
    machine = target("npu")
    spec = parse_spec(
        'def p(x: f32[256, 256], w: f32[256, 256]) -> f32[256, 256]:\n    """p"""\n'
        "    y[m, n] = sum(x[m, k] * w[k, n], k)\n    return y\n"
    )
    good, bad = (
        to_gain(lower(spec, make(spec, machine, {}), machine, {}), machine)
        for make in (autoschedule, plain)
    )
    assert 0 <= good < bad
