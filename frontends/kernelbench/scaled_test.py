"""A scaled problem still runs, is small where it can be, and is always the same."""

from dataclasses import replace

import pytest

from frontends.kernelbench.problem import Problem
from frontends.kernelbench.scaled import ELEMENTS, edited, load_of, scaled, sites
from ir.errors import KernelError

HEAD = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        {layers}

    def forward(self, x):
        return {result}
"""
CONV = """
batch_size = 64
in_channels = 3
out_channels = 32
kernel_size = (5, 7)
height, width = 512, 256 * 2

def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]

def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
"""
GROUPED = """
batch_size = 2
in_features = 4096
out_features = 8192
num_groups = 256

def get_inputs():
    return [torch.rand(batch_size, in_features)]

def get_init_inputs():
    return [in_features, out_features, num_groups]
"""
TIED = """
batch_size = 4096
def get_inputs():
    return [torch.rand(batch_size, 3, 32, 32)]

def get_init_inputs():
    return []
"""


def problem(layers, result, rest):
    return Problem("p", HEAD.format(layers=layers, result=result) + rest, "p.py")


def conv():
    return problem("self.conv = nn.Conv2d(*sizes)", "self.conv(x)", CONV)


def tied():
    return problem("self.linear = nn.Linear(3072, 4)", "self.linear(x.flatten(1))", TIED)


def test_batches_and_lengths_become_small_and_channels_stay():
    small = scaled(conv())
    assert "batch_size = 2\n" in small.source
    assert "in_channels = 3\n" in small.source and "out_channels = 32\n" in small.source
    assert "kernel_size = (5, 7)\n" in small.source
    assert load_of(small).small


def test_groups_keep_their_members():
    layers = "self.one = nn.Linear(*sizes[:2]); self.norm = nn.GroupNorm(sizes[2], sizes[1])"
    small = scaled(problem(layers, "self.norm(self.one(x))", GROUPED))
    size = {s.name: s.value for s in sites(small.source)}
    assert size["out_features"] // size["num_groups"] >= 8192 // 256 and load_of(small).small


def test_the_largest_length_is_halved_first():
    assert "height, width = 16, 32 * 2\n" in scaled(conv()).source


def test_scaling_is_deterministic():
    assert scaled(conv()) == scaled(conv())


def test_a_small_problem_is_left_as_it_is():
    small = scaled(conv())
    assert scaled(small) == small


def test_sizes_that_weights_fix_stay():
    small = scaled(tied())
    assert "torch.rand(batch_size, 3, 32, 32)" in small.source
    assert load_of(small).elements <= ELEMENTS


def test_a_problem_that_does_not_run_is_told():
    with pytest.raises(KernelError, match="does not run"):
        scaled(replace(tied(), source=tied().source.replace("3072", "3073")))


def test_what_repeats_a_list_is_no_size():
    found = sites("layer_sizes = [1024] * 16\nM = 8 * 2048\nN = -64\nx = 'a'\n")
    assert [(s.name, s.value) for s in found] == [
        ("layer_sizes", 1024),
        ("M", 8),
        ("M", 2048),
        ("N", 64),
    ]


def test_numbers_are_edited_where_they_stand():
    given = Problem("p", "é = 'ü'; m = 128 + 128\nbatch = 128\n", "p.py")
    found = {s: s.value // 2 for s in sites(given.source) if s.name == "m"}
    assert edited(given, found).source == "é = 'ü'; m = 64 + 64\nbatch = 128\n"


def test_sizes_that_must_be_equal_are_halved_together():
    rest = TIED.replace("batch_size = 4096", "batch_size = 4096\ncount = (4096,)").replace(
        "torch.rand(batch_size, 3, 32, 32)", "torch.rand(batch_size, *count)"
    )
    small = scaled(problem("pass", "x + x.T", rest))
    found = load_of(small)
    assert found.small and "batch_size = 256" in small.source and "count = (256,)" in small.source
