"""Fitness is the speed-up over a baseline, and 0 for a failure."""

import math

import pytest

from ir.errors import KernelError
from search.core.evaluation import Evaluation, Failure
from search.core.fitness import Baseline, fitness

BASELINE = Baseline(8.0, "simulated")


def test_twice_as_fast_is_two():
    assert fitness(Evaluation(4.0, "simulated", "simulator"), BASELINE) == 2.0


def test_a_failure_is_zero():
    assert fitness(Failure("check", "wrong", "off by one"), BASELINE) == 0.0


def test_a_time_of_another_kind_is_refused():
    with pytest.raises(KernelError, match="cannot be compared"):
        fitness(Evaluation(4.0, "measured", "device"), BASELINE)


@pytest.mark.parametrize("us", [0.0, -1.0, math.inf, math.nan])
def test_a_baseline_is_a_time(us):
    with pytest.raises(ValueError):
        Baseline(us, "simulated")
