"""Faults of a trace are said in the module's terms: where, what, what to do."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from frontends.pytorch.against import checked
from frontends.pytorch.module import imported
from ir.errors import KernelError


@dataclass
class Pair:
    """A class that is not registered."""

    first: torch.Tensor
    second: torch.Tensor


class Calls(nn.Module):
    """A function as a submodule, with a parameter."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.function(x, self.weight)


class Packs(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = nn.LSTM(3, 3)

    def forward(self, x):
        packed = pack_padded_sequence(x, [2, 2])
        return pad_packed_sequence(self.network(packed)[0])[0]


def decides(x, w):
    return x + w if x.sum() > 0 else x


def counts(x, w):
    return [x * n for n in range(int(w.sum()))]


def takes_a_number(x, w):
    return x * w.sum().item()


def takes_a_size(x, w):
    return x[: w.sum().int().item()] + 1


def takes_values(x, w):
    return x + torch.from_numpy(w.detach().numpy())


def differentiates_twice(x, w):
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        return torch.autograd.grad(nn.functional.linear(x, w[None]).sum(), x, create_graph=True)[0]


def goes_backward(x, w):
    (x * w).sum().backward()
    return x + 1


@pytest.mark.parametrize(
    ("function", "what", "hint"),
    [
        (decides, "decides by the values", "torch.where"),
        (counts, "decides by the values", "torch.where"),
        (takes_a_number, "a number depends on the values of tensors (`.item()`", "no dimensions"),
        (takes_a_size, "a size or a number depends on the values", "a mask"),
        (takes_values, "takes values out of its tensors", "operators of torch"),
        (differentiates_twice, "computes gradients in its call", "create_graph"),
        (goes_backward, "calls `.backward()`", "torch.autograd.grad"),
        (lambda x, w: Pair(x, x * w), "returns a `Pair`", "register_pytree_node"),
        (lambda x, w: {x + w}, "returns a `set`", "register_pytree_node"),
    ],
)
def test_a_fault_says_where_and_what_to_do(function, what, hint, capfd):
    with pytest.raises(KernelError) as caught:
        imported(nn.Sequential(nn.Identity(), Calls(function)), [torch.randn(2, 3)])
    error = caught.value
    assert what in error.what and hint in error.hint
    assert capfd.readouterr() == ("", "")
    if "returns" not in what:
        assert "faults_test.py:" in error.where
    if what.startswith(("decides", "takes")):
        assert error.where.startswith("1 (Calls)")


def test_packed_sequences_inside_are_named():
    with pytest.raises(KernelError, match="packs sequences") as caught:
        imported(nn.Sequential(Packs()), [torch.randn(2, 2, 3)])
    assert "0.network (LSTM)" in caught.value.where and "padded tensor" in caught.value.hint


def test_the_line_of_a_function_is_named_too():
    with pytest.raises(KernelError) as caught:
        imported(takes_a_number, [torch.randn(2, 3), torch.randn(3)])
    assert "return x * w.sum().item()" in caught.value.where


def test_arguments_of_other_classes_are_refused():
    with pytest.raises(KernelError, match="is given a `object`"):
        imported(lambda x, y: x + 1, [torch.randn(3), object()])


def test_gradients_that_can_be_traced_are_equations():
    def slope(x):
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            return torch.autograd.grad((x**3).sum(), x)[0]

    checked(slope, torch.randn(4))
    assert torch.autograd.backward.__module__ == "torch.autograd"


def test_strides_are_those_of_memory():
    x = torch.randn(4, 3)
    checked(lambda x: x.as_strided((3, 4), (1, 3)) + 1, x)
    for function in (
        lambda x: x.t().as_strided((3, 4), (1, 3)) + 1,
        lambda x: x[1:].as_strided((2, 2), (1, 3), 0) + 1,
    ):
        with pytest.raises(KernelError, match="depends on how its tensor lies in memory"):
            imported(function, [x])
    with pytest.raises(KernelError, match="depends on how its tensor lies in memory"):
        imported(lambda x: x.as_strided((3, 4), (1, 3)) + 1, [x.t()])


class Shares(nn.Module):
    """A buffer that is a part of another one, which a call changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("whole", torch.zeros(4))
        self.register_buffer("part", self.whole[:2])

    def forward(self, x):
        self.whole.add_(x)
        return self.part + 1


def test_a_buffer_that_changes_lies_apart():
    with pytest.raises(KernelError, match="shares memory with another"):
        imported(Shares(), [torch.ones(4)])
