"""A task's file says what is made and what must hold; what is wrong with it is told."""

from functools import partial

import pytest

from frontends.kernelbench.task import Task
from ir.errors import KernelError
from ir.network import Network
from ir.partition.partition import partition
from ir.reference.reference import evaluate_storage
from ir.reference.stepwise import evaluate
from ir.spec import Spec

TASK = """
import torch

SHAPES = [({"n": 3}, 1.0), ({"n": 4}, 2.0)]

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Linear(4, 2)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        return {"y": self.scale(x) + self.calls}

def inputs(seed, n):
    torch.manual_seed(seed)
    return [torch.rand(2, n)]

def test_right(run):
    assert run(*inputs(2, 4))["y"].shape == (2, 2)

def test_wrong(run):
    assert run(*inputs(2, 4))["y"].max() > 1e6, "not large"
"""


def parts(text):
    task = Task("t", text, "t.py")
    made = task.opened().imported(task.name)
    return task, made.spec, partition(made.spec, {}, made.aliases)


def results(task, spec: Spec, network: Network):
    run = partial(evaluate, network, by=evaluate_storage)
    return dict(task.opened().results(task.name, spec, run))


def test_a_task_is_compared_and_its_tests_are_called():
    task, spec, network = parts(TASK)
    opened = task.opened()
    assert opened.shape == {"n": 4} and opened.shapes == (({"n": 4}, 2.0), ({"n": 3}, 1.0))
    other = opened.at({"n": 3})
    assert other.shape == {"n": 3} and other.tests == {} and other.given[0].shape[-1] == 3
    found = results(task, spec, network)
    assert list(found) == ["inputs(0)", "inputs(1)", "test_right", "test_wrong"]
    assert [name for name, fault in found.items() if fault] == ["test_wrong"]
    assert "AssertionError: not large" in found["test_wrong"]


def test_wrong_results_are_told_unless_the_tolerance_lets_them_be():
    task, spec, _ = parts(TASK)
    _, _, other = parts(TASK.replace("+ self.calls", "+ self.calls * 1.01"))
    assert "not close" in results(task, spec, other)["inputs(0)"]
    wide = Task("t", TASK + "\nTOLERANCE = dict(rtol=0.1, atol=0.1)\n", "t.py")
    assert results(wide, spec, other)["inputs(0)"] == ""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("class Model", "class Other", "defines no `reference`"),
        ("def inputs", "def given", "defines no `inputs`"),
        ("test_right(run)", "test_right(run, more)", "takes other than `run`"),
        ("SHAPES = [", "SHAPES = 3, [", "SHAPES is"),
        ("SHAPES = [", "SHAPES = [] and [", "SHAPES is"),
        ("1.0), (", "0.0), (", "SHAPES is"),
        ("1.0), (", "-1.0), (", "SHAPES is"),
        ('({"n": 3}, 1.0)', '({"n": 4}, 1.0)', "SHAPES is"),
        ("SHAPES = [", "TOLERANCE = 3\nSHAPES = [", "TOLERANCE is 3"),
        ("+ self.calls", "+ torch.rand(2)", "draws random numbers"),
        ("import torch", "import nothing", "raises ModuleNotFoundError"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(before, after, said):
    with pytest.raises(KernelError, match=said):
        parts(TASK.replace(before, after, 1))


def test_equations_must_stay_the_same():
    task, spec, network = parts(TASK)
    other = Task("t", TASK.replace("+ self.calls", "- self.calls"), "t.py")
    with pytest.raises(KernelError, match="other equations"):
        results(other, spec, network)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(KernelError, match="cannot read"):
        Task.read(tmp_path / "none.py")
