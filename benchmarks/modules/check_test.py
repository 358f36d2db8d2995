"""Tests that the check rejects small errors, and calls that change their arguments."""

import pytest
import torch

from benchmarks.modules.catalogue import ENTRIES
from benchmarks.modules.check import checked
from benchmarks.modules.entry import MadeModule

SEEDS, SCALES = range(7, 10), (1.0, 1 / 32, 4.0)


@pytest.fixture
def made():
    return ENTRIES["swiglu_rmsnorm"].made(3, "cpu", True)


def verdict(made, ours, scales=SCALES):
    return checked(made, ours, SEEDS, scales, lambda: None)


def test_what_pytorch_itself_gives_is_right(made):
    found = verdict(made, made.module)
    assert "reason" not in found and found["against"] == "float64"
    assert [d["scale"] for d in found["draws"]] == list(SCALES)
    assert 0.0 < found["rel_err"] == found["reference_rel_err"] < 0.01


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m, x: m(x) * 1.1,
        lambda m, x: x,
        lambda m, x: m(x).float(),
        lambda m, x: m(x)[:-1],
        lambda m, x: torch.full_like(x, float("nan")),
    ],
)
def test_what_is_wrong_is_refused(made, wrong):
    assert verdict(made, lambda x: wrong(made.module, x))["reason"].startswith("draw 7 times 1:")


def test_a_call_that_changes_its_arguments_is_refused(made):
    assert (
        "changed its arguments"
        in verdict(made, lambda x: made.module(x.clone()) + 0 * x.zero_())["reason"]
    )


def test_a_module_that_float64_cannot_call_is_compared_in_f32():
    class Fixed(torch.nn.Module):
        def forward(self, x):
            assert x.dtype != torch.float64, "only f32 or less"
            return x.matmul(torch.ones(4, 4, dtype=x.dtype))

    made = MadeModule(Fixed(), lambda: (torch.randn(8, 4),), "cpu", torch.bfloat16)
    found = verdict(made, made.module)
    assert found["against"] == "f32, as float64 raises AssertionError: only f32 or less"
    assert "reason" not in found
    assert "reason" in verdict(made, lambda x: made.module(x) + 1)


def test_a_check_without_power_says_so():
    class Cancelled(torch.nn.Module):
        def forward(self, x):
            return (x + 1e4) - 1e4

    made = MadeModule(Cancelled(), lambda: (torch.randn(64),), "cpu", torch.bfloat16)
    found = verdict(made, made.module)
    assert "no power" in found["reason"] and found["against"].startswith("f32, as PyTorch's own")
