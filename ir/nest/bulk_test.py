"""A bulk copy moves boxes and nothing else."""

import dataclasses

import pytest

from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.nest.nest import Load, Store
from testing.samples.samples import (
    SMALL,
    WITH_REGISTERS,
    WITH_THREADS,
    decisions,
    lowered,
    spec_of,
    statements,
    workload,
)

CHIP = dataclasses.replace(WITH_REGISTERS, engines=("bulk",))
WIDE = dataclasses.replace(WITH_THREADS, box=256)
TILES = dataclasses.replace(SMALL, engines=("bulk",))
SIZES = {"M": 64, "N": 64, "K": 64}
TILED = (
    "tile(m, size=16)",
    "tile(n, size=16)",
    "tile(k, size=16)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
    "place(k.outer, level=loop)",
)


def fault(spec, *lines: str, sizes=None, machine=CHIP) -> KernelError:
    with pytest.raises(KernelError) as caught:
        lowered(spec, *lines, sizes=sizes, machine=machine)
    assert caught.value.place.line > 1
    return caught.value


def test_loads_and_stores_of_a_staged_tensor_are_moved_in_bulk():
    nest = lowered(
        "matmul_bias_gelu",
        *TILED,
        "pipeline(x, stages=3)",
        "copy(x, by=bulk)",
        "copy(y, by=bulk)",
        sizes=SIZES,
        machine=CHIP,
    )
    assert {s.tensor: s.bulk for s in statements(nest, Load)} == {
        "x": True,
        "w": False,
        "b": False,
    }
    assert [s.bulk for s in statements(nest, Store)] == [True]


def test_a_machine_without_the_engine_says_which_it_has():
    caught = fault("softmax", "pipeline(x, stages=2)", "copy(x, by=bulk)", machine=WITH_REGISTERS)
    assert "`bulk` is no engine here" in str(caught)
    assert caught.allowed == "none"


@pytest.mark.parametrize(
    "kernel, lines, what",
    [
        (
            "embedding_bag",
            (
                "tile(b, size=1)",
                "tile(l, size=8)",
                "place(b.outer, level=grid)",
                "pipeline(table, stages=2)",
                "copy(table, by=bulk)",
            ),
            "where another tensor says",
        ),
        (
            "conv1d",
            ("tile(l, size=8)", "pipeline(x, stages=2)", "copy(x, by=bulk)"),
            "a window over l, i",
        ),
        (
            "max_pool2d",
            (
                "pipeline(x, stages=2)",
                "copy(x, by=bulk)",
            ),
            "a window over p, i",
        ),
        (
            "cumsum",
            ("tile(k, size=2)", "pipeline(x, stages=2)", "copy(x, by=bulk)"),
            "a row of its tile has 8 ",
        ),
    ],
)
def test_what_is_no_box_is_refused(kernel, lines, what):
    caught = fault(kernel, *lines)
    assert "cannot be moved in bulk" in str(caught) and what in str(caught)
    assert (caught.allowed, caught.hint) == (
        "boxes of a tensor, padded by nothing but zeros",
        f"drop {lines[-1]}",
    )


def test_rows_of_the_tensor_are_aligned_too():
    caught = fault("cumsum", "copy(x, by=bulk)", sizes={"M": 4, "K": 7})
    assert "a row of it has 28 bytes, which is no multiple of 16" in str(caught)


def test_steps_and_other_paddings_are_refused():
    sizes = {"M": 4, "K": 64}
    spec = spec_of("y[m] = max(x[m, 2 * k], k=32)", result="f32[M]")
    assert "in steps of 2" in str(fault(spec, "copy(x, by=bulk)", sizes=sizes))
    spec = spec_of("y[m, k] = pad(x[m, k + 4], -inf)")
    assert "lies out of bounds is -inf" in str(fault(spec, "copy(x, by=bulk)", sizes=sizes))


IMAGE = "y[b, p, q, c] = sum(pad(x[b, {at}, q + j - 1, c], 0.0) * w[i, j], i, j)"
TAPS = (
    "tile(i, size=1)",
    "tile(j, size=1)",
    "tile(p, size=4)",
    "tile(q, size=8)",
    "tile(b, size=1)",
)


def image(at="p + i - 1"):
    equation, types = IMAGE.format(at=at), "x: f32[B, H, W, C], w: f32[3, 3]"
    return spec_of(equation, inputs=types, result="f32[B, P, W, C]")


@pytest.mark.parametrize(
    "at", ["p + i - 1", "i + p", "2 * p + i - 1", "p + 2 * i - 2", "8 * p + i"]
)
def test_a_window_of_one_tap_is_a_box(at):
    sizes = {"B": 2, "H": 64, "P": 8, "W": 16, "C": 32}
    nest = lowered(image(at), *TAPS, "copy(x, by=bulk)", sizes=sizes, machine=CHIP)
    assert all(s.bulk for s in statements(nest, Load) if s.tensor == "x")
    whole = fault(image(at), *TAPS[1:], "copy(x, by=bulk)", sizes=sizes)
    assert "a window over" in str(whole) and "tile(..., size=1)" in str(whole)
    # A machine may have no such boxes.
    assert "a window over" in str(
        fault(image(at), *TAPS, "copy(x, by=bulk)", sizes=sizes, machine=TILES)
    )


def test_positions_of_a_box_are_not_far_apart():
    sizes = {"B": 2, "H": 512, "P": 8, "W": 16, "C": 32}
    caught = fault(image("9 * p + i"), *TAPS, "copy(x, by=bulk)", sizes=sizes)
    assert "it is read in steps of 9" in str(caught)
    far = tuple(t.replace("tile(p, size=4)", "tile(p, size=64)") for t in TAPS)
    few = fault(image("8 * p + i"), *far, "copy(x, by=bulk)", sizes=sizes | {"P": 64}, machine=WIDE)
    assert "its box has 512 elements" in str(few)


@pytest.mark.parametrize(
    "size, what",
    [
        (128, "its box has 128 elements along m, more than 64"),
        (24, "its tile has 24 elements along m, which is no power of two"),
    ],
)
def test_boxes_that_the_engine_does_not_take_are_refused(size, what):
    chip = dataclasses.replace(WITH_THREADS, box=64)
    sizes = {"M": 256, "N": 64, "K": 64}
    lines = tuple(t.replace("tile(m, size=16)", f"tile(m, size={size})") for t in TILED)
    caught = fault(
        "matmul_bias_gelu",
        *lines,
        "pipeline(x, stages=2)",
        "copy(x, by=bulk)",
        sizes=sizes,
        machine=chip,
    )
    assert what in str(caught)


@pytest.mark.parametrize("dims, fits", [(2, True), (4, True), (6, False)])
def test_a_box_has_few_dimensions(dims, fits):
    """Neighbours of one element each count as one."""
    names = "abcdef"[:dims]
    at = f"{', '.join(names)}, m, k"
    spec = spec_of(
        f"y[{at}] = x[{at}] * 2.0",
        inputs=f"x: f32[{'A, ' * dims}M, K]".replace("A", "2"),
        result=f"f32[{'2, ' * dims}M, K]",
    )
    ones = tuple(f"tile({i}, size=1)" for i in (*names, "m"))
    sizes = {"M": 4, "K": 64}
    lowered(spec, *ones, "copy(x, by=bulk)", sizes=sizes, machine=WIDE)
    apart = (*(f"tile({i}, size=1)" for i in names[1::2]), "tile(m, size=1)", "copy(x, by=bulk)")
    if fits:
        lowered(spec, *apart, sizes=sizes, machine=WIDE)
    else:
        what = "it has 7 dimensions, more than 5"  # `f` and `m` are one
        assert what in str(fault(spec, *apart, sizes=sizes, machine=WIDE))


def test_an_untiled_index_is_as_wide_as_it_is():
    spec = spec_of("y[m, k] = x[m, k] * 2.0")
    lines = ("tile(m, size=1)", "copy(x, by=bulk)")
    lowered(spec, *lines, sizes={"M": 4, "K": 200}, machine=WITH_THREADS)
    caught = fault(spec, *lines, sizes={"M": 4, "K": 260}, machine=WITH_THREADS)
    assert "its box has 512 elements along k, more than 256" in str(caught)


def test_what_is_never_moved_is_not_moved_in_bulk():
    caught = fault("softmax", "copy(e, by=bulk)")
    assert "`e` is neither loaded nor stored" in str(caught)


def test_the_engine_is_a_neighbour_where_there_is_one():
    spec = workload("matmul_bias_gelu").spec
    start = decisions(spec, *TILED, "pipeline(x, stages=2)")
    found = {str(e) for e in neighbours(spec, start, CHIP, SIZES)}
    change = "+ copy(x, by=bulk)"
    assert change in found
    assert "+ copy(y, by=bulk)" in found
    assert not {t for t in found if "stages=6" in t or "multicast" in t or "at=grid" in t}
    plain = {str(e) for e in neighbours(spec, start, WITH_REGISTERS, SIZES)}
    assert not {t for t in plain if "bulk" in t} and "+ pipeline(w, stages=5)" in plain


def test_rows_that_begin_aside_are_not_moved_in_bulk():
    decisions = (
        "unroll(i)",
        "tile(b, size=1)",
        "tile(l, size=16)",
        "pipeline(x, stages=2)",
        "copy(x, by=bulk)",
    )
    caught = fault("conv1d", *decisions, sizes={"B": 1, "C": 32, "O": 32, "L": 64})
    assert "its rows begin -2 bytes aside" in str(caught)


def test_rows_that_begin_where_data_say_are_not_moved_in_bulk():
    decisions = (
        "tile(b, size=1)",
        "tile(l, size=16)",
        "pipeline(idx, stages=2)",
        "copy(idx, by=bulk)",
    )
    caught = fault("embedding_bag", *decisions, sizes={"V": 8, "D": 8, "L": 64, "B": 4})
    assert "its rows begin where `offsets` says" in str(caught)


def test_stages_of_a_pipelined_box_start_where_the_engine_can_write():
    spec = spec_of(
        "y[m] = sum(x[m, k] * g[k], k)", inputs="x: f32[M, K], g: f32[K]", result="f32[M]"
    )
    lines = ("tile(m, size=16)", "place(m.outer, level=grid)", "place(k.outer, level=loop)")
    moved = ("pipeline(g, stages=2)", "copy(g, by=bulk)")
    sizes = {"M": 64, "K": 64}
    caught = fault(spec, "tile(k, size=8)", *lines, *moved, sizes=sizes)
    assert "`g` cannot be moved in bulk: a stage of it has 32 bytes, no multiple of 128" in str(
        caught
    )
    assert lowered(spec, "tile(k, size=32)", *lines, *moved, sizes=sizes, machine=CHIP)
