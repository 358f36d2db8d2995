"""Autoschedules whose registers suffice, so that a search has a first time to improve on."""

import pytest

from testing.slow import slow

PRODUCT = {"M": 4096, "K": 1024, "N": 4096}


@pytest.mark.parametrize(
    ("kernel", "target", "sizes"),
    [
        slow("conv1d", "h200", None),
        ("rmsnorm_matmul", "h200", None),
        ("conv1d", "h200", {"B": 2048, "C": 96, "O": 96, "L": 200}),
        slow("matmul_bias_gelu", "h200", PRODUCT),
        ("matmul_bias_gelu", "mi300", PRODUCT),
        slow("pffn", "mi300", {"B": 1024, "N": 200, "D": 256, "K": 160}),
    ],
)
def test_a_first_schedule_does_not_spill(first_build, kernel, target, sizes):
    assert first_build(kernel, target, sizes)["spills"] == 0
