"""Guards choose the kernel of a tuned shape at and near it, and the fallback elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.errors import KernelError
from ir.guards import FALLBACK, Guard, chosen

SIZES = st.fixed_dictionaries({n: st.integers(1, 4096) for n in "BCL"})
GUARDS = (Guard({"B": 64, "L": 9}, 1), Guard({"B": 1024, "L": 9}, 2), Guard({"B": 4096, "L": 9}, 0))


@given(st.lists(st.builds(Guard, SIZES, st.integers(0, 3)), min_size=1, max_size=9))
def test_every_tuned_shape_gets_its_kernel(guards):
    guards = list({tuple(g.near.items()): g for g in guards}.values())
    assert [chosen(guards, g.near) for g in guards] == [g.kernel for g in guards]


def test_shapes_between_are_the_nearer_ones_in_the_logarithm():
    found = [chosen(GUARDS, {"B": b, "L": 9}) for b in (63, 255, 257, 2047, 2049, 9999)]
    assert found == [1, 1, 2, 2, 0, 0]


def test_of_two_that_are_as_near_the_first_decides():
    assert chosen(GUARDS, {"B": 256, "L": 9}) == 1
    assert chosen(GUARDS[::-1], {"B": 256, "L": 9}) == 2


@pytest.mark.parametrize(
    "sizes, kernel",
    [
        ({"B": 16, "L": 9}, 1),
        ({"B": 15, "L": 9}, 0),
        ({"B": 64, "L": 36}, 1),
        ({"B": 64, "L": 37}, 0),
    ],
)
def test_further_than_the_factor_the_fallback_is_run(sizes, kernel):
    assert chosen(GUARDS, sizes) == kernel
    assert chosen(GUARDS, sizes, within=100.0) == 1


def test_a_kernel_that_does_not_fit_is_passed_over():
    sizes = {"B": 60, "L": 9}
    assert chosen(GUARDS, sizes, lambda kernel: kernel != 1) == FALLBACK
    assert chosen(GUARDS, sizes, lambda kernel: kernel == 2) == 2
    with pytest.raises(KernelError, match="no kernel fits at B=60, L=9"):
        chosen(GUARDS, sizes, lambda kernel: False)


def test_without_guards_there_is_only_the_fallback():
    assert chosen((), {"B": 5}) == FALLBACK
