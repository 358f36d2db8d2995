"""Guards separate the shapes that kernels were tuned for, whatever these are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.errors import KernelError
from ir.guards import FALLBACK, Bound, Rule, chosen, rules_for


def at(**sizes):
    return sizes


SIZES = st.fixed_dictionaries({n: st.integers(1, 4096) for n in "BCL"})


@given(st.lists(st.tuples(SIZES, st.integers(0, 3)), min_size=1, max_size=9))
def test_every_shape_gets_its_kernel(points):
    points = list({tuple(sizes.items()): (sizes, kernel) for sizes, kernel in points}.values())
    rules = rules_for(points)
    assert [chosen(rules, sizes) for sizes, _ in points] == [kernel for _, kernel in points]
    assert len(rules) <= len(points)


def test_shapes_along_one_size_are_told_apart_half_way_in_the_logarithm():
    rules = rules_for([(at(B=64, L=9), 1), (at(B=256, L=9), 1), (at(B=1024, L=9), 2),
                       (at(B=4096, L=9), 0)])  # fmt: skip
    assert rules == (Rule(1, (Bound("B", most=512),)), Rule(2, (Bound("B", most=2048),)))
    assert [chosen(rules, at(B=b, L=9)) for b in (1, 512, 513, 2048, 2049, 10**6)] == [
        1, 1, 2, 2, 0, 0,
    ]  # fmt: skip


def test_the_size_with_the_wider_gap_decides():
    assert rules_for([(at(B=8, L=100), 1), (at(B=800, L=200), 0)]) == (
        Rule(1, (Bound("B", most=80),)),
    )


def test_rules_name_specialists_only():
    corner = [(at(B=64, C=12), 1), (at(B=512, C=12), 0), (at(B=64, C=96), 0)]
    assert rules_for(corner) == (Rule(1, (Bound("B", most=181), Bound("C", most=33))),)
    ends = [(at(B=1), 1), (at(B=16), 0), (at(B=256), 1)]
    assert {str(rule) for rule in rules_for(ends)} == {"B <= 4", "65 <= B"}


def test_where_one_comparison_will_not_do_several_sizes_are_bounded():
    crossed = [(at(B=1, L=1), 1), (at(B=9, L=9), 1), (at(B=1, L=9), 2), (at(B=9, L=1), 0)]
    rules = rules_for(crossed)
    assert [chosen(rules, sizes) for sizes, _ in crossed] == [1, 1, 2, 0]
    assert any(len(rule.bounds) == 2 for rule in rules)


def test_where_all_shapes_have_the_fallback_there_are_no_rules():
    assert rules_for([(at(B=1), 0), (at(B=9), 0)]) == ()
    assert chosen((), at(B=5)) == FALLBACK


def test_a_kernel_that_does_not_fit_is_passed_over():
    rules = (Rule(1, (Bound("B", most=10),)), Rule(2))
    assert chosen(rules, at(B=5)) == 1
    assert chosen(rules, at(B=5), lambda kernel: kernel != 1) == 2
    assert chosen(rules, at(B=5), lambda kernel: kernel == 0) == 0
    assert chosen(rules[:1], at(B=50), lambda kernel: kernel == 1) == 1
    with pytest.raises(KernelError, match="no kernel fits at B=5"):
        chosen(rules, at(B=5), lambda kernel: False)


def test_rules_can_be_read():
    assert str(Rule(1, (Bound("B", most=10), Bound("L", least=3, most=7)))) == (
        "B <= 10 and 3 <= L <= 7"
    )
    assert str(Rule(2)) == "elsewhere"
