"""Arrays to tensors and back."""

import numpy as np
import pytest
import torch

from backends.backend import BackendError
from backends.gpu.device import tensors
from backends.gpu.device.tensors import (
    DTYPES,
    array,
    output,
    placed,
    poisoned,
    same_bits,
    unplaced,
    viewed,
)
from ir.nest.nest import Parameter, parameter
from ir.reference.rounding import HELD_AS, round_to
from ir.spec import Number, Part, Size, Tensor


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_goes_in_comes_out(dtype):
    given = round_to(np.arange(-6, 6).reshape(3, 4) / 3, dtype)
    tensor = placed(given, dtype)
    assert tensor.dtype == DTYPES[dtype] and tensor.is_contiguous()
    got = array(tensor)
    assert got.dtype == HELD_AS[dtype]
    np.testing.assert_array_equal(got, given)


@pytest.mark.parametrize("shape", [(), (1,), (2, 1)])
def test_a_view_has_the_shape_of_its_array(shape):
    assert viewed(np.ones(shape, np.int32), "i32").shape == shape


def test_the_array_is_copied():
    given = np.zeros(3, np.float32)
    placed(given, "f32").fill_(1)
    assert not given.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_poisoned_tensor_is_what_no_test_expects(dtype):
    tensor = poisoned(Parameter("y", dtype, (Size("M"), Number(3)), "output"), {"M": 2})
    assert tensor.shape == (2, 3)
    got = array(tensor)
    bad = np.isnan(got) if np.issubdtype(got.dtype, np.floating) else got != 0
    assert bad.all()


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i32", "b8"])
def test_an_output_is_its_part_of_what_was_stored(dtype):
    tensor = Tensor("y", dtype, (Number(3), Number(4)), part=Part(1, 2, 9))
    memory = poisoned(parameter(tensor, "output"), {})
    memory[:, 2:6] = 0
    found = output(tensor, memory)
    assert found.shape == (3, 4) and found.is_contiguous() and not array(found).any()
    for beside in (1, 6):
        wrong = memory.clone()
        wrong[1, beside] = 0
        with pytest.raises(BackendError, match="beside `y`, a part of a larger tensor") as caught:
            output(tensor, wrong)
        assert caught.value.stage == "check"


def test_a_tensor_on_no_device_has_shape_and_dtype():
    tensor = unplaced(Parameter("x", "bf16", (Size("M"),), "input"), {"M": 7})
    assert (tensor.shape, tensor.dtype, tensor.device.type) == ((7,), torch.bfloat16, "meta")


def test_bits_are_compared_not_values():
    nan = torch.tensor([float("nan")])
    assert same_bits(nan, nan.clone())
    assert not same_bits(torch.tensor([0.0]), torch.tensor([-0.0]))


@pytest.mark.parametrize("first, count", [(0, 16), (1, 16), (0, 15)])
def test_bits_are_compared_in_parts_however_they_lie(monkeypatch, first, count):
    monkeypatch.setattr(tensors, "PART", 2)
    one = torch.arange(40, dtype=torch.int16)[first : first + count]
    other = one.clone()
    assert same_bits(one, other) and not same_bits(one, other[:-1])
    for at in (0, count // 2, count - 1):
        other = one.clone()
        other[at] ^= 256
        assert not same_bits(one, other)
