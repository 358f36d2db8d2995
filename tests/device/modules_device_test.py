"""`compile_module` on the GPU through each backend of the target, as docs/pytorch.md has it: called,
captured, saved and loaded."""

from functools import partial

import pytest
import torch

from backends.registry import backend
from backends.registry import target as machine_of
from frontends.compiled.module import compile_module
from frontends.compiled.saved import load, save

pytestmark = [pytest.mark.device, pytest.mark.usefixtures("idle")]


@pytest.fixture
def case():
    """A module and its input, on the GPU."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512)]
    return torch.nn.Sequential(*layers).cuda().eval(), torch.randn(64, 256, device="cuda")


@pytest.fixture
def compilers(target):
    """`compile_module` for each backend of the target whose toolchain is here, by its name."""
    machine = machine_of(target)
    names = [n for n in machine.backends if backend(n).available(machine)["correct_by"]]
    return {name: partial(compile_module, target=target, backend=name) for name in names}


def _agree(module, x, run):
    with torch.no_grad():
        torch.testing.assert_close(run(x), module(x), rtol=1e-4, atol=1e-4)


def test_a_module_is_called(case, compilers):
    module, x = case
    for compiled in compilers.values():
        run = compiled(module, (x,))
        _agree(module, x, run)
        _agree(module, torch.randn_like(x), run)


def test_a_module_is_captured_as_a_graph(case, compilers):
    module, x = case
    for compiled in compilers.values():
        run = compiled(module, (x,), graph=True)
        for _ in range(3):
            _agree(module, torch.randn_like(x), run)


def test_a_module_is_saved_and_loaded(case, compilers, tmp_path):
    module, x = case
    for name, compiled in compilers.items():
        save(compiled(module, (x,)), tmp_path / name)
        _agree(module, x, load(tmp_path / name))


def test_a_module_leaves_an_operator_to_pytorch(case, compilers):
    module, x = case
    for compiled in compilers.values():
        run = compiled(module, (x,), allow_torch=["gelu"])
        assert run.left_to_torch == ("gelu",)
        _agree(module, x, run)
