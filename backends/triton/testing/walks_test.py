"""Emitted kernels on random schedules: what lowering accepts gives what the reference gives."""

from __future__ import annotations

import numpy as np
import pytest

from backends.registry import target
from backends.triton.testing import walks
from backends.triton.testing.walks import NAMES, case, require_right, walk, wrong
from ir.lower.lower import lower
from ir.parse.parse import parse_workload
from ir.spec import Number, Tensor
from testing.samples.samples import decisions

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


def off(found, exact, plain=None, dtype="f32"):
    """What is wrong with an output `y`; plain: where arithmetic in the spec's formats differs."""
    tensor = Tensor("y", dtype, (Number(len(exact)),))
    right, stored = ({"y": np.array(e)} for e in (exact, plain or exact))
    return list(walks._off({"y": np.array(found)}, {"y": walks._held(tensor, right, stored)}))


def test_infinities_must_be_where_they_should():
    right = [1.0, -np.inf, np.nan]
    assert not off([1.0, -np.inf, np.nan], right)
    assert off([1.0, np.inf, np.nan], right)
    assert off([np.nan, -np.inf, np.nan], right)


def test_what_a_format_cannot_hold_is_infinite_in_it():
    exact, plain = [1.0, -1.5e10], [1.0, -np.inf]
    assert not off([1.0, -np.inf], exact, plain, "f16")
    for wrong_one in (np.inf, -65504.0, -1.5e10, np.nan):
        assert "`y` has 1 of 2 elements wrong" in off([1.0, wrong_one], exact, plain, "f16")[0]
    assert off([1.0, -np.inf], exact, exact, "f32")
    assert not off([448.0], [1.5e10], [448.0], "f8e4m3")  # which has no infinity
    assert not off([1.0, 5.4e4], [1.0, 5e4], dtype="f16")
    assert off([1.0, np.inf], [1.0, 6e4], dtype="f16")


def test_where_plain_arithmetic_overflows_a_finite_result_may_be_anything():
    assert not off([1.0, np.inf], [1.0, 2.0], [1.0, np.inf])
    assert off([np.inf, 2.0], [1.0, 2.0], [1.0, np.inf])


LARGE = """
def large(x: f16[M]) -> f16[M]:
    \"\"\"Add more than the format holds.\"\"\"
    y[m] = x[m] + 15000000000.0
    return y

tune(M=8)
check(M=4)
"""


SHIFTED = """
def shifted(x: f32[3], z: f32[M]) -> f32[M]:
    \"\"\"Add the sum of all elements of x but the first.\"\"\"
    t[()] = sum(pad(x[i + 1], 0.0), i=3)
    y[m] = z[m] + t[()]
    return y

tune(M=8)
check(M=4)
"""


def test_an_unrolled_sum_reads_nothing_behind_its_tensor(tmp_path):
    spec = parse_workload(SHIFTED, "shifted").spec
    nest = lower(spec, decisions(spec, "unroll(i)"), H200, {"M": 4})
    assert wrong(nest, H200, {"M": 4}, tmp_path) == ""


def test_a_kernel_may_overflow_its_format(tmp_path):
    work = parse_workload(LARGE, "large")
    nest = lower(work.spec, walk(work.spec, H200, {"M": 4}, 0), H200, {"M": 4})
    assert wrong(nest, H200, {"M": 4}, tmp_path) == ""
