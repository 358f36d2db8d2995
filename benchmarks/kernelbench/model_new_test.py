"""Tests a `ModelNew` for a GPU that is not available: the launches of its calls, and their
operators of PyTorch."""

import importlib.util

import pytest
import torch
from triton import knobs

from backends.triton.testing.chip import installed
from benchmarks.kernelbench.host_time import _Operators
from benchmarks.kernelbench.model_new import ModelNewJob, write_model_new
from benchmarks.kernelbench.prepared import F32

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 16, 3)
        self.norm = torch.nn.BatchNorm2d(16)
        self.linear = torch.nn.Linear(16, 8)

    def forward(self, x):
        return self.linear(torch.relu(self.norm(self.conv(x))).mean((2, 3)))

def get_inputs():
    return [torch.rand(4, 3, 10, 10)]

def get_init_inputs():
    return []
"""
# The function and the first of the kernel's arguments, among those of a launcher.
FUNCTION, ARGUMENTS = 4, 9


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("new")
    (folder / "problem.py").write_text(PROBLEM)
    write_model_new(ModelNewJob(folder / "problem.py", "h200", False, folder / "new.py", F32))
    return folder / "new.py"


@pytest.fixture
def chip(monkeypatch, tmp_path):
    return installed(monkeypatch, tmp_path)


@pytest.fixture
def model(written, chip):
    spec = importlib.util.spec_from_file_location("new", written)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ModelNew()


def launched(chip, model, x):
    """Returns the launches of a call: functions, and arguments with addresses for tensors."""
    chip.launched.clear()
    model(x)
    return [
        [
            one[FUNCTION],
            *(v.data_ptr() if isinstance(v, torch.Tensor) else v for v in one[ARGUMENTS:]),
        ]
        for one in chip.launched
    ]


def test_a_call_is_launches_and_two_allocations(chip, model):
    x = torch.rand(4, 3, 10, 10)
    first = launched(chip, model, x)
    again = launched(chip, model, x)
    assert [one[0] for one in first[-len(again) :]] == [one[0] for one in again] and len(again) > 1
    statistics = (model.norm.running_mean, model.norm.running_var, model.norm.num_batches_tracked)
    written = {t.data_ptr() for t in statistics}
    given = {value for one in again for value in one}
    assert written <= given and x.data_ptr() in given
    assert model.linear.weight.data_ptr() in given
    with _Operators() as operators:
        result = model(x)
    assert operators.count == 2  # For the result, and for the tensors between steps.
    assert result.data_ptr() in {v for one in chip.launched for v in one[ARGUMENTS:]}


def test_an_argument_that_is_not_aligned_has_code_of_its_own(chip, model):
    memory = torch.rand(4 * 3 * 100 + 1)
    even, odd = memory[:-1].view(4, 3, 10, 10), memory[1:].view(4, 3, 10, 10)
    launched(chip, model, even)
    count = len(chip.loaded)
    functions = [[one[0] for one in launched(chip, model, x)] for x in (even, odd, odd, even)]
    assert len(chip.loaded) > count
    assert functions[0] == functions[3] != functions[1] == functions[2]


def test_each_device_and_stream_has_its_launches(chip, model):
    x = torch.rand(4, 3, 10, 10)
    launched(chip, model, x)
    for chip.device, chip.stream in ((0, 3), (1, 3), (1, 4), (0, 4)):
        launched(chip, model, x)
        launched(chip, model, x)
        assert {one[3] for one in chip.launched} == {100 * chip.device + chip.stream}
        assert {one[FUNCTION][1] for one in chip.launched} == {chip.device}


def test_hooks_see_every_launch(chip, model):
    x, seen, chain = torch.rand(4, 3, 10, 10), [], knobs.runtime.launch_enter_hook
    launched(chip, model, x)
    chain.add(seen.append)
    try:
        count = len(launched(chip, model, x))
    finally:
        chain.remove(seen.append)
    assert all(chain in one[6:9] for one in chip.launched) and count == len(
        launched(chip, model, x)
    )
