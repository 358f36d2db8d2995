"""Grid mapping of launches: threads, swizzles, persistence, and what is refused."""

import dataclasses

import pytest

from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.nest.nest import Rasterization
from machines.gpu.launch_changes import launch_changes
from testing.samples.samples import SMALL, WITH_REGISTERS, decisions, lowered, spec_of, workload

TILED = (
    "tile(m, size=16)",
    "tile(n, size=16)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
)
WAVES = dataclasses.replace(WITH_REGISTERS, levels={"grid": 4, "thread": 512, "warp": 64})


TWICE = spec_of(
    "mx[m, n] = max(x[m, k, n], k)",
    "s[m, n] = sum(x[m, k, n], k)",
    "y[m, n] = mx[m, n] + s[m, n]",
    inputs="x: f32[M, K, N]",
    result="f32[M, N]",
)


def found(*lines: str, kernel: str = "matmul_bias_gelu", machine=WITH_REGISTERS):
    sizes = {"M": 64, "N": 64, "K": 64}
    return lowered(kernel, *TILED, *lines, sizes=sizes, machine=machine).launches


def fault(*lines: str, kernel: str = "matmul_bias_gelu", machine=WITH_REGISTERS) -> KernelError:
    with pytest.raises(KernelError) as caught:
        found(*lines, kernel=kernel, machine=machine)
    assert caught.value.place.line > 1
    return caught.value


def mapping(launch):
    return launch.threads, launch.rasterization, launch.resident


def test_a_launch_has_the_threads_order_and_residence_that_were_decided():
    lines = ("rasterize(m, size=4, over=n)", "threads(y, count=256)", "persistent(y, programs=2)")
    (launch,) = found(*lines)
    assert mapping(launch) == (256, Rasterization("m", "n", 4), 2)
    (launch,) = found()
    assert mapping(launch) == (0, None, 0)


def test_one_launch_may_be_compiled_for_its_sizes():
    first, last = found("kernel(acc)", "specialize(y)")
    assert (first.specialized, last.specialized) == (False, True)


def test_only_the_launch_that_stores_the_tensor_is_meant():
    first, last = found("kernel(acc)", "threads(acc, count=64)", "persistent(y, programs=1)")
    assert (first.threads, last.threads, first.resident, last.resident) == (64, 0, 0, 1)


def test_a_group_holds_in_every_launch_that_has_both_indices_on_its_grid():
    first, last = found("kernel(acc)", "rasterize(n, size=2, over=m)")
    assert first.rasterization == last.rasterization == Rasterization("n", "m", 2)


@pytest.mark.parametrize(
    "line",
    [
        "rasterize(m, size=4, over=n)",
        "threads(y, count=128)",
        "persistent(y, programs=1)",
        "specialize(y)",
    ],
)
def test_a_machine_without_registers_has_nothing_to_dispatch(line):
    caught = fault(line, machine=SMALL)
    assert "`small` is of class `tiles`" in str(caught)
    assert "multicast" in caught.allowed and "drop" in caught.hint


@pytest.mark.parametrize("count", [1, 48, 2048])
def test_threads_are_a_power_of_two(count):
    caught = fault(f"threads(y, count={count})")
    assert f"`count={count}` is no number of threads of a program here" in str(caught)
    assert (caught.allowed, caught.hint) == ("32, 64, 128, 256, 512, 1024", "threads(y, count=32)")


def test_threads_come_in_whole_waves_and_no_more_than_a_program_may_have():
    assert fault("threads(y, count=32)", machine=WAVES).allowed == "64, 128, 256, 512"


@pytest.mark.parametrize(
    "verb", ["threads(acc, count=32)", "persistent(acc, programs=1)", "specialize(acc)"]
)
def test_a_launch_is_named_by_what_it_stores(verb):
    caught = fault(verb)
    assert "no launch stores `acc`" in str(caught)
    assert (caught.allowed, caught.hint) == ("y", "name a launch by a tensor that it stores")


def test_a_launch_is_decided_on_once():
    caught = fault("kernel(s)", "threads(mx, count=32)", "threads(s, count=64)", kernel=TWICE)
    assert "`threads` is decided twice for `f_0`, which stores `mx` and `s`" in str(caught)
    assert caught.hint == "decide it for one of them"


def test_a_program_without_a_grid_walks_through_no_tiles():
    with pytest.raises(KernelError, match="`softmax_0` has no grid") as caught:
        lowered("softmax", "persistent(y, programs=1)", machine=WITH_REGISTERS)
    assert caught.value.hint == "place a loop on the grid"


def test_a_tile_processor_keeps_a_few_programs():
    assert fault("persistent(y, programs=99)").allowed == "1 to 16"


def test_a_group_has_two_tiles_or_more_of_another_index():
    assert fault("rasterize(m, size=1, over=n)").allowed == "2 or more"
    caught = fault("rasterize(m, size=2, over=m)")
    assert "`m` is grouped over itself" in str(caught)
    assert caught.allowed == "n, k"


def test_a_group_is_of_indices_on_the_grid():
    caught = fault("tile(k, size=16)", "rasterize(m, size=2, over=k)")
    assert "no launch has tiles of both `k` and `m` on its grid" in str(caught)
    assert (caught.allowed, caught.hint) == ("m, n", "place both loops on the grid")


def test_the_tiles_of_a_launch_are_grouped_once():
    caught = fault("rasterize(m, size=2, over=n)", "rasterize(n, size=2, over=m)")
    assert "the tiles of `matmul_bias_gelu_0` are grouped twice" in str(caught)


def test_changes_are_of_each_launch_and_only_where_programs_have_threads():
    spec = workload("matmul_bias_gelu").spec
    start = decisions(spec, "kernel(acc)", *TILED, "threads(acc, count=32)")
    changes = [(str(old or ""), str(new or "")) for old, new in launch_changes(spec, start, WAVES)]
    assert ("", "rasterize(m, size=8, over=n)") in changes
    assert ("threads(acc, count=32)", "") in changes
    assert ("", "threads(y, count=64)") in changes and ("", "threads(y, count=32)") not in changes
    assert ("", "persistent(y, programs=1)") in changes and ("", "specialize(y)") in changes
    verbs = {
        (e.new or e.old).verb for e in neighbours(spec, start, SMALL, {"M": 9, "N": 9, "K": 9})
    }
    assert not verbs & {"threads", "rasterize", "persistent", "specialize"}


def test_a_launch_that_goes_takes_its_decisions_along():
    spec = workload("matmul_bias_gelu").spec
    start = decisions(
        spec, "kernel(acc)", *TILED, "rasterize(m, size=2, over=n)", "threads(acc, count=32)"
    )
    by_text = {str(e): e for e in neighbours(spec, start, WAVES, {"M": 64, "N": 64, "K": 64})}
    assert by_text["- kernel(acc)"].apply(start).of("threads") == ()
    assert by_text["- tile(n, size=16)"].apply(start).of("rasterize") == ()
    inside = by_text["place(m.outer, level=grid) -> place(m.outer, level=loop)"]
    assert inside.apply(start).of("rasterize") == ()
