"""A problem is read without running, runs in its own names, and faults are told."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor

from frontends.kernelbench.problem import Problem
from ir.errors import KernelError

TEXT = """
import torch

class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = torch.nn.Linear(features, features)

    def forward(self, x):
        return self.linear(x)

batch_size = 64
features = 4096

def get_inputs():
    return [torch.rand(batch_size, features)]

def get_init_inputs():
    return [features]
"""


def problem(tmp_path, text=TEXT):
    path = tmp_path / "1_Linear.py"
    path.write_text(text)
    return Problem.read(path)


def test_a_problem_is_named_after_its_file(tmp_path):
    assert problem(tmp_path).name == "1_Linear"


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(KernelError, match="cannot read the problem"):
        Problem.read(tmp_path / "none.py")


def test_a_seed_draws_the_same_model_and_inputs(tmp_path):
    text = TEXT.replace("4096", "16")
    a, b = (problem(tmp_path, text).made(seed=3) for _ in range(2))
    other = problem(tmp_path, text).made(seed=4)
    assert torch.equal(a.model.linear.weight, b.model.linear.weight)
    assert torch.equal(a.inputs[0], b.inputs[0])
    assert not torch.equal(a.inputs[0], other.inputs[0])


def test_fake_tensors_take_no_memory(tmp_path):
    made = problem(tmp_path, TEXT.replace("4096", "4_000_000")).made(fake=True)
    assert isinstance(made.inputs[0], FakeTensor)
    assert made.model.linear.weight.shape == (4_000_000, 4_000_000)


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("def get_inputs", "def inputs", "defines no `get_inputs`"),
        ("class Model(", "class Net(", "defines no `Model`"),
        ("return [features]", "return [features, 1]", "raises TypeError"),
        ("import torch\n", "import torch, no_such_module\n", "raises ModuleNotFoundError"),
        ("class Model(torch.nn.Module)", "class Model(dict)", "raises|no torch.nn.Module"),
        ("batch_size = 64", "batch_size = ", "raises SyntaxError"),
    ],
)
def test_faults_of_a_problem_are_told(tmp_path, before, after, fault):
    with pytest.raises(KernelError, match=fault) as caught:
        problem(tmp_path, TEXT.replace(before, after)).made(fake=True)
    assert "1_Linear.py" in str(caught.value)
