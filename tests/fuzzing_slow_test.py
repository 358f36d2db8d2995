"""A million spoiled texts give documented errors only."""

import pytest

from tests.fuzzing import fuzzed


@pytest.mark.parametrize("seed", range(1, 21))
def test_spoiled_texts_give_documented_errors_only(seed):
    _, faults = fuzzed(50_000, seed)
    assert not faults, "\n".join(faults[:9])
