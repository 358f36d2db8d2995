"""Blocks and operators that hold code of their own: what they say is done, or refused by name."""

import pytest
import torch
from torch._higher_order_ops.map import map as mapped
from torch._higher_order_ops.while_loop import while_loop
from torch.utils.checkpoint import checkpoint

from frontends.pytorch.against import checked
from frontends.pytorch.module import imported
from ir.errors import KernelError
from ir.spec import Cast, Read


def mixed(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w
    return y.float() + x[:, :5]


def test_autocast_rounds_the_operands_of_products():
    made = checked(mixed, torch.randn(4, 6), torch.randn(6, 5))
    rounded = {
        read.tensor
        for e in made.spec.equations
        for node in e.value.walk()
        if isinstance(node, Cast) and node.dtype == "bf16"
        for read in node.walk()
        if isinstance(read, Read)
    }
    assert rounded >= {"x", "w"} and len(rounded) == 3  # and the product
    assert made.spec.outputs[0].dtype == "f32"


def test_autocast_that_is_off_rounds_nothing():
    def plain(x, w):
        with torch.autocast("cpu", enabled=False):
            return x @ w

    made = checked(plain, torch.randn(4, 6), torch.randn(6, 5))
    assert made.spec.outputs[0].dtype == "f32" and len(made.spec.equations) == 1


def test_blocks_without_gradients_and_checkpoints_are_their_code():
    def blocks(x):
        with torch.no_grad():
            y = x.exp()
        return checkpoint(lambda v: v.sin(), x, use_reentrant=False) + y

    checked(blocks, torch.randn(3))


@pytest.mark.parametrize(
    ("function", "operator"),
    [
        (lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)), "cond"),
        (lambda x: while_loop(lambda v: v.sum() < 9, lambda v: (v + 1,), (x,)), "while_loop"),
        (lambda x: mapped(lambda v: v.sin(), x), "map"),
    ],
)
def test_operators_that_call_functions_are_refused_by_name(function, operator):
    with pytest.raises(KernelError, match=rf"`{operator}\w*` is no operator of ATen") as caught:
        imported(function, [torch.randn(3, 2)])
    assert "torch.where" in str(caught.value) and "_Wrapped" not in str(caught.value)
