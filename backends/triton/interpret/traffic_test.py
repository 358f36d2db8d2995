"""Programs that access what another one writes, and programs that do not."""

import numpy as np
import pytest

from backends.triton.interpret.traffic import AccessLog, Conflict

BYTES = 64  # of the tensor


def touched(traffic, verb, elements, programs=(0, 1)):
    """An f32 access: a list of elements for each program, or one list for all."""
    traffic.programs = np.array(programs, np.int32)
    offsets = 4 * np.array(elements, np.int64)
    getattr(traffic, verb)(1, 4, BYTES, offsets, np.ones(offsets.shape, bool))


def test_programs_with_elements_of_their_own_are_left_alone():
    traffic = AccessLog()
    for verb in ("read", "write", "read", "write"):
        touched(traffic, verb, [[0, 1], [2, 3]])
    touched(traffic, "write", [[4]], programs=[2])


def test_many_may_read_one_element():
    traffic = AccessLog()
    touched(traffic, "read", [[0, 1], [1, 2]])
    touched(traffic, "read", [[0, 1, 2]])
    touched(traffic, "write", [[3], [4]])


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (("write", [[0], [1]]), ("read", [[0], [0]])),
        (("write", [[0], [1]]), ("write", [[1], [2]])),
        (("read", [[0], [1]]), ("write", [[1], [2]])),
        (("read", [[5]]), ("write", [[5], [6]])),
        (("read", [[5], [5]]), ("write", [[5], [6]])),
        (("write", [[0], [1]]), ("read", [[1]])),
    ],
)
def test_what_one_writes_no_other_touches(first, then):
    traffic = AccessLog()
    touched(traffic, *first)
    with pytest.raises(Conflict):
        touched(traffic, *then)


@pytest.mark.parametrize("elements", [[[0, 1], [1, 2]], [[7]]])
def test_one_store_of_two_programs_at_one_place(elements):
    with pytest.raises(Conflict):
        touched(AccessLog(), "write", elements)


def test_an_earlier_program_counts_as_well():
    traffic = AccessLog()
    touched(traffic, "write", [[0]], programs=[0])
    with pytest.raises(Conflict):
        touched(traffic, "read", [[0]], programs=[1])


def test_what_is_masked_off_is_not_touched():
    traffic = AccessLog()
    traffic.programs = np.arange(2, dtype=np.int32)
    mask = np.array([[True, False], [False, True]])
    traffic.write(1, 4, BYTES, np.array([[0, 4], [0, 4]]), mask)


def test_elements_of_another_size_cannot_be_told_apart():
    traffic = AccessLog()
    touched(traffic, "read", [[0], [1]])
    with pytest.raises(Conflict):
        traffic.read(1, 2, BYTES, np.zeros((1, 1), np.int64), np.ones((1, 1), bool))
