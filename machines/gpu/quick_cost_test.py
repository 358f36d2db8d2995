"""Estimates where programs have threads: what makes a launch slower must come out slower."""

import pytest

from ir.estimate.estimate import estimate
from ir.sizes import bind
from machines.gpu.counter import ThreadsCounter
from machines.gpu.quick_cost import holds, work
from testing.samples.samples import SMALL, WITH_THREADS, lowered

SIZES = {"M": 4096, "N": 4096, "K": 4096}


def product(m=128, n=128, k=64, *more: str):
    return lowered(
        "matmul_bias_gelu",
        f"tile(m, size={m})",
        f"tile(n, size={n})",
        f"tile(k, size={k})",
        "place(m.outer, level=grid)",
        "place(n.outer, level=grid)",
        "place(k.outer, level=loop)",
        "compute(acc, unit=matrix)",
        *more,
        sizes=SIZES,
        machine=WITH_THREADS,
    )


def us(*args, **kwargs) -> float:
    return estimate(product(*args, **kwargs), WITH_THREADS, SIZES)


def counted(nest, sizes):
    return work(nest.launches[0], WITH_THREADS, bind(nest.spec, sizes))


def test_small_tiles_of_a_product_move_more_and_take_longer():
    large, *others = (us(side, side, 64, "threads(y, count=256)") for side in (128, 64, 32, 16))
    for smaller in others:
        assert large < smaller
        large = smaller


def test_tiles_are_padded_to_powers_of_two():
    odd, even = (counted(product(100, 128, k), SIZES).counter.seconds for k in (48, 64))
    assert odd["matrix"] == pytest.approx(even["matrix"] * 86 / 64)  # steps of the loop
    assert odd["matrix"] > counted(product(128, 128, 64), SIZES).counter.seconds["matrix"]


def test_a_load_that_is_under_way_is_not_waited_for():
    staged = ("pipeline(x, stages=3)", "pipeline(w, stages=3)")
    assert us(128, 128, 64, *staged) < us(128, 128, 64)


def test_registers_that_do_not_suffice_cost_time():
    few, enough = "threads(y, count=64)", "threads(y, count=256)"
    assert us(128, 256, 32, few) > 1.5 * us(128, 256, 32, enough)
    assert counted(product(128, 256), SIZES).residence(64).spilled > 0
    assert not counted(product(128, 128), SIZES).residence(256).spilled
    assert not holds(product(256, 256, 32), WITH_THREADS, SIZES)
    assert holds(product(64, 128, 32), WITH_THREADS, SIZES)


def test_fewer_threads_let_more_programs_share_a_processor():
    sizes = {"M": 4096, "K": 1024}
    found = counted(
        lowered(
            "softmax",
            "tile(m, size=1)",
            "place(m.outer, level=grid)",
            sizes=sizes,
            machine=WITH_THREADS,
        ),
        sizes,
    )
    assert found.residence(64).programs > found.residence(512).programs >= 1
    one = counted(
        lowered(
            "softmax",
            "tile(m, size=1)",
            "place(m.outer, level=grid)",
            "persistent(y, programs=1)",
            sizes=sizes,
            machine=WITH_THREADS,
        ),
        sizes,
    )
    assert one.residence(64).programs == 1


def test_a_launch_that_fills_few_processors_takes_longer():
    sizes = {"M": 512, "K": 16384}
    many, few = (
        lowered(
            "softmax",
            f"tile(m, size={m})",
            "tile(k, size=1024)",
            "place(m.outer, level=grid)",
            "threads(y, count=256)",
            sizes=sizes,
            machine=WITH_THREADS,
        )
        for m in (1, 32)
    )
    assert estimate(few, WITH_THREADS, sizes) > 2 * estimate(many, WITH_THREADS, sizes)


def test_bytes_are_those_inside_the_tensor():
    sizes = {"M": 10, "K": 100}
    nest = lowered(
        "cumsum",
        "tile(m, size=4)",
        "tile(k, size=64)",
        "place(m.outer, level=grid)",
        sizes=sizes,
        machine=WITH_THREADS,
    )
    found = counted(nest, sizes)
    assert found.tiles == 3
    assert found.counter.loaded["x"] * found.tiles == pytest.approx(4 * 1000, rel=0.3)
    assert found.counter.whole("x") == 4000


def test_what_is_searched_is_no_load_but_waited_for():
    sizes = {"U": 4096, "B": 4096}
    nest = lowered(
        "map_id",
        "tile(b, size=128)",
        "place(b.outer, level=grid)",
        sizes=sizes,
        machine=WITH_THREADS,
    )
    counter = counted(nest, sizes).counter
    assert isinstance(counter, ThreadsCounter)
    assert "keys" not in counter.loaded
    assert counter.waiting_us > 12 * 0.2


def test_a_machine_without_registers_has_room_by_what_lowering_checks():
    assert SMALL.model.holds(lowered("softmax"), SMALL, {"M": 64, "K": 128})
