"""Whether tensors share memory is told exactly, and a call that changes one of two is refused."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.pytorch.memory import apart, overlap, require_apart
from ir.errors import KernelError


@st.composite
def views(draw):
    """A view of 24 places, by strides, and the places of its elements."""
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=2))
    strides = [draw(st.integers(0, 5)) for _ in sizes]
    first = draw(st.integers(0, 3))
    view = torch.arange(24.0).as_strided(sizes, strides, first)
    return sizes, strides, first, set(view.flatten().tolist())


@given(views(), views())
def test_an_overlap_is_a_place_that_both_have(a, b):
    memory = torch.arange(24.0)
    one, two = (memory.as_strided(*view[:3]) for view in (a, b))
    assert overlap(one, two) == bool(a[3] & b[3])


def test_tensors_of_different_memory_do_not_overlap():
    assert not overlap(torch.zeros(4), torch.zeros(4))


def test_a_changed_tensor_lies_apart():
    x = torch.zeros(4, 6)
    tensors = [("`a`", x[:, :3]), ("`b`", x[:, 3:]), ("`c`", x[1:, 4]), ("`d`", torch.zeros(2))]
    require_apart(tensors, {"`a`", "`d`"})
    with pytest.raises(KernelError, match="changes `b`, which shares memory with `c`"):
        require_apart(tensors, {"`b`"})
    with pytest.raises(KernelError, match="elements share memory"):
        require_apart([("`e`", torch.zeros(3, 1).expand(3, 4))], {"`e`"})


def test_only_views_of_one_memory_are_copied_for_a_trace():
    x, y = torch.zeros(4), torch.zeros(4, requires_grad=True)
    given = {"a": x, "b": [y, 3]}
    assert apart(given) is given
    made = apart({"a": x, "b": [x[1:], y]})
    assert made["a"] is x and made["b"][1] is y
    assert made["b"][0].shape == (3,) and not overlap(made["b"][0], x)
