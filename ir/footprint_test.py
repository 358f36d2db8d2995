"""Scratch of a launch, worked out by hand."""

import pytest

from ir.errors import KernelError
from ir.footprint import require_fit, scratch_bytes, temporaries, value_bytes
from ir.samples import SMALL, WITH_REGISTERS, lowered, spec_of

ROW = ("tile(m, size=4)", "place(m.outer, level=grid)")  # softmax at M=64, K=128
SIZES = {"M": 64, "K": 128}
TILE = 4 * 128 * 4  # bytes of f32[m=4, k=128]


def test_a_value_takes_all_its_slots():
    (launch,) = lowered("softmax", *ROW, "stage(x, depth=3)").launches
    assert value_bytes(launch.value("x"), SIZES) == 3 * TILE
    assert value_bytes(launch.value("mx"), SIZES) == 4 * 4


def test_without_registers_every_value_lies_in_scratch():
    (launch,) = lowered("softmax", *ROW).launches
    assert [v.name for v in launch.values] == ["x", "mx", "e", "s", "y"]
    assert temporaries(launch) == ()
    assert scratch_bytes(launch, SMALL, SIZES) == 3 * TILE + 2 * 4 * 4


def test_with_registers_only_what_is_loaded_does():
    (launch,) = lowered("softmax", *ROW, machine=WITH_REGISTERS).launches
    assert scratch_bytes(launch, WITH_REGISTERS, SIZES) == TILE


def test_what_lies_between_two_steps_counts_without_registers():
    spec = spec_of("y[m, k] = exp(x[m, k]) * (x[m, k] + 1.0)")
    (launch,) = lowered(spec, *ROW, sizes=SIZES).launches
    (between,) = temporaries(launch)
    assert (between.dtype, between.axes) == ("f32", ("m", "k"))
    assert scratch_bytes(launch, SMALL, SIZES) == 3 * TILE
    assert scratch_bytes(launch, WITH_REGISTERS, SIZES) == TILE


def test_what_does_not_fit_is_said_with_the_sizes():
    with pytest.raises(KernelError) as caught:
        lowered("softmax", *ROW, sizes={"M": 8, "K": 8192})
    text = str(caught.value)
    assert f"`softmax_0` needs {3 * 4 * 8192 * 4 + 32} bytes of `scratch`" in text
    assert "the machine has 262144; the largest value is `x`: f32[m=4, k=8192] x 1, 131072" in text
    assert caught.value.hint == "use a smaller tile or a smaller depth"


def test_what_fits_on_the_last_byte_fits():
    spec = spec_of("y[m, k] = exp(x[m, k])")
    sizes = {"M": 1, "K": SMALL.scratch_bytes // 8}
    (launch,) = lowered(spec, sizes=sizes).launches
    assert scratch_bytes(launch, SMALL, sizes) == SMALL.scratch_bytes
    require_fit(launch, SMALL, sizes)
    with pytest.raises(KernelError):
        require_fit(launch, SMALL, {**sizes, "K": sizes["K"] + 1})
