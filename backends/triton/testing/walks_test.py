"""Emitted kernels on random schedules: what lowering accepts gives what the reference gives."""

from __future__ import annotations

import numpy as np
import pytest

from backends.registry import target
from backends.triton.testing import walks
from backends.triton.testing.walks import NAMES, case, require_right, walk, wrong
from ir.lower.lower import lower

H200 = target("h200")
SEEDS = (3, 10)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_what_lowering_accepts_is_right_whatever_was_decided(name, seed, tmp_path):
    sizes = case(name).checks[1]
    require_right(name, H200, seed, tmp_path, sizes, sizes)


@pytest.mark.parametrize("name", ["matmul_bias_gelu", "causal", "softmax", "embedding_bag"])
def test_what_was_tuned_for_large_sizes_is_right_at_small_ones(name, tmp_path):
    require_right(name, H200, 5, tmp_path, case(name).tune, case(name).checks[1])


def test_a_walk_is_the_same_each_time_and_goes_somewhere():
    spec, sizes = case("softmax").spec, case("softmax").checks[1]
    first = walk(spec, H200, sizes, 4)
    assert walk(spec, H200, sizes, 4) == first
    assert len({str(walk(spec, H200, sizes, seed)) for seed in range(6)}) > 3


def test_one_wrong_element_is_seen(monkeypatch, tmp_path):
    spec, sizes = case("softmax").spec, case("softmax").checks[1]
    nest = lower(spec, walk(spec, H200, sizes, 4), H200, sizes)
    real = walks.interpret

    def off(*args):
        found = real(*args)
        found["y"][3, 5] = 2.0 * found["y"][3, 5] + 0.01
        return found

    monkeypatch.setattr(walks, "interpret", off)
    assert "`y` has 1 of 231 elements wrong, the first at (3, 5)" in wrong(
        nest, H200, sizes, tmp_path
    )


def test_infinities_must_be_where_they_should():
    right = {"y": np.array([1.0, -np.inf, np.nan])}
    assert not list(walks._off({"y": np.array([1.0, -np.inf, np.nan])}, right))
    assert list(walks._off({"y": np.array([1.0, np.inf, np.nan])}, right))
    assert list(walks._off({"y": np.array([np.nan, -np.inf, np.nan])}, right))
