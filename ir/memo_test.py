"""Results are kept for the same object, and only for it."""

import pytest

from ir.memo import MOST, by_identity


def test_a_result_is_found_once_for_each_object():
    asked = []

    @by_identity
    def count(value):
        asked.append(value)
        return len(value)

    first, second = tuple("abc"), tuple("abcd")
    assert [count(first), count(second), count(first)] == [3, 4, 3]
    assert asked == [first, second]
    assert count(tuple(list(first))) == 3 and len(asked) == 3


def test_only_so_many_are_kept():
    asked = []
    keep = by_identity(lambda value: asked.append(value))
    values = [(n,) for n in range(MOST + 1)]
    for value in (*values, values[0]):
        keep(value)
    assert len(asked) == MOST + 2


def test_a_failure_is_not_kept():
    @by_identity
    def refuse(value):
        raise ValueError(value)

    value = (1,)
    for _ in range(2):
        with pytest.raises(ValueError):
            refuse(value)
