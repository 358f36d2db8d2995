"""Traffic and estimates, worked out by hand."""

import pytest

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.estimate.cost import roofline
from ir.estimate.estimate import estimate, intensity
from ir.estimate.traffic import traffic
from ir.lower.lower import lower
from ir.sizes import bind
from testing.samples.samples import KERNELS, SMALL, lowered, workload

# SMALL: 1e9 bytes/s; matrix 8e9 flop/s in 16 bits, 1e9 in f32; 4 processors.


def moved(name: str, *lines: str) -> int:
    nest = lowered(name, *lines)
    (launch,) = nest.launches
    return traffic(launch, SMALL, bind(nest.spec, dict(nest.sizes))).moved


def test_traffic_counts_each_tile_and_each_pass():
    rows = ("tile(m, size=4)", "place(m.outer, level=grid)")  # at M=64, K=128
    row = 64 * 128 * 4
    assert moved("softmax", *rows) == 2 * row
    assert moved("softmax", *rows, "tile(k, size=32)") == 4 * row
    staged = moved("softmax", *rows, "tile(k, size=32)", "load(x, at=grid)")
    assert staged == 2 * row


def test_a_shared_load_moves_once_for_the_tiles_that_run_at_once():
    lines = (
        "tile(m, size=16)",
        "tile(n, size=16)",
        "place(m.outer, level=grid)",
        "place(n.outer, level=grid)",
    )
    x, w, b, y = 128 * 64, 64 * 64, 64, 128 * 64  # at M=128, K=64, N=64, in elements of 2 bytes
    alone = moved("matmul_bias_gelu", *lines)
    assert alone == 2 * (4 * x + 8 * w + 8 * b + y)
    shared = moved("matmul_bias_gelu", *lines, "multicast(x, over=n.outer)")
    assert alone - shared == 2 * 3 * x


def test_tiles_are_counted_over_the_whole_grid():
    found = intensity(
        lowered("softmax", "tile(m, size=5)", "place(m.outer, level=grid)", "kernel(s)"),
        SMALL,
        {"M": 64, "K": 128},
    )
    assert (found["launches"], found["tiles"]) == (2.0, 26.0)


def test_a_launch_more_costs_at_least_its_overhead():
    one = lowered("softmax", "tile(m, size=4)", "place(m.outer, level=grid)")
    two = lowered("softmax", "tile(m, size=4)", "place(m.outer, level=grid)", "kernel(e)")
    sizes = {"M": 64, "K": 128}
    assert estimate(two, SMALL, sizes) > estimate(one, SMALL, sizes) + SMALL.launch_us


@pytest.mark.parametrize("scheduler", [autoschedule, plain])
@pytest.mark.parametrize("name", KERNELS)
def test_no_estimate_lies_below_the_roofline(name, scheduler):
    w = workload(name)
    sizes = w.checks[-1]
    nest = lower(w.spec, scheduler(w.spec, SMALL, sizes), SMALL, sizes)
    assert estimate(nest, SMALL, sizes) >= roofline(w.spec, SMALL, sizes).us
