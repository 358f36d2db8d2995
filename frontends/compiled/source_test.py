"""A compiled module follows its module's tensors, and is refused where the module is another."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

from frontends.compiled.module import compile_module
from frontends.compiled.source import ModuleSource
from ir.errors import KernelError

PATHS = ("first.0.weight", "first.0.bias", "second.weight", "third.bias", "shift", "mean")


class Net(nn.Module):
    """Submodules, tied weights, a plain tensor, a bias that is None."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.second = nn.Linear(4, 4, bias=False)
        self.third = nn.Linear(4, 4)
        self.third.weight = self.second.weight
        self.register_buffer("mean", torch.zeros(4))
        self.shift = torch.ones(4)

    def forward(self, x):
        self.mean.mul_(0.5).add_(x[0])
        return self.third(self.second(self.first(x))) + self.shift + self.mean


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    module = Net()
    x = torch.randn(3, 4)
    folder = tmp_path_factory.mktemp("source")
    return module, compile_module(module, (x,), target="npu", folder=folder)


@pytest.fixture
def net(pair):
    """The module, which afterwards is as it was."""
    module, run = pair
    parts = [
        (
            part,
            {n: dict(v) for n, v in vars(part).items() if isinstance(v, dict)},
            {n: v for n, v in vars(part).items() if not isinstance(v, dict)},
        )
        for part in module.modules()
    ]
    yield module, run
    for part, tables, plain in parts:
        for name, table in tables.items():
            vars(part)[name].clear()
            vars(part)[name].update(table)
        vars(part).update(plain)


def agree(module, run):
    x, theirs = torch.randn(3, 4), copy.deepcopy(module)
    expected = theirs(x)
    torch.testing.assert_close(run(x), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(module.mean, theirs.mean)


def replaced_weight(module):
    module.first[0].weight = nn.Parameter(torch.randn(4, 4))


def assigned(module):
    state = {name: torch.randn_like(t) for name, t in module.state_dict().items()}
    state["third.weight"] = state["second.weight"]
    module.load_state_dict(state, assign=True)
    module.third.weight = module.second.weight


def other_data(module):
    module.first[0].weight.data = torch.randn(4, 4)
    module.mean.data = torch.randn(4)


def channels_transposed(module):
    module.first[0].weight.data = torch.randn(4, 4).t()
    module.second.weight.data.t_()


def other_buffer(module):
    module.mean = torch.randn(4)


def other_attribute(module):
    module.shift = torch.randn(4)


@pytest.mark.parametrize(
    "change",
    [replaced_weight, assigned, other_data, channels_transposed, other_buffer, other_attribute],
)
def test_tensors_may_be_replaced(net, change):
    module, run = net
    agree(module, run)
    change(module)
    agree(module, run)
    agree(module, run)


def mode(module):
    module.eval()


def one_mode(module):
    module.first[1].eval()


def other_part(module):
    module.first[1] = nn.ReLU()


def one_part_more(module):
    module.first.append(nn.ReLU())


def shorter(module):
    module.mean.data = module.mean.data[:3]


def no_bias(module):
    module.third.bias = None


def no_tensor(module):
    module.shift = 1.0


def a_bias(module):
    module.second.bias = nn.Parameter(torch.ones(4))


def untied(module):
    module.third.weight = nn.Parameter(torch.randn(4, 4))


def pruned(module):
    prune.l1_unstructured(module.first[0], "weight", 0.5)


def normed(module):
    parametrizations.weight_norm(module.first[0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (mode, r"Net: the module was compiled in training mode, and is in evaluation mode now"),
        (one_mode, r"first\.1 \(Tanh\): the module was compiled in training mode"),
        (other_part, r"first \(Sequential\): a submodule was replaced"),
        (one_part_more, r"first \(Sequential\): a submodule was replaced, added"),
        (no_bias, r"third \(Linear\): `bias` was removed"),
        (no_tensor, "`shift` is float now"),
        (a_bias, r"second \(Linear\): `bias` was added"),
        (untied, "`second.weight` and `third.weight` were one tensor"),
        (pruned, r"first\.0 \(Linear\): `weight"),
        (normed, r"first\.0 \(ParametrizedLinear\): a submodule was replaced, added"),
    ],
)
def test_another_module_is_refused(change, words):
    module = Net()
    source = ModuleSource(module, PATHS)
    change(module)
    for _ in range(2):
        with pytest.raises(KernelError, match=words):
            source.replaced()


def test_a_module_that_is_switched_back_is_called_again(net):
    module, run = net
    module.eval()
    with pytest.raises(KernelError, match="evaluation mode now"):
        run(torch.randn(3, 4))
    module.train()
    agree(module, run)


def wider(module):
    module.first[0].weight = nn.Parameter(torch.randn(4, 5))


def narrower(module):
    module.half()


@pytest.mark.parametrize(
    ("change", "words"),
    [(wider, r"\[4, 5\]"), (narrower, "torch.float16"), (shorter, r"\[3\]")],
)
def test_a_call_that_was_refused_changes_nothing(net, change, words):
    module, run = net
    before = copy.deepcopy(module.state_dict())
    weight, mean, shift = module.first[0].weight, module.mean, module.shift
    data = {name: t.data for name, t in module.state_dict(keep_vars=True).items()}
    change(module)
    for _ in range(2):
        with pytest.raises(KernelError, match=words):
            run(torch.randn(3, 4))
    module.first[0].weight, module.mean, module.shift = weight, mean, shift
    for name, tensor in module.state_dict(keep_vars=True).items():
        tensor.data = data[name]
    assert all(torch.equal(t, before[name]) for name, t in module.state_dict().items())
    agree(module, run)


def test_nothing_is_replaced_where_elements_change():
    module = Net()
    source = ModuleSource(module, [path for path in PATHS if path != "first.0.bias"])
    with torch.no_grad():
        module.first[0].weight.mul_(2)
        module.load_state_dict(copy.deepcopy(module.state_dict()))
    assert not source.replaced()
    module.first[0].bias = nn.Parameter(torch.zeros(4))  # that the call does not read
    assert not source.replaced()
