"""Convolutions whose windows the DMA engine moves: a box for each filter tap, at shifted positions."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from backends.backend import BackendError
from backends.gpu.plain_rules import RULES
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.program import thread_program
from backends.gpu.threads.text import program_text
from backends.shared.arrays import from_device, to_device
from ir.sizes import bind
from ir.spec import Number
from machines.gpu.matrix_instructions import family
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

TABLE = (*family("mma_sync"), *family("wgmma"))
MACHINE = replace(WITH_INSTRUCTIONS, details={"gpu": {"cluster_blocks": 8}})
# Of each: positions along p and q, and the result's sizes.
WINDOWS = {
    "padded": ("p + i - 1", "q + j - 1"),
    "strided": ("2 * p + i - 1", "2 * q + j - 1"),
    "dilated": ("p + 2 * i - 2", "q + 2 * j - 2"),
    "strided along rows": ("3 * p + i", "q + j"),
}
TILES = {  # rows and columns of pixels
    "of rows": (4, 16),
    "of one row": (1, 64),
    "of columns": (64, 1),
}
TAPS = {
    "loops": ("tile(i, size=1)", "tile(j, size=1)"),
    "unrolled": ("unroll(i)", "unroll(j)"),
}
SIZES = {
    "boxes": dict(B=2, H=11, W=9, P=11, Q=9, C=24, O=40),
    "one pixel": dict(B=1, H=1, W=1, P=1, Q=1, C=8, O=8),
    "no boxes": dict(B=1, H=6, W=7, P=6, Q=7, C=13, O=9),
}
FITS = dict(H=32, W=32, P=32, Q=32, C=64, O=128, B=4)


@cache
def program(window="padded", tile="of rows", taps="loops", *more):
    p, q = WINDOWS[window]
    # A window beyond the image has nothing, as padding has.
    read = f"pad(x[b, {p}, {q}, c], 0.0)"
    nest = lowered(
        spec_of(
            f"y[b, p, q, o] = sum(f32({read}) * f32(w[i, j, c, o]), i, j, c)",
            inputs="x: bf16[B, H, W, C], w: bf16[3, 3, C, O]",
            result="f32[B, P, Q, O]",
        ),
        *TAPS[taps],
        "tile(b, size=1)",
        *(f"tile({i}, size={size})" for i, size in zip("pq", TILES[tile])),
        *("tile(c, size=32)", "tile(o, size=64)"),
        *(f"place({i}.outer, level=grid)" for i in "bpqo"),
        *("place(c.outer, level=loop)", "compute(y, unit=matrix)", "threads(y, count=128)"),
        *(f"{how}" for x in "xw" for how in (f"pipeline({x}, stages=2)", f"copy({x}, by=bulk)")),
        *more,
        sizes=FITS,
        machine=MACHINE,
    )
    return nest, thread_program(nest, MACHINE, RULES, TABLE)


def convolved(x, w, window, sizes):
    """The sums, tap by tap."""
    of_q = {"padded": (1, 1, 1), "strided": (2, 1, 1), "dilated": (1, 2, 2)}
    sq, dq, oq = of_q.get(window, (1, 1, 0))
    sp, dp, op = (sq, dq, oq) if window in of_q else (3, 1, 0)
    y = np.zeros((sizes["B"], sizes["P"], sizes["Q"], sizes["O"]))
    for i, j, p, q in np.ndindex(3, 3, sizes["P"], sizes["Q"]):
        u, v = sp * p + dp * i - op, sq * q + dq * j - oq
        if 0 <= u < sizes["H"] and 0 <= v < sizes["W"]:
            y[:, p, q] += x[:, u, v] @ w[i, j]
    return y


def run(given, window="padded", sizes=SIZES["boxes"]):
    nest, made = given
    draw = np.random.default_rng(0)
    shapes = (("B", "H", "W", "C"), (3, 3, "C", "O"))
    x, w = (
        to_device(draw.integers(-2, 3, size=[sizes.get(n, n) for n in s]).astype(float), "bf16")
        for s in shapes
    )
    y = np.full([sizes[n] for n in "BPQO"], np.nan, np.float32)
    interpret(made, bind(nest.spec, sizes), {"x": x, "w": w, "y": y}, TABLE, 1 << 18)
    wanted = convolved(from_device(x, "bf16"), from_device(w, "bf16"), window, sizes)
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("taps", TAPS)
@pytest.mark.parametrize("window", WINDOWS)
def test_windows_are_boxes_at_shifted_positions(window, taps, size):
    given = program(window, "of rows", taps)
    (launch,) = given[1].launches
    boxes = [s for s in to.statements(launch.producer.body) if isinstance(s, to.BoxCopy)]
    assert {s.tile.stem.split("_")[0] for s in boxes} >= {"x", "w"}
    run(given, window, SIZES[size])


@pytest.mark.parametrize(
    "window, tile, boxes, rows",
    [
        ("padded", "of rows", 3, 6),
        ("dilated", "of rows", 3, 8),
        ("strided", "of rows", 9, 4),  # rows of one tap lie between those of another
        ("padded", "of one row", 9, None),
    ],
)
def test_taps_that_overlap_in_rows_share_a_box(window, tile, boxes, rows):
    (launch,) = program(window, tile, "unrolled")[1].launches
    copies = [s for s in to.statements(launch.producer.body) if isinstance(s, to.BoxCopy)]
    of_x = [s.tile for s in copies if s.tile.stem.startswith("x")]
    assert len(of_x) == boxes
    tiles = [t for t in launch.shared if t.name in of_x]
    assert {t.extents[0] for t in tiles if len(t.axes) == 3} == ({Number(rows)} if rows else set())
    parts = [t for t in launch.shared if t.begin and t.name.dim < 0]
    assert len(parts) == 9 - boxes


@pytest.mark.parametrize("tile", ["of one row", "of columns"])
@pytest.mark.parametrize("window", ["padded", "strided"])
def test_tiles_of_other_shapes_are_right(window, tile):
    run(program(window, tile), window)


@pytest.mark.parametrize("window", ["padded", "strided"])
@pytest.mark.parametrize("tile", ["of rows", "of one row"])
def test_blocks_of_a_cluster_share_windows(window, tile):
    given = program(window, tile, "loops", "cluster(o, size=2)")
    run(given, window, SIZES["boxes"] | dict(O=72))
    assert "part (tile % o_cluster)" in program_text(given[1])


def test_the_matmul_of_several_axes_stays_in_flight():
    (launch,) = program()[1].launches
    (loop,) = (s for s in launch.body if isinstance(s, to.Loop))
    (multiply,) = (s for s in loop.body if isinstance(s, to.WarpgroupMultiply))
    assert multiply.pending == 1 and loop.certain
    assert not any(isinstance(s, to.Regroup) for s in loop.body)
    before = launch.body.index(loop)
    assert [s.name == multiply.to for s in launch.body[:before] if isinstance(s, to.Regroup)] == [
        True
    ]
    assert [s.source == multiply.to for s in launch.body[before:] if isinstance(s, to.Regroup)] == [
        True
    ]


def test_a_stride_is_one_of_the_map():
    text = program_text(program("strided")[1])
    assert "bf16 [B, H, W, C] in boxes of [1, 4, 16, 32]" in text
    assert "in steps of [1, 2, 2, 1]" in text


def test_a_wrong_step_of_a_map_is_found_by_results():
    nest, made = program("strided")
    (launch,) = made.launches
    maps = tuple(replace(m, steps=(1,) * len(m.steps)) for m in launch.maps)
    wrong = replace(made, groups=((None, (replace(launch, maps=maps),)),))
    with pytest.raises(AssertionError):
        run((nest, wrong), "strided")


def test_a_box_of_other_rows_than_its_tile_is_named():
    nest, made = program()
    (launch,) = made.launches
    maps = tuple(replace(m, box=(*m.box[:1], Number(2), *m.box[2:])) for m in launch.maps)
    with pytest.raises(ThreadFault) as fault:
        run((nest, replace(made, groups=((None, (replace(launch, maps=maps),)),))))
    assert fault.value.kind == faults.FRAGMENT


def test_rows_that_are_several_axes_are_refused():
    """The engine moves a panel of rows of one dimension: a tap that is one axis with the channels is none."""
    spec = spec_of(
        "y[m, o] = sum(f32(x[m, t, c]) * f32(w[t, c, o]), c, t)",
        inputs="x: bf16[M, 4, C], w: bf16[4, C, O]",
        result="f32[M, O]",
    )
    nest = lowered(
        spec,
        *("tile(m, size=64)", "tile(o, size=64)", "tile(c, size=32)", "compute(y, unit=matrix)"),
        *("place(m.outer, level=grid)", "place(o.outer, level=grid)", "threads(y, count=128)"),
        *(f"{how}" for x in "xw" for how in (f"pipeline({x}, stages=2)", f"copy({x}, by=bulk)")),
        sizes=dict(M=128, O=128, C=64),
        machine=MACHINE,
    )
    with pytest.raises(BackendError, match="is not copied in bulk"):
        thread_program(nest, MACHINE, RULES, TABLE)
