"""`compile_module` on the GPU, as docs/pytorch.md has it: called, captured, saved and loaded."""

import pytest
import torch

from frontends.compiled.module import compile_module
from frontends.compiled.saved import load, save

pytestmark = [pytest.mark.device, pytest.mark.usefixtures("idle")]


@pytest.fixture
def case():
    """A module and its input, on the GPU."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512)]
    return torch.nn.Sequential(*layers).cuda().eval(), torch.randn(64, 256, device="cuda")


def _agree(module, x, run):
    with torch.no_grad():
        torch.testing.assert_close(run(x), module(x), rtol=1e-4, atol=1e-4)


def test_a_module_is_called(case, target):
    module, x = case
    run = compile_module(module, (x,), target=target)
    _agree(module, x, run)
    _agree(module, torch.randn_like(x), run)


def test_a_module_is_captured_as_a_graph(case, target):
    module, x = case
    run = compile_module(module, (x,), target=target, graph=True)
    for _ in range(3):
        _agree(module, torch.randn_like(x), run)


def test_a_module_is_saved_and_loaded(case, target, tmp_path):
    module, x = case
    save(compile_module(module, (x,), target=target), tmp_path / "record")
    _agree(module, x, load(tmp_path / "record"))


def test_a_module_leaves_an_operator_to_pytorch(case, target):
    module, x = case
    run = compile_module(module, (x,), target=target, allow_torch=["gelu"])
    assert run.left_to_torch == ("gelu",)
    _agree(module, x, run)
