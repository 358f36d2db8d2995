"""A compiled module is a module of PyTorch: with a state, copies, pickles, and `torch.compile`."""

import copy
import pickle

import pytest
import torch
from torch import nn

from frontends.compiled.module import compile_module
from ir.errors import KernelError


class Parts(nn.Module):
    """With names that a compiled module has for itself, a mapping of results, and an input."""

    def __init__(self):
        super().__init__()
        self.program = nn.Linear(12, 8)
        self.state = nn.LayerNorm(8)

    def forward(self, x, *, scale=2.0):
        return {"y": self.state(self.program(x)) * scale, "x": x}


def parts():
    torch.manual_seed(2)
    module, x = Parts().eval().requires_grad_(False), torch.randn(5, 12)
    return module, x, compile_module(module, (x,), target="cpu")


@pytest.fixture(scope="module")
def compiled():
    return parts()


def agree(run, module, x):
    torch.testing.assert_close(run(x), module(x), rtol=1e-4, atol=1e-5)


def test_it_has_the_parameters_of_its_module(compiled):
    module, x, run = compiled
    assert isinstance(run, nn.Module) and not run.training
    assert list(run.state_dict()) == list(module.state_dict())
    run.load_state_dict({n: t * 0.5 for n, t in module.state_dict().items()})
    agree(run, module, x)


def test_its_mode_is_that_of_its_module(compiled):
    module, x, run = compiled
    run.train()
    assert module.training
    with pytest.raises(KernelError, match="compiled in evaluation mode"):
        run(x)
    run.eval()
    agree(run, module, x)


def test_a_copy_has_tensors_of_its_own(compiled):
    module, x, run = compiled
    other = copy.deepcopy(run)
    dict(other.named_parameters())["program.weight"].zero_()
    assert module.program.weight.any() and not torch.equal(other(x)["y"], run(x)["y"])
    agree(run, module, x)


def test_a_pickled_module_needs_no_module(compiled):
    module, x, run = compiled
    text = pickle.dumps(run)
    assert Parts.__qualname__.encode() not in text
    again = pickle.loads(text)
    assert list(again.state_dict()) == list(module.state_dict())
    agree(again, module, x)
    agree(pickle.loads(pickle.dumps(again)), module, x)


def test_torch_compile_takes_it_whole(compiled):
    compiled_by(compiled, "aot_eager")


@pytest.mark.slow
def test_its_own_compiler_takes_it_whole(compiled):
    compiled_by(compiled, "inductor")


def compiled_by(compiled, backend):
    module, x, run = compiled
    agree(torch.compile(run, fullgraph=True, backend=backend), module, x)
    around = torch.compile(lambda x: run(torch.sin(x))["y"].sum(1), fullgraph=True, backend=backend)
    expected = module(torch.sin(x))["y"].sum(1)
    torch.testing.assert_close(around(x), expected, rtol=1e-4, atol=1e-4)


def test_torch_compile_sees_changed_and_replaced_tensors(compiled):
    module, x, run = compiled
    step = torch.compile(run, fullgraph=True, backend="aot_eager")
    agree(step, module, x)
    module.program.weight.mul_(-1.5)
    agree(step, module, x)
    module.program.weight = nn.Parameter(torch.randn(8, 12), requires_grad=False)
    agree(step, module, x)
    agree(run, module, x)


def test_torch_compile_is_told_of_another_argument(compiled):
    _, x, run = compiled
    with pytest.raises(Exception, match="Observed exception|KernelError"):
        torch.compile(run, fullgraph=True, backend="aot_eager")(x, scale=3.0)


class Counting(nn.Module):
    """Changes running statistics, a counter and its argument, and draws random numbers."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(12)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, log):
        self.calls += 1
        y = self.norm(x)
        log.copy_(y[0])
        return y, torch.nn.functional.dropout(y, 0.5) != 0


def test_torch_compile_leaves_behind_what_the_module_does():
    module = Counting().requires_grad_(False)
    theirs, x = copy.deepcopy(module), torch.randn(6, 12)
    run = compile_module(module, (x, torch.zeros(12)), target="cpu")
    step = torch.compile(run, fullgraph=True, backend="aot_eager")
    masks = []
    for _ in range(2):
        log, other = torch.zeros(12), torch.zeros(12)
        y, mask = step(x, log)
        torch.testing.assert_close(y, theirs(x, other)[0], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(log, other, rtol=1e-4, atol=1e-5)
        masks.append(mask)
    torch.testing.assert_close(module.state_dict(), theirs.state_dict(), rtol=1e-4, atol=1e-5)
    assert not torch.equal(*masks) and run.seed == 2
