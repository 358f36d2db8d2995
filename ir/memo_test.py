"""Results are cached for the identical object only."""

import pickle
from dataclasses import dataclass, replace

import pytest

from ir.memo import MOST, Keeping, Recent, by_identity, by_parts, kept


@dataclass(frozen=True, slots=True)
class Pair(Keeping):
    a: int
    b: int

    @kept
    def both(self):
        return [self.a, self.b]

    @property
    @kept
    def swapped(self):
        return [self.b, self.a]


def test_a_result_is_found_once_for_each_object():
    asked = []

    @by_identity
    def count(value):
        asked.append(value)
        return len(value)

    first, second = tuple("abc"), tuple("abcd")
    assert [count(first), count(second), count(first)] == [3, 4, 3]
    assert asked == [first, second]
    assert count(tuple("abc")) == 3 and len(asked) == 3


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


def test_further_arguments_tell_results_apart():
    asked = []

    @by_identity
    def times(value, factor):
        asked.append(factor)
        return value[0] * factor

    value = (3,)
    assert [times(value, 2), times(value, 3), times(value, 2)] == [6, 9, 6]
    assert asked == [2, 3]


def test_a_value_keeps_what_its_methods_find():
    pair = Pair(1, 2)
    assert pair.both() is pair.both() and pair.swapped is pair.swapped
    assert (pair.both(), pair.swapped) == ([1, 2], [2, 1])


def test_what_is_kept_is_no_part_of_the_value():
    pair, other = Pair(1, 2), Pair(1, 2)
    assert pair.both() and pair == other and hash(pair) == hash(other)
    assert pickle.dumps(pair) == pickle.dumps(other)
    assert replace(pair, a=5).both() == [5, 2] and pair.both() == [1, 2]


def test_a_function_keeps_what_it_finds_in_its_value():
    @kept
    def total(pair):
        return [pair.a + pair.b]

    @kept
    def product(pair):
        return [pair.a * pair.b]

    pair = Pair(2, 3)
    assert (total(pair), product(pair)) == ([5], [6])
    assert total(pair) is total(pair) and total(pair) is not total(Pair(2, 3))


def test_recent_results_are_told_apart_by_object_and_key():
    found, one, equal = Recent(), Pair(1, 2), Pair(1, 2)
    assert found.put(one, "a", 1) == 1 and found.put(one, "b", 2) == 2
    assert [found.get(v, k) for v, k in ((one, "a"), (one, "b"), (equal, "a"))] == [1, 2, None]


def test_recent_results_are_dropped_when_they_become_too_many():
    found, one = Recent(2), Pair(1, 2)
    for key in "abc":
        found.put(one, key, key)
    assert [found.get(one, key) for key in "abc"] == [None, None, "c"]


@dataclass(frozen=True, slots=True)
class Three:
    a: tuple[int, ...]
    b: tuple[int, ...]
    other: int = 0


def test_values_that_were_replaced_in_other_fields_share_results():
    asked = []

    @by_parts("a", "b")
    def sums(value, more):
        asked.append(value)
        return sum(value.a) + sum(value.b) + more

    one = Three((1, 2), (3, 4))
    assert [sums(one, 0), sums(replace(one, other=1), 0), sums(one, 5)] == [10, 10, 15]
    assert asked == [one, one]
    assert sums(replace(one, b=(3, 5)), 0) == 11 and sums(replace(one, a=(0, 0)), 0) == 7


def test_only_so_many_results_of_parts_are_kept():
    asked = []
    keep = by_parts("a", "b")(lambda value: asked.append(value))
    values = [Three((n,), (n,)) for n in range(MOST + 1)]
    for value in (*values, values[0]):
        keep(value)
    assert asked == [*values, values[0]]
