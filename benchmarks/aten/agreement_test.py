"""Tests that results agree with float64 within their dtype, and that random ones have their
properties."""

import math

import pytest
import torch

from benchmarks.aten.agreement import PROPERTIES, fault
from benchmarks.aten.call import OperatorCall
from benchmarks.aten.samples import calls

X = torch.linspace(-1, 2, 60).reshape(6, 10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_pytorchs_own_results_agree_and_others_do_not(dtype):
    call = OperatorCall(torch.log, (X.to(dtype),), {})
    right = call()
    assert fault("log", call, right) == ""
    off = right.clone()
    off[5, 5] += 0.1
    assert "off by" in fault("log", call, off) or "error" in fault("log", call, off)
    assert "a number" in fault("log", call, right.nan_to_num())
    assert "not torch" in fault("log", call, right.double())
    assert "not torch" in fault("log", call, right[:5])


def test_an_operator_that_the_cpu_lacks_in_16_bits_is_rounded_from_f32():
    def lacking(x):
        if x.dtype == torch.bfloat16:
            raise NotImplementedError
        return torch.log(x)

    call = OperatorCall(lacking, (X.bfloat16(),), {})
    right = torch.log(X.bfloat16().float()).bfloat16()
    assert fault("log", call, right) == ""
    assert "not torch" in fault("log", call, right.float())


def test_overflow_is_pytorchs():
    call = OperatorCall(torch.exp, (torch.tensor([1.0, 20.0]).half(),), {})
    assert fault("exp", call, call()) == ""


def test_integers_are_equal_and_results_as_many():
    call = OperatorCall(torch.argmax, (X, 1), {})
    assert fault("argmax", call, call()) == ""
    assert "6 of 6" in fault("argmax", call, call() - 1)
    assert "2 results, not 1" == fault("argmax", call, [call(), call()])


def test_equal_elements_have_their_places_in_any_order():
    call = OperatorCall(torch.sort, (torch.tensor([[2.0, 1.0, 2.0]]),), {})
    values, places = call()
    assert fault("sort", call, (values, places)) == ""
    assert fault("sort", call, (values, places[:, [0, 2, 1]])) == ""
    assert "places" in fault("sort", call, (values, places[:, [0, 1, 1]]))
    assert "places" in fault("sort", call, (values, places + 1))
    call = OperatorCall(torch.sort, (torch.tensor([[math.nan, 1.0, math.nan]]),), {})
    values, places = call()
    assert fault("sort", call, (values, places)) == ""
    assert "places" in fault("sort", call, (values, places[:, [1, 0, 2]]))


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_what_pytorch_draws_has_the_properties(name):
    dtype = torch.int64 if name == "randperm" else torch.float32
    for call in calls(name, dtype, 2):
        assert fault(name, call, call()) == ""


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rand", lambda x: x - 0.1),
        ("rand", lambda x: x / 2),
        ("randn", lambda x: 2 * x),
        ("randn_like", lambda x: x * 0),
        ("normal", lambda x: x + 1),
        ("rand_like", lambda x: x[1:]),
        ("randperm", lambda x: x.clamp(max=3)),
        ("multinomial", lambda x: x * 0 + 2),
        ("multinomial", lambda x: x - 9),
    ],
)
def test_what_lacks_them_is_wrong(name, change):
    (call,) = calls(name, torch.int64 if name == "randperm" else torch.float32, 1)
    assert fault(name, call, change(call())) != ""


def test_dropped_elements_are_zero_and_others_scaled():
    (call,) = calls("native_dropout", torch.float32, 1)
    result, mask = call()
    assert "scaled" in fault("native_dropout", call, (result / 2, mask))
    assert "are kept" in fault("native_dropout", call, (2 * call.args[0], mask | True))
