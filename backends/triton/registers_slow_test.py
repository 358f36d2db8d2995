"""The same for the whole library on four chips; a minute."""

import pytest

from testing.samples.samples import KERNELS


@pytest.mark.parametrize("target", ["h100", "h200", "mi300", "mi350"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_first_schedule_does_not_spill(first_build, kernel, target):
    assert first_build(kernel, target)["spills"] == 0
