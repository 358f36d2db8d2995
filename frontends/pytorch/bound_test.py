"""A bound module is called as its module is and gives what it gives, whatever computes its spec."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from frontends.pytorch.bound import BoundCall, array, tensor
from frontends.pytorch.call import state_of
from frontends.pytorch.external import outside
from frontends.pytorch.module import imported
from ir.errors import KernelError
from ir.partition.partition import partition
from ir.reference.stepwise import evaluate


@pytest.fixture(autouse=True)
def no_gradients():
    """Kernels compute none, and parameters require them."""
    with torch.no_grad():
        yield


def bound(subject, *args, seed=0, **kwargs):
    """A module of float64 on a network that the reference evaluates."""
    made = imported(subject, args, kwargs)
    network = partition(made.spec, {}, made.aliases)
    module = subject if isinstance(subject, nn.Module) else None
    return BoundCall(made, state_of(made, module), lambda arrays: evaluate(network, arrays), seed)


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def test_a_module_and_its_buffers_over_several_calls():
    ours = nn.Sequential(nn.BatchNorm1d(4), nn.Tanh()).double()
    theirs = copy.deepcopy(ours)
    call = bound(ours, drawn(5, 4))
    for _ in range(3):
        x = drawn(5, 4)
        torch.testing.assert_close(call(x), theirs(x).detach())
    assert call.state["0.num_batches_tracked"] == 3
    for name, value in theirs.named_buffers():
        torch.testing.assert_close(call.state[name], value)
    assert ours[0].num_batches_tracked == 0


def test_structures_of_arguments_and_results():
    def work(pair, *, scale):
        return {"sum": pair[0] + pair[1] * scale, "rest": [pair[0].argmax(1), 7]}

    pair = (drawn(3, 4), drawn(3, 4))
    call = bound(work, pair, scale=drawn(4))
    pair, scale = (drawn(3, 4), drawn(3, 4)), drawn(4)
    found, expected = call(pair, scale=scale), work(pair, scale=scale)
    torch.testing.assert_close(found["sum"], expected["sum"])
    assert torch.equal(found["rest"][0], expected["rest"][0]) and found["rest"][1] == 7


def test_arguments_that_a_module_changes():
    def work(x, y):
        return y.add_(x).sum()

    x, y = drawn(3), drawn(3)
    expected = x + y
    call = bound(work, x.clone(), y.clone())
    torch.testing.assert_close(call(x, y), expected.sum())
    torch.testing.assert_close(y, expected)


def test_each_call_draws_other_numbers_and_a_seed_repeats_them():
    x = torch.ones(64, dtype=torch.float64)
    calls = [bound(nn.Dropout(0.5), x, seed=3) for _ in range(2)]
    first, again = (call(x) for call in calls)
    assert torch.equal(first, again) and not torch.equal(first, calls[0](x))
    assert set(first.tolist()) == {0.0, 2.0}


def test_results_whose_size_depends_on_data():
    x = torch.tensor([3, 1, 3, 2, 1])
    values, inverse = bound(lambda x: torch.unique(x, return_inverse=True), x)(x)
    assert values.tolist() == [1, 2, 3] and inverse.tolist() == [2, 0, 2, 1, 0]


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (torch.zeros(2, 3), "float32"),
        (drawn(3, 3), r"\[3, 3\]"),
        (drawn(3), "1 dimensions"),
    ],
)
def test_other_arguments_are_refused(given, fault):
    call = bound(lambda x: x + 1, drawn(2, 3))
    with pytest.raises(KernelError, match=fault):
        call(given)


@pytest.mark.parametrize("parameter", [True, False])
def test_gradients_that_would_be_lost_are_refused(parameter):
    module = nn.Linear(3, 2).double().requires_grad_(parameter)
    call, x = bound(module, drawn(2, 3)), drawn(2, 3).requires_grad_(not parameter)
    torch.testing.assert_close(call(x), module(x))
    name = "weight" if parameter else "input"
    with torch.enable_grad(), pytest.raises(KernelError, match=f"`{name}` requires gradients"):
        call(x)


def test_what_is_left_to_pytorch_is_called_between():
    def work(x):
        values, vectors = torch.linalg.eigh(torch.relu(x) + x.t())
        return values * 2, vectors.abs() + values

    made = imported(work, [drawn(3, 3)], allow_torch=["_linalg_eigh"])
    network = partition(made.spec, {}, made.aliases, outside=outside(made))
    call = BoundCall(made, {}, lambda arrays, calls: evaluate(network, arrays, calls=calls))
    for _ in range(2):
        x = drawn(3, 3)
        for found, expected in zip(call(x), work(x), strict=True):
            torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int8, torch.bool])
def test_arrays_hold_what_tensors_do(dtype):
    given = torch.randn(2, 3, 4).mul(3).to(dtype)
    held = array(given.transpose(0, 2))
    assert held.dtype == (np.float32 if dtype == torch.bfloat16 else given.numpy().dtype)
    name = {torch.bfloat16: "bf16", torch.float16: "f16", torch.int8: "i8", torch.bool: "b8"}[dtype]
    assert torch.equal(tensor(held, name), given.transpose(0, 2))
    assert array(given.sum(dtype=dtype)).shape == ()
