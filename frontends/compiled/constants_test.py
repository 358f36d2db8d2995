"""A call computes nothing that depends on parameters alone, and sees that they have changed."""

import pickle

import pytest
import torch
from torch import nn

from frontends.compiled.module import compile_module
from frontends.compiled.saved import load, save
from testing.slow import in_turn


def convolutional():
    module = nn.Sequential(nn.Conv2d(3, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU())
    module[1].running_var.uniform_(0.5, 2.0)
    module[1].running_mean.normal_()
    return module, torch.randn(2, 3, 7, 7)


class Gated(nn.Module):
    """Weights that are computed of parameters: weight norm, a gate, a table that is read at places."""

    def __init__(self):
        super().__init__()
        self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(12, 8))
        self.gate = nn.Parameter(torch.randn(8))
        self.register_buffer("table", torch.randn(20, 8))
        self.register_buffer("places", torch.randint(0, 20, (5,)))

    def forward(self, x):
        y = self.linear(x) * torch.sigmoid(self.gate)
        return y + self.table[self.places].to(torch.float32)


MODULES = {"convolutional": convolutional, "gated": lambda: (Gated(), torch.randn(5, 12))}


def made(name, target):
    torch.manual_seed(5)
    module, x = MODULES[name]()
    module = module.eval().requires_grad_(False)
    return module, x, compile_module(module, (x,), target=target)


def agree(run, module, x):
    torch.testing.assert_close(run(x), module(x), rtol=1e-4, atol=1e-5)


def of_parameters(run):
    """The equations of the network of a call that read parameters, and nothing that calls give."""
    network, found = run.linked.network, []
    fixed = set(run.call.fixed)
    for step in network.steps:
        given = dict(zip((t.name for t in step.spec.inputs), step.inputs, strict=True))
        constant = {t for t, buffer in given.items() if buffer in fixed}
        for e in step.spec.equations:
            if e.sources() and set(e.sources()) <= constant:
                constant.add(e.target)
                found.append(e)
    return found


@pytest.mark.parametrize(("name", "target"), in_turn(MODULES, ["cpu", "h200"]))
def test_a_call_computes_nothing_of_parameters_alone(name, target):
    module, x, run = made(name, target)
    assert run.linked.constants.steps and not of_parameters(run)
    agree(run, module, x)
    for parameter in (*module.parameters(), *module.buffers()):
        if parameter.is_floating_point():
            parameter.mul_(0.5).abs_()
            agree(run, module, x)


class Counted:
    """A program that counts its calls."""

    def __init__(self, program):
        self.program, self.network, self.calls = program, program.network, 0

    def __call__(self, inputs):
        self.calls += 1
        return self.program(inputs)


def test_constants_are_computed_again_only_where_a_tensor_has_changed():
    module, x, run = made("convolutional", "cpu")
    counted = run.call.prepares = Counted(run.call.prepares)
    run(x), run(x)
    assert counted.calls == 0  # they were computed when it was compiled
    module[0].weight.mul_(2.0)  # no constant is made of it
    agree(run, module, x)
    assert counted.calls == 0
    module[1].bias.add_(1.0)
    agree(run, module, x)
    run(x)
    assert counted.calls == 1
    module[1].bias.data.add_(1.0)
    run.call.refresh(True)
    assert counted.calls == 2
    agree(run, module, x)


def test_constants_of_tensors_without_a_version_are_computed_at_each_call():
    torch.manual_seed(6)
    with torch.inference_mode():
        module, x = convolutional()
        module = module.eval().requires_grad_(False)
    run = compile_module(module, (x,), target="cpu")
    with torch.inference_mode():
        agree(run, module, x)
        module[1].running_mean.add_(1.0)
        agree(run, module, x)


def test_replaced_parameters_and_loaded_modules_have_constants_of_their_own(tmp_path):
    module, x, run = made("convolutional", "cpu")
    module[1].weight = nn.Parameter(torch.randn(6), requires_grad=False)
    agree(run, module, x)
    save(run, tmp_path / "saved")
    for other in (load(tmp_path / "saved"), pickle.loads(pickle.dumps(run))):
        agree(other, module, x)
        dict(other.named_parameters())["1.bias"].add_(1.0)
        torch.testing.assert_close(other(x) > 1.0, run(x) > 0.0)


def test_statistics_that_a_call_changes_are_no_constants():
    module = nn.BatchNorm1d(6).requires_grad_(False)
    x = torch.randn(5, 6)
    assert compile_module(module, (x,), target="cpu").linked.constants is None


@pytest.mark.slow
def test_a_traced_graph_that_changes_a_parameter_sees_the_change():
    module, x, run = made("convolutional", "cpu")
    run(x)

    def step(x):
        module[1].bias.add_(1.0)
        return run(x)

    compiled = torch.compile(step, fullgraph=True)
    for _ in range(2):
        found = compiled(x)
        torch.testing.assert_close(found, module(x), rtol=1e-4, atol=1e-5)
