"""What has no equations is refused before a trace, by the name of the argument or the submodule."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from frontends.pytorch.against import checked
from frontends.pytorch.module import imported
from ir.errors import KernelError


def added(x, more=None):
    return x + 1


def quantised():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(4, 4)))
        return torch.ao.quantization.quantize_dynamic(module, {nn.Linear})


def observed():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = nn.Sequential(nn.Linear(4, 4)).eval()
        module.qconfig = torch.ao.quantization.get_default_qconfig("fbgemm")
        return torch.ao.quantization.prepare(module)


def whole_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.qint8)


def nested():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])


def scripted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(nn.Linear(4, 4))


PACKED = pack_sequence([torch.zeros(3, 4), torch.zeros(2, 4)])


@pytest.mark.parametrize(
    ("subject", "arguments", "where", "what", "hint"),
    [
        (nn.LSTM(4, 3), [PACKED], "argument `input`", "packed sequence", "padded tensor"),
        (added, [torch.zeros(3), {"a": PACKED}], "argument `more`", "packed sequence", "padded"),
        (added, [nested()], "argument `x`", "nested tensor", "padded tensor"),
        (added, [torch.eye(3).to_sparse()], "argument `x`", "torch.sparse_coo", "to_dense"),
        (added, [whole_numbers()], "argument `x`", "quantised tensor", "dequantize"),
        (quantised(), [torch.zeros(2, 4)], "1.0 (Linear)", "is quantised", "before quantisation"),
        (observed(), [torch.zeros(2, 4)], "0.activation_post_process", "observes values", "before"),
        (scripted(), [torch.zeros(2, 4)], "ScriptModule", "script of torch.jit", "of Python"),
        (nn.LazyLinear(3), [torch.zeros(2, 4)], "LazyLinear", "`weight` has no shape", "once"),
        (torch.sin, [torch.zeros(2)], "", "no names of arguments", "lambda x: torch.sin(x)"),
        (added, [], "", "missing a required argument: 'x'", ""),
    ],
)
def test_what_has_no_equations_is_refused(subject, arguments, where, what, hint):
    with pytest.raises(KernelError) as caught:
        imported(subject, arguments)
    assert where in caught.value.where and what in caught.value.what
    assert hint in caught.value.hint


class Optional(nn.Module):
    """Arguments of all sorts, of which few are given."""

    def forward(self, x, mask=None, *more, scale=2.0, parts=()):
        y = x * scale + sum(more) + sum(parts)
        return y if mask is None else y + mask


@pytest.mark.parametrize(
    ("args", "kwargs", "dynamic", "further"),
    [
        ((torch.randn(4, 3),), {}, {"x": {0: "B"}}, [(torch.randn(7, 3),)]),
        (
            (torch.randn(4, 3), torch.randn(4, 3)),
            {},
            {"x": {0: "B"}, "mask": {0: "B"}},
            [(torch.randn(7, 3), torch.randn(7, 3))],
        ),
        (
            (torch.randn(4, 3), None, torch.randn(3)),
            {"parts": [torch.randn(3)]},
            {"x": {0: "B"}},
            [(torch.randn(7, 3), None, torch.randn(3))],
        ),
    ],
)
def test_sizes_stay_open_where_optional_arguments_are_not_given(args, kwargs, dynamic, further):
    made = checked(Optional(), *args, kwargs=kwargs, calls=further, dynamic=dynamic)
    assert [s.name for s in made.sizes] == ["B"]


@pytest.mark.parametrize(
    ("dynamic", "what", "allowed"),
    [
        ({"mask": {0: "B"}}, "given no argument `mask`", "x, n, parts"),
        ({"n": {0: "B"}}, "`n` is no tensor but int", ""),
        ({"parts": {0: "B"}}, "`parts` is no tensor but list", ""),
        ({"x": {2: "B"}}, "no dimension 2", "0 to 1"),
        ({"x": {-1: "B"}}, "no dimension -1", "0 to 1"),
    ],
)
def test_only_dimensions_of_tensors_that_are_given_stay_open(dynamic, what, allowed):
    def work(x, n, parts, mask=None):
        return x + n + parts[0]

    with pytest.raises(KernelError) as caught:
        imported(work, [torch.randn(2, 3), 2, [torch.randn(3)]], dynamic=dynamic)
    assert caught.value.where == "dynamic" and what in caught.value.what
    assert caught.value.allowed == allowed


def test_open_sizes_and_arguments_without_names_exclude_each_other():
    with pytest.raises(KernelError, match=r"takes named arguments by `\*\*`"):
        imported(
            lambda x, **more: x + more["y"],
            [torch.randn(2, 3)],
            {"y": torch.randn(3)},
            dynamic={"x": {0: "B"}},
        )
