"""Convolutions whose taps read one window in shared memory, which the block transposes (`copy(x, by=window)`)."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from backends.backend import BackendError
from backends.gpu.plain_rules import RULES
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter.counts import require_no_conflicts
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.program import thread_program
from backends.shared.arrays import from_device, to_device
from ir.errors import KernelError
from ir.machine import ENGINES, WINDOW, Rendering
from ir.sizes import bind
from ir.spec import Number
from machines.gpu.matrix_instructions import family
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of

TABLES = {"warps": family("mma_sync"), "warpgroups": (*family("mma_sync"), *family("wgmma"))}
MACHINE = replace(WITH_INSTRUCTIONS, rendering=Rendering(engines=(*ENGINES, WINDOW)))
FITS = dict(B=4, C=96, H=28, W=28, P=28, Q=28, O=96)
WINDOWS = {  # positions along p and q; whether they may lie outside
    "padded": ("p + i - 1", "q + j - 1", True),
    "inside": ("p + i", "q + j", False),
    "dilated": ("p + 2 * i - 2", "q + 3 * j - 3", True),
    "before": ("p + i - 2", "q + j - 2", True),
    "strided": ("2 * p + i", "2 * q + j", True),
}
ROWS = ("tile(p, size=4)", "place(p.outer, level=grid)")
SIZES = {
    "one": dict(B=1, C=1, P=1, Q=1, O=1),
    "odd": dict(B=2, C=19, P=7, Q=5, O=11),
    "several tiles": dict(B=1, C=40, P=9, Q=37, O=35),
}


@cache
def program(window="padded", unit="warps", *more, tiles=(4, 32), dtype="f16", drop=()):
    p, q, outside = WINDOWS[window]
    read = f"pad(x[b, c, {p}, {q}], 0.0)" if outside else f"x[b, c, {p}, {q}]"
    rows = "H, W" if outside else "P + 2, Q + 2"
    sizes = FITS if outside else {n: v for n, v in FITS.items() if n not in "HW"}
    decided = [
        *("unroll(i)", "unroll(j)", "tile(b, size=1)"),
        *(f"tile({i}, size={size})" for i, size in zip("pq", tiles)),
        *(f"place({i}.outer, level=grid)" for i in "bpq"),
        *("compute(y, unit=matrix)", "threads(y, count=128)", f"copy(x, by={WINDOW})"),
        *more,
    ]
    nest = lowered(
        spec_of(
            f"y[b, p, q, o] = sum(f32({read}) * f32(w[i, j, o, c]), i, j, c)",
            inputs=f"x: {dtype}[B, C, {rows}], w: {dtype}[3, 3, O, C]",
            result="f32[B, P, Q, O]",
        ),
        *(d for d in decided if d not in drop),
        sizes=sizes,
        machine=MACHINE,
    )
    return nest, thread_program(nest, MACHINE, RULES, TABLES[unit])


def convolved(x, w, window, sizes):
    """The sums, tap by tap."""
    sp, dp, op, sq, dq, oq = {
        "padded": (1, 1, 1, 1, 1, 1),
        "inside": (1, 1, 0, 1, 1, 0),
        "dilated": (1, 2, 2, 1, 3, 3),
        "before": (1, 1, 2, 1, 1, 2),
    }[window]
    y = np.zeros([sizes[n] for n in "BPQO"])
    for i, j, p, q in np.ndindex(3, 3, sizes["P"], sizes["Q"]):
        u, v = sp * p + dp * i - op, sq * q + dq * j - oq
        if 0 <= u < sizes["H"] and 0 <= v < sizes["W"]:
            y[:, p, q] += x[:, :, u, v] @ w[i, j].T
    return y


def run(given, window, sizes, dtype="f16"):
    nest, made = given
    more = 2 if window == "inside" else 0
    free = sizes
    sizes = sizes | dict(H=sizes["P"] + more, W=sizes["Q"] + more)
    draw = np.random.default_rng(0)
    shapes = (("B", "C", "H", "W"), (3, 3, "O", "C"))
    x, w = (
        to_device(draw.integers(-2, 3, size=[sizes.get(n, n) for n in s]).astype(float), dtype)
        for s in shapes
    )
    y = np.full([sizes[n] for n in "BPQO"], np.nan, np.float32)
    counts = interpret(
        made,
        bind(nest.spec, free if more else sizes),
        {"x": x, "w": w, "y": y},
        TABLES["warpgroups"],
        1 << 18,
    )
    wanted = convolved(from_device(x, dtype), from_device(w, dtype), window, sizes)
    np.testing.assert_array_equal(y, wanted)
    return counts


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("unit", TABLES)
@pytest.mark.parametrize("window", [w for w in WINDOWS if w != "strided"])
def test_all_taps_read_one_window(window, unit, size):
    given = program(window, unit)
    (launch,) = given[1].launches
    stores = [s for s in to.statements(launch.body) if isinstance(s, to.SharedStore)]
    assert {s.tile.stem for s in stores} - {"stored"} == {"x"}
    run(given, window, SIZES[size])


@pytest.mark.parametrize("tiles", [(2, 64), (16, 16)])
def test_tiles_of_other_shapes_are_right(tiles):
    run(program(tiles=tiles), "padded", SIZES["several tiles"])


@pytest.mark.parametrize("more", ["swizzle(x, bytes=32)", "tile(c, size=16) pad(x, bytes=16)"])
def test_rows_lie_as_they_are_decided(more):
    run(program("padded", "warps", *more.replace(") ", ")\n").splitlines()), "padded", SIZES["odd"])


def test_bf16_is_right():
    run(program(dtype="bf16"), "padded", SIZES["odd"], "bf16")


def test_a_window_has_the_rows_of_all_taps_once():
    (launch,) = program("dilated")[1].launches
    (home,) = (t for t in launch.shared if t.name.stem == "x" and t.name.dim < 0)
    assert home.extents[:2] == (Number(4 + 4), Number(32 + 6))
    begins = {t.begin // home.panel for t in launch.shared if t.region == "x" and t.lines}
    assert begins == {38 * p + q for p in (0, 2, 4) for q in (0, 3, 6)}


@pytest.mark.parametrize("unit", TABLES)
def test_windows_have_no_bank_conflicts(unit):
    given = program("padded", unit)
    counts = run(given, "padded", SIZES["several tiles"])
    (launch,) = given[1].launches
    tiles = [t.name for t in launch.shared if t.region == "x" and (t.lines or t.name.dim < 0)]
    require_no_conflicts(counts, *tiles, launch=launch.name)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (dict(window="strided"), "its positions are steps apart"),
        (dict(more=("tile(c, size=16)", "pipeline(x, stages=2)")), "its loop copies ahead"),
        (dict(tiles=(1, 64)), "a shift is along no tile"),
        (dict(dtype="f32", more=("precision(y, dtype=tf32)",)), "something else than a matmul"),
        (dict(dtype="f8e4m3"), "matrix instructions of 16 bits"),
        (dict(drop=ROWS, more=("tile(c, size=16)", "tile(o, size=32)")), "`tile` its indices"),
        (dict(more=("pad(x, bytes=16)",)), "`tile` what it is summed over"),
    ],
)
def test_what_is_no_window_is_refused(given, fault):
    given = dict(given)
    more = given.pop("more", ())
    with pytest.raises(BackendError, match=fault):
        program(given.pop("window", "padded"), "warps", *more, **given)


def test_a_tensor_that_is_loaded_at_one_place_has_no_window():
    with pytest.raises(KernelError, match="is loaded at one place alone"):
        lowered(
            spec_of(
                "y[m, n] = sum(f32(x[k, m]) * f32(w[n, k]), k)",
                inputs="x: f16[K, M], w: f16[N, K]",
                result="f32[M, N]",
            ),
            "compute(y, unit=matrix)",
            f"copy(x, by={WINDOW})",
            sizes=dict(M=64, N=64, K=64),
            machine=MACHINE,
        )


def test_a_block_waits_for_weights_when_its_windows_loads_have_begun():
    (launch,) = program()[1].launches
    kinds = [type(s) for s in to.statements(launch.body)]
    assert any(isinstance(s, to.Copy) for s in to.statements(launch.once))
    assert kinds.index(to.Load) < kinds.index(to.SharedStore) < kinds.index(to.Wait)


def test_axes_are_rounded_up_no_further_than_their_sizes_are_covered():
    """96 channels would be 128, as all threads copy weights."""
    (launch,) = program("padded", "warps", *(f"swizzle({x}, bytes=64)" for x in "xw"))[1].launches
    widths = {n.stem: e for n, e in launch.constants if n.sort == "width"}
    assert {i: e.args[1] for i, e in widths.items()} == {"c": Number(32), "o": Number(32)}
