"""A compiled module is called as the module is, on its own tensors."""

import copy

import pytest
import torch
from torch import nn

from frontends.compiled.module import compile_module
from frontends.pytorch.redrawn import redrawn
from ir.errors import KernelError

TARGETS = ("h200", "npu")  # one whose kernels take tensors, one whose kernels take arrays


class Net(nn.Module):
    """In training mode: running statistics, a counter, and a plain argument."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 8)
        self.norm = nn.BatchNorm1d(8)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, scale=2.0, *, more=None):
        self.calls += 1
        y = torch.relu(self.norm(self.first(x))) * scale
        return {"y": y if more is None else y + more, "x": x}


def sine(x):
    return torch.sin(x)


def values(x):
    return torch.linalg.eigvalsh(x)


def net():
    torch.manual_seed(0)
    return Net()


@pytest.fixture(scope="module", params=TARGETS)
def pair(request, tmp_path_factory):
    module = net()
    x = torch.randn(6, 12)
    folder = tmp_path_factory.mktemp(request.param)
    return module, compile_module(
        module, (x,), {"more": x[:, :8]}, target=request.param, folder=folder
    )


def test_calls_give_what_the_module_gives_and_leave_the_same_behind(pair):
    module, run = pair
    theirs = copy.deepcopy(module)
    for seed in (1, 2):
        x = torch.randn(6, 12, generator=torch.Generator().manual_seed(seed))
        more = torch.ones(6, 8)
        found, expected = run(x, more=more), theirs(x, more=more)
        torch.testing.assert_close(found["y"], expected["y"], rtol=1e-4, atol=1e-5)
        assert found["x"] is x
    for path, tensor in theirs.state_dict().items():
        torch.testing.assert_close(module.state_dict()[path], tensor, rtol=1e-4, atol=1e-6)
    assert module.calls == 2 and module.norm.num_batches_tracked == 2


def test_what_is_left_behind_is_written_where_it_lies(pair):
    module, run = pair
    statistics = {"norm.running_mean", "norm.running_var"}
    assert run.call.left_in_place == {*statistics, "norm.num_batches_tracked", "calls"}
    assert run.state["norm.running_mean"] is module.norm.running_mean


class Averages(nn.Module):
    """Gives what it also keeps, as another tensor."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        mean = self.mean * 0.5 + x
        self.mean.copy_(mean)
        return mean


def test_a_result_is_not_what_the_next_call_leaves_behind(tmp_path):
    module, x = Averages(), torch.randn(4)
    run = compile_module(module, (x,), target="h200", folder=tmp_path)
    first, second = run(x), run(x)
    torch.testing.assert_close(first, x)
    torch.testing.assert_close(second, 1.5 * x)
    assert torch.equal(module.mean, second)


class Remembers(nn.Module):
    """A tensor of its own that a call replaces, and does not read."""

    def __init__(self):
        super().__init__()
        self.last = torch.zeros(4)

    def forward(self, x):
        self.last = torch.sin(x)
        return self.last * 2


def test_a_tensor_that_is_only_written_is_left_behind_too(tmp_path):
    module, x = Remembers(), torch.randn(4)
    run = compile_module(module, (x,), target="h200", folder=tmp_path)
    torch.testing.assert_close(run(x), 2 * torch.sin(x))
    torch.testing.assert_close(run.state["last"], torch.sin(x))


def test_parameters_are_the_modules_own(pair):
    module, run = pair
    x, more = torch.randn(6, 12), torch.zeros(6, 8)
    with torch.no_grad():
        module.norm.weight.zero_()
        module.norm.bias.fill_(3.0)
    assert torch.equal(run(x, more=more)["y"], torch.full((6, 8), 6.0))


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((torch.zeros(6, 12), 3.0), {"more": torch.zeros(6, 8)}, "arguments are"),
        ((torch.zeros(5, 12),), {"more": torch.zeros(6, 8)}, r"torch.float32\[5, 12\]"),
        ((torch.zeros(6, 12).half(),), {"more": torch.zeros(6, 8)}, "float16"),
        ((torch.zeros(6, 12).to_sparse(),), {"more": torch.zeros(6, 8)}, "sparse"),
        ((torch.zeros(6, 12),), {}, "arguments are"),
    ],
)
def test_other_calls_are_refused(pair, args, kwargs, words):
    with pytest.raises(KernelError, match=words):
        pair[1](*args, **kwargs)


def test_gradients_that_would_be_lost_are_refused(pair):
    module, run = pair
    x, more = torch.zeros(6, 12), torch.zeros(6, 8)
    with torch.enable_grad():
        with pytest.raises(KernelError, match=r"`first\.weight` requires gradients(.|\n)*no_grad"):
            run(x, more=more)
        module.requires_grad_(False)
        try:
            run(x, more=more)
            with pytest.raises(KernelError, match="`more` requires gradients"):
                run(x, more=more.clone().requires_grad_())
        finally:
            module.requires_grad_(True)
    for without in (torch.no_grad, torch.inference_mode):
        with without():
            assert not run(x.clone().requires_grad_(), more=more)["y"].requires_grad


def test_each_call_draws_other_numbers_by_its_seed(tmp_path):
    module = nn.Sequential(nn.Dropout(0.5), nn.Linear(32, 4))
    x = torch.randn(16, 32)
    run = compile_module(module, (x,), target="h200", folder=tmp_path, seed=5)
    first, second = run(x), run(x)
    assert not torch.equal(first, second) and run.seed == 7
    for seed, found in ((5, first), (6, second)):
        torch.testing.assert_close(found, redrawn(module, (x,), seed)[0], rtol=1e-4, atol=1e-5)


def test_results_are_reused_where_asked(tmp_path):
    run = compile_module(sine, (torch.zeros(8),), target="npu", folder=tmp_path, reuse=True)
    first = run(torch.ones(8))
    second = run(torch.zeros(8))
    assert first.data_ptr() == second.data_ptr() and not first.any()


def test_there_are_no_graphs_on_the_cpu(tmp_path):
    run = compile_module(sine, (torch.zeros(8),), target="npu", folder=tmp_path, graph=True)
    with pytest.raises(KernelError, match="no graphs"):
        run(torch.zeros(8))


class Partly(nn.Module):
    """Calls that need kernels' results, each other's, and a parameter alone."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 6))
        self.register_buffer("mean", torch.zeros(6))

    def forward(self, x):
        y = torch.relu(x) @ self.weight
        values, vectors = torch.linalg.eigh(y @ y.t())
        self.mean.mul_(0.9).add_(values * 0.1)
        return y + values, {"own": torch.linalg.eigvalsh(self.weight), "size": vectors.abs().sum()}


@pytest.mark.parametrize("target", TARGETS)
def test_operators_are_left_to_pytorch_where_they_are_named(target, tmp_path):
    torch.manual_seed(2)
    module = Partly()
    theirs = copy.deepcopy(module)
    x = torch.randn(6, 6)
    with pytest.raises(KernelError, match="--allow-torch _linalg_eigh"):
        compile_module(module, (x,), target=target, folder=tmp_path)
    run = compile_module(module, (x,), target=target, folder=tmp_path, allow_torch=["_linalg_eigh"])
    assert run.left_to_torch == ("_linalg_eigh",) and len(run.linked.network.pauses) == 2
    for _ in range(2):
        x = torch.randn(6, 6)
        torch.testing.assert_close(run(x), theirs(x), rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(module.mean, theirs.mean, rtol=1e-3, atol=1e-4)


def test_an_operator_with_equations_may_be_left_too(tmp_path):
    """Without a kernel of its own: a call of all that a module does, and one of a result."""
    x = torch.randn(8)
    run = compile_module(sine, (x,), target="npu", folder=tmp_path, allow_torch=["sin"])
    assert not run.linked.network.steps and torch.equal(run(x), torch.sin(x))
    run = compile_module(
        lambda x: torch.sin(torch.cos(x)).view(2, 4) + 1,
        (x,),
        target="npu",
        folder=tmp_path,
        allow_torch=["sin", "cos", "view"],
        reuse=True,
    )
    assert run.left_to_torch == ("cos", "sin", "view") and len(run.linked.network.steps) == 1
    torch.testing.assert_close(run(x), torch.sin(torch.cos(x)).view(2, 4) + 1)


def test_what_pytorch_alone_reads_is_not_copied(tmp_path):
    x = torch.randn(8)
    run = compile_module(sine, (x,), target="npu", folder=tmp_path, allow_torch=["sin"])
    result, given = run.program({"x": x})
    assert given.data_ptr() == x.data_ptr() and torch.equal(result, torch.sin(x))


def test_what_is_left_to_pytorch_is_in_no_graph(tmp_path):
    run = compile_module(
        values,
        (torch.eye(3),),
        target="npu",
        folder=tmp_path,
        allow_torch=["_linalg_eigh"],
        graph=True,
    )
    with pytest.raises(KernelError, match="is called between them"):
        run(torch.eye(3))
