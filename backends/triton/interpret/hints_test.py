"""What a kernel tells the compiler is held to the numbers; what is so changes nothing."""

import numpy as np
import pytest
import triton.language as tl

from backends.triton.interpret import hints
from backends.triton.interpret.repairs import Handle


def block(values, dtype=tl.int32):
    """Values of two programs as a tensor of an interpreter."""
    data = np.asarray(values, np.int32)
    return tl.tensor(Handle(data, dtype), tl.block_type(dtype, list(data.shape[1:])))


def scalar(values):
    return tl.tensor(Handle(np.asarray(values, np.int32), tl.int32), tl.int32)


ROWS = [[8, 9, 10, 11], [16, 17, 18, 19]]
SPLIT = [[8, 9, 4, 5], [12, 13, 16, 17]]
GRID = [[[0, 1, 2, 3], [4, 5, 6, 7]]]


@pytest.mark.parametrize(
    ("hint", "x", "values"),
    [
        (hints.multiple_of, block(ROWS), 8),
        (hints.multiple_of, block(SPLIT), [4]),
        (hints.multiple_of, scalar([16, 48]), tl.constexpr(16)),
        (hints.multiple_of, block(GRID), [1, 4]),
        (hints.max_contiguous, block(ROWS), 4),
        (hints.max_contiguous, block(SPLIT), 2),
        (hints.max_contiguous, block(GRID), [1, 4]),
        (hints.max_constancy, block([[3, 3, 5, 5]]), 2),
        (hints.max_constancy, block([[7, 7, 7, 7]]), 4),
        (hints.max_contiguous, block(ROWS), 1),
    ],
)
def test_what_is_so_changes_nothing(hint, x, values):
    assert hint(x, values) is x


@pytest.mark.parametrize(
    ("hint", "x", "values"),
    [
        (hints.multiple_of, block(ROWS), 16),
        (hints.multiple_of, block(SPLIT), 8),
        (hints.multiple_of, scalar([16, 24]), 16),
        (hints.multiple_of, block(GRID), [8, 1]),
        (hints.max_contiguous, block(SPLIT), 4),
        (hints.max_contiguous, block(GRID), [2, 1]),
        (hints.max_constancy, block([[3, 3, 5, 5]]), 4),
        (hints.max_constancy, block(ROWS), 2),
    ],
)
def test_what_is_not_so_is_refused(hint, x, values):
    with pytest.raises(AssertionError, match="which is not so"):
        hint(x, values)


def test_a_loops_index_may_be_a_number_and_each_axis_has_a_value():
    assert hints.multiple_of(3, 16) == 3
    with pytest.raises(ValueError, match="2 numbers of 1 axes"):
        hints.multiple_of(block(ROWS), [4, 4])
