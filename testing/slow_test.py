"""Parameters: which are left to the slow tests."""

from testing.slow import in_turn, slow, slow_but


def is_slow(parameter):
    return [mark.name for mark in parameter.marks] == ["slow"]


def test_a_slow_parameter_has_its_values_its_name_and_the_mark():
    made = slow("a", 1, id="first")
    assert (made.values, made.id) == (("a", 1), "first") and is_slow(made)


def test_what_is_kept_is_left_as_it_is():
    kept, left = slow_but(lambda value: value == "a", ["a", "b"])
    assert kept == "a" and left.values == ("b",) and is_slow(left)


def test_a_product_has_each_value_once_each_time_and_all_in_the_slow_tests():
    made = in_turn("abcd", [0, 1, 2])
    assert [p.values for p in made] == [(a, b) for a in "abcd" for b in (0, 1, 2)]
    each_time = [p.values for p in made if not is_slow(p)]
    assert each_time == [("a", 0), ("b", 1), ("c", 2), ("d", 0)]
