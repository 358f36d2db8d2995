"""A module whose kernels are of two backends runs, is saved, and shows each text in its language."""

import pytest
import torch
from torch import nn

from frontends.compiled.module import compile_module
from frontends.compiled.saved import load, save


@pytest.fixture(scope="module")
def lstm(tmp_path_factory):
    torch.manual_seed(1)
    module, x = nn.LSTM(16, 16, batch_first=True).eval(), torch.randn(2, 3, 16)
    return (
        module,
        x,
        compile_module(module, (x,), target="h200", folder=tmp_path_factory.mktemp("k")),
    )


def test_steps_of_a_recurrence_are_of_another_backend(lstm):
    module, x, run = lstm
    files = {f.rsplit(".", 1)[1] for f in run.linked.contents().files if "/kernel." in f}
    assert files == {"py", "cu"}
    torch.testing.assert_close(run(x)[0], module(x)[0], rtol=1e-4, atol=1e-5)


def test_a_saved_module_builds_each_kernel_with_its_backend(lstm, tmp_path):
    _, x, run = lstm
    save(run, tmp_path / "saved")
    again = load(tmp_path / "saved")
    torch.testing.assert_close(again(x)[0], run(x)[0])
    assert again.sources == run.sources
    save(again, tmp_path / "twice")


def test_texts_are_named_in_comments_of_their_language(lstm):
    run = lstm[2]
    for name, text in run.sources.items():
        mark = "//" if "__global__" in text else "#"
        assert f"{mark} {name}\n{text}" in run.source


def test_a_backend_that_is_named_makes_all_kernels(lstm):
    module, x, _ = lstm
    run = compile_module(module, (x,), target="h200", backend="triton")
    assert all("@triton.jit" in text for text in run.sources.values())
