"""Corner cases of compiled calls: tensors without elements, any layout, shared memory, classes."""

import copy
import subprocess
import sys
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from backends.registry import REGISTRY
from frontends.compiled.module import compile_module
from frontends.compiled.saved import load, save
from ir.errors import KernelError
from testing.slow import in_turn, slow

ROOT = Path(__file__).parent.parent.parent
TARGETS = ("mi300", "npu")  # one whose kernels take tensors, one whose kernels take arrays


def same(subject, folder, *args, target="npu", calls=()):
    """A compiled call that gives what PyTorch gives, and leaves the same behind."""
    theirs = copy.deepcopy(subject)
    run = compile_module(subject, args, target=target, folder=folder)
    for given in (args, *calls):
        ours, expected = copy.deepcopy(given), copy.deepcopy(given)
        found = run(*ours)
        torch.testing.assert_close(
            found, theirs(*expected), rtol=1e-4, atol=1e-5, equal_nan=True, check_stride=False
        )
        torch.testing.assert_close(ours, expected)
    if isinstance(subject, nn.Module):
        torch.testing.assert_close(dict(subject.state_dict()), dict(theirs.state_dict()))
    return run


def identities(x, y):
    """Reductions over nothing beside what has elements."""
    return x @ y, x.sum(0), x.sum(1) + 1, y.prod(0), y.mean(0), (y > 0).all(0), y.logsumexp(0)


def joined(x, y):
    return torch.cat([y, y, x.t()]), nn.functional.pad(y, (0, 0, 1, 1), value=2.0)


@pytest.mark.parametrize(("work", "target"), in_turn([identities, joined], TARGETS))
def test_what_is_computed_of_nothing(work, target, tmp_path):
    same(work, tmp_path, torch.randn(4, 0), torch.randn(0, 4), target=target)


@pytest.mark.parametrize("backend", REGISTRY.target("mi300").backends)
def test_a_module_runs_through_each_backend_of_a_target(backend, tmp_path):
    module = nn.Sequential(nn.Linear(24, 17), nn.GELU(), nn.LayerNorm(17))
    x = torch.randn(5, 24)
    run = compile_module(module, (x,), target="mi300", backend=backend, folder=tmp_path / "built")
    assert run.linked.backend.manifest.name == backend
    torch.testing.assert_close(run(x), module(x), rtol=1e-4, atol=1e-5)
    save(run, tmp_path / "saved")
    torch.testing.assert_close(load(tmp_path / "saved")(x), run(x))


@pytest.mark.parametrize(
    ("module", "sizes"),
    [
        (nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.Softmax(1)), (0, 4)),
        (nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.MaxPool2d(2)), (0, 2, 8, 8)),
        (nn.LSTM(4, 3, batch_first=True), (0, 2, 4)),
        (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), (0, 3, 4)),
    ],
)
def test_a_batch_may_be_empty(module, sizes, tmp_path):
    run = same(module, tmp_path, torch.randn(sizes))
    assert all(0 not in b.shape for b in run.linked.network.buffers if b.role == "between")
    with pytest.raises(KernelError, match=r"allowed: torch.float32\[0, "):
        run(torch.randn(2, *sizes[1:]))


def test_an_index_may_be_empty(tmp_path):
    places = torch.zeros(0, dtype=torch.int64)
    same(lambda x, i: x[i] * 2, tmp_path / "a", torch.randn(5, 4), places)
    same(lambda x, i: x.index_add(0, i, x[i]), tmp_path / "b", torch.randn(5, 4), places)
    bags = nn.EmbeddingBag(5, 3, mode="sum")
    same(bags, tmp_path / "c", places, torch.zeros(2, dtype=torch.int64))


def test_a_record_holds_empty_tensors(tmp_path):
    run = same(lambda x, y: (x * 2, y + 1), tmp_path / "b", torch.zeros(0, 3), torch.zeros(2))
    save(run, tmp_path / "r")
    empty, found = load(tmp_path / "r")(torch.zeros(0, 3), torch.zeros(2))
    assert empty.shape == (0, 3) and torch.equal(found, torch.ones(2))


def test_calls_left_to_pytorch_have_elements(tmp_path):
    with pytest.raises(KernelError, match="left to PyTorch.*no elements"):
        compile_module(
            lambda x: torch.sin(x) + 1,
            (torch.zeros(0, 3),),
            target="npu",
            folder=tmp_path,
            allow_torch=["sin"],
        )


def last(*sizes):
    return torch.randn(sizes).to(memory_format=torch.channels_last)


@pytest.mark.parametrize("target", [slow(TARGETS[0]), TARGETS[1]])
def test_arguments_and_parameters_lie_in_any_order(target, tmp_path):
    module = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU())
    module = module.to(memory_format=torch.channels_last)
    plain = torch.randn(2, 2, 5, 5)
    run = same(module, tmp_path, last(2, 2, 5, 5), target=target, calls=[(plain,), (plain.mT,)])
    assert run(plain).is_contiguous()
    with torch.no_grad():
        module[0].weight.mul_(-3)  # after it was compiled, where it lies
    theirs = copy.deepcopy(module)
    torch.testing.assert_close(run(plain), theirs(plain), rtol=1e-4, atol=1e-5)


class Transposed(nn.Module):
    """A transposed parameter, and a transposed buffer that a call changes."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4).t())
        self.register_buffer("total", torch.zeros(3, 4).t())

    def forward(self, x, y):
        self.total.add_(self.weight)
        y.mul_(2)
        return x @ self.total


def test_transposed_tensors_are_changed_where_they_lie(tmp_path):
    args = torch.randn(4, 2).t(), torch.randn(3, 2).t()
    module = Transposed()
    same(module, tmp_path, *args, calls=[args, (torch.randn(2, 4), torch.randn(2, 6)[:, ::2])])
    assert module.total.stride() == (1, 4)


def test_an_expanded_argument_is_read_and_not_changed(tmp_path):
    wide = torch.randn(1, 4).expand(3, 4)
    run = same(lambda x: x + 1, tmp_path / "a", torch.randn(3, 4))
    assert torch.equal(run(wide), wide + 1)
    run = compile_module(
        lambda x: x.add_(1) * 2, (torch.zeros(3, 4),), target="npu", folder=tmp_path / "b"
    )
    before = wide.clone()
    with pytest.raises(KernelError, match="elements share memory"):
        run(wide)
    assert torch.equal(wide, before)


class Adds(nn.Module):
    """Changes its first argument and a buffer."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x, y):
        self.total.add_(y)
        x.add_(self.weight)
        return x * y


@pytest.fixture(scope="module")
def adds(tmp_path_factory):
    module = Adds()
    args = (torch.randn(4), torch.randn(4))
    return module, compile_module(
        module, args, target="npu", folder=tmp_path_factory.mktemp("adds")
    )


@pytest.mark.parametrize(
    ("choose", "words"),
    [
        (lambda module, x: (x[:4], x[:4]), "argument `x`, which shares memory with argument `y`"),
        (lambda module, x: (x[:4], x[3:7]), "argument `x`, which shares memory with argument `y`"),
        (lambda module, x: (x[:4], module.total), "the module's `total`, which shares memory"),
        (lambda module, x: (module.weight.data, x[:4]), "shares memory with the module's `weight`"),
    ],
)
def test_a_changed_tensor_is_given_once(adds, choose, words):
    module, run = adds
    x = torch.randn(8)
    args = choose(module, x)
    before = [t.clone() for t in (*args, module.total)]
    with pytest.raises(KernelError, match=words):
        run(*args)
    assert all(map(torch.equal, before, (*args, module.total)))


def test_parts_of_one_memory_may_be_given(adds):
    module, run = adds
    x = torch.randn(4, 2)
    a, b = x[:, 0], x[:, 1]
    expected = a + module.weight.data
    torch.testing.assert_close(run(a, b), expected * b)
    torch.testing.assert_close(a, expected)
    torch.testing.assert_close(run(torch.zeros(4), module.weight.data), module.weight.data**2)


def test_a_tensor_given_twice_that_is_changed_is_refused_when_compiled(tmp_path):
    x = torch.randn(4)
    with pytest.raises(KernelError, match="argument `x`, which shares memory with argument `y`"):
        compile_module(Adds(), (x, x), target="npu", folder=tmp_path)
    run = same(lambda x, y: x * y, tmp_path, x, x)
    assert torch.equal(run(x, x), x * x)
    memory = torch.randn(2, 4)
    run = compile_module(Adds(), (memory[0], memory[1]), target="npu", folder=tmp_path)
    run(memory[0], memory[1])


def test_a_reused_result_is_no_argument(tmp_path):
    module = nn.Linear(4, 4)
    run = compile_module(module, (torch.zeros(4, 4),), target="npu", folder=tmp_path, reuse=True)
    found = run(torch.ones(4, 4))
    with pytest.raises(KernelError, match="the result of the last call, which shares memory"):
        run(found)
    torch.testing.assert_close(run(found.clone()), module(module(torch.ones(4, 4))))


def test_plain_arguments_keep_their_type(tmp_path):
    run = compile_module(lambda x, n: x * n, (torch.ones(3), 1), target="npu", folder=tmp_path)
    for other in (1.0, True, torch.ones(()), None):
        with pytest.raises(KernelError, match="as it was imported with"):
            run(torch.ones(3), other)


def test_arguments_by_position_are_as_many_tensors(tmp_path):
    x, y = torch.rand(3), torch.rand(3)
    run = compile_module(lambda x, y: x - y, (x, y), target="npu", folder=tmp_path)
    assert torch.equal(run(x, y), x - y)
    for args, kwargs in (((x,), {}), ((x, y, y), {}), ((x,), {"y": y}), ((x, [y]), {})):
        with pytest.raises(KernelError, match="call it as it was imported"):
            run(*args, **kwargs)
    with pytest.raises(KernelError, match="`y` is float"):
        run(x, 1.5)


class Cache:
    """Keys and values of layers, as a model of text keeps them between calls."""

    def __init__(self, keys=(), values=()):
        self.keys, self.values = list(keys), list(values)

    def update(self, layer, key, value):
        if layer == len(self.keys):
            self.keys.append(key)
            self.values.append(value)
        else:
            self.keys[layer] = torch.cat([self.keys[layer], key], 1)
            self.values[layer] = torch.cat([self.values[layer], value], 1)
        return self.keys[layer], self.values[layer]


def _named(cache):
    return [(pytree.MappingKey("keys"), cache.keys), (pytree.MappingKey("values"), cache.values)]


pytree.register_pytree_node(
    Cache,
    lambda cache: ([cache.keys, cache.values], None),
    lambda parts, _: Cache(*parts),
    serialized_type_name="corners_test.Cache",
    flatten_with_keys_fn=lambda cache: (_named(cache), None),
)


@dataclass
class Output:
    """What a model returns."""

    hidden: torch.Tensor
    cache: Cache
    more: object = None


pytree.register_dataclass(Output)
Pair = namedtuple("Pair", "first second")


class Attends(nn.Module):
    """Two layers that look at what was kept."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 12) for _ in range(2))

    def forward(self, x, cache=None):
        cache = Cache() if cache is None else cache
        for n, layer in enumerate(self.layers):
            q, k, v = layer(x).chunk(3, -1)
            k, v = cache.update(n, k, v)
            x = x + nn.functional.scaled_dot_product_attention(q, k, v)
        return Output(x, cache, OrderedDict(pair=Pair(x * 2, None), length=k.shape[1]))


def test_registered_classes_are_arguments_and_results(tmp_path):
    module = Attends()
    x, y = torch.randn(2, 3, 4), torch.randn(2, 1, 4)
    theirs = module(x)
    first = compile_module(module, (x,), target="npu", folder=tmp_path / "a")
    found = first(x)
    kept = copy.deepcopy(found.cache)
    again = compile_module(module, (y, found.cache), target="npu", folder=tmp_path / "b")
    pairs = [(found, theirs), (again(y, found.cache), module(y, theirs.cache))]
    for ours, expected in pairs:
        assert type(ours) is Output and type(ours.cache) is Cache
        assert type(ours.more) is OrderedDict and type(ours.more["pair"]) is Pair
        assert ours.more["length"] == expected.more["length"]
        torch.testing.assert_close(ours.hidden, expected.hidden, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(ours.more["pair"].first, expected.more["pair"].first)
        assert ours.more["pair"].second is None
    assert len(found.cache.keys) == 2
    torch.testing.assert_close(found.cache.keys, kept.keys)  # a call leaves its cache alone


def test_a_class_passes_through(tmp_path):
    cache = Cache([torch.randn(3)], [torch.zeros(0)])
    run = compile_module(
        lambda x, cache: (x + 1, cache), (torch.zeros(3), cache), target="npu", folder=tmp_path
    )
    x, found = run(torch.zeros(3), cache)
    assert type(found) is Cache and found.keys[0] is cache.keys[0]
    assert found.values[0] is cache.values[0] and torch.equal(x, torch.ones(3))


def test_records_hold_classes_with_a_name_of_their_own(tmp_path):
    run = compile_module(
        lambda x: Cache([x + 1]), (torch.zeros(3),), target="npu", folder=tmp_path / "a"
    )
    save(run, tmp_path / "r")
    assert type(load(tmp_path / "r")(torch.zeros(3))) is Cache
    code = (
        "from pathlib import Path; from frontends.compiled.saved import load; "
        f"load(Path({str(tmp_path / 'r')!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "corners_test.Cache" in done.stderr and "not registered here" in done.stderr
    run = compile_module(
        lambda x: Pair(x + 1, x), (torch.zeros(3),), target="npu", folder=tmp_path / "b"
    )
    with pytest.raises(KernelError, match="cannot hold the class"):
        save(run, tmp_path / "other")
    assert not (tmp_path / "other").exists()
