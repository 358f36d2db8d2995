"""Arrays keep their values in transfers to and from the device."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch

from backends.backend import BackendError
from backends.shared.arrays import ALIGNED, Fenced, from_device, output, poisoned, to_device
from ir.nest.nest import Parameter, parameter
from ir.reference.rounding import round_to
from ir.spec import Number, Part, Size, Tensor

VALUES = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0"])
def test_floats_come_back_as_they_were(dtype):
    given = round_to(VALUES, dtype)
    assert np.array_equal(from_device(to_device(given, dtype), dtype), given)


def test_all_codes_of_a_scale_are_those_of_pytorch():
    codes = np.arange(256, dtype=np.uint8)
    values = from_device(codes, "f8e8m0")
    scales = torch.from_numpy(codes).view(torch.float8_e8m0fnu)
    np.testing.assert_array_equal(values, scales.float().numpy())
    assert np.isnan(values[255]) and values[127] == 1 and values[0] == 2.0**-127
    assert np.array_equal(to_device(values, "f8e8m0"), codes)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "f8e4m3", "i32", "b8"])
def test_an_output_is_its_part_of_what_was_stored(dtype):
    tensor = Tensor("y", dtype, (Number(3), Number(4)), part=Part(1, 2, 9))
    memory, values = poisoned(parameter(tensor, "output"), {}), np.arange(12).reshape(3, 4) % 2
    memory[:, 2:6] = to_device(values, dtype)
    assert np.array_equal(output(tensor, memory), from_device(to_device(values, dtype), dtype))
    for beside in (1, 6):
        wrong = memory.copy()
        wrong[1, beside] = 0
        with pytest.raises(BackendError, match="beside `y`, a part of a larger tensor") as caught:
            output(tensor, wrong)
        assert caught.value.stage == "check"


def test_a_copy_is_sent_so_that_inputs_stay():
    sent = to_device(VALUES, "f32")
    sent[...] = 0
    assert VALUES.any()


def test_truth_values_travel_as_bytes():
    given = np.array([True, False])
    sent = to_device(given, "b8")
    assert sent.dtype == np.uint8 and np.array_equal(from_device(sent, "b8"), given)


@pytest.mark.parametrize(
    "dtype", ["f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0", "i32", "i64", "b8"]
)
def test_a_poisoned_buffer_holds_nothing_that_looks_computed(dtype):
    parameter = Parameter("y", dtype, (Size("M"), Number(2)), "output")
    buffer = from_device(poisoned(parameter, {"M": 3}), dtype)
    assert buffer.shape == (3, 2)
    if dtype in ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0"):
        assert np.isnan(buffer).all()
    elif dtype != "b8":
        assert (buffer == -1_234_567).all()


@pytest.mark.parametrize(
    "dtype", ["f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0", "i32", "i64", "b8"]
)
def test_a_single_number_has_no_dimensions(dtype):
    sent = to_device(np.array(1), dtype)
    assert isinstance(sent, np.ndarray) and sent.shape == ()
    assert from_device(sent, dtype).shape == () and from_device(sent, dtype) == 1


@pytest.mark.parametrize("count", [1, 3, 64, 1000])
def test_a_write_beside_a_buffer_shows(count):
    fenced = Fenced(np.arange(count, dtype=np.float32))
    assert fenced.array.ctypes.data % ALIGNED == 0 and fenced.whole()
    assert np.array_equal(fenced.array, np.arange(count))
    fenced.array[-1] = 7
    assert fenced.whole()
    for beside in (-4, fenced.array.nbytes):
        spoiled = Fenced(np.arange(count, dtype=np.float32))
        ctypes.memset(spoiled.array.ctypes.data + beside, 0, 4)
        assert not spoiled.whole()
